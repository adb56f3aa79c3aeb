//! `cargo xtask interop`: runs pinch against third-party programs.
//!
//! Each check installs its peer from a package registry into `target/interop`, runs both programs, and prints a table. None of this is part
//! of CI.

mod table;

mod npm;

mod matrix;

pub(crate) mod pi;

mod llama;

mod neutral;

mod events;

mod modes;

mod rpc;

mod sdk;

mod openclaw;

mod codex;

mod terminal;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use clap::Subcommand;

/// Arguments of `cargo xtask interop`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    peer: InteropPeer,
}

#[derive(Subcommand)]
enum InteropPeer {
    /// Streams text, makes calls and aborts with the three wire formats of llama.cpp's server, and holds long conversations that are
    /// compacted. Needs python3 and PyPI, and npm to open the sessions in pi.
    Llama(llama::Args),
    /// Compares pinch's requests with those of the official clients of Anthropic, OpenAI and Google. Needs node and npm.
    Sdk,
    /// Reads pinch's session files with four versions of pi, and theirs with pinch. Needs npm.
    Pi,
    /// Drives the RPC modes of pinch and pi with pi's own client. Needs npm.
    Rpc(rpc::Args),
    /// Runs pi and pinch with the same command lines, in print and JSON mode, and compares their requests, output and files.
    ///
    /// Each scenario runs in separate directories against a scripted server on the loopback interface. Needs npm for pi, and cargo for its
    /// file search programs.
    Modes(modes::Args),
    /// Lets OpenClaw and pinch take turns on one state directory: sessions by key, transcripts, totals, credentials and locks. Needs npm.
    Openclaw,
    /// Runs Codex as the backend of an agent, against a scripted server: answers, resumed and lost conversations. Needs node and npm.
    Codex,
    /// Runs pinch in tmux: sizes, resize storms while streaming, suspension, the external editor, pastes and signals. Needs tmux and bash.
    Terminal(terminal::Args),
}

/// Runs the command; returns true when all checks passed.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    match &args.peer {
        InteropPeer::Llama(args) => llama::run(args),
        InteropPeer::Sdk => sdk::run(),
        InteropPeer::Pi => pi::run(),
        InteropPeer::Rpc(args) => rpc::run(args),
        InteropPeer::Modes(args) => modes::run(args),
        InteropPeer::Openclaw => openclaw::run(),
        InteropPeer::Codex => codex::run(),
        InteropPeer::Terminal(args) => terminal::run(args),
    }
}

/// The directory of a peer, created if missing.
fn folder(peer: &str) -> anyhow::Result<PathBuf> {
    let folder = crate::cargo::target_dir()?.join("interop").join(peer);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Runs a command; its failure ends the check.
fn must(command: &mut Command) -> anyhow::Result<()> {
    println!("==> {command:?}");
    let status = command.status().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{:?} failed: {status}", command.get_program());
    }
    Ok(())
}

//! `cargo xtask interop`: pinch beside programs of other people.
//!
//! Each check installs its peer from a package registry into `target/interop`, runs both, and prints a table. None of it is part of CI.

mod table;

mod npm;

mod matrix;

mod llama;

pub(crate) mod pi;

mod neutral;

mod events;

mod modes;

mod rpc;

mod sdk;

mod openclaw;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use clap::Subcommand;

/// What `cargo xtask interop` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    peer: InteropPeer,
}

#[derive(Subcommand)]
enum InteropPeer {
    /// Streams text, calls and aborts through the three wire formats of llama.cpp's server. Needs python3 and PyPI.
    Llama,
    /// Compares our requests with those of the official clients of Anthropic, OpenAI and Google. Needs node and npm.
    Sdk,
    /// Lets four versions of pi read our session files, and us theirs. Needs npm.
    Pi,
    /// Drives pinch's RPC mode with pi's own client, and pi's beside it. Needs npm.
    Rpc(rpc::Args),
    /// Runs pi's program and pinch with the same command lines, in print and JSON mode, and compares what they ask the model, say and write.
    ///
    /// Each scenario runs in directories of its own against a scripted server on the loopback. Needs npm for pi, and cargo for the programs it
    /// searches files with.
    Modes(modes::Args),
    /// Lets OpenClaw and pinch take turns on one state directory: sessions by key, transcripts, totals, credentials and locks. Needs npm.
    Openclaw,
}

/// Runs the command; true when everything held.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    match &args.peer {
        InteropPeer::Llama => llama::run(),
        InteropPeer::Sdk => sdk::run(),
        InteropPeer::Pi => pi::run(),
        InteropPeer::Rpc(args) => rpc::run(args),
        InteropPeer::Modes(args) => modes::run(args),
        InteropPeer::Openclaw => openclaw::run(),
    }
}

/// The directory of a peer, made when it is missing.
fn folder(peer: &str) -> anyhow::Result<PathBuf> {
    let folder = crate::cargo::target_dir()?.join("interop").join(peer);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Runs a command whose failure ends the check.
fn must(command: &mut Command) -> anyhow::Result<()> {
    println!("==> {command:?}");
    let status = command.status().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{:?} failed: {status}", command.get_program());
    }
    Ok(())
}

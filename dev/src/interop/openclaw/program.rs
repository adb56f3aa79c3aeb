//! Runs OpenClaw and pinch on a shared state directory, one message at a time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::interop::npm;

/// The version of OpenClaw.
const VERSION: &str = "2026.2.9";

/// The WhatsApp client. One of its dependencies cannot be installed from the registry, and no check needs it, so an empty module replaces it.
const LEFT_OUT: &str = "@whiskeysockets/baileys";

/// Names that OpenClaw imports from [`LEFT_OUT`].
const IMPORTED: [&str; 10] = [
    "DisconnectReason",
    "downloadMediaMessage",
    "extractMessageContent",
    "fetchLatestBaileysVersion",
    "getContentType",
    "isJidGroup",
    "makeCacheableSignalKeyStore",
    "makeWASocket",
    "normalizeMessageContent",
    "useMultiFileAuthState",
];

/// The installed programs.
pub(super) struct Programs {
    folder: PathBuf,
    pinch: PathBuf,
}

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerProgram {
    OpenClaw,
    Pinch,
}

impl PeerProgram {
    pub(super) const BOTH: [Self; 2] = [Self::OpenClaw, Self::Pinch];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenClaw => "OpenClaw",
            Self::Pinch => "pinch",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::OpenClaw => Self::Pinch,
            Self::Pinch => Self::OpenClaw,
        }
    }
}

impl Programs {
    /// Installs OpenClaw and Node from npm, unless they are installed, and builds pinch.
    pub(super) fn get() -> anyhow::Result<Self> {
        let folder = crate::interop::folder("openclaw")?;
        npm::install(&folder.join("node"), &[npm::NODE_24])?;
        let stand_in = folder.join("left-out");
        std::fs::create_dir_all(&stand_in)?;
        let exports: String = IMPORTED.iter().map(|name| format!("export const {name} = undefined;\n")).collect();
        std::fs::write(stand_in.join("index.js"), exports + "export default {};\n")?;
        let module = format!(r#"{{"name":"{LEFT_OUT}","version":"7.0.0-rc.9","type":"module","main":"index.js"}}"#);
        std::fs::write(stand_in.join("package.json"), module)?;
        let manifest = format!(r#"{{"private":true,"overrides":{{"{LEFT_OUT}":"file:../left-out"}}}}"#);
        npm::install_with(&folder.join(VERSION), &manifest, &[&format!("openclaw@{VERSION}")])?;
        if !crate::cargo::run(&["build", "--quiet", "-p", "pinch-cli"])? {
            bail!("cannot build pinch");
        }
        let pinch = crate::cargo::target_dir()?.join("debug/pinch");
        Ok(Self { folder, pinch })
    }

    /// Returns a command of a program, with the same environment for both.
    pub(super) fn command(&self, program: PeerProgram, state: &Path) -> Command {
        let node = npm::node_bin(&self.folder.join("node"));
        let mut command = match program {
            PeerProgram::Pinch => Command::new(&self.pinch),
            PeerProgram::OpenClaw => {
                let mut command = Command::new(node.join("node"));
                command.arg(self.folder.join(VERSION).join("node_modules/openclaw/openclaw.mjs"));
                command
            }
        };
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(node).chain(std::env::split_paths(&usual)));
        command.env_clear().env("PATH", path.unwrap_or(usual)).env("HOME", state).env("OPENCLAW_STATE_DIR", state);
        command.current_dir(state).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the command that answers one message.
    pub(super) fn agent(&self, program: PeerProgram, state: &Path, session: &[&str], message: &str) -> Command {
        let mut command = self.command(program, state);
        command.args(["agent", "--local", "--json", "--message", message]).args(session);
        command
    }
}

/// Parses the JSON object that a program printed.
pub(super) fn printed(program: PeerProgram, output: &Output) -> anyhow::Result<Value> {
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let object = said.find('{').map(|at| serde_json::from_str::<Value>(&said[at..]));
    match object {
        Some(Ok(value)) if output.status.success() => Ok(value),
        _ => bail!("{} failed ({}): {} {}", program.name(), output.status, said.trim(), complaint.trim()),
    }
}

/// Runs a command and parses its output.
pub(super) fn run(program: PeerProgram, command: &mut Command) -> anyhow::Result<Value> {
    let output = command.output().with_context(|| format!("cannot start {}", program.name()))?;
    printed(program, &output)
}

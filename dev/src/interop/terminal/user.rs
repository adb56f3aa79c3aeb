//! A user with a separate directory, whose model is on a scripted server.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::cargo;
use crate::interop::pi::peer::{Installed, TARGET};
use crate::tmux::Tmux;

/// Text in the empty editor.
const READY: &str = "for commands";

/// The user.
pub(super) struct TmuxUser {
    /// Runs the server on a separate thread.
    runtime: Runtime,
    pub(super) server: Server,
    home: TempDir,
}

impl TmuxUser {
    pub(super) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let server = runtime.block_on(Server::start())?;
        let user = Self { runtime, server, home: tempfile::tempdir()? };
        let home = user.home.path();
        let models = json!({"providers": {"local": {
            "baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none",
            "models": [{"id": "m1", "contextWindow": 10_000_000, "maxTokens": 8192}],
        }}});
        std::fs::create_dir_all(home.join("agent"))?;
        std::fs::write(home.join("agent/models.json"), models.to_string())?;
        std::fs::write(home.join("agent/settings.json"), r#"{"retry": {"enabled": false}}"#)?;
        let pinch = cargo::profile_dir()?.join("pinch");
        let agent = home.join("agent");
        let start = format!("exec '{}' --agent-dir '{}' --model local/m1 \"$@\"", pinch.display(), agent.display());
        script(&home.join("pinch"), &start)?;
        script(&home.join("editor.sh"), "printf ' and edited' >> \"$1\"")?;
        Ok(user)
    }

    /// Starts a shell in a window.
    pub(super) fn shell(&self, size: (u16, u16)) -> anyhow::Result<Tmux> {
        Tmux::start(self.home.path(), size)
    }

    /// Starts a shell in a window, and pinch in the shell.
    pub(super) fn start(&self, size: (u16, u16), args: &str) -> anyhow::Result<Tmux> {
        let tmux = self.shell(size)?;
        self.open(&tmux, args)?;
        Ok(tmux)
    }

    /// Starts a shell in a window, and pi in the shell, with the same files.
    pub(super) fn start_pi(&self, size: (u16, u16), installed: &Installed) -> anyhow::Result<Tmux> {
        let (node, program) = (installed.node_of(TARGET), installed.program(TARGET));
        let variables =
            format!("PI_OFFLINE=1 PI_TELEMETRY=0 PI_CODING_AGENT_DIR='{}'", self.home.path().join("agent").display());
        let start = format!(
            "{variables} exec '{}' '{}' --model local/m1 --tui-mode regular",
            node.display(),
            program.display()
        );
        script(&self.home.path().join("pi"), &start)?;
        let tmux = self.shell(size)?;
        tmux.enter("clear; ./pi")?;
        tmux.wait_for("(auto)")?;
        Ok(tmux)
    }

    /// Starts pinch in the shell.
    pub(super) fn open(&self, tmux: &Tmux, args: &str) -> anyhow::Result<()> {
        tmux.enter(&format!("clear; ./pinch {args}"))?;
        tmux.wait_for(READY)
    }

    /// Makes the model answer the next request with a text.
    pub(super) fn answer(&self, text: &str) {
        self.server.reply(ServerReply::sse(AnthropicResponse::new("msg_1").text(text).stop("end_turn").concat()));
    }
}

impl Drop for TmuxUser {
    fn drop(&mut self) {
        // The server's tasks need their runtime to shut down.
        let _entered = self.runtime.enter();
    }
}

/// Writes a shell script.
fn script(path: &Path, body: &str) -> anyhow::Result<()> {
    std::fs::write(path, format!("#!/bin/sh\n{body}\n"))?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

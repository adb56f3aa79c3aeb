//! Prepared answers of a model server, and a program configured to request them.

use std::path::{Path, PathBuf};
use std::process::Command;

use pinch_testing::server::Server;
use pinch_testing::wires::anthropic::AnthropicResponse;
use pinch_testing::wires::{Answer, AnswerPart, Wire, google};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Bytes per text chunk: one and a half words, as models send them.
pub(crate) const PIECE: usize = 8;

/// An answer of `n` text chunks in Anthropic's format.
pub(crate) fn anthropic(n: usize) -> String {
    AnthropicResponse::new("msg_1").with_chunks(n).text(&text(n)).stop("end_turn").concat()
}

/// An answer of `n` text chunks in any format.
pub(crate) fn answer(wire: &dyn Wire, n: usize) -> Vec<u8> {
    let mut answer = Answer::of([AnswerPart::Text(text(n))]);
    answer.pieces = n;
    wire.frames(&answer).concat()
}

/// The same in Google's format without a usage-only chunk, which not every client accepts.
pub(crate) fn google(n: usize) -> Vec<u8> {
    google::GoogleResponse::new("r1", "m1").with_chunks(n).text(&text(n)).stop("STOP").concat().into_bytes()
}

fn text(n: usize) -> String {
    (0..n).map(|i| format!("word{:03} ", i % 1000)).collect()
}

/// A scripted server, and the directory of a user whose only provider is that server.
pub(crate) struct TranscriptSetup {
    /// Runs the server on separate threads.
    runtime: Runtime,
    pub(crate) server: Server,
    home: TempDir,
    /// The user's working directory.
    cwd: PathBuf,
}

impl TranscriptSetup {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let server = runtime.block_on(Server::start())?;
        let home = tempfile::tempdir()?;
        let models = json!({"providers": {"bench": {
            "baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "none",
            "models": [{"id": "m1", "contextWindow": 10_000_000, "maxTokens": 8192}],
        }}});
        std::fs::create_dir_all(home.path().join("agent"))?;
        std::fs::write(home.path().join("agent/models.json"), models.to_string())?;
        let cwd = home.path().to_owned();
        Ok(Self { runtime, server, home, cwd })
    }

    /// A command that calls the server.
    pub(crate) fn command(&self, pinch: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(pinch);
        let agent = self.home.path().join("agent");
        command.current_dir(&self.cwd).env_clear().env("HOME", self.home.path()).env("PATH", "/usr/bin:/bin");
        command.arg("--agent-dir").arg(agent).args(["--model", "bench/m1"]).args(args);
        command
    }

    /// The user's directory.
    pub(crate) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Changes the user's working directory, which is [`TranscriptSetup::folder`] initially.
    pub(crate) fn work_in(&mut self, cwd: PathBuf) {
        self.cwd = cwd;
    }
}

impl Drop for TranscriptSetup {
    fn drop(&mut self) {
        // The server's tasks need their runtime to shut down.
        let _entered = self.runtime.enter();
    }
}

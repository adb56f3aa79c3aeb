//! A user with a separate directory and a scripted server.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// A test user, isolated from the real one.
pub(crate) struct TestUser {
    home: TempDir,
    pub(crate) server: Server,
}

/// Output and exit code of the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestUser {
    /// Creates a user whose models.json has `local/m1` on the scripted server, and `nowhere/m1` where nothing listens.
    pub(crate) async fn new() -> Self {
        let user = Self { home: tempfile::tempdir().unwrap(), server: Server::start().await.unwrap() };
        let models = json!({"providers": {
            "local": {
                "baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "m1"}],
            },
            "nowhere": {
                "baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "m1"}],
            },
        }});
        user.write("agent/models.json", &models.to_string());
        // Failures are reported without retries.
        user.write("agent/settings.json", r#"{"retry": {"enabled": false}}"#);
        user
    }

    /// Returns a path in the user's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Makes the server answer the next request with a text.
    pub(crate) fn answer(&self, text: &str) {
        self.server.reply(ServerReply::sse(AnthropicResponse::new("msg_1").text(text).stop("end_turn").concat()));
    }

    /// Returns a command for a conversation in the user's directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let agent_dir = self.path("agent");
        self.program(&[&["--agent-dir", agent_dir.to_str().unwrap()], args].concat())
    }

    /// Returns a command for the program in the user's directory.
    pub(crate) fn program(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pinch"));
        command.current_dir(self.home.path()).env_clear().env("HOME", self.home.path()).env("PATH", "/usr/bin:/bin");
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs a conversation to its end. The user's directory is replaced with `HOME` in the output.
    pub(crate) async fn run(&self, args: &[&str]) -> CommandOutput {
        self.ran(self.command(args).output().await.unwrap())
    }

    /// Runs the program to its end.
    pub(crate) async fn run_program(&self, args: &[&str]) -> CommandOutput {
        self.ran(self.program(args).output().await.unwrap())
    }

    /// Converts the program's output.
    pub(crate) fn ran(&self, output: std::process::Output) -> CommandOutput {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(self.home.path().to_str().unwrap(), "HOME");
        CommandOutput { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Returns the messages of the last request.
    pub(crate) fn asked(&self) -> Option<Value> {
        Some(self.server.requests().last()?.json()["messages"].clone())
    }
}

/// Returns all files below a directory.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// Sends SIGINT.
#[cfg(unix)]
pub(crate) async fn interrupt(child: &tokio::process::Child) {
    let pid = child.id().unwrap().to_string();
    let sent = Command::new("/bin/sh").args(["-c", "kill -INT $0", &pid]).status().await.unwrap();
    assert!(sent.success());
}

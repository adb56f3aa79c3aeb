//! Tools given hostile, broken or far too large input: each call ends in time, uses little memory, and leaves nothing running.
//!
//! Nothing outside a test's own directory is written.
#![cfg(unix)]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::tool_calls::FileTree;
use pinch_testing::child::TestChild;

mod commands;
mod devices;
mod paths;
mod sizes;

/// Longer than any of these calls takes on a busy machine, and much shorter than a hang.
const PATIENCE: Duration = Duration::from_secs(30);

impl FileTree {
    /// Returns the text of a result or an error; fails on timeout.
    async fn soon(&self, tool: &str, input: Value) -> String {
        let began = Instant::now();
        let text = tokio::time::timeout(PATIENCE, self.text(tool, input.clone())).await;
        let text = text.unwrap_or_else(|_| panic!("{tool} hangs on {:.200}", input.to_string()));
        assert!(began.elapsed() < PATIENCE, "{tool} took {:?} for {:.200}", began.elapsed(), input.to_string());
        text
    }

    /// Calls a tool in a separate process. Returns the text and the peak memory of the process in megabytes.
    fn measured(&self, tool: &str, input: &Value) -> (String, u64) {
        let ask = tempfile::NamedTempFile::new().unwrap();
        let task = json!({"folder": self.root(), "tool": tool, "input": input});
        std::fs::write(ask.path(), task.to_string()).unwrap();
        let mut child = TestChild::hurried("tool", ask.path(), 60);
        let peak = child.wait_for("peak").unwrap_or_else(|| panic!("{tool} used its time up for {input:.200}"));
        let text: String = serde_json::from_str(&child.wait_for("told").unwrap()).unwrap();
        let text = text.replace(&*self.root().to_string_lossy(), ".");
        (text, peak.parse::<u64>().unwrap_or_default() / 1024)
    }
}

fn shell(script: &str, folder: &Path) {
    let mut command = std::process::Command::new("sh");
    assert!(command.args(["-c", script]).current_dir(folder).status().unwrap().success(), "{script}");
}

/// Reports why a test was skipped.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

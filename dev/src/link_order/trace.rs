//! Usual runs of the program, and which functions they call.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, bail};
use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::transcript::TranscriptSetup;

/// What the model of an embedded run is called.
const MODEL: &str = "anthropic/claude-sonnet-4-5";

/// A kind of run: its name, and what it does.
type UsualRun = (&'static str, fn(&UsualRuns) -> anyhow::Result<()>);

/// The most frequent first.
const RUNS: [UsualRun; 5] = [
    ("--version", UsualRuns::version),
    ("-p", UsualRuns::print),
    ("--mode rpc", UsualRuns::rpc),
    ("-p with tools", UsualRuns::tools),
    ("agent", UsualRuns::agent),
];

/// The symbols of the functions that each usual run of this program calls.
pub(super) fn called(pinch: &Path, scratch: &Path) -> anyhow::Result<Vec<(&'static str, HashSet<String>)>> {
    let traces = scratch.join("traces");
    let runs = UsualRuns { setup: TranscriptSetup::new()?, traced: traced(pinch, scratch, &traces)? };
    let trace = |(name, run): UsualRun| {
        fs::create_dir(&traces)?;
        run(&runs)?;
        let called = read(&traces)?;
        fs::remove_dir_all(&traces)?;
        Ok((name, called))
    };
    RUNS.into_iter().map(trace).collect()
}

/// The symbols in all traces of a directory.
fn read(traces: &Path) -> anyhow::Result<HashSet<String>> {
    let mut called = HashSet::new();
    for trace in fs::read_dir(traces)? {
        let trace = fs::read_to_string(trace?.path())?;
        // A function that calls itself is listed once more for each depth, as `name'2`.
        let names = trace.lines().filter_map(|line| line.strip_prefix("fn=")?.split('\'').next());
        called.extend(names.map(str::to_owned));
    }
    Ok(called)
}

/// Writes a command that runs the program under valgrind, which leaves a file for each process.
fn traced(pinch: &Path, scratch: &Path, traces: &Path) -> anyhow::Result<PathBuf> {
    let command = scratch.join("pinch");
    let mut text =
        String::from("#!/bin/sh\nexec valgrind --quiet --tool=callgrind --demangle=no --compress-strings=no ");
    writeln!(text, "'--callgrind-out-file={}/%p' '{}' \"$@\"", traces.display(), pinch.display())?;
    fs::write(&command, text)?;
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755))?;
    Ok(command)
}

struct UsualRuns {
    setup: TranscriptSetup,
    /// The program under valgrind.
    traced: PathBuf,
}

impl UsualRuns {
    fn version(&self) -> anyhow::Result<()> {
        done(&mut self.setup.command(&self.traced, &["--version"]))
    }

    fn print(&self) -> anyhow::Result<()> {
        self.answer("It is so.");
        done(&mut self.setup.command(&self.traced, &["-p", "hello"]))
    }

    fn tools(&self) -> anyhow::Result<()> {
        self.call_tools();
        self.answer("It is done.");
        done(&mut self.setup.command(&self.traced, &["-p", "hello"]))
    }

    fn rpc(&self) -> anyhow::Result<()> {
        self.answer("It is so.");
        let mut command = self.setup.command(&self.traced, &["--mode", "rpc"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().context("no input")?;
        let mut events = BufReader::new(child.stdout.take().context("no output")?).lines();
        writeln!(stdin, "{}", json!({"id": "1", "type": "prompt", "message": "hello"}))?;
        // Closing the input would end the run.
        for event in events.by_ref() {
            if event?.contains("\"agent_end\"") {
                break;
            }
        }
        writeln!(stdin, "{}", json!({"id": "2", "type": "get_state"}))?;
        drop(stdin);
        events.try_for_each(|event| event.map(drop))?;
        succeeded(child.wait()?, "")
    }

    /// An embedded run.
    fn agent(&self) -> anyhow::Result<()> {
        self.answer("It is so.");
        let state = tempfile::tempdir()?;
        let config = json!({
            "agents": {"defaults": {"model": MODEL}},
            "models": {"providers": {"anthropic": {"baseUrl": self.setup.server.url(), "apiKey": "none"}}},
        });
        fs::write(state.path().join("pinch.json"), config.to_string())?;
        let mut command = Command::new(&self.traced);
        command.args(["agent", "--session-id", "s1", "--message", "hello", "--json"]).current_dir(&state);
        command.env_clear().env("HOME", self.setup.folder()).env("PATH", "/usr/bin:/bin");
        done(command.env("PINCH_STATE_DIR", state.path()))
    }

    /// Makes the model answer the next request with a text.
    fn answer(&self, text: &str) {
        self.reply(AnthropicResponse::new("msg_1").with_chunks(5).text(text).stop("end_turn"));
    }

    /// Makes the model answer the next request with calls of the usual tools.
    fn call_tools(&self) {
        let edit = r#"{"path": "notes.txt", "edits": [{"oldText": "two", "newText": "three"}]}"#;
        let calls = AnthropicResponse::new("msg_1").thinking("First the files.", "c2ln").text("I look at the files.");
        let calls = calls
            .tool_call("c1", "write", r#"{"path": "notes.txt", "content": "one\ntwo\n"}"#)
            .tool_call("c2", "read", r#"{"path": "notes.txt"}"#)
            .tool_call("c3", "bash", r#"{"command": "ls"}"#)
            .tool_call("c4", "edit", edit);
        self.reply(calls.stop("tool_use"));
    }

    fn reply(&self, frames: Vec<String>) {
        self.setup.server.reply(ServerReply::sse(frames.concat()));
    }
}

/// Runs a command; it must succeed.
fn done(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {:?}", command.get_program()))?;
    succeeded(output.status, &String::from_utf8_lossy(&output.stderr))
}

fn succeeded(status: ExitStatus, errors: &str) -> anyhow::Result<()> {
    if !status.success() {
        bail!("a run ended with {status} (is valgrind installed?): {errors}");
    }
    Ok(())
}

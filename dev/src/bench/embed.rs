//! Embedded runs: a single one from the start of the program to its end, with answers of various lengths, and many in one process.

use std::path::Path;
use std::process::Command;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;
use tempfile::TempDir;

use super::{Figure, median, process};
use crate::transcript::{TranscriptSetup, anthropic};

pub(super) mod steady;
pub(super) mod bare;
pub(super) mod many;
pub(super) mod idle;
pub(super) mod together;
mod delivery;

const TIMES: usize = 30;

/// Chunks per answer, with the time budget in seconds and the memory budget in megabytes.
const SIZES: [(usize, f64, f64); 3] = [(2_000, 0.05, 25.0), (20_000, 0.15, 30.0), (200_000, 1.0, 40.0)];

/// Answer text in chunks of 18 characters.
const PIECE: &str = "eighteen letters, ";

/// Measures `pinch agent`, each time in a new session, then many runs in one process.
pub(super) fn measure(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut figures = one_run(pinch)?;
    for (n, seconds, megabytes) in SIZES {
        let answer = AnthropicResponse::new("msg_1").with_chunks(n).text(&PIECE.repeat(n)).stop("end_turn").concat();
        figures.extend(long_answer(pinch, &format!("{n} deltas"), answer, seconds, megabytes)?);
    }
    let line = AnthropicResponse::new("msg_1").text(&"x".repeat(1 << 20)).stop("end_turn").concat();
    figures.extend(long_answer(pinch, "one line of 1 MB", line, 0.1, 40.0)?);
    let reasoning =
        AnthropicResponse::new("msg_1").with_chunks(1_000_000).thinking(&"thought ".repeat(1_000_000), "c2ln");
    let reasoning = reasoning.with_chunks(1).text("Done.").stop("end_turn").concat();
    figures.extend(long_answer(pinch, "1 M deltas of hidden reasoning", reasoning, 3.0, 40.0)?);
    figures.extend(delivery::measure()?);
    figures.extend(many::measure()?);
    figures.extend(idle::measure()?);
    figures.extend(together::measure()?);
    Ok(figures)
}

/// Starts `pinch agent` repeatedly against one server, in a separate state directory.
struct AgentBench {
    setup: TranscriptSetup,
    state: TempDir,
    n: usize,
}

impl AgentBench {
    fn new(answer: String) -> anyhow::Result<Self> {
        let setup = TranscriptSetup::new()?;
        setup.server.reply(ServerReply::sse(answer)).repeat_last();
        let state = tempfile::tempdir()?;
        let config = json!({
            "agents": {"defaults": {"model": "anthropic/claude-sonnet-4-5"}},
            "models": {"providers": {"anthropic": {"baseUrl": setup.server.url(), "apiKey": "none"}}},
        });
        std::fs::write(state.path().join("pinch.json"), config.to_string())?;
        Ok(Self { setup, state, n: 0 })
    }

    fn command(&mut self, pinch: &Path) -> Command {
        self.n += 1;
        let (dir, session) = (self.state.path(), format!("s{}", self.n));
        let mut command = Command::new(pinch);
        command.args(["agent", "--session-id", &session, "--message", "hello", "--json"]);
        command.env_clear().env("HOME", self.setup.folder()).env("PINCH_STATE_DIR", dir).current_dir(dir);
        command
    }
}

fn one_run(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut agent = AgentBench::new(anthropic(20))?;
    process::run(&mut agent.command(pinch), false)?;
    let times = (0..TIMES).map(|_| Ok(process::run(&mut agent.command(pinch), false)?.time.as_secs_f64() * 1e3));
    let time = median(times.collect::<anyhow::Result<_>>()?);
    let memory = process::peak_before_output(&mut agent.command(pinch))?;
    Ok(vec![
        Figure::at_most("pinch agent, with its server", time, 30.0, "ms"),
        Figure::at_most("pinch agent, memory", memory, 18.0, "MB"),
    ])
}

fn long_answer(pinch: &Path, what: &str, answer: String, seconds: f64, megabytes: f64) -> anyhow::Result<[Figure; 2]> {
    let mut agent = AgentBench::new(answer)?;
    process::run(&mut agent.command(pinch), false)?;
    let times = (0..3).map(|_| Ok(process::run(&mut agent.command(pinch), false)?.time.as_secs_f64()));
    let time = median(times.collect::<anyhow::Result<_>>()?);
    let peak = process::run(&mut agent.command(pinch), true)?.peak_mb;
    Ok([
        Figure::at_most(format!("pinch agent, {what}"), time, seconds, "s"),
        Figure::at_most(format!("pinch agent, {what}, memory"), peak, megabytes, "MB"),
    ])
}

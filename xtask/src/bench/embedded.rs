//! One embedded run, from the start of the program to its end.

use std::path::Path;
use std::process::Command;

use pinch_testing::server::Reply;
use serde_json::json;

use super::transcript::{Setup, anthropic};
use super::{Figure, median, process};

const TIMES: usize = 30;

/// `pinch agent`, each time in a session of its own.
pub(super) fn measure(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let setup = Setup::new()?;
    setup.server.reply(Reply::sse(anthropic(20))).repeat_last();
    let state = tempfile::tempdir()?;
    let config = json!({
        "agents": {"defaults": {"model": "anthropic/claude-sonnet-4-5"}},
        "models": {"providers": {"anthropic": {"baseUrl": setup.server.url(), "apiKey": "none"}}},
    });
    std::fs::write(state.path().join("pinch.json"), config.to_string())?;
    let mut n = 0;
    let mut run = || {
        n += 1;
        let mut command = Command::new(pinch);
        command.args(["agent", "--session-id", &format!("s{n}"), "--message", "hello", "--json"]);
        command.env_clear().env("HOME", state.path()).env("PINCH_STATE_DIR", state.path()).current_dir(state.path());
        command
    };
    process::run(&mut run(), false)?;
    let times = (0..TIMES).map(|_| Ok(process::run(&mut run(), false)?.time.as_secs_f64() * 1e3));
    let time = median(times.collect::<anyhow::Result<_>>()?);
    Ok(vec![
        Figure::at_most("pinch agent, with its server", time, 30.0, "ms"),
        Figure::at_most("pinch agent, memory", process::peak_before_output(&mut run())?, 25.0, "MB"),
    ])
}

//! Start-up time of the program, for a user with few resources and for one with many.

mod furnished;

use std::path::Path;
use std::process::Command;

use pinch_testing::server::ServerReply;

use super::{Figure, median, process};
use crate::transcript::{TranscriptSetup, anthropic};

const TIMES: usize = 30;

/// The first question that a controlling program sends.
const GET_STATE: &str = "{\"id\":\"1\",\"type\":\"get_state\"}\n";

/// `pinch --version`, one whole `pinch -p`, and `pinch --mode rpc` up to its first answer.
pub(super) fn measure(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut setup = TranscriptSetup::new()?;
    // The server answers immediately, so all time is spent in the program.
    setup.server.reply(ServerReply::sse(anthropic(20))).repeat_last();
    let mut figures = rows(pinch, &setup, "", 12.0)?;
    furnished::furnish(&mut setup)?;
    figures.extend(rows(pinch, &setup, ", much installed", 24.0)?);
    Ok(figures)
}

/// The figures for one user.
fn rows(pinch: &Path, setup: &TranscriptSetup, whose: &str, memory: f64) -> anyhow::Result<Vec<Figure>> {
    let version = || setup.command(pinch, &["--version"]);
    let print = || setup.command(pinch, &["-p", "hello"]);
    let rpc = || setup.command(pinch, &["--mode", "rpc", "--no-session"]);
    let milliseconds = |command: &dyn Fn() -> Command| -> anyhow::Result<f64> {
        let times = (0..TIMES).map(|_| Ok(process::run(&mut command(), false)?.time.as_secs_f64() * 1e3));
        Ok(median(times.collect::<anyhow::Result<_>>()?))
    };
    process::run(&mut print(), false)?;
    let answers = (0..TIMES)
        .map(|_| process::answer(&mut rpc(), GET_STATE))
        .collect::<anyhow::Result<Vec<process::Answered>>>()?;
    let rpc_ms = median(answers.iter().map(|answer| answer.time.as_secs_f64() * 1e3).collect());
    let rpc_mb = answers.iter().map(|answer| answer.peak_mb).fold(0.0, f64::max);
    let row = |what: &str, measured, budget, unit| Figure::at_most(format!("{what}{whose}"), measured, budget, unit);
    Ok(vec![
        row("pinch --version", milliseconds(&version)?, 5.0, "ms"),
        row("pinch --version, memory", process::peak_before_output(&mut version())?, 6.0, "MB"),
        row("pinch -p, beyond the server", milliseconds(&print)?, 20.0, "ms"),
        row("pinch -p, memory", process::peak_before_output(&mut print())?, memory, "MB"),
        row("pinch --mode rpc, first answer", rpc_ms, 20.0, "ms"),
        row("pinch --mode rpc, memory", rpc_mb, memory, "MB"),
    ])
}

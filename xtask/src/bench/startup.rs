//! How fast the program is there.

use std::path::Path;
use std::process::Command;

use pinch_testing::server::Reply;

use super::transcript::{Setup, anthropic};
use super::{Figure, median, process};

const TIMES: usize = 30;

/// `pinch --version` and one whole `pinch -p`.
pub(super) fn measure(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let version = || {
        let mut command = Command::new(pinch);
        command.arg("--version");
        command
    };
    let milliseconds = |command: &dyn Fn() -> Command| -> anyhow::Result<f64> {
        let times = (0..TIMES).map(|_| Ok(process::run(&mut command(), false)?.time.as_secs_f64() * 1e3));
        Ok(median(times.collect::<anyhow::Result<_>>()?))
    };
    let setup = Setup::new()?;
    // It answers at once: all the time is the program's own.
    setup.server.reply(Reply::sse(anthropic(20))).repeat_last();
    let print = || setup.command(pinch, &["-p", "hello"]);
    process::run(&mut print(), false)?;
    Ok(vec![
        Figure::at_most("pinch --version", milliseconds(&version)?, 5.0, "ms"),
        Figure::at_most("pinch --version, memory", process::peak_before_output(&mut version())?, 10.0, "MB"),
        Figure::at_most("pinch -p, beyond the server", milliseconds(&print)?, 20.0, "ms"),
        Figure::at_most("pinch -p, memory", process::peak_before_output(&mut print())?, 20.0, "MB"),
    ])
}

//! JSON mode with answers of many chunks: the cost must grow linearly with their number.

use std::path::Path;

use pinch_testing::server::ServerReply;

use super::{Figure, process};
use crate::transcript::{TranscriptSetup, anthropic};

/// Chunks per answer, with the time budget in seconds and the memory budget in megabytes.
const SIZES: [(usize, f64, f64); 3] = [(2_000, 0.03, 20.0), (20_000, 0.08, 25.0), (200_000, 0.6, 40.0)];
/// Maximum ratio between the output per chunk of the longest and of the shortest answer.
const MAX_GROWTH: f64 = 1.05;

/// Time, memory and output for each size.
pub(super) fn measure(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut bytes_each = Vec::new();
    for (n, seconds, megabytes) in SIZES {
        let setup = TranscriptSetup::new()?;
        setup.server.reply(ServerReply::sse(anthropic(n))).repeat_last();
        let command = || setup.command(pinch, &["--mode", "json", "hello"]);
        process::run(&mut command(), false)?;
        let time = process::run(&mut command(), false)?.time.as_secs_f64();
        let watched = process::run(&mut command(), true)?;
        bytes_each.push(watched.n_bytes as f64 / n as f64);
        figures.push(Figure::at_most(format!("JSON mode, {n} deltas"), time, seconds, "s"));
        figures.push(Figure::at_most(format!("JSON mode, {n} deltas, memory"), watched.peak_mb, megabytes, "MB"));
    }
    if let [first, .., last] = bytes_each[..] {
        figures.push(Figure::at_most(
            format!("JSON mode, growth of {first:.0} bytes a delta"),
            last / first,
            MAX_GROWTH,
            "x",
        ));
    }
    Ok(figures)
}

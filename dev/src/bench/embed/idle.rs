//! Idle sessions: what an engine keeps of each after a run.

use std::process::Command;

use anyhow::{Context, bail};
use futures::{StreamExt, stream};

use super::many::engine;
use super::steady::{SHORT_PROMPT, Steady, raise_file_limit};
use crate::bench::{Figure, process};

const N: usize = 10_000;

/// Number of concurrent runs.
const SIDE_BY_SIDE: usize = 50;

/// Kilobytes per idle session.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    let server = Steady::start()?;
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["bench", "--idle", "--server", &server.url]).output()?;
    let Ok(kilobytes) = String::from_utf8_lossy(&output.stdout).trim().parse() else {
        bail!("the idle sessions failed: {}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(vec![Figure::at_most(format!("memory of each of {N} idle sessions"), kilobytes, 20.0, "KB")])
}

/// The measured process: runs each session once, and prints what is kept of each.
pub(in crate::bench) fn run(url: &str) -> anyhow::Result<()> {
    raise_file_limit();
    let dir = tempfile::tempdir()?;
    let engine = engine(dir.path(), url, SIDE_BY_SIDE)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let all = |names: std::ops::Range<usize>| {
            let runs = stream::iter(names)
                .map(|at| engine.run(engine.request(&format!("s{at}"), None, None, SHORT_PROMPT)).finish());
            async {
                let mut runs = std::pin::pin!(runs.buffer_unordered(SIDE_BY_SIDE));
                while let Some(result) = runs.next().await {
                    result?;
                }
                anyhow::Ok(())
            }
        };
        // Shared state exists after the first runs.
        all(0..4 * SIDE_BY_SIDE).await?;
        let before = process::in_use_mb("self").context("no /proc")?;
        all(4 * SIDE_BY_SIDE..4 * SIDE_BY_SIDE + N).await?;
        let after = process::in_use_mb("self").context("no /proc")?;
        println!("{:.2}", (after - before).max(0.0) * 1024.0 / N as f64);
        anyhow::Ok(())
    })
}

//! Runs in one process that end at the same moment: whether what is written at the end of each, such as credential health and the session
//! index, delays the others.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt};
use pinch_embed::coding_agent::tools::CODING;
use pinch_embed::config::Config;
use pinch_embed::delivery::{OutgoingBlock, PartialReply, Receipt, ReplySink, SendFailure};
use pinch_embed::engine::Engine;
use pinch_stdx::host::Host;
use serde_json::json;

use super::steady::{SHORT_PROMPT, Steady, TOGETHER, TOGETHER_PROMPT, raise_file_limit};
use crate::bench::{Figure, median};

/// Maximum milliseconds from the last delta to the last result.
const MAX_MS: f64 = 250.0;

const ROUNDS: usize = 5;

/// Timeout after which the benchmark counts as stuck.
const HANGS: Duration = Duration::from_secs(60);

/// Milliseconds from the last delta of all runs to the last result.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    let server = Steady::start()?;
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["bench", "--together", "--server", &server.url]).output()?;
    let Ok(milliseconds) = String::from_utf8_lossy(&output.stdout).trim().parse() else {
        bail!("the runs that end together failed: {}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(vec![Figure::at_most(format!("{TOGETHER} runs finishing at once"), milliseconds, MAX_MS, "ms")])
}

/// The measured process: runs on a single thread, and prints the milliseconds.
pub(in crate::bench) fn run(url: &str) -> anyhow::Result<()> {
    raise_file_limit();
    let dir = tempfile::tempdir()?;
    let engine = engine(dir.path(), url)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        // One-time work of the first runs, such as creating sessions, is not measured.
        tokio::time::timeout(HANGS, round(&engine, SHORT_PROMPT)).await.context("the first runs hang")??;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(tokio::time::timeout(HANGS, round(&engine, TOGETHER_PROMPT)).await.context("runs hang")??);
        }
        println!("{:.2}", median(times));
        anyhow::Ok(())
    })
}

/// Starts a run in each session.
async fn round(engine: &Engine, prompt: &str) -> anyhow::Result<f64> {
    let last_delta = Arc::new(LastDelta::default());
    let runs = FuturesUnordered::new();
    for at in 0..TOGETHER {
        let request = engine.message(&format!("agent:main:chat{at}"), prompt).await?;
        let run = engine.run(request).deliver(Arc::<LastDelta>::clone(&last_delta));
        runs.push(async { run.await.result });
    }
    let n = runs.map(|result| result.map(|_| 1)).try_fold(0, |n, one| std::future::ready(Ok(n + one))).await?;
    let ended = Instant::now();
    anyhow::ensure!(n == TOGETHER, "{n} runs ended");
    let last_delta = last_delta.0.lock().unwrap_or_else(PoisonError::into_inner).context("no deltas")?;
    Ok((ended - last_delta).as_secs_f64() * 1e3)
}

/// An engine with a credential whose use is recorded.
fn engine(dir: &Path, url: &str) -> anyhow::Result<Engine> {
    let document = json!({
        "agents": {"defaults": {
            "model": "bench/m1", "maxConcurrent": TOGETHER, "workspace": dir.join("workspace"),
        }},
        "auth": {"profiles": [{"id": "first", "provider": "bench", "apiKey": "none"}]},
        "models": {"providers": {"bench": {
            "baseUrl": url, "api": "anthropic-messages",
            "models": [{"id": "m1", "contextWindow": 1_000_000, "maxTokens": 8192}],
        }}},
    });
    let (config, problems) =
        Config::from_document(document.as_object().cloned().unwrap_or_default(), &dir.join("pinch.json"));
    anyhow::ensure!(problems.is_empty(), "{problems:?}");
    let host = Host::builder().home(dir).temp(dir).build();
    Ok(Engine::builder(dir.join("state")).host(host).config(config).builtin_tools(CODING).build())
}

/// The time of the last delta of all runs.
#[derive(Default)]
struct LastDelta(Mutex<Option<Instant>>);

impl ReplySink for LastDelta {
    fn send<'a>(&'a self, _: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }

    fn partial<'a>(&'a self, _: PartialReply<'a>) -> BoxFuture<'a, ()> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Box::pin(std::future::ready(()))
    }
}

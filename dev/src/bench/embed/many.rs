//! Many streaming runs in one process: how many one core can handle, and the cost of each.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::future::BoxFuture;
use pinch_embed::coding_agent::tools::CODING;
use pinch_embed::config::Config;
use pinch_embed::delivery::{OutgoingBlock, PartialReply, PartialScope, Receipt, ReplySink, SendFailure};
use pinch_embed::engine::Engine;
use pinch_stdx::host::Host;
use serde_json::json;
use tokio::task::JoinSet;

use super::bare::{self, WATCHED};
use super::steady::{CHUNKED, PIECE, RATE, Steady, raise_file_limit};
use crate::bench::{Figure, process};

/// Numbers of runs to try, until they need too much.
const SIZES: [usize; 9] = [100, 300, 600, 800, 1_000, 1_500, 2_000, 2_500, 3_000];

/// The maximum share of one core.
const MAX_CORES: f64 = 0.8;

/// The largest number of runs within [`MAX_CORES`], and the memory per run.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    let server = Steady::start()?;
    let (whole, kilobytes) = most(&server.url)?;
    let with_texts = one(whole, &server.url, PartialScope::Whole)?;
    let (chunked, _) = most(&format!("{}{CHUNKED}", server.url))?;
    let floor = bare::most(&server.url, MAX_CORES)?;
    Ok(vec![
        Figure::shown(
            format!("streams that can be read on {MAX_CORES} cores, a packet at a time"),
            floor.floor(),
            "streams",
        ),
        Figure::at_least(format!("runs of {RATE} deltas/s on {MAX_CORES} cores"), whole as f64, 2_000.0, "runs")
            .failing_at(150.0),
        // The HTTP client passes on such a body chunk by chunk.
        Figure::at_least(
            format!("runs of {RATE} deltas/s on {MAX_CORES} cores, chunked"),
            chunked as f64,
            1_000.0,
            "runs",
        )
        .failing_at(150.0),
        Figure::at_most("memory of each", kilobytes, 100.0, "KB"),
        Figure::shown("memory of each, with whole texts for its sink", with_texts.kilobytes, "KB"),
    ])
}

/// Returns the largest number of runs within [`MAX_CORES`], and the kilobytes of each.
fn most(url: &str) -> anyhow::Result<(usize, f64)> {
    let (mut most, mut kilobytes) = (0, f64::NAN);
    for n in SIZES {
        let measured = one(n, url, PartialScope::Change)?;
        println!("{n} runs: {:.2} cores, {:.0} KB a run", measured.cores, measured.kilobytes);
        if measured.cores >= MAX_CORES {
            break;
        }
        (most, kilobytes) = (n, measured.kilobytes);
    }
    Ok((most, kilobytes))
}

/// What runs need: processor cores all together, and kilobytes each.
struct Needs {
    cores: f64,
    kilobytes: f64,
}

/// Measures `n` runs in a process of their own.
fn one(n: usize, url: &str, scope: PartialScope) -> anyhow::Result<Needs> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "--many", &n.to_string(), "--server", url]);
    if scope == PartialScope::Whole {
        command.arg("--whole-texts");
    }
    let output = command.output()?;
    let line = String::from_utf8_lossy(&output.stdout);
    let mut figures = line.split_whitespace().map(str::parse::<f64>);
    let (Some(Ok(cores)), Some(Ok(kilobytes))) = (figures.next(), figures.next()) else {
        bail!("{n} runs failed: {}", String::from_utf8_lossy(&output.stderr));
    };
    Ok(Needs { cores, kilobytes })
}

/// The measured process: runs on a single thread, and prints the cores and the kilobytes per run.
pub(in crate::bench) fn run(n: usize, url: &str, scope: PartialScope) -> anyhow::Result<()> {
    raise_file_limit();
    let dir = tempfile::tempdir()?;
    let engine = engine(dir.path(), url, n)?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        // One-time costs of the first run, such as the HTTP client, are not counted for each run.
        let began = Arc::new(CountingSink::default());
        let mut runs = JoinSet::new();
        spawn(&engine, "warm", &began, scope, &mut runs);
        while began.n_bytes.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let before = process::in_use_mb("self").context("no /proc")?;
        let counting = Arc::new(CountingSink::default());
        for at in 0..n {
            spawn(&engine, &format!("s{at}"), &counting, scope, &mut runs);
            // Started a few at a time, as in a real program.
            if at % 20 == 19 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while counting.n_runs.load(Ordering::Relaxed) < n {
            anyhow::ensure!(Instant::now() < deadline, "not all runs began");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (n_before, used, clock) = (counting.n_deltas(), process::used_ms(), Instant::now());
        tokio::time::sleep(WATCHED).await;
        let (seconds, used) = (clock.elapsed().as_secs_f64(), process::used_ms() - used);
        let n_deltas = counting.n_deltas() - n_before;
        let each = (process::in_use_mb("self").context("no /proc")? - before) * 1024.0 / n as f64;
        let expected = seconds * (RATE * n) as f64;
        // A process that cannot keep up leaves text in its sockets.
        let cores = if (n_deltas as f64) < expected * 0.95 { f64::INFINITY } else { used / 1e3 / seconds };
        println!("{cores:.4} {each:.1} {:.2}", n_deltas as f64 / expected);
        runs.abort_all();
        anyhow::Ok(())
    })
}

fn spawn(engine: &Engine, session: &str, counting: &Arc<CountingSink>, scope: PartialScope, runs: &mut JoinSet<()>) {
    let run = engine.run(engine.request(session, None, None, "hello"));
    let sinks = Arc::new(OfRun { all: Arc::clone(counting), scope, has_begun: AtomicUsize::new(0) });
    runs.spawn(async move {
        if let Err(error) = run.deliver(sinks).await.result {
            eprintln!("a run failed: {error}");
        }
    });
}

/// An engine that knows one server and allows many concurrent runs.
pub(super) fn engine(dir: &Path, url: &str, n: usize) -> anyhow::Result<Engine> {
    let document = json!({
        "agents": {"defaults": {"model": "bench/m1", "maxConcurrent": n + 1, "workspace": dir.join("workspace")}},
        "models": {"providers": {"bench": {
            "baseUrl": url, "api": "anthropic-messages", "apiKey": "none",
            "models": [{"id": "m1", "contextWindow": 1_000_000, "maxTokens": 8192}],
        }}},
    });
    let document = document.as_object().cloned().unwrap_or_default();
    let (config, problems) = Config::from_document(document, &dir.join("pinch.json"));
    anyhow::ensure!(problems.is_empty(), "{problems:?}");
    let host = Host::builder().home(dir).temp(dir).build();
    Ok(Engine::builder(dir.join("state")).host(host).config(config).builtin_tools(CODING).build())
}

#[derive(Default)]
struct CountingSink {
    n_bytes: AtomicUsize,
    n_runs: AtomicUsize,
}

impl CountingSink {
    fn n_deltas(&self) -> usize {
        self.n_bytes.load(Ordering::Relaxed) / PIECE.len()
    }
}

struct OfRun {
    all: Arc<CountingSink>,
    scope: PartialScope,
    has_begun: AtomicUsize,
}

impl ReplySink for OfRun {
    fn send<'a>(&'a self, _: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }

    fn partial_scope(&self) -> PartialScope {
        self.scope
    }

    fn partial<'a>(&'a self, partial: PartialReply<'a>) -> BoxFuture<'a, ()> {
        self.all.n_bytes.fetch_add(partial.delta.len(), Ordering::Relaxed);
        if self.has_begun.swap(1, Ordering::Relaxed) == 0 {
            self.all.n_runs.fetch_add(1, Ordering::Relaxed);
        }
        Box::pin(std::future::ready(()))
    }
}

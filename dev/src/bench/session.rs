//! A long session: opening it, building its context, appending to it. Runs in a separate process to measure its memory.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use pinch_llm::message::Message;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::{Figure, median, process};

const N_ENTRIES: usize = 20_000;
const N_BYTES: usize = 46_000_000;
/// The entry after the compaction in the compacted session: sessions of this length usually have been compacted.
const COMPACTED_AT: usize = N_ENTRIES / 10 * 9;
const N_APPENDS: usize = 2_000;

/// Time and memory.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    let megabytes = N_BYTES / 1_000_000;
    let what = format!("open {megabytes} MB, {N_ENTRIES} entries, context");
    let compacted = several(Shape::Compacted)?;
    let whole = several(Shape::Whole)?;
    let middle = |children: &[Child], figure: fn(&Child) -> f64| median(children.iter().map(figure).collect());
    Ok(vec![
        Figure::at_most(&what, middle(&compacted, |child| child.open_ms), 50.0, "ms"),
        Figure::at_most("the same, memory", middle(&compacted, |child| child.peak_mb), 70.0, "MB"),
        Figure::at_most("append one entry", middle(&compacted, |child| child.append_us), 10.0, "µs"),
        // No one sends such a context; this is the cost of parsing every entry, against half of what pi takes.
        Figure::at_most(format!("{what} of them all"), middle(&whole, |child| child.open_ms), 150.0, "ms"),
        Figure::at_most("the same, memory", middle(&whole, |child| child.peak_mb), 140.0, "MB"),
    ])
}

/// Opens a new session of this shape several times.
fn several(shape: Shape) -> anyhow::Result<Vec<Child>> {
    let text = long_session(shape);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("long.jsonl");
    let measured = (0..7).map(|_| {
        std::fs::write(&path, &text)?;
        Child::run(&path, 1, N_APPENDS)
    });
    measured.collect()
}

/// Measurements reported by a process that opened a session.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Child {
    /// Milliseconds for opening and building the context, in the best round.
    pub(super) open_ms: f64,
    /// The same in processor time, which does not depend on other load.
    pub(super) cpu_ms: f64,
    /// Memory use with both.
    pub(super) rss_mb: f64,
    /// Peak memory use until then.
    pub(super) peak_mb: f64,
    /// Median time of an append.
    pub(super) append_us: f64,
}

impl Child {
    /// Starts such a process and waits for it.
    pub(super) fn run(path: &Path, rounds: usize, n_appends: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?);
        child.args(["bench", "--open-session"]).arg(path);
        child.args(["--rounds", &rounds.to_string(), "--appends", &n_appends.to_string()]);
        serde_json::from_slice(&child.output()?.stdout).context("the child printed no figures")
    }
}

/// Opens a session `rounds` times and prints the cost. Appends to the last one.
pub(super) fn open(path: &Path, rounds: usize, n_appends: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let host = Host::system();
        let (mut open_ms, mut cpu_ms) = (f64::INFINITY, f64::INFINITY);
        let mut round = 1;
        let (mut log, context) = loop {
            let (began, used) = (Instant::now(), process::used_ms());
            let store = Arc::new(JsonlStore::flat(path.parent().context("no folder")?));
            let log = SessionLog::open(&host, store, &SessionRef::Path(path.to_owned()), "/").await?;
            let context = log.context();
            if round > rounds / 2 {
                open_ms = open_ms.min(began.elapsed().as_secs_f64() * 1e3);
                cpu_ms = cpu_ms.min(process::used_ms() - used);
            }
            if round >= rounds {
                break (log, context);
            }
            round += 1;
        };
        let n_shown = N_ENTRIES - COMPACTED_AT;
        anyhow::ensure!(context.messages.len() >= n_shown, "only {} messages", context.messages.len());
        let rss_mb = process::in_use_mb("self").context("no /proc")?;
        let peak_mb = process::peak_mb("self").context("no /proc")?;
        drop(context);
        let mut appends = Vec::with_capacity(n_appends);
        for n in 0..n_appends {
            let began = Instant::now();
            log.append_message(Message::user(format!("message {n}"), 0)).await?;
            appends.push(began.elapsed().as_secs_f64() * 1e6);
        }
        // Without appends there is no measurement.
        let append_us = if appends.is_empty() { 0.0 } else { median(appends) };
        println!("{}", serde_json::to_string(&Child { open_ms, cpu_ms, rss_mb, peak_mb, append_us })?);
        Ok(())
    })
}

/// The shape of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The whole session is sent to the model.
    Whole,
    /// Only the last tenth is.
    Compacted,
}

/// A session of 20 000 entries.
pub(crate) fn long_session(shape: Shape) -> String {
    session("0199a000-0000-7000-8000-000000000000", "/", N_ENTRIES, N_BYTES, shape)
}

/// A session of prompts, answers with thinking, and tool calls with their results.
pub(super) fn session(id: &str, cwd: &str, n_entries: usize, n_bytes: usize, shape: Shape) -> String {
    let line = |n: usize| match n % 5 {
        0 => format!("    let value_{n} = read(\"file_{n}.txt\")?;\n"),
        n => format!("    // What stands here explains line {n} of some program in plain words.\n"),
    };
    let filler: String = (0..200).map(line).collect();
    let usage = json!({"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    let mut text = String::with_capacity(n_bytes + n_bytes / 10);
    let header = json!({"type": "session", "version": 3, "id": id,
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd});
    _ = writeln!(text, "{header}");
    for n in 0..n_entries {
        let left = n_bytes.saturating_sub(text.len()) / (n_entries - n);
        let body = &filler[..left.saturating_sub(300).clamp(10, filler.len())];
        let answer = |content: Value, stop: &str| {
            json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "bench",
                "model": "m1", "usage": usage, "stopReason": stop, "timestamp": 0})
        };
        let message = match n % 4 {
            0 => json!({"role": "user", "content": [{"type": "text", "text": body}], "timestamp": 0}),
            1 => answer(
                json!([{"type": "thinking", "thinking": body}, {"type": "toolCall", "id": format!("toolu_{n}"),
                    "name": "read", "arguments": {"path": "a.txt"}}]),
                "toolUse",
            ),
            2 => json!({"role": "toolResult", "toolCallId": format!("toolu_{}", n - 1), "toolName": "read",
                "content": [{"type": "text", "text": body}], "isError": false, "timestamp": 0}),
            _ => answer(json!([{"type": "text", "text": body}]), "stop"),
        };
        let mut parent = (n > 0).then(|| format!("{:08x}", n - 1));
        if shape == Shape::Compacted && n == n_entries / 10 * 9 {
            let compaction = json!({"type": "compaction", "id": "c0000000", "parentId": parent,
                "timestamp": "2026-01-01T00:00:00.000Z", "summary": "What happened so far.",
                "firstKeptEntryId": format!("{:08x}", n - 4), "tokensBefore": 9_000_000});
            _ = writeln!(text, "{compaction}");
            parent = Some("c0000000".into());
        }
        let entry = json!({"type": "message", "id": format!("{n:08x}"), "parentId": parent,
            "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
        _ = writeln!(text, "{entry}");
    }
    text
}

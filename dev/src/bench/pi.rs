//! Session files in pi and in pinch: opening, appending, listing, memory.
//!
//! Both are measured from inside their processes, so that Node's start-up is not counted for pi. A session is opened in fresh processes, as
//! users do, and in one that has been warmed up with as many rounds, as servers do. The best round of each program counts, because other
//! processes use the machine too. Memory is that of the whole process with the session open; for pi this includes only its session manager,
//! which is 50 MB less than all of pi.

use std::path::Path;

use anyhow::Context;
use pinch_coding_agent::entry::names;
use pinch_coding_agent::store::{JsonlStore, ListScope, SessionStore};
use serde_json::{Value, json};

use super::session::{Child, Shape};
use super::{Figure, process};
use crate::interop::pi::peer::{Installed, VERSIONS};

const ROUNDS: usize = 7;
const N_APPENDS: usize = 500;
const N_SESSIONS: usize = 1_000;
const CWD: &str = "/bench";

/// How far pinch is ahead.
pub(super) fn measure() -> anyhow::Result<Vec<Figure>> {
    let pi = Pi { installed: Installed::get(&VERSIONS[..1])? };
    let folder = tempfile::tempdir()?;
    println!("\n{:<44} {:>10} {:>10} {:>8}", "beside pi", "pinch", "pi 0.87.1", "times");
    let mut figures = Vec::new();
    let mut row = |what: &str, unit: &str, ours: f64, theirs: f64, aim: f64| {
        println!("{what:<44} {ours:>8.2} {unit} {theirs:>7.2} {unit} {:>7.1}x", theirs / ours);
        figures.push(Figure::at_least(format!("{what}, ahead of pi"), theirs / ours, aim, "times"));
    };
    // The targets are for long sessions that were compacted. Without compaction the model receives everything, so both programs parse
    // everything and keep it in memory.
    for (name, shape, [clock, processors, in_use, peak]) in
        [("compacted", Shape::Compacted, [8.0, 3.0, 5.0, 5.0]), ("all shown", Shape::Whole, [1.0, 1.0, 1.5, 1.5])]
    {
        let path = folder.path().join(format!("{name}.jsonl"));
        std::fs::write(&path, super::session::long_session(shape))?;
        let ours: Vec<Child> = (0..ROUNDS).map(|_| Child::run(&path, 1, 0)).collect::<Result<_, _>>()?;
        let best = |figure: fn(&Child) -> f64| ours.iter().map(figure).fold(f64::INFINITY, f64::min);
        let (fresh, warm, memory) = pi.open(&path)?;
        row(&format!("open 46 MB, {name}: clock"), "ms", best(|child| child.open_ms), fresh.clock, clock);
        row(&format!("open 46 MB, {name}: processors"), "ms", best(|child| child.cpu_ms), fresh.processor, processors);
        let ours = Child::run(&path, 2 * ROUNDS, 0)?;
        row(&format!("open 46 MB, {name}, warmed up: clock"), "ms", ours.open_ms, warm.clock, clock);
        row(&format!("open 46 MB, {name}, warmed up: processors"), "ms", ours.cpu_ms, warm.processor, processors);
        row(&format!("open 46 MB, {name}: memory"), "MB", best(|child| child.rss_mb), memory.in_use, in_use);
        row(&format!("open 46 MB, {name}: peak"), "MB", best(|child| child.peak_mb), memory.peak, peak);
    }
    let path = folder.path().join("compacted.jsonl");
    let ours = Child::run(&path, 1, N_APPENDS)?.append_us;
    // pinch locks the file and checks whether another process wrote to it; pi does neither.
    row("append one entry", "µs", ours, pi.append(&path)?, 0.5);
    let sessions = folder.path().join("sessions");
    write_sessions(&sessions)?;
    let (ours, theirs) = (list(&sessions)?, pi.list(&sessions)?);
    row(&format!("list {N_SESSIONS} sessions: clock"), "ms", ours.clock, theirs.clock, 2.0);
    row(&format!("list {N_SESSIONS} sessions: processors"), "ms", ours.processor, theirs.processor, 2.0);
    Ok(figures)
}

/// Best milliseconds for listing the sessions of a working directory, with a warm file cache.
fn list(sessions: &Path) -> anyhow::Result<Time> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut best = Time { clock: f64::INFINITY, processor: f64::INFINITY };
    for _ in 0..ROUNDS {
        // A store caches what it has read; a new one must read again.
        let store = JsonlStore::by_cwd(sessions);
        let (began, used) = (std::time::Instant::now(), process::used_ms());
        let found = runtime.block_on(store.list(ListScope::Cwd(CWD.to_owned())))?;
        best.clock = best.clock.min(began.elapsed().as_secs_f64() * 1e3);
        best.processor = best.processor.min(process::used_ms() - used);
        anyhow::ensure!(found.len() == N_SESSIONS, "{} sessions", found.len());
    }
    Ok(best)
}

/// Sessions of 40 messages and 100 KB.
fn write_sessions(sessions: &Path) -> anyhow::Result<()> {
    let folder = sessions.join(names::dir_name(CWD));
    std::fs::create_dir_all(&folder)?;
    for n in 0..N_SESSIONS {
        let id = format!("0199a000-0000-7000-8000-{n:012}");
        let text = super::session::session(&id, CWD, 40, 100_000, Shape::Whole);
        std::fs::write(folder.join(names::file_name("2026-01-01T00:00:00.000Z", &id)), text)?;
    }
    Ok(())
}

/// The installed version of pi.
struct Pi {
    installed: Installed,
}

/// Milliseconds.
struct Time {
    clock: f64,
    processor: f64,
}

/// Megabytes of a process.
struct MemoryUse {
    in_use: f64,
    peak: f64,
}

impl Pi {
    /// Asks a fresh process; also returns its memory.
    fn ask(&self, question: &Value) -> anyhow::Result<(Value, MemoryUse)> {
        let mut peer = self.installed.start(VERSIONS[0])?;
        let answer = peer.ask(question)?;
        let memory = |of: fn(u32) -> Option<f64>| of(peer.id()).context("no /proc");
        Ok((answer, MemoryUse { in_use: memory(process::in_use_mb)?, peak: memory(process::peak_mb)? }))
    }

    /// Times of this many rounds, of which the first half is for warming up.
    fn times(&self, rounds: usize, mut question: Value) -> anyhow::Result<[Vec<f64>; 2]> {
        question["rounds"] = rounds.into();
        let (answer, _) = self.ask(&question)?;
        let times = |name: &str| -> anyhow::Result<Vec<f64>> {
            let times = answer[name].as_array().context("no times")?;
            Ok(times.iter().skip(rounds / 2).filter_map(Value::as_f64).collect())
        };
        Ok([times("ms")?, times("cpu")?])
    }

    fn best(&self, rounds: usize, question: Value) -> anyhow::Result<Time> {
        let [clock, processor] = self.times(rounds, question)?;
        let best = |times: Vec<f64>| times.into_iter().fold(f64::INFINITY, f64::min);
        Ok(Time { clock: best(clock), processor: best(processor) })
    }

    /// Times in fresh processes and in a warmed-up one, and the memory of a fresh one.
    fn open(&self, path: &Path) -> anyhow::Result<(Time, Time, MemoryUse)> {
        let (_, memory) = self.ask(&json!({"do": "measure", "figure": "memory", "path": path}))?;
        let question = json!({"do": "measure", "figure": "open", "path": path});
        let mut fresh = Time { clock: f64::INFINITY, processor: f64::INFINITY };
        for _ in 0..ROUNDS {
            let Time { clock, processor } = self.best(1, question.clone())?;
            fresh = Time { clock: fresh.clock.min(clock), processor: fresh.processor.min(processor) };
        }
        Ok((fresh, self.best(2 * ROUNDS, question)?, memory))
    }

    /// Microseconds.
    fn append(&self, path: &Path) -> anyhow::Result<f64> {
        let [times, _] = self.times(2 * N_APPENDS, json!({"do": "measure", "figure": "append", "path": path}))?;
        Ok(super::median(times) * 1e3)
    }

    fn list(&self, sessions: &Path) -> anyhow::Result<Time> {
        let folder = sessions.join(names::dir_name(CWD));
        let question = json!({"do": "measure", "figure": "list", "cwd": CWD, "folder": folder, "n": N_SESSIONS});
        self.best(2 * ROUNDS, question)
    }
}

//! The interactive mode on a pseudo-terminal: start-up time, and the cost of an answer, a long session, a key and a frame.

mod terminal;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;

use self::terminal::TerminalRun;
use super::session::{Shape, session};
use super::{Figure, median};
use crate::transcript::TranscriptSetup;

/// Text shown in an empty editor.
const READY: &str = "for commands";
/// Text shown above the end of a long session.
const ABOVE: &str = "earlier messages";
const TIMES: usize = 15;
const KEYS: usize = 200;
/// Parts of an answer that are sent one by one.
const PARTS: usize = 300;
/// Pause between two keys: longer than a frame, so that a key does not wait for one.
const PAUSE: Duration = Duration::from_millis(25);

pub(super) fn measure(pinch: &Path) -> anyhow::Result<Vec<Figure>> {
    let setup = TranscriptSetup::new()?;
    let mut figures = first_frames(pinch, &setup)?;
    figures.extend(answers(pinch, &setup)?);
    figures.extend(long_session(pinch, &setup)?);
    Ok(figures)
}

fn first_frames(pinch: &Path, setup: &TranscriptSetup) -> anyhow::Result<Vec<Figure>> {
    let (mut times, mut memory) = (Vec::new(), 0.0_f64);
    for _ in 0..TIMES {
        let mut run = TerminalRun::start(&mut setup.command(pinch, &["--no-session"]))?;
        times.push(run.wait_for(READY)?.as_secs_f64() * 1e3);
        memory = memory.max(run.peak_mb()?);
        run.end()?;
    }
    Ok(vec![
        Figure::at_most("pinch, first frame", median(times), 15.0, "ms"),
        Figure::at_most("pinch, memory at the first frame", memory, 30.0, "MB"),
    ])
}

/// Answers of two sizes, a factor of a hundred apart, as paragraphs, as one line, and as code.
fn answers(pinch: &Path, setup: &TranscriptSetup) -> anyhow::Result<Vec<Figure>> {
    let paragraph =
        |n: usize| "some words that say little, ".repeat(4) + if n.is_multiple_of(3) { "\n\n" } else { "and on.\n" };
    let paragraphs = |n: usize| (0..n).map(paragraph).collect::<String>();
    let line = |n: usize| "eighteen letters, ".repeat(n);
    let code = |n: usize| {
        format!("```rust\n{}```\n", (0..n).map(|n| format!("let value_{n} = read({n})?;\n")).collect::<String>())
    };
    let kinds: [(&str, &dyn Fn(usize) -> String); 3] =
        [("paragraphs", &paragraphs), ("one line", &line), ("code", &code)];
    let mut figures = Vec::new();
    for (kind, text) in kinds {
        for n in [800, 80_000] {
            // A chunk is at most one line of the text.
            let text = text(if kind == "paragraphs" {
                n / 5
            } else if kind == "code" {
                n / 4
            } else {
                n
            });
            let (seconds, megabytes) = answer(pinch, setup, &text, n)?;
            let what = format!("an answer of {n} deltas, {kind}");
            if n == 800 {
                figures.push(Figure::shown(what, seconds, "s"));
            } else {
                figures.push(Figure::at_most(&*what, seconds, 1.0, "s"));
                figures.push(Figure::at_most(format!("{what}, memory"), megabytes, 60.0, "MB"));
            }
        }
    }
    Ok(figures)
}

/// Processor time and memory for an answer.
fn answer(pinch: &Path, setup: &TranscriptSetup, text: &str, n: usize) -> anyhow::Result<(f64, f64)> {
    let answer =
        AnthropicResponse::new("msg_1").with_chunks(n).text(&format!("{text}\n\nthat was all")).stop("end_turn");
    setup.server.reply(ServerReply::sse(answer.concat()));
    let mut run = TerminalRun::start(&mut setup.command(pinch, &["--no-session"]))?;
    run.wait_for(READY)?;
    let before = run.used()?;
    run.type_keys("go\r")?;
    run.wait_for("that was all")?;
    let seconds = (run.used()? - before).as_secs_f64();
    let megabytes = run.peak_mb()?;
    run.end()?;
    Ok((seconds, megabytes))
}

/// A session of 46 MB: the time until the first frame, and until its end is displayed; the time of a key and of a frame then.
fn long_session(pinch: &Path, setup: &TranscriptSetup) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (shape, name) in [(Shape::Compacted, "46 MB, compacted"), (Shape::Whole, "46 MB, 20 000 messages")] {
        let path = setup.folder().join("long.jsonl");
        let cwd = setup.folder().to_string_lossy().into_owned();
        std::fs::write(&path, session("0199a000-0000-7000-8000-000000000000", &cwd, 20_000, 46_000_000, shape))?;
        let path = path.to_str().context("a path that is no text")?;
        let (mut first, mut times, mut used) = (Vec::new(), Vec::new(), Vec::new());
        let (mut keys, mut frames) = (Vec::new(), Vec::new());
        let mut memory = 0.0_f64;
        for round in 0..5 {
            let mut run = TerminalRun::start(&mut setup.command(pinch, &["--session", path]))?;
            first.push(run.wait_for(READY)?.as_secs_f64() * 1e3);
            times.push(run.wait_for(ABOVE)?.as_secs_f64() * 1e3);
            used.push(run.used()?.as_secs_f64() * 1e3);
            memory = memory.max(run.peak_mb()?);
            if round == 0 && shape == Shape::Whole {
                keys = echoes(&mut run)?;
                frames = streamed(&mut run, setup)?;
            }
            run.end()?;
        }
        figures.push(Figure::at_most(format!("{name}: first frame"), median(first), 40.0, "ms"));
        if shape == Shape::Compacted {
            figures.push(Figure::at_most(format!("{name}: its end"), median(times), 40.0, "ms"));
            figures.push(Figure::shown(format!("{name}: its end, processor time"), median(used), "ms"));
            figures.push(Figure::at_most(format!("{name}: memory"), memory, 60.0, "MB"));
        } else {
            figures.push(Figure::shown(format!("{name}: its end"), median(times), "ms"));
            figures.push(Figure::shown(format!("{name}: its end, processor time"), median(used), "ms"));
            figures.push(Figure::shown(format!("{name}: memory"), memory, "MB"));
            let late = last_percentile(&mut keys);
            figures.push(Figure::at_most("a key until its echo, behind 20 000 messages", median(keys), 2.0, "ms"));
            figures.push(Figure::at_most("the same, 99th percentile", late, 16.0, "ms"));
            let late = last_percentile(&mut frames);
            figures.push(Figure::at_most(
                "a part of an answer until it is shown, behind them",
                median(frames),
                16.0,
                "ms",
            ));
            figures.push(Figure::at_most("the same, 99th percentile", late, 16.0, "ms"));
        }
    }
    Ok(figures)
}

/// Sorts times and returns the 99th percentile.
fn last_percentile(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}

/// Sends an answer in parts, each after the preceding one is shown and a frame has passed; returns the time until each is shown.
fn streamed(run: &mut TerminalRun, setup: &TranscriptSetup) -> anyhow::Result<Vec<f64>> {
    let gate = Gate::new();
    let words: Vec<String> = (0..PARTS).map(|n| format!("part{n:03}. ")).collect();
    let answer =
        AnthropicResponse::new("msg_1").with_chunks_of("part000. ".len()).text(&words.concat()).stop("end_turn");
    setup.server.reply(ServerReply::sse("").gated(&gate, answer));
    run.type_keys("\x03go\r")?;
    // The message and the block begin.
    gate.open_times(2);
    let mut times = Vec::new();
    for word in &words {
        std::thread::sleep(PAUSE);
        run.skip();
        let sent = Instant::now();
        gate.open();
        times.push(run.shown(word.trim_end_matches(". "), sent)?.as_secs_f64() * 1e3);
    }
    gate.open_times(3);
    Ok(times)
}

fn echoes(run: &mut TerminalRun) -> anyhow::Result<Vec<f64>> {
    std::thread::sleep(Duration::from_millis(300));
    run.skip();
    let mut times = Vec::new();
    for n in 0..KEYS {
        std::thread::sleep(PAUSE);
        run.skip();
        let letter = char::from(b'a' + u8::try_from(n % 26)?);
        times.push(run.echo(letter)?.as_secs_f64() * 1e3);
    }
    Ok(times)
}

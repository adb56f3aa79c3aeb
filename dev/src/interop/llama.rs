//! llama.cpp's server, which supports three wire formats on one port.
//!
//! The model is tiny and produces nonsense: only the protocol is checked. `requests` sends single requests in each format; `talk` lets an
//! embedded engine hold long conversations in small windows, which are compacted as often as needed.

mod server;
mod requests;
mod prompts;
mod exchanges;
mod talk;

use anyhow::Context;
use clap::ValueEnum;

use super::table::ResultTable;
use server::LlamaPython;
use talk::TalkPlan;

/// Arguments of `cargo xtask interop llama`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Run only one part
    #[arg(long)]
    only: Option<LlamaPart>,
    /// Number of runs of each of the two short conversations
    #[arg(long, value_name = "N", default_value_t = talk::DEFAULT_RUNS)]
    runs: usize,
    /// Number of turns of the long conversation
    #[arg(long, value_name = "N", default_value_t = talk::DEFAULT_TURNS)]
    turns: usize,
    /// Wire format of the conversations
    #[arg(long, value_name = "FORMAT", default_value = "openai-completions")]
    api: String,
}

/// A part of the check.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LlamaPart {
    /// Single requests in each format
    Requests,
    /// A conversation with an engine that knows the size of the context
    Compaction,
    /// A conversation with an engine that assumes a larger context
    Refusals,
    /// A conversation of thousands of turns, which takes hours and is not part of the default
    Turns,
}

/// Runs the check.
pub(super) fn run(args: &Args) -> anyhow::Result<bool> {
    let format = server::formats().into_iter().find(|format| format.api == args.api).with_context(|| {
        let known: Vec<&str> = server::formats().iter().map(|format| format.api).collect();
        format!("llama.cpp does not serve {}: choose one of {}", args.api, known.join(", "))
    })?;
    let python = LlamaPython::install()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut table = ResultTable::default();
    let includes = |part: LlamaPart| args.only.map_or(part != LlamaPart::Turns, |only| only == part);
    if includes(LlamaPart::Requests) {
        runtime.block_on(requests::check(&python, &mut table))?;
    }
    if includes(LlamaPart::Compaction) {
        talk::check(&runtime, &python, &TalkPlan::known_window(args.runs), &format, &mut table)?;
    }
    if includes(LlamaPart::Refusals) {
        talk::check(&runtime, &python, &TalkPlan::wrong_window(args.runs), &format, &mut table)?;
    }
    if includes(LlamaPart::Turns) {
        talk::check(&runtime, &python, &TalkPlan::many_turns(args.turns), &format, &mut table)?;
    }
    Ok(table.finish())
}

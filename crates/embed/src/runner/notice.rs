//! Notices for the user about what a run is doing.

use std::time::Duration;

use pinch_coding_agent::event::SessionEvent;

use super::RunEvent;
use crate::run::decide::{Repair, RepairOutcome};
use crate::run::failure::in_words;
use crate::run::{RunResult, UsageLine};
use crate::texts::{Phrase, TextTable};

/// Shorter waits are not mentioned.
const MIN_REPORTED_WAIT: Duration = Duration::from_secs(5);

/// Returns the notice for an event of a run, if any.
pub(crate) fn notice(event: &RunEvent, texts: &TextTable) -> Option<String> {
    let phrase = match event {
        RunEvent::Waiting(_) => Phrase::Queued,
        RunEvent::Wait(wait) if wait.delay >= MIN_REPORTED_WAIT => {
            return Some(texts.fill(Phrase::Retrying, [("time", &in_words(wait.delay, texts))]));
        }
        RunEvent::FailedOver { next, .. } => return Some(texts.fill(Phrase::FailedOver, [("model", next)])),
        RunEvent::Repair(Repair::Compact { .. }) => Phrase::Compacting,
        RunEvent::Repaired(RepairOutcome::Compacted) => Phrase::Compacted,
        RunEvent::Session(event) => match &**event {
            SessionEvent::CompactionStart { .. } => Phrase::Compacting,
            SessionEvent::CompactionEnd { result: Some(_), .. } => Phrase::Compacted,
            _ => return None,
        },
        _ => return None,
    };
    Some(texts.get(phrase).to_owned())
}

/// Returns the line about a run's token usage, if it used any tokens.
pub(crate) fn usage_line(result: &RunResult, line: UsageLine, texts: &TextTable) -> Option<String> {
    let usage = &result.meta.agent.usage;
    let (input, output) = (short_count(usage.input + usage.cache_read + usage.cache_write), short_count(usage.output));
    let values = [("input", input.as_str()), ("output", output.as_str())];
    match line {
        _ if usage.is_zero() => None,
        UsageLine::Off => None,
        UsageLine::Full if usage.cost.total > 0.0 => {
            let cost = format!("{:.4}", usage.cost.total);
            Some(texts.fill(Phrase::UsageCost, [values[0], values[1], ("cost", cost.as_str())]))
        }
        UsageLine::Tokens | UsageLine::Full => Some(texts.fill(Phrase::Usage, values)),
    }
}

/// Formats a number of tokens briefly.
pub(crate) fn short_count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

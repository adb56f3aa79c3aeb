//! A run as JSON lines.

use super::waits_for;
use pinch_embed::coding_agent::protocol::EventWriter;
use pinch_embed::delivery::ReplyEvent;
use pinch_embed::run::decide::{Repair, RepairOutcome};
use pinch_embed::runner::RunEvent;
use serde_json::{Value, json};

/// Converts events to lines: those of the session in pi's format, plus the run's own.
pub(crate) struct EventLines {
    session: EventWriter,
}

impl EventLines {
    pub(crate) fn new() -> Self {
        Self { session: EventWriter::new() }
    }

    /// Returns the line of an event with its line feed; empty for events without one.
    pub(crate) fn line(&mut self, event: &RunEvent) -> String {
        let value: Value = match event {
            RunEvent::Session(event) => {
                return self
                    .session
                    .line(event)
                    .map(|line| String::from_utf8_lossy(line).into_owned())
                    .unwrap_or_default();
            }
            RunEvent::Waiting(wait) => json!({"type": "run_waiting", "for": waits_for(wait)}),
            RunEvent::Granted { waited_ms } => json!({"type": "run_granted", "waitedMs": waited_ms}),
            RunEvent::Model { provider, model } => json!({"type": "run_model", "provider": provider, "model": model}),
            RunEvent::Attempt(plan) => json!({
                "type": "run_attempt",
                "number": plan.number,
                "profileId": plan.profile.as_ref().map(|id| id.as_str()),
                "thinking": plan.thinking.as_str(),
            }),
            RunEvent::Decided { report, error } => json!({
                "type": "run_decided",
                "outcome": report.outcome,
                "action": report.action,
                "durationMs": report.duration_ms,
                "error": error,
            }),
            RunEvent::Repair(repair) => match repair {
                Repair::Compact { trigger, observed_tokens } => json!({
                    "type": "run_repair",
                    "repair": "compact",
                    "trigger": trigger.as_str(),
                    "observedTokens": observed_tokens,
                }),
                Repair::TruncateToolResults => json!({"type": "run_repair", "repair": "truncate_tool_results"}),
            },
            RunEvent::Repaired(done) => match done {
                RepairOutcome::Compacted => json!({"type": "run_repaired", "result": "compacted"}),
                RepairOutcome::NotCompacted { reason } => {
                    json!({"type": "run_repaired", "result": "not_compacted", "why": reason})
                }
                RepairOutcome::Truncated { count } => {
                    json!({"type": "run_repaired", "result": "truncated", "count": count})
                }
                RepairOutcome::NotTruncated => json!({"type": "run_repaired", "result": "not_truncated"}),
            },
            RunEvent::Wait(wait) => {
                json!({"type": "run_wait", "delayMs": wait.delay.as_millis() as u64, "reason": wait.reason.to_string()})
            }
            RunEvent::FailedOver { error, next } => {
                json!({"type": "run_failover", "error": error.to_string(), "next": next})
            }
            RunEvent::Reply(ReplyEvent::BlockReply(block)) => json!({"type": "run_block", "text": block.text}),
            _ => return String::new(),
        };
        format!("{value}\n")
    }
}

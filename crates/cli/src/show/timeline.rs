//! A run as it happens, line by line: attempts, reasons for changes, tools, blocks, tokens.

use std::fmt::Write as _;
use std::time::Instant;

use super::waits_for;
use pinch_embed::agent_core::AgentEvent;
use pinch_embed::coding_agent::event::SessionEvent;
use pinch_embed::delivery::ReplyEvent;
use pinch_embed::llm::message::block;
use pinch_embed::replies::api_error;
use pinch_embed::run::decide::{Repair, RepairOutcome};
use pinch_embed::runner::RunEvent;

/// Maximum characters of a text in a line.
const WIDTH: usize = 96;

/// Converts events to lines.
pub(crate) struct Timeline {
    began: Instant,
    model: String,
}

impl Timeline {
    /// Creates a timeline that starts now.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), model: String::new() }
    }

    /// Returns the lines of an event; empty for hidden events.
    pub(crate) fn lines(&mut self, event: &RunEvent) -> String {
        let mut out = String::new();
        match event {
            RunEvent::Waiting(wait) => self.line(&mut out, "lanes", &format!("waiting for {}", waits_for(wait))),
            RunEvent::Granted { waited_ms } => self.line(&mut out, "lanes", &format!("granted after {waited_ms} ms")),
            RunEvent::Model { provider, model } => self.model = format!("{provider}/{model}"),
            RunEvent::Attempt(plan) => {
                let profile = plan.profile.as_ref().map_or("no profile".to_owned(), |p| format!("profile {p}"));
                let how = match plan.start {
                    pinch_embed::run::outcome::AttemptStart::Prompt => "prompt",
                    pinch_embed::run::outcome::AttemptStart::Resume => "resumes from the log",
                    pinch_embed::run::outcome::AttemptStart::Continue => "asks the model to go on",
                    pinch_embed::run::outcome::AttemptStart::FinalReply => "asks for the answer, without tools",
                };
                let text = format!("{} with {profile}, thinking {}: {how}", self.model, plan.thinking);
                self.line(&mut out, &format!("attempt {}", plan.number), &text);
            }
            RunEvent::Decided { report, error } => {
                let why = error.as_deref().map_or(String::new(), |error| format!(" ({})", short_error(error)));
                let then = match report.action.as_str() {
                    "attempt" => "tries again",
                    "repair" => "repairs the conversation",
                    "wait" => "waits",
                    "failover" => "next model",
                    "finish" => "done",
                    "fail" => "gives up",
                    other => other,
                };
                let text = format!("{}{why} after {} ms → {then}", report.outcome, report.duration_ms);
                self.line(&mut out, "outcome", &text);
            }
            RunEvent::Repair(Repair::Compact { .. }) => {
                self.line(&mut out, "repair", "the conversation is too long: compacting");
            }
            RunEvent::Repair(Repair::TruncateToolResults) => {
                self.line(&mut out, "repair", "shortening long tool results");
            }
            RunEvent::Repaired(done) => {
                let text = match done {
                    RepairOutcome::Compacted => "compacted: older messages became a summary".to_owned(),
                    RepairOutcome::NotCompacted { reason } => format!("not compacted: {reason}"),
                    RepairOutcome::Truncated { count } => format!("{count} tool results shortened"),
                    RepairOutcome::NotTruncated => "no tool result was too long".to_owned(),
                };
                self.line(&mut out, "repair", &text);
            }
            RunEvent::Wait(wait) => {
                let text = format!("{} ms ({})", wait.delay.as_millis(), wait.reason);
                self.line(&mut out, "wait", &text);
            }
            RunEvent::FailedOver { error, next } => {
                self.line(&mut out, "failover", &format!("{} → {next}", short_error(&error.to_string())));
            }
            RunEvent::Session(event) => self.session(&mut out, event),
            RunEvent::Reply(ReplyEvent::BlockReply(block)) => {
                self.line(&mut out, "block", &format!("{:?}", short(&block.text)));
            }
            _ => {}
        }
        out
    }

    fn session(&self, out: &mut String, event: &SessionEvent) {
        match event {
            SessionEvent::Agent(AgentEvent::ToolStart(start)) => {
                let args = serde_json::to_string(&*start.args).unwrap_or_default();
                self.line(out, "tool", &format!("{} {}", start.name, short(&args)));
            }
            SessionEvent::Agent(AgentEvent::ToolEnd { start, output, duration_ms }) => {
                let verdict = if output.failed { "failed" } else { "ok" };
                let took = duration_ms.map_or(String::new(), |ms| format!(" in {ms} ms"));
                let text = block::join_text(&output.content, " ");
                self.line(out, "tool", &format!("{} {verdict}{took}: {:?}", start.name, short(&text)));
            }
            SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) => {
                if let Some(answer) = message.as_assistant().filter(|answer| !answer.usage.is_zero()) {
                    let usage = &answer.usage;
                    let cached =
                        if usage.cache_read > 0 { format!(", {} cached", usage.cache_read) } else { String::new() };
                    let text = format!("{} in, {} out{cached}", usage.input, usage.output);
                    self.line(out, "tokens", &text);
                }
            }
            _ => {}
        }
    }

    fn line(&self, out: &mut String, what: &str, text: &str) {
        let secs = self.began.elapsed().as_secs_f64();
        // Writing to a string cannot fail.
        let _written = writeln!(out, "{secs:7.3} s  {what:<10} {text}");
    }
}

/// Returns the provider's message in an error, without the JSON around it.
pub(crate) fn short_error(error: &str) -> String {
    short(api_error::info(error).and_then(|info| info.message).as_deref().unwrap_or(error))
}

/// Returns a text on one line, truncated if it is too long.
fn short(text: &str) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", &flat[..at]),
        None => flat,
    }
}

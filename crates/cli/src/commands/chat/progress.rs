//! Converts the events of a run to chat updates.

use pinch_embed::agent_core::event::AgentEvent;
use pinch_embed::coding_agent::event::SessionEvent;
use pinch_embed::delivery::ReplyEvent;
use pinch_embed::llm::event::{BlockKind, StreamEvent};
use pinch_embed::llm::message::{Message, Usage};
use pinch_embed::run::decide::{Mark, Repair, RepairOutcome};
use pinch_embed::run::{RunResult, UsageLine};
use pinch_embed::runner::RunEvent;
use pinch_tui::chat::{ChatReply, ChatUpdate};

use crate::show::timeline::short_error;
use crate::show::waits_for;

/// Follows one run.
#[derive(Debug, Default)]
pub(super) struct RunProgress {
    /// Indexes of the answer's thinking blocks.
    thoughts: Vec<usize>,
    /// The last failed profile, and the reason.
    failed: Option<(String, String)>,
}

impl RunProgress {
    /// Converts an event to a chat update.
    pub(super) fn update(&mut self, event: RunEvent, now_ms: i64) -> Option<ChatUpdate> {
        let busy = |activity: &str| ChatUpdate::Busy { activity: activity.to_owned(), until_ms: None };
        Some(match event {
            RunEvent::Waiting(wait) => busy(&format!("waiting for {}", waits_for(&wait))),
            RunEvent::Granted { .. } => ChatUpdate::Started,
            RunEvent::Attempt(plan) => {
                let (failed, why) = self.failed.take()?;
                let next = plan.profile.filter(|next| next.as_str() != failed)?;
                ChatUpdate::Notice(format!("{failed} failed ({why}), trying {next}"))
            }
            RunEvent::Marked(Mark::Failure { profile, reason, .. }) => {
                self.failed = Some((profile.to_string(), reason.to_string()));
                return None;
            }
            RunEvent::FailedOver { error, next } => {
                self.failed = None;
                ChatUpdate::Notice(format!("{}; trying {next}", short_error(&error.to_string())))
            }
            RunEvent::Wait(wait) => ChatUpdate::Busy {
                activity: format!("waiting ({})", wait.reason),
                until_ms: i64::try_from(wait.delay.as_millis()).ok().map(|delay| now_ms + delay),
            },
            RunEvent::Repair(Repair::Compact { .. }) => busy("compacting"),
            RunEvent::Repair(Repair::TruncateToolResults) => busy("shortening results of tools"),
            RunEvent::Repaired(RepairOutcome::Compacted) => {
                ChatUpdate::Notice("The conversation was compacted".to_owned())
            }
            RunEvent::Session(event) => return self.session(*event, now_ms),
            RunEvent::Reply(ReplyEvent::PartialReply(growth)) => {
                let text = growth.restored + &growth.delta;
                ChatUpdate::Text { at: growth.at, text }
            }
            _ => return None,
        })
    }

    fn session(&mut self, event: SessionEvent, now_ms: i64) -> Option<ChatUpdate> {
        Some(match event {
            SessionEvent::Agent(AgentEvent::MessageStart(message)) if matches!(*message, Message::Assistant(_)) => {
                self.thoughts.clear();
                ChatUpdate::AnswerStarted
            }
            SessionEvent::Agent(AgentEvent::MessageUpdate(update)) => return self.stream(update),
            SessionEvent::Agent(AgentEvent::ToolStart(start)) => {
                ChatUpdate::ToolStarted { id: start.id.to_string(), name: start.name, arguments: start.args }
            }
            SessionEvent::Agent(AgentEvent::ToolUpdate { start, so_far }) => {
                ChatUpdate::ToolProgress { id: start.id.to_string(), output: *so_far }
            }
            SessionEvent::Agent(AgentEvent::ToolEnd { start, output, duration_ms }) => {
                ChatUpdate::ToolEnded { id: start.id.to_string(), output: *output, duration_ms }
            }
            SessionEvent::CompactionStart { .. } => {
                ChatUpdate::Busy { activity: "compacting".to_owned(), until_ms: None }
            }
            SessionEvent::CompactionEnd { result: Some(_), .. } => {
                ChatUpdate::Notice("The conversation was compacted".to_owned())
            }
            SessionEvent::RetryStart { attempt, max_attempts, delay_ms, .. } => ChatUpdate::Busy {
                activity: format!("retrying ({attempt}/{max_attempts})"),
                until_ms: i64::try_from(delay_ms).ok().map(|delay| now_ms + delay),
            },
            _ => return None,
        })
    }

    /// Handles the model's thinking; its text arrives as parts of the reply.
    fn stream(&mut self, event: StreamEvent) -> Option<ChatUpdate> {
        match event {
            StreamEvent::BlockStart { index, kind: BlockKind::Thinking { .. } } => {
                self.thoughts.push(index);
                None
            }
            StreamEvent::Delta { index, text } if self.thoughts.contains(&index) => {
                Some(ChatUpdate::Thinking(text.into()))
            }
            StreamEvent::BlockEnd { index, .. } if self.thoughts.contains(&index) => Some(ChatUpdate::ThinkingEnded),
            _ => None,
        }
    }
}

/// Converts the result of a run.
pub(super) fn end(result: RunResult, line: UsageLine) -> ChatUpdate {
    let aborted = result.meta.aborted && !result.meta.timed_out;
    let usage = usage(&result.meta.agent.usage, line);
    let replies = result.payloads.into_iter().filter(|payload| !payload.reply.is_reasoning).map(|payload| ChatReply {
        text: payload.reply.text,
        media: payload.reply.media_urls,
        is_error: payload.is_error,
    });
    ChatUpdate::Final { replies: replies.collect(), aborted, usage }
}

/// Formats the tokens of a run, if requested and not zero.
fn usage(usage: &Usage, line: UsageLine) -> Option<String> {
    let input = usage.input + usage.cache_read + usage.cache_write;
    let text = format!("{input} tokens in, {} out", usage.output);
    match line {
        _ if usage.is_zero() => None,
        UsageLine::Off => None,
        UsageLine::Full if usage.cost.total > 0.0 => Some(format!("{text}, ${:.4}", usage.cost.total)),
        UsageLine::Tokens | UsageLine::Full => Some(text),
    }
}

//! Events of a run's reply, and how they are merged while they wait for a slow reader.

use pinch_stdx::queue::{Capacity, Merge};
use serde_json::{Value, json};

use crate::replies::Piece;
use crate::replies::piece::{AgentNote, BlockReply, Edit, Growth, ReasoningGrowth, ToolNote, merge_growth};
use crate::replies::unit::TextLimit;

/// An event of a run's reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyEvent {
    /// The run starts or ends.
    Lifecycle(Lifecycle),
    /// The text of the answer grew. Intended for programs, and for people if [`Growth::shown`].
    PartialReply(Growth),
    /// A finished block.
    BlockReply(BlockReply),
    /// A tool starts: everything before this should be sent first.
    BlockReplyFlush,
    /// The model begins an answer.
    AssistantMessageStart,
    /// The reasoning grew.
    ReasoningStream(ReasoningGrowth),
    /// A stretch of reasoning is over.
    ReasoningEnd,
    /// The draft changed.
    Draft(Edit),
    /// A tool's summary or output.
    ToolResult(ToolNote),
    /// A notice for the user.
    Notice(String),
    /// An event about a tool or a compaction, for programs. Only [`Engine::subscribe`](crate::Engine::subscribe) delivers these; sinks do
    /// not receive them.
    Agent(AgentNote),
}

/// The start or the end of a run. Each run has exactly one of each, however it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lifecycle {
    /// The run starts: its lanes were granted, or it failed before.
    #[non_exhaustive]
    Start {
        /// Milliseconds since the epoch.
        started_at_ms: i64,
    },
    /// The run ended with an answer, or was stopped.
    #[non_exhaustive]
    End {
        /// Milliseconds since the epoch.
        ended_at_ms: i64,
        /// Whether the run was stopped, by the user or by its time limit.
        aborted: bool,
        /// Stop reason of the last answer.
        stop_reason: Option<String>,
    },
    /// The run failed.
    #[non_exhaustive]
    Error {
        /// Milliseconds since the epoch.
        ended_at_ms: i64,
        /// The error message, for people.
        error: String,
    },
}

impl Lifecycle {
    /// Returns whether this is the last event of the run.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::Start { .. })
    }

    /// Returns the JSON payload: `{phase: "start" | "end" | "error", …}`. `executionSettled` means that all attempts are over.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Start { started_at_ms } => json!({"phase": "start", "startedAt": started_at_ms}),
            Self::End { ended_at_ms, aborted, stop_reason } => {
                let mut data = json!({"phase": "end", "endedAt": ended_at_ms, "executionSettled": true});
                if *aborted {
                    data["aborted"] = true.into();
                }
                if let Some(reason) = stop_reason {
                    data["stopReason"] = reason.as_str().into();
                }
                data
            }
            Self::Error { ended_at_ms, error } => {
                json!({"phase": "error", "error": error, "endedAt": ended_at_ms, "executionSettled": true})
            }
        }
    }
}

impl ReplyEvent {
    /// Returns the event for a piece, or `None` for pieces that only matter to stages.
    pub(crate) fn of(piece: Piece) -> Option<Self> {
        Some(match piece {
            Piece::Partial(growth) => Self::PartialReply(growth),
            Piece::Block(block) => Self::BlockReply(block),
            Piece::Flushed => Self::BlockReplyFlush,
            Piece::AssistantStart => Self::AssistantMessageStart,
            Piece::Reasoning(text) => Self::ReasoningStream(text),
            Piece::ReasoningEnd => Self::ReasoningEnd,
            Piece::Draft(edit) => Self::Draft(edit),
            Piece::ToolResult(note) => Self::ToolResult(note),
            Piece::Agent(note) => Self::Agent(note),
            Piece::MessageStart
            | Piece::Text(_)
            | Piece::Visible(_)
            | Piece::Thought(_)
            | Piece::ThoughtEnd
            | Piece::TextEnd
            | Piece::MessageEnd(_)
            | Piece::Flush
            | Piece::Restart
            | Piece::Wake
            | Piece::Sent(_) => return None,
        })
    }
}

/// The longest text of tool notes joined for lack of space, in bytes.
const MAX_JOINED_NOTES: usize = 8_000;

/// An event waiting for its sink.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) event: ReplyEvent,
    /// Maximum length of a joined block.
    pub(super) text: Option<TextLimit>,
}

impl Merge for Queued {
    fn weight(&self) -> usize {
        const FRAME: usize = 64;
        let media = |urls: &[String]| urls.iter().map(String::len).sum::<usize>();
        FRAME
            + match &self.event {
                ReplyEvent::PartialReply(growth) => {
                    growth.delta.len() + growth.restored.len() + media(&growth.media_urls)
                }
                ReplyEvent::BlockReply(block) => block.text.len() + media(&block.media_urls),
                ReplyEvent::Draft(edit) => edit.text.len(),
                ReplyEvent::Notice(text) => text.len(),
                ReplyEvent::ReasoningStream(growth) => growth.formatted.text.len() + growth.raw.text.len(),
                ReplyEvent::ToolResult(note) => note.text.len() + media(&note.media_urls),
                ReplyEvent::Lifecycle(Lifecycle::Error { error, .. }) => error.len(),
                ReplyEvent::Lifecycle(_)
                | ReplyEvent::BlockReplyFlush
                | ReplyEvent::AssistantMessageStart
                | ReplyEvent::ReasoningEnd
                | ReplyEvent::Agent(_) => 0,
            }
    }

    fn merge(&mut self, next: Self, capacity: Capacity) -> Result<(), Self> {
        use ReplyEvent::{
            AssistantMessageStart, BlockReply, Draft, Notice, PartialReply, ReasoningEnd, ReasoningStream, ToolResult,
        };
        let (text, is_full) = (next.text, capacity == Capacity::Full);
        match (&mut self.event, next.event) {
            (PartialReply(first), PartialReply(next)) if first.shown == next.shown => {
                merge_growth(first, next);
            }
            (ReasoningStream(first), ReasoningStream(next)) => {
                first.formatted.then(&next.formatted);
                first.raw.then(&next.raw);
            }
            // Only the newest notice is worth reading.
            (Notice(first), Notice(next)) => *first = next,
            (Draft(first), Draft(next)) => first.then(&next),
            (AssistantMessageStart, AssistantMessageStart) | (ReasoningEnd, ReasoningEnd) => {}
            (BlockReply(first), BlockReply(next)) if is_full && may_join(first, &next, text) => {
                first.text.push_str(JOINER);
                first.text.push_str(&next.text);
                first.span = first.span.as_ref().zip(next.span.as_ref()).map(|(first, last)| first.through(last));
            }
            (ToolResult(first), ToolResult(next))
                if is_full && first.media_urls.is_empty() && next.media_urls.is_empty() =>
            {
                join_notes(first, &next);
            }
            // A typing signal between notes that nobody has seen yet is of no use.
            (ToolResult(_), AssistantMessageStart | ReasoningEnd) if is_full => {}
            (_, event) => return Err(Self { event, text }),
        }
        Ok(())
    }
}

const JOINER: &str = "\n\n";

fn join_notes(first: &mut ToolNote, next: &ToolNote) {
    if first.text.len() > MAX_JOINED_NOTES {
        return;
    }
    first.text.push('\n');
    first.text.push_str(&next.text);
    if first.text.len() > MAX_JOINED_NOTES {
        first.text.truncate(first.text.floor_char_boundary(MAX_JOINED_NOTES));
        first.text.push_str("\n…(truncated)…");
    }
}

/// Returns whether two adjacent blocks may be sent as one.
fn may_join(a: &BlockReply, b: &BlockReply, limit: Option<TextLimit>) -> bool {
    let is_plain = |block: &BlockReply| block.media_urls.is_empty() && !block.audio_as_voice && !block.is_reasoning;
    is_plain(a)
        && is_plain(b)
        && a.reply_to_id == b.reply_to_id
        && a.span.as_ref().zip(b.span.as_ref()).is_some_and(|(a, b)| a.message == b.message)
        && limit.is_none_or(|limit| limit.unit.len(&a.text) + JOINER.len() + limit.unit.len(&b.text) <= limit.max)
}

#[cfg(test)]
mod tests {
    use pinch_stdx::queue::{Bounds, MergeQueue};

    use super::*;
    use crate::replies::piece::ReplySpan;
    use crate::replies::unit::TextUnit;

    fn waiting(max_chars: usize, events: impl IntoIterator<Item = ReplyEvent>) -> Vec<Queued> {
        let queue = MergeQueue::new(Bounds { items: 4, bytes: 20_000 });
        events.into_iter().for_each(|event| {
            queue.push(Queued { event, text: Some(TextLimit { max: max_chars, unit: TextUnit::Utf16 }) }).unwrap()
        });
        std::iter::from_fn(|| queue.try_next()).collect()
    }

    #[test]
    fn joined_blocks_never_exceed_the_limit_and_span_their_parts() {
        let block = |n: u64| {
            let span = Some(ReplySpan { message: 1, bytes: n * 5..n * 5 + 5 });
            ReplyEvent::BlockReply(BlockReply { span, ..BlockReply::text("12345") })
        };
        let joined = waiting(12, (0..20).map(block));
        let mut at = 0;
        for queued in &joined {
            let ReplyEvent::BlockReply(block) = &queued.event else { panic!("{queued:?}") };
            assert!(TextUnit::Utf16.len(&block.text) <= 12, "{block:?}");
            let bytes = block.span.clone().unwrap().bytes;
            assert_eq!(bytes.start, at, "nothing is left out");
            at = bytes.end;
        }
        assert_eq!((at, joined.len()), (100, 10));
    }

    #[test]
    fn waiting_tool_notes_are_bounded() {
        let note = |n: usize| {
            let note = ToolNote { text: format!("{n} {}", "x".repeat(1_000)), ..ToolNote::default() };
            [ReplyEvent::ToolResult(note), ReplyEvent::AssistantMessageStart]
        };
        let waiting = waiting(usize::MAX, (0..5_000).flat_map(note));
        let weight: usize = waiting.iter().map(Merge::weight).sum();
        assert!(weight < 40_000, "{weight} bytes in {} events", waiting.len());
    }
}

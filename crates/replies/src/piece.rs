//! The common type of all stages, from the model's text to what is delivered.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

/// An item that flows through the stages. A stage passes unknown items on.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// An answer begins.
    MessageStart,
    /// More raw text of the model.
    Text(String),
    /// More text that may be shown, without tags.
    Visible(String),
    /// More reasoning.
    Thought(String),
    /// A stretch of reasoning ends.
    ThoughtEnd,
    /// A text block of the answer ends.
    TextEnd,
    /// The answer ends; contains its whole visible text.
    MessageEnd(Arc<str>),
    /// Buffered text must be sent now, because a tool starts or the run ends.
    Flush,
    /// The attempt failed and another begins: undelivered text is discarded.
    Restart,
    /// The time that a stage asked for has come.
    Wake,
    /// A messaging tool sent this text.
    Sent(String),
    /// The text shown so far grew.
    Partial(Growth),
    /// A finished block.
    Block(BlockReply),
    /// Everything before this has left the block stages.
    Flushed,
    /// The model begins an answer; used as a typing signal.
    AssistantStart,
    /// The reasoning grew.
    Reasoning(ReasoningGrowth),
    /// The reasoning ends.
    ReasoningEnd,
    /// The draft changed.
    Draft(Edit),
    /// A tool's summary or output.
    ToolResult(ToolNote),
    /// An event for programs.
    Agent(AgentNote),
}

/// Output of a stage.
pub type Pieces = Vec<Piece>;

/// How the cumulative text of an answer grew. The reader truncates its text at [`Growth::at`], then appends the other two parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growth {
    /// How much of the previously reported text is kept, in bytes: all of it, except at the start of an answer and after a rewind.
    pub at: usize,
    /// Earlier text to restore: it was omitted when a rewind was not reported.
    pub restored: String,
    /// The new text.
    pub delta: String,
    /// Media named in this part.
    pub media_urls: Vec<String>,
    /// Whether it is also for people, not only for programs.
    pub shown: bool,
}

/// Merges two growths. If the second continues where the first ended, all of it is new; otherwise the first is partly undone.
pub fn merge_growth(first: &mut Growth, next: Growth) {
    first.media_urls.extend(next.media_urls);
    if next.at == first.at + first.restored.len() + first.delta.len() {
        first.delta.push_str(&next.restored);
        first.delta.push_str(&next.delta);
        return;
    }
    let mut edit = Edit { at: first.at, text: std::mem::take(&mut first.restored) + &first.delta };
    edit.then(&Edit { at: next.at, text: next.restored });
    (first.at, first.restored, first.delta) = (edit.at, edit.text, next.delta);
}

/// The position of a block within a run. The same text of an answer has the same span, whether it is split differently, rejoined, or
/// generated again after a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplySpan {
    /// Number of the answer within the run, starting at 1.
    pub message: u32,
    /// Byte range of the answer's visible text. An empty range identifies the reasoning, which is not part of the text.
    pub bytes: Range<u64>,
}

impl ReplySpan {
    /// Returns the span from the start of this one to the end of a later one of the same answer.
    #[must_use]
    pub fn through(&self, later: &Self) -> Self {
        Self { message: self.message, bytes: self.bytes.start..later.bytes.end.max(self.bytes.start) }
    }
}

/// A block ready for delivery.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockReply {
    /// The text; empty if there are only media.
    pub text: String,
    /// Media to send with it.
    pub media_urls: Vec<String>,
    /// Whether to deliver audio as a voice note.
    pub audio_as_voice: bool,
    /// The message to reply to.
    pub reply_to_id: Option<String>,
    /// Whether there was a reply tag.
    pub reply_to_tag: bool,
    /// Whether to reply to the message that started the run.
    pub reply_to_current: bool,
    /// Whether this is formatted reasoning rather than the answer.
    pub is_reasoning: bool,
    /// Its span in the run, if it has one: equal texts with different spans are different blocks.
    pub span: Option<ReplySpan>,
}

impl BlockReply {
    /// Creates a block with only a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns whether there is nothing to deliver.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.media_urls.is_empty() && !self.audio_as_voice
    }
}

/// A change of a text: everything from `at` on is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// How much of the text is kept, in bytes.
    pub at: usize,
    /// The text to append.
    pub text: String,
}

impl Edit {
    /// Applies the change to a text.
    pub fn apply(&self, text: &mut String) {
        text.truncate(text.floor_char_boundary(self.at));
        text.push_str(&self.text);
    }

    /// Merges a subsequent change into this one.
    pub fn then(&mut self, next: &Self) {
        match next.at.checked_sub(self.at) {
            Some(kept) => Self { at: kept, text: String::new() }.apply(&mut self.text),
            None => {
                self.at = next.at;
                self.text.clear();
            }
        }
        self.text.push_str(&next.text);
    }
}

/// How the reasoning of an answer grew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasoningGrowth {
    /// Formatted for display: a heading, and each line in italics.
    pub formatted: Edit,
    /// As received from the model.
    pub raw: Edit,
}

/// A message about a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolNote {
    /// The text; empty if there are only media.
    pub text: String,
    /// Media to send with it.
    pub media_urls: Vec<String>,
    /// Whether to deliver audio as a voice note.
    pub audio_as_voice: bool,
    /// Id of the tool call.
    pub call_id: String,
    /// Whether this is the output of the call rather than its announcement.
    pub is_output: bool,
}

/// Which stream an event for programs belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentStream {
    /// Start and end of runs.
    Lifecycle,
    /// Answer text.
    Assistant,
    /// Reasoning.
    Thinking,
    /// Tool calls.
    Tool,
    /// Compaction.
    Compaction,
    /// Waits before another attempt.
    Retry,
}

impl AgentStream {
    /// Returns the identifier used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::Assistant => "assistant",
            Self::Thinking => "thinking",
            Self::Tool => "tool",
            Self::Compaction => "compaction",
            Self::Retry => "retry",
        }
    }
}

/// An event for programs. Time, run id and sequence number are added when it is published.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentNote {
    /// The stream.
    pub stream: AgentStream,
    /// Payload for the listeners of the engine.
    pub data: Arc<Value>,
    /// Payload for the caller of the run, if it is smaller: without arguments and results.
    pub reduced: Option<Arc<Value>>,
}

impl AgentNote {
    /// Creates an event with a single payload.
    pub fn new(stream: AgentStream, data: Value) -> Self {
        Self { stream, data: Arc::new(data), reduced: None }
    }

    /// Returns the payload for the caller of the run.
    pub fn for_caller(&self) -> &Arc<Value> {
        self.reduced.as_ref().unwrap_or(&self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(at: usize, restored: &str, delta: &str) -> Growth {
        Growth { at, restored: restored.into(), delta: delta.into(), ..Growth::default() }
    }

    /// A reader that gets the merged growth has the same text as one that gets both.
    #[test]
    fn merged_growths_have_the_effect_of_both() {
        for (first, next, expect) in [
            (growth(2, "", "cd"), growth(4, "", "ef"), growth(2, "", "cdef")),
            (growth(2, "c", "d"), growth(4, "e", "f"), growth(2, "c", "def")),
            (growth(2, "c", "de"), growth(3, "", "f"), growth(2, "c", "f")),
            (growth(2, "", "cd"), growth(1, "x", "y"), growth(1, "x", "y")),
            (growth(2, "c", "d"), growth(6, "", "f"), growth(2, "cd", "f")),
        ] {
            let mut merged = first.clone();
            merge_growth(&mut merged, next.clone());
            assert_eq!(merged, expect, "{first:?} {next:?}");
        }
    }

    #[test]
    fn a_block_is_empty_without_words_media_and_voice() {
        let voice = BlockReply { audio_as_voice: true, ..BlockReply::default() };
        let media = BlockReply { media_urls: vec!["a".into()], ..BlockReply::default() };
        let empty = [BlockReply::default(), BlockReply::text("a"), voice, media].map(|block| block.is_empty());
        assert_eq!(empty, [true, false, false, false]);
    }

    #[test]
    fn the_caller_of_a_run_gets_the_smaller_payload() {
        let mut note = AgentNote::new(AgentStream::Tool, 1.into());
        assert_eq!(**note.for_caller(), 1);
        note.reduced = Some(Arc::new(2.into()));
        assert_eq!(**note.for_caller(), 2);
    }
}

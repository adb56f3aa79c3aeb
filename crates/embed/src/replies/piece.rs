//! The one currency of the stages: what flows from the model's words to what is delivered.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

/// One thing that flows through the stages. A stage passes on what it does not know.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// An answer begins.
    MessageStart,
    /// More text of the model, as it came.
    Text(String),
    /// More text that may be shown: tags are gone.
    Visible(String),
    /// More reasoning.
    Thought(String),
    /// A stretch of reasoning is over.
    ThoughtEnd,
    /// A text block of the answer is over.
    TextEnd,
    /// The answer is over; its visible text as a whole.
    MessageEnd(Arc<str>),
    /// What is held must go out now: a tool begins, or the run ends.
    Flush,
    /// The attempt failed and another begins: what was not delivered is forgotten.
    Restart,
    /// The time a stage asked for has come.
    Wake,
    /// A messaging tool sent this text.
    Sent(String),
    /// The text shown so far grew.
    Partial(Growth),
    /// A finished block.
    Block(BlockReply),
    /// Everything before this has left the block stages.
    Flushed,
    /// An answer of the model begins: the typing signal.
    AssistantStart,
    /// The reasoning grew.
    Reasoning(ReasoningGrowth),
    /// The reasoning is over.
    ReasoningEnd,
    /// The draft changed.
    Draft(Edit),
    /// A tool's summary or output.
    ToolResult(ToolNote),
    /// An event for programs.
    Agent(AgentNote),
}

/// What stages put their results into.
pub type Out = Vec<Piece>;

/// How the cumulative text of an answer grew. Its reader cuts its text at [`Growth::at`], then adds the other two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growth {
    /// How much of the text reported before stays, in bytes: all of it, but at the start of an answer and after a rewind.
    pub at: usize,
    /// What follows of the text before: it was left out when a rewind was not reported.
    pub restored: String,
    /// What is new.
    pub delta: String,
    /// Media named in this part.
    pub media_urls: Vec<String>,
    /// Whether it is for people too, not only for programs.
    pub shown: bool,
}

/// Makes one growth of two. If the second continues where the first ended, all of it is new; otherwise the first is partly taken back.
pub(crate) fn merge_growth(first: &mut Growth, next: Growth) {
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

/// Which part of which answer a block is. The same text of an answer has the same span, whether the answer is cut into other blocks, joined
/// again, or asked for once more because an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplySpan {
    /// The answer, counted within the run from 1.
    pub message: u32,
    /// Bytes of the answer's visible text. An empty range names the reasoning of the answer, which is not part of its text.
    pub bytes: Range<u64>,
}

impl ReplySpan {
    /// The span that reaches from the start of this one to the end of another of the same answer.
    #[must_use]
    pub fn through(&self, later: &Self) -> Self {
        Self { message: self.message, bytes: self.bytes.start..later.bytes.end.max(self.bytes.start) }
    }
}

/// A block ready for delivery.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockReply {
    /// The text; empty when there are only media.
    pub text: String,
    /// Media to send along.
    pub media_urls: Vec<String>,
    /// Deliver audio as a voice note.
    pub audio_as_voice: bool,
    /// The message to reply to.
    pub reply_to_id: Option<String>,
    /// A reply tag was there.
    pub reply_to_tag: bool,
    /// Reply to the message that started the run.
    pub reply_to_current: bool,
    /// Formatted reasoning, not answer.
    pub is_reasoning: bool,
    /// Its place in the run, if it has one: equal texts at different places are different blocks.
    pub span: Option<ReplySpan>,
}

impl BlockReply {
    /// A block of text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Whether there is anything to deliver.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.media_urls.is_empty() && !self.audio_as_voice
    }
}

/// A change of a text: what stands from `at` on is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// How much of the text stays, in bytes.
    pub at: usize,
    /// What comes after that.
    pub text: String,
}

impl Edit {
    /// Changes the text.
    pub fn apply(&self, text: &mut String) {
        text.truncate(text.floor_char_boundary(self.at));
        text.push_str(&self.text);
    }

    /// This change and then another, as one.
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
    /// The text as it is shown: a heading, and each line in italics.
    pub formatted: Edit,
    /// The text as the model gave it.
    pub raw: Edit,
}

/// A message about a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolNote {
    /// The text; empty when there are only media.
    pub text: String,
    /// Media to send along.
    pub media_urls: Vec<String>,
    /// Deliver audio as a voice note.
    pub audio_as_voice: bool,
    /// The call.
    pub call_id: String,
    /// Output of the call, not its announcement.
    pub is_output: bool,
}

/// Which stream an event for programs belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentStream {
    /// Runs begin and end.
    Lifecycle,
    /// Text of the answer.
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
    /// The word used in JSON.
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

/// An event for programs. Times, run id and number are added when it is published.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentNote {
    /// The stream.
    pub stream: AgentStream,
    /// The payload for the bus.
    pub data: Arc<Value>,
    /// The payload for the caller of the run, where it is a smaller one: no arguments, no results.
    pub reduced: Option<Arc<Value>>,
}

impl AgentNote {
    /// An event with one payload for all.
    pub fn new(stream: AgentStream, data: Value) -> Self {
        Self { stream, data: Arc::new(data), reduced: None }
    }

    /// The payload for the caller of the run.
    pub fn for_caller(&self) -> &Arc<Value> {
        self.reduced.as_ref().unwrap_or(&self.data)
    }
}

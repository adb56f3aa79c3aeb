//! What leaves a run while it goes on, and how it reaches whoever wants it.
//!
//! Replies come as [`ReplyEvent`]s. A run never waits for its readers: they take events from one bounded queue, in which what belongs
//! together merges.

use pinch_stdx::queue::{Capacity, Merge};

pub mod sinks;
pub mod so_far;
mod pump;

pub(crate) use pump::Pump;
pub use pump::{Delivered, SINK_TIMEOUT};
pub use sinks::{AgentData, PartialReply, ReasoningSoFar, ReplySinks};
pub use so_far::SoFar;

use crate::replies::Piece;
use crate::replies::piece::{AgentNote, BlockReply, Edit, Growth, ReasoningGrowth, ToolNote};

/// One thing that leaves a run.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyEvent {
    /// The text of the answer grew. Told to programs, and to people where [`Growth::shown`].
    PartialReply(Growth),
    /// A finished block.
    BlockReply(BlockReply),
    /// A tool begins: everything before this should be out first.
    BlockReplyFlush,
    /// An answer of the model begins.
    AssistantMessageStart,
    /// The reasoning grew.
    ReasoningStream(ReasoningGrowth),
    /// The reasoning is over.
    ReasoningEnd,
    /// A tool's summary or output.
    ToolResult(ToolNote),
    /// An event for programs: lifecycle, tools, compaction. Text of the answer comes as [`ReplyEvent::PartialReply`], reasoning as
    /// [`ReplyEvent::ReasoningStream`]; [`SoFar`] makes the events for programs of both.
    Agent(AgentNote),
}

impl ReplyEvent {
    /// The event a piece makes; `None` for pieces that only stages care for.
    pub fn of(piece: Piece) -> Option<Self> {
        Some(match piece {
            Piece::Partial(growth) => Self::PartialReply(growth),
            Piece::Block(block) => Self::BlockReply(block),
            Piece::Flushed => Self::BlockReplyFlush,
            Piece::AssistantStart => Self::AssistantMessageStart,
            Piece::Reasoning(text) => Self::ReasoningStream(text),
            Piece::ReasoningEnd => Self::ReasoningEnd,
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

impl Merge for ReplyEvent {
    fn weight(&self) -> usize {
        const FRAME: usize = 64;
        FRAME
            + match self {
                Self::PartialReply(growth) => growth.delta.len() + growth.restored.len(),
                Self::BlockReply(block) => block.text.len(),
                Self::ReasoningStream(growth) => growth.formatted.text.len() + growth.raw.text.len(),
                Self::ToolResult(note) => note.text.len(),
                Self::BlockReplyFlush | Self::AssistantMessageStart | Self::ReasoningEnd | Self::Agent(_) => 0,
            }
    }

    fn merge(&mut self, next: Self, capacity: Capacity) -> Result<(), Self> {
        match (self, next) {
            (Self::PartialReply(so_far), Self::PartialReply(next)) if so_far.shown == next.shown => {
                merge_growth(so_far, &next);
                so_far.media_urls.extend(next.media_urls);
                Ok(())
            }
            (Self::ReasoningStream(so_far), Self::ReasoningStream(next)) => {
                so_far.formatted.then(&next.formatted);
                so_far.raw.then(&next.raw);
                Ok(())
            }
            (Self::BlockReplyFlush, Self::BlockReplyFlush) => Ok(()),
            (Self::BlockReply(so_far), Self::BlockReply(next))
                if capacity == Capacity::Full && may_join(so_far, &next) =>
            {
                so_far.text.push_str("\n\n");
                so_far.text.push_str(&next.text);
                Ok(())
            }
            (_, next) => Err(next),
        }
    }
}

/// Makes one growth of two. When the second goes on where the first ended, all of it is new; otherwise the first is partly taken back.
fn merge_growth(so_far: &mut Growth, next: &Growth) {
    if next.at == so_far.at + so_far.restored.len() + so_far.delta.len() {
        so_far.delta.push_str(&next.restored);
        so_far.delta.push_str(&next.delta);
        return;
    }
    let mut edit = Edit { at: so_far.at, text: std::mem::take(&mut so_far.restored) + &so_far.delta };
    edit.then(&Edit { at: next.at, text: next.restored.clone() });
    (so_far.at, so_far.restored) = (edit.at, edit.text);
    so_far.delta.clone_from(&next.delta);
}

/// Whether two neighbouring blocks may be sent as one.
fn may_join(a: &BlockReply, b: &BlockReply) -> bool {
    let is_plain = |block: &BlockReply| block.media_urls.is_empty() && !block.audio_as_voice && !block.is_reasoning;
    is_plain(a)
        && is_plain(b)
        && a.reply_to_id == b.reply_to_id
        && a.id.is_some_and(|a| b.id.is_some_and(|b| a.message == b.message))
}

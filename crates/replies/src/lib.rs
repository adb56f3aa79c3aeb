#![doc = include_str!("../README.md")]

use pinch_stdx::cancel::Deadline;

pub mod texts;

pub mod piece;

pub mod unit;

pub mod code;

pub mod tags;

pub mod scan;

pub mod tokens;

pub mod api_error;

pub mod tool_display;

pub mod markup;

pub mod user_text;

pub mod normalise;

pub mod directives;

pub mod partial;

pub mod prefix;

mod inline;

pub mod fence;

pub mod chunk;

pub mod preview;

pub mod channel;

pub mod sent;

pub mod dedupe;

pub mod blocks;

pub mod coalesce;

pub mod reasoning;

pub mod tool_notes;

pub mod raw_log;

pub mod compose;

mod pipeline;

pub use piece::{Piece, Pieces};
pub use pipeline::Replies;
pub use pipeline::is_mirror;

use crate::texts::TextTable;
use blocks::BlockBreak;
use chunk::Chunking;
use coalesce::Coalescing;
use directives::DirectiveRules;
use directives::threading::ReplyToMode;
use prefix::ResponsePrefix;
use preview::Preview;
use tool_notes::{ToolFormat, Verbose, VerboseNow};
use unit::TextLimit;

/// One stage of the chain.
pub trait Stage: Send {
    /// Processes a piece. Unknown pieces are passed on.
    fn push(&mut self, piece: Piece, out: &mut Pieces);

    /// Flushes buffered pieces. No more will come.
    fn finish(&mut self, out: &mut Pieces);

    /// Returns when the stage needs [`Piece::Wake`].
    fn wake_at(&self) -> Option<Deadline> {
        None
    }
}

/// What happens to reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningLevel {
    /// It is hidden.
    #[default]
    Off,
    /// It is sent as a separate message.
    On,
    /// It is shown as it grows.
    Stream,
}

impl ReasoningLevel {
    /// Parses the name used in session indexes: `off`, `on` or `stream`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "off" => Some(Self::Off),
            "on" => Some(Self::On),
            "stream" => Some(Self::Stream),
            _ => None,
        }
    }
}

/// Options for a run's replies.
#[derive(Clone, Debug, Default)]
pub struct ReplyOptions {
    /// Whether blocks are delivered during the run; otherwise texts are only collected.
    pub block_streaming: bool,
    /// When blocks are sent.
    pub block_reply_break: BlockBreak,
    /// How text is split into blocks; `None` leaves it whole.
    pub chunking: Option<Chunking>,
    /// How small blocks are joined; `None` leaves them as they are.
    pub coalescing: Option<Coalescing>,
    /// What happens to reasoning.
    pub reasoning: ReasoningLevel,
    /// How much of the tool activity the user sees.
    pub verbose: Verbose,
    /// Decides that anew before each message about a tool.
    pub verbose_now: Option<VerboseNow>,
    /// Format of messages about tools.
    pub tool_result_format: ToolFormat,
    /// Whether reasoning that is not part of the text is hidden, because no thinking was asked for.
    pub hide_native_reasoning: bool,
    /// Whether failed tools without side effects are not reported at the end of a run.
    pub suppress_tool_errors: bool,
    /// Home directory, shown as `~` in messages about tools.
    pub home: Option<String>,
    /// Id of the message that the run answers, for replies to the current message.
    pub current_message: Option<String>,
    /// Which blocks keep the message they reply to.
    pub reply_to: ReplyToMode,
    /// Which reply directives are recognised, and which files they may name.
    pub directives: DirectiveRules,
    /// The text before each reply.
    pub prefix: Option<ResponsePrefix>,
    /// The draft that is edited during the run.
    pub preview: Preview,
    /// The longest message of the channel.
    pub text_limit: Option<TextLimit>,
    /// Texts for people.
    pub texts: TextTable,
    /// Whether the owner of the run, which may make several attempts, emits its start and end.
    pub quiet_lifecycle: bool,
}

/// Pushes a piece through a chain and adds the output to `out`.
pub(crate) fn push_through(stages: &mut [Box<dyn Stage>], piece: Piece, out: &mut Pieces) {
    let Some((first, rest)) = stages.split_first_mut() else { return out.push(piece) };
    if rest.is_empty() {
        return first.push(piece, out);
    }
    let mut between = Pieces::new();
    first.push(piece, &mut between);
    for piece in between {
        push_through(rest, piece, out);
    }
}

/// Ends a chain: each stage flushes its buffer through those after it.
pub(crate) fn finish_through(stages: &mut [Box<dyn Stage>], out: &mut Pieces) {
    let Some((first, rest)) = stages.split_first_mut() else { return };
    let mut between = Pieces::new();
    first.finish(&mut between);
    for piece in between {
        push_through(rest, piece, out);
    }
    finish_through(rest, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_reasoning_have_names() {
        let found = ["off", "on", "stream", "Off"].map(ReasoningLevel::parse);
        assert_eq!(found, [Some(ReasoningLevel::Off), Some(ReasoningLevel::On), Some(ReasoningLevel::Stream), None]);
    }
}

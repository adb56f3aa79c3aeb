//! What the user of a run gets: whether an answer is due, in which blocks it arrives, and what is said of tokens.

use crate::replies::blocks::BlockBreak;
use crate::replies::chunk::Chunking;
use crate::replies::coalesce::Coalescing;

/// Whether the user must get an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyExpectation {
    /// The model may stay silent.
    #[default]
    Optional,
    /// The model must answer, and the silent token `NO_REPLY` does not count. If it ends without an answer and no message tool sent one, it
    /// is asked once more, without tools and with a time limit of its own; without an answer then, the run ends with a failure.
    Required,
}

/// What a run's user is shown of the tokens it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageLine {
    /// Nothing.
    #[default]
    Off,
    /// How many there were.
    Tokens,
    /// How many there were, and what they cost.
    Full,
}

impl UsageLine {
    /// Parses the word used in session indexes: `off`, `tokens` or `full`.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "off" => Self::Off,
            "tokens" | "on" => Self::Tokens,
            "full" => Self::Full,
            _ => return None,
        })
    }
}

/// When and in which blocks replies are delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockReplies {
    /// What ends a block.
    pub break_at: BlockBreak,
    /// Sizes of the blocks; `None`: whole text blocks.
    pub chunking: Option<Chunking>,
    /// How small blocks are joined; `None`: as the configuration says for the channel.
    pub coalescing: Option<Coalescing>,
}

//! What the user of a run receives: whether an answer is required, how it is split into blocks, and the line about token usage.

use crate::replies::blocks::BlockBreak;
use crate::replies::chunk::Chunking;
use crate::replies::coalesce::Coalescing;

/// Whether the model must answer the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyExpectation {
    /// The model may stay silent, by answering `NO_REPLY`. If it stops without any text, it is asked to go on, and the run fails if it still
    /// says nothing; runs that the heartbeat started, and those that save memories, then end without an answer.
    #[default]
    Optional,
    /// The model must answer, and the silent token `NO_REPLY` does not count. If it stops without an answer and no message tool sent one,
    /// it is asked once more, without tools and with a separate time limit; if there is still no answer, the run ends with a failure.
    Required,
}

/// Notice about a run's token usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageLine {
    /// None.
    #[default]
    Off,
    /// Number of tokens.
    Tokens,
    /// Number of tokens and their cost.
    Full,
}

impl UsageLine {
    /// Parses the name used in session indexes: `off`, `tokens` or `full`.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "off" => Self::Off,
            "tokens" | "on" => Self::Tokens,
            "full" => Self::Full,
            _ => return None,
        })
    }
}

/// How replies are delivered in blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockReplies {
    /// What ends a block.
    pub break_at: BlockBreak,
    /// Sizes of the blocks; `None`: whole text blocks.
    pub chunking: Option<Chunking>,
    /// How small blocks are joined; `None`: as configured for the channel, or as it prefers.
    pub coalescing: Option<Coalescing>,
}

//! Delivery of replies: blocks and their sizes, pauses between them, and drafts; for all agents, and for individual channels and accounts.

use std::time::Duration;

use pinch_coding_agent::document::Problem;

use super::node::Node;
use crate::replies::blocks::BlockBreak;
use crate::replies::chunk::{BreakPreference, Chunking};
use crate::replies::preview::{CommandText, Preview, PreviewMode, ProgressDraft};

/// Delivery of replies in blocks during the run (`agents.defaults.blockStreaming…`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockStreaming {
    /// Whether replies are delivered in blocks.
    pub on: Option<bool>,
    /// What ends a block.
    pub break_at: Option<BlockBreak>,
    /// Sizes of the blocks.
    pub chunk: Option<Chunking>,
    /// How small blocks are joined.
    pub coalesce: Option<CoalesceConfig>,
}

/// How small blocks are joined. Unset values depend on the channel and the block sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoalesceConfig {
    /// Shorter text waits for more text or the end of the answer.
    pub min_chars: Option<usize>,
    /// Maximum length of joined blocks.
    pub max_chars: Option<usize>,
    /// Idle time after which buffered text is sent.
    pub idle: Option<Duration>,
}

/// Pauses between blocks that imitate a human typist (`humanDelay`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HumanDelay {
    /// The shortest pause.
    pub min: Duration,
    /// The longest pause.
    pub max: Duration,
}

/// Which replies of a channel stay in a thread (`replyToMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyThreads {
    /// None.
    Off,
    /// The first payload.
    First,
    /// All.
    All,
}

/// Delivery of replies to one channel or account. Unset values come from the level above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelDelivery {
    /// The longest message (`textChunkLimit`).
    pub text_limit: Option<usize>,
    /// Whether each paragraph is its own message (`chunkMode: "newline"`).
    pub by_paragraph: Option<bool>,
    /// Whether replies are delivered in blocks (`blockStreaming`).
    pub blocks: Option<bool>,
    /// How small blocks are joined (`blockStreamingCoalesce`).
    pub coalesce: Option<CoalesceConfig>,
    /// Which replies stay in a thread (`replyToMode`).
    pub threads: Option<ReplyThreads>,
    /// The largest file, in bytes (`mediaMaxMb`).
    pub media_bytes: Option<u64>,
    /// A draft that is edited during the run (`streaming.mode`).
    pub preview: Option<Preview>,
    /// The text before each reply (`responsePrefix`); empty: none.
    pub response_prefix: Option<String>,
}

impl BlockStreaming {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let break_at = |word: &str| match word {
            "text_end" => Some(BlockBreak::TextEnd),
            "message_end" => Some(BlockBreak::MessageEnd),
            "paragraph" => Some(BlockBreak::Paragraph),
            _ => None,
        };
        let words = ["text_end", "message_end", "paragraph"];
        Self {
            on: node.get("blockStreamingDefault").word(problems, &["on", "off"], switch),
            break_at: node.get("blockStreamingBreak").word(problems, &words, break_at),
            chunk: read_chunk(&node.get("blockStreamingChunk"), Chunking::default(), problems),
            coalesce: CoalesceConfig::read(&node.get("blockStreamingCoalesce"), problems),
        }
    }
}

fn switch(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Reads block sizes; missing ones are taken from `usual`.
fn read_chunk(node: &Node<'_>, usual: Chunking, problems: &mut Vec<Problem>) -> Option<Chunking> {
    node.object(problems)?;
    let prefer = |word: &str| match word {
        "paragraph" => Some(BreakPreference::Paragraph),
        "newline" => Some(BreakPreference::Newline),
        "sentence" => Some(BreakPreference::Sentence),
        _ => None,
    };
    let min_chars = read_size(&node.get("minChars"), problems).unwrap_or(usual.min_chars);
    let max_chars = read_size(&node.get("maxChars"), problems).unwrap_or(usual.max_chars).max(min_chars);
    let words = ["paragraph", "newline", "sentence"];
    let preference = node.get("breakPreference").word(problems, &words, prefer).unwrap_or_default();
    Some(Chunking { min_chars, max_chars, preference, ..usual })
}

fn read_size(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<usize> {
    node.count(problems).and_then(|n| usize::try_from(n).ok()).map(|n| n.max(1))
}

impl CoalesceConfig {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        node.object(problems)?;
        Some(Self {
            min_chars: read_size(&node.get("minChars"), problems),
            max_chars: read_size(&node.get("maxChars"), problems),
            idle: node.get("idleMs").count(problems).map(Duration::from_millis),
        })
    }
}

impl HumanDelay {
    /// Pauses of a fast typist.
    const NATURAL: Self = Self { min: Duration::from_millis(800), max: Duration::from_millis(2_500) };

    /// Reads `humanDelay`: `None` if it is not set, `Some(None)` if pauses are disabled.
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Option<Self>> {
        let mode = node.get("mode").word(problems, &["off", "natural", "custom"], |word| match word {
            "off" => Some(None),
            "natural" => Some(Some(Self::NATURAL)),
            "custom" => Some(Some(Self { min: Duration::ZERO, max: Duration::ZERO })),
            _ => None,
        })?;
        let mut bound = |name: &str| node.get(name).count(problems).map(Duration::from_millis);
        let (min, max) = (bound("minMs"), bound("maxMs"));
        Some(mode.map(|delay| match delay == Self::NATURAL {
            true => delay,
            false => {
                let min = min.unwrap_or(Self::NATURAL.min);
                Self { min, max: max.unwrap_or(Self::NATURAL.max).max(min) }
            }
        }))
    }
}

impl ChannelDelivery {
    /// Reads the settings of a channel or account, both the flat keys and `streaming`, which takes precedence.
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let streaming = node.get("streaming");
        let nested = |name: &str| if streaming.is_object() { streaming.get(name) } else { streaming.get("") };
        let block = nested("block");
        let modes = ["length", "newline"];
        let by_paragraph = |word: &str| match word {
            "newline" => Some(true),
            "length" => Some(false),
            _ => None,
        };
        let threads = |word: &str| match word {
            "off" => Some(ReplyThreads::Off),
            "first" => Some(ReplyThreads::First),
            "all" => Some(ReplyThreads::All),
            _ => None,
        };
        let nested_mode = nested("chunkMode").word(problems, &modes, by_paragraph);
        let flat_mode = node.get("chunkMode").word(problems, &modes, by_paragraph);
        let (nested_blocks, flat_blocks) =
            (block.get("enabled").flag(problems), node.get("blockStreaming").flag(problems));
        let nested_coalesce = CoalesceConfig::read(&block.get("coalesce"), problems);
        let flat_coalesce = CoalesceConfig::read(&node.get("blockStreamingCoalesce"), problems);
        let megabytes = node.get("mediaMaxMb").number(problems).filter(|mb| *mb > 0.0);
        Self {
            text_limit: read_size(&node.get("textChunkLimit"), problems),
            by_paragraph: nested_mode.or(flat_mode),
            blocks: nested_blocks.or(flat_blocks),
            coalesce: nested_coalesce.or(flat_coalesce),
            threads: node.get("replyToMode").word(problems, &["off", "first", "all"], threads),
            media_bytes: megabytes.map(|mb| (mb * 1024.0 * 1024.0) as u64),
            preview: read_preview(node, &streaming, problems),
            response_prefix: node.get("responsePrefix").text(problems),
        }
    }

    /// Returns these settings, with the level above filling the gaps.
    pub fn or(&self, above: &Self) -> Self {
        Self {
            text_limit: self.text_limit.or(above.text_limit),
            by_paragraph: self.by_paragraph.or(above.by_paragraph),
            blocks: self.blocks.or(above.blocks),
            coalesce: self.coalesce.or(above.coalesce),
            threads: self.threads.or(above.threads),
            media_bytes: self.media_bytes.or(above.media_bytes),
            preview: self.preview.or(above.preview),
            response_prefix: self.response_prefix.clone().or_else(|| above.response_prefix.clone()),
        }
    }
}

/// Reads `streaming.{mode, preview, progress}`, the former `streaming` (a word or a boolean), `streamMode` and `draftChunk`.
fn read_preview(node: &Node<'_>, streaming: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Preview> {
    let words = ["off", "partial", "block", "progress"];
    let mode = if streaming.is_object() {
        streaming.get("mode").word(problems, &words, PreviewMode::parse)
    } else if streaming.is_flag() {
        streaming.flag(problems).map(|on| if on { PreviewMode::Partial } else { PreviewMode::Off })
    } else {
        streaming.word(problems, &words, PreviewMode::parse)
    };
    let earlier = node.get("streamMode").word(problems, &words, PreviewMode::parse);
    let nested_chunk = read_chunk(&streaming.get("preview").get("chunk"), Preview::CHUNK, problems);
    let flat_chunk = read_chunk(&node.get("draftChunk"), Preview::CHUNK, problems);
    let progress = streaming.get("progress");
    let usual = ProgressDraft::default();
    let progress = ProgressDraft {
        max_lines: read_size(&progress.get("maxLines"), problems).unwrap_or(usual.max_lines),
        max_line_chars: read_size(&progress.get("maxLineChars"), problems).unwrap_or(usual.max_line_chars),
        tool_progress: progress.get("toolProgress").flag(problems).unwrap_or(usual.tool_progress),
        commentary: progress.get("commentary").flag(problems).unwrap_or(usual.commentary),
        commands: progress
            .get("commandText")
            .word(problems, &["status", "raw"], CommandText::parse)
            .unwrap_or(usual.commands),
    };
    let mode = mode.or(earlier)?;
    Some(Preview { mode, chunk: nested_chunk.or(flat_chunk).unwrap_or(Preview::CHUNK), progress })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::super::node::UsedKeys;
    use super::*;

    fn read(value: &Value) -> ChannelDelivery {
        let (used, mut problems) = (UsedKeys::default(), Vec::new());
        let read = ChannelDelivery::read(&Node::root(value, Path::new("pinch.json"), &used), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let document = value.as_object().unwrap();
        assert_eq!(used.ignored(document), Vec::<String>::new());
        read
    }

    #[test]
    fn flat_and_nested_streaming_keys_are_equivalent() {
        let nested = read(&json!({"streaming": {
            "mode": "block", "chunkMode": "newline", "block": {"enabled": true, "coalesce": {"idleMs": 5}},
            "preview": {"chunk": {"minChars": 9}}, "progress": {"maxLines": 3},
        }}));
        let mut flat = read(&json!({
            "streamMode": "block", "chunkMode": "newline", "blockStreaming": true,
            "blockStreamingCoalesce": {"idleMs": 5}, "draftChunk": {"minChars": 9},
        }));
        flat.preview.as_mut().unwrap().progress.max_lines = 3;
        assert_eq!(nested, flat);
        assert_eq!(read(&json!({"streaming": "partial"})).preview.map(|p| p.mode), Some(PreviewMode::Partial));
        assert_eq!(read(&json!({"streaming": false})).preview.map(|p| p.mode), Some(PreviewMode::Off));
    }

    #[test]
    fn nested_keys_and_accounts_take_precedence() {
        let both = read(&json!({"chunkMode": "length", "streaming": {"chunkMode": "newline"}, "textChunkLimit": 70}));
        assert_eq!((both.by_paragraph, both.text_limit), (Some(true), Some(70)));
        let account = read(&json!({"textChunkLimit": 50}));
        assert_eq!((account.or(&both).text_limit, account.or(&both).by_paragraph), (Some(50), Some(true)));
    }
}

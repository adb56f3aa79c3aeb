//! Sets the message that a payload replies to.

use super::super::Stage;
use super::super::piece::{BlockReply, Piece, Pieces};
use super::{DirectiveRules, TagForms, parse_text};

/// How a channel uses threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyToMode {
    /// Every payload keeps its thread.
    #[default]
    All,
    /// Only the first payload with a thread keeps it.
    First,
    /// No payload keeps its thread, except for explicit tags if the channel allows them.
    Off {
        /// Whether explicit tags are honoured.
        tags_allowed: bool,
    },
}

/// Parses tags in the text of a payload and fills in the id of the message that started the run.
pub fn apply_reply_tags(reply: &mut BlockReply, current: Option<&str>, tags: TagForms) {
    let current = current.map(str::trim).filter(|id| !id.is_empty());
    if !reply.text.contains("[[") {
        if reply.reply_to_current && reply.reply_to_id.is_none() {
            reply.reply_to_id = current.map(str::to_owned);
        }
        return;
    }
    let rules = DirectiveRules { tags, ..DirectiveRules::default() };
    let parsed = parse_text(std::mem::take(&mut reply.text).into(), current, &rules);
    reply.text = parsed.text;
    reply.media_urls.extend(parsed.media_urls);
    reply.reply_to_id = parsed.reply_to_id.or_else(|| reply.reply_to_id.take());
    reply.reply_to_tag |= parsed.reply_to_tag;
    reply.reply_to_current |= parsed.reply_to_current;
    reply.audio_as_voice |= parsed.audio_as_voice;
}

/// The stage: sets the message that each block replies to.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    filter: ThreadFilter,
    current: Option<String>,
    tags: TagForms,
}

impl Threads {
    /// Creates the stage. `current`: the message that the run answers.
    pub fn new(mode: ReplyToMode, current: Option<String>, tags: TagForms) -> Self {
        Self { filter: ThreadFilter::new(mode), current, tags }
    }
}

impl Stage for Threads {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        let Piece::Block(mut block) = piece else { return out.push(piece) };
        apply_reply_tags(&mut block, self.current.as_deref(), self.tags);
        self.filter.filter(&mut block);
        out.push(Piece::Block(block));
    }

    fn finish(&mut self, _: &mut Pieces) {}
}

/// Removes threads from the payloads of a run according to a channel's mode, one payload after another.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadFilter {
    mode: ReplyToMode,
    has_thread: bool,
}

impl ThreadFilter {
    /// Creates a filter.
    pub fn new(mode: ReplyToMode) -> Self {
        Self { mode, has_thread: false }
    }

    /// Removes the thread of the next payload unless the mode keeps it.
    pub fn filter(&mut self, reply: &mut BlockReply) {
        if reply.reply_to_id.is_none() {
            return;
        }
        let keeps = match self.mode {
            ReplyToMode::All => true,
            ReplyToMode::First => !std::mem::replace(&mut self.has_thread, true),
            ReplyToMode::Off { tags_allowed } => tags_allowed && reply.reply_to_tag,
        };
        if !keeps {
            reply.reply_to_id = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(reply: BlockReply, current: Option<&str>) -> BlockReply {
        let mut reply = reply;
        apply_reply_tags(&mut reply, current, TagForms::Long);
        reply
    }

    #[test]
    fn tags_of_a_payload_set_what_it_replies_to() {
        let text = |text: &str| BlockReply::text(text);
        let to = |id: &str, reply: BlockReply| BlockReply { reply_to_id: Some(id.to_owned()), ..reply };
        let current = |reply: BlockReply| BlockReply { reply_to_current: true, ..reply };
        let tagged = |reply: BlockReply| BlockReply { reply_to_tag: true, ..reply };
        for (reply, id, expect) in [
            (text("a"), Some("7"), text("a")),
            (current(text("a")), Some(" 7 "), to("7", current(text("a")))),
            (current(text("a")), Some(" "), current(text("a"))),
            (to("8", current(text("a"))), Some("7"), to("8", current(text("a")))),
            (text("[[reply_to_current]] a"), Some("7"), to("7", current(tagged(text("a"))))),
            (to("8", text("[[reply_to:9]] a")), Some("7"), to("9", tagged(text("a")))),
            (to("8", text("[[b]] a")), Some("7"), to("8", text("[[b]] a"))),
            (text("[[reply]] a"), Some("7"), text("[[reply]] a")),
            (text("[[audio_as_voice]] a"), None, BlockReply { audio_as_voice: true, ..text("a") }),
            (
                BlockReply { audio_as_voice: true, ..tagged(current(text("[[b]] a"))) },
                None,
                BlockReply { audio_as_voice: true, ..tagged(current(text("[[b]] a"))) },
            ),
        ] {
            assert_eq!(applied(reply.clone(), id), expect, "{reply:?}");
        }
    }

    #[test]
    fn a_mode_decides_which_payloads_keep_their_thread() {
        let with = |id: Option<&str>, reply_to_tag: bool| BlockReply {
            reply_to_id: id.map(str::to_owned),
            reply_to_tag,
            ..BlockReply::text("a")
        };
        for (mode, expect) in [
            (ReplyToMode::All, [false, true, true]),
            (ReplyToMode::First, [false, true, false]),
            (ReplyToMode::Off { tags_allowed: true }, [false, false, true]),
            (ReplyToMode::Off { tags_allowed: false }, [false, false, false]),
        ] {
            let (mut stage, mut out) = (Threads::new(mode, None, TagForms::All), Pieces::new());
            for block in [with(None, true), with(Some("7"), false), with(Some("7"), true)] {
                stage.push(Piece::Block(block), &mut out);
            }
            let keeps = out.iter().map(|piece| matches!(piece, Piece::Block(block) if block.reply_to_id.is_some()));
            assert_eq!(keeps.collect::<Vec<_>>(), expect, "{mode:?}");
        }
    }
}

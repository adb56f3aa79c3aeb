//! Final cleanup of replies: removes what is meant only for programs.

use std::borrow::Cow;

use super::Stage;
use super::piece::{BlockReply, Piece, Pieces};
use super::tokens::{HEARTBEAT, HeartbeatMode, SILENT, is_silent, strip_heartbeat, strip_silent};
use super::user_text::sanitise;
use crate::texts::TextTable;

/// Removes tokens and scaffolding, and adds the prefix; `None` if nothing is left to send. `has_more`: whether the payload has media or
/// channel data.
pub fn normalise_reply(mut text: String, has_more: bool, prefix: Option<&str>, phrases: &TextTable) -> Option<String> {
    if text.trim().is_empty() && !has_more {
        return None;
    }
    if is_silent(&text) {
        if !has_more {
            return None;
        }
        text.clear();
    }
    // A token after an answer is not shown.
    if text.contains(SILENT) {
        text = strip_silent(&text);
    }
    if text.contains(HEARTBEAT) {
        let stripped = strip_heartbeat(&text, HeartbeatMode::Message);
        if stripped.skip && !has_more {
            return None;
        }
        text = stripped.text;
    }
    // A long answer that is already clean is not copied.
    let changed = match sanitise(&text, phrases) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => Some(clean),
    };
    text = changed.unwrap_or(text);
    if text.trim().is_empty() && !has_more {
        return None;
    }
    match prefix.filter(|prefix| !prefix.is_empty() && !text.is_empty()) {
        Some(prefix) if !text.starts_with(prefix) && text.trim() != HEARTBEAT && text.trim() != SILENT => {
            Some(format!("{prefix} {text}"))
        }
        _ => Some(text),
    }
}

/// The stage: turns the model's blocks into blocks for people.
#[derive(Clone, Debug, Default)]
pub struct Cleanup {
    phrases: TextTable,
}

impl Cleanup {
    /// Creates the stage with these texts for people.
    pub fn new(phrases: TextTable) -> Self {
        Self { phrases }
    }
}

impl Stage for Cleanup {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        let Piece::Block(mut block) = piece else { return out.push(piece) };
        if !block.is_reasoning {
            let has_more = has_more(&block);
            match normalise_reply(std::mem::take(&mut block.text), has_more, None, &self.phrases) {
                Some(text) => block.text = text,
                None => return,
            }
        }
        out.push(Piece::Block(block));
    }

    fn finish(&mut self, _: &mut Pieces) {}
}

fn has_more(block: &BlockReply) -> bool {
    !block.media_urls.is_empty() || block.audio_as_voice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str, has_more: bool, prefix: Option<&str>) -> Option<String> {
        normalise_reply(text.to_owned(), has_more, prefix, &TextTable::default())
    }

    #[test]
    fn replies_without_words_are_dropped_unless_they_have_media() {
        for (text, alone, with_media) in [
            ("", None, Some("")),
            (" \n", None, Some("")),
            ("NO_REPLY", None, Some("")),
            ("HEARTBEAT_OK", None, Some("")),
            ("<final></final>", None, Some("")),
            ("Hi NO_REPLY", Some("Hi"), Some("Hi")),
            ("HEARTBEAT_OK Hi", Some("Hi"), Some("Hi")),
            ("<final>Hi</final>", Some("Hi"), Some("Hi")),
            ("Hi", Some("Hi"), Some("Hi")),
        ] {
            assert_eq!(normal(text, false, None).as_deref(), alone, "{text:?}");
            assert_eq!(normal(text, true, None).as_deref(), with_media, "{text:?} with media");
        }
    }

    #[test]
    fn the_prefix_is_put_before_words_that_do_not_begin_with_it() {
        for (text, prefix, expect) in [
            ("Hi", "[Ada]", "[Ada] Hi"),
            ("[Ada] Hi", "[Ada]", "[Ada] Hi"),
            ("Hi", "", "Hi"),
            ("NO_REPLY", "[Ada]", ""),
        ] {
            assert_eq!(normal(text, true, Some(prefix)).as_deref(), Some(expect), "{text:?} {prefix:?}");
        }
    }

    #[test]
    fn only_blocks_of_the_answer_are_cleaned() {
        let mut out = Pieces::new();
        let mut stage = Cleanup::default();
        let text = |text: &str| BlockReply::text(text);
        let voice = BlockReply { audio_as_voice: true, ..text("NO_REPLY") };
        let media = BlockReply { media_urls: vec!["a".to_owned()], ..text("NO_REPLY") };
        let reasoning = BlockReply { is_reasoning: true, ..text("NO_REPLY") };
        for block in [text("Hi NO_REPLY"), text("NO_REPLY"), voice, media, reasoning] {
            stage.push(Piece::Block(block), &mut out);
        }
        stage.push(Piece::Flushed, &mut out);
        let shown: Vec<String> = out
            .into_iter()
            .map(|piece| match piece {
                Piece::Block(block) => block.text,
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(shown, ["Hi", "", "", "NO_REPLY", "Flushed"]);
    }
}

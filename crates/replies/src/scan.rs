//! The first stage: removes tags from the model's text and separates reasoning from the answer.
//!
//! It scans each answer once, independent of chunking. A prefix that may become a tag is held back until it is complete or ruled out, so
//! that no partial tag is ever shown.

use std::borrow::Cow;

use super::Stage;
use super::code::CodeState;
use super::piece::{Piece, Pieces};
use super::tags::{self, Tag, TagKind};

/// Which part of the model's text is for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinalTag {
    /// Everything outside reasoning; final tags are removed.
    #[default]
    Optional,
    /// Only text between final tags.
    Enforced,
}

/// How long the end of a code span is waited for, in bytes.
const MAX_DOUBTFUL: usize = 1_024;

/// Removes tags.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    final_tag: FinalTag,
    code: CodeState,
    held: String,
    /// Whether the held text is inside of an inline code span.
    held_in_span: bool,
    /// Text after a closing tag in a code span of the reasoning. If the span ends on the same line, the tag was quoted.
    doubtful: Option<String>,
    thinking: bool,
    in_final: bool,
    /// Whether a final tag was opened.
    has_final: bool,
}

impl Scan {
    /// Creates a scanner for a new answer.
    pub fn new(final_tag: FinalTag) -> Self {
        Self { final_tag, ..Self::default() }
    }

    /// Consumes text; visible text and reasoning are added to `out`.
    pub fn text(&mut self, text: &str, out: &mut Pieces) {
        let mut run = CharRun { visible: String::new(), thought: String::new(), out };
        // Start of the part that is neither emitted nor held back.
        let mut start = 0;
        for (at, c) in text.char_indices() {
            let in_code = self.code.push(c);
            if let Some(doubtful) = &mut self.doubtful {
                doubtful.push(c);
                start = at + c.len_utf8();
                if c == '\n' || doubtful.len() > MAX_DOUBTFUL {
                    self.settle_doubt(true, &mut run);
                } else if !self.code.in_inline() {
                    self.settle_doubt(false, &mut run);
                }
                continue;
            }
            if self.held.is_empty() {
                // In reasoning, a code block does not hide the closing tag: it may never end.
                if c == '<' && (!in_code || self.thinking) {
                    self.put(&text[start..at], &mut run);
                    self.held.push(c);
                    self.held_in_span = in_code && !self.code.in_fence();
                    start = at + 1;
                }
                continue;
            }
            start = at + c.len_utf8();
            if c == '<' {
                self.release(&mut run);
                self.held.push(c);
                continue;
            }
            self.held.push(c);
            if c == '>' {
                match tags::parse(&self.held) {
                    Some(tag) if self.thinking && self.held_in_span => {
                        if tag.kind == TagKind::Think && tag.closes {
                            self.doubtful = Some(String::new());
                        } else {
                            self.release(&mut run);
                        }
                    }
                    Some(tag) => {
                        self.held.clear();
                        self.tag(tag, &mut run);
                    }
                    None => self.release(&mut run),
                }
            } else if !tags::may_become(&self.held) {
                self.release(&mut run);
            }
        }
        self.put(&text[start..], &mut run);
        run.flush();
    }

    /// Decides about a closing tag in a code span. `counts`: the span was never closed, so that the tag is real.
    fn settle_doubt(&mut self, counts: bool, run: &mut CharRun<'_>) {
        let Some(rest) = self.doubtful.take() else { return };
        if !counts {
            self.release(run);
            self.put(&rest, run);
            return;
        }
        self.held.clear();
        self.tag(Tag { kind: TagKind::Think, closes: true, empty: false }, run);
        run.flush();
        self.text(&rest, run.out);
    }

    /// Consumes a text that is emitted unchanged, which is the common case: without a tag, and entirely visible or reasoning.
    fn whole(&mut self, text: String, out: &mut Pieces) {
        let is_plain = self.held.is_empty()
            && self.doubtful.is_none()
            && !text.contains('<')
            && self.code.push_plain(&text).is_some();
        match is_plain {
            false => self.text(&text, out),
            true if self.thinking => out.push(Piece::Thought(text)),
            true if self.shows() => out.push(Piece::Visible(text)),
            true => {}
        }
    }

    /// Emits what was held back as a possible tag. No more text will follow.
    pub fn settle(&mut self, out: &mut Pieces) {
        let mut run = CharRun { visible: String::new(), thought: String::new(), out };
        // The text after a tag may lead to another doubt.
        while self.doubtful.is_some() {
            self.settle_doubt(true, &mut run);
        }
        self.release(&mut run);
        run.flush();
    }

    /// Returns whether the text so far ends inside reasoning.
    pub fn is_thinking(&self) -> bool {
        self.thinking
    }

    /// Returns whether the text so far opened a final tag.
    pub fn has_final(&self) -> bool {
        self.has_final
    }

    fn release(&mut self, run: &mut CharRun<'_>) {
        let held = std::mem::take(&mut self.held);
        self.put(&held, run);
    }

    fn put(&self, text: &str, run: &mut CharRun<'_>) {
        if self.thinking && !text.is_empty() {
            run.think(text);
        } else if self.shows() && !text.is_empty() {
            run.show(text);
        }
    }

    /// Returns whether text outside reasoning is for people.
    fn shows(&self) -> bool {
        self.final_tag == FinalTag::Optional || self.in_final
    }

    fn tag(&mut self, tag: Tag, run: &mut CharRun<'_>) {
        match tag.kind {
            TagKind::Think if tag.closes => {
                if std::mem::take(&mut self.thinking) {
                    // Code that the reasoning left open does not continue in the answer.
                    self.code = CodeState::default();
                    run.end_thought();
                }
            }
            TagKind::Think => {
                if !tag.empty && !std::mem::replace(&mut self.thinking, true) {
                    self.code = CodeState::default();
                }
            }
            TagKind::Final if self.thinking => {}
            TagKind::Final if tag.closes => self.in_final = false,
            TagKind::Final => {
                self.in_final |= !tag.empty;
                self.has_final |= !tag.empty;
            }
        }
    }
}

/// Collects adjacent characters of the same kind.
struct CharRun<'o> {
    visible: String,
    thought: String,
    out: &'o mut Pieces,
}

impl CharRun<'_> {
    fn show(&mut self, text: &str) {
        self.flush_thought();
        self.visible.push_str(text);
    }

    fn think(&mut self, text: &str) {
        self.flush_visible();
        self.thought.push_str(text);
    }

    fn end_thought(&mut self) {
        self.flush();
        self.out.push(Piece::ThoughtEnd);
    }

    fn flush_visible(&mut self) {
        if !self.visible.is_empty() {
            self.out.push(Piece::Visible(std::mem::take(&mut self.visible)));
        }
    }

    fn flush_thought(&mut self) {
        if !self.thought.is_empty() {
            self.out.push(Piece::Thought(std::mem::take(&mut self.thought)));
        }
    }

    fn flush(&mut self) {
        self.flush_visible();
        self.flush_thought();
    }
}

impl Stage for Scan {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        match piece {
            Piece::Text(text) => self.whole(text, out),
            Piece::MessageStart | Piece::Restart => {
                *self = Self::new(self.final_tag);
                out.push(piece);
            }
            Piece::TextEnd | Piece::Flush => {
                self.settle(out);
                out.push(piece);
            }
            Piece::MessageEnd(_) => {
                self.settle(out);
                if self.thinking {
                    out.push(Piece::ThoughtEnd);
                }
                out.push(piece);
                *self = Self::new(self.final_tag);
            }
            other => out.push(other),
        }
    }

    fn finish(&mut self, out: &mut Pieces) {
        self.settle(out);
    }
}

/// Returns the visible part of a whole text, as the stage would emit it.
pub fn visible(text: &str, final_tag: FinalTag) -> Cow<'_, str> {
    if final_tag == FinalTag::Optional && !text.contains('<') {
        return text.into();
    }
    parts(text, final_tag).0.into()
}

/// Returns the reasoning inside the tags of a text, including an unclosed stretch.
pub fn thinking(text: &str) -> String {
    parts(text, FinalTag::Optional).1.trim().to_owned()
}

/// Returns the visible text and the reasoning of a whole text.
pub fn parts(text: &str, final_tag: FinalTag) -> (String, String) {
    let (mut scan, mut out) = (Scan::new(final_tag), Pieces::new());
    scan.text(text, &mut out);
    scan.settle(&mut out);
    let (mut shown, mut thought) = (String::new(), String::new());
    for piece in out {
        match piece {
            Piece::Visible(text) => add(&mut shown, text),
            Piece::Thought(text) => add(&mut thought, text),
            _ => {}
        }
    }
    (shown, thought)
}

/// Adds a part. The first one, which is often the only one, is not copied.
fn add(all: &mut String, part: String) {
    if all.is_empty() {
        *all = part;
    } else {
        all.push_str(&part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reasoning_and_tags_are_removed() {
        for (text, enforced, expect) in [
            ("a<think>b</think>c", false, "ac"),
            ("</think>stray", false, "stray"),
            ("a <final>b</final> c", false, "a b c"),
            ("plan <final>Hi</final> rest", true, "Hi"),
            ("<final type=\"x\"/>no<final>Yes", true, "Yes"),
            ("no tags", true, ""),
            ("a `<think>` b", false, "a `<think>` b"),
            ("```\n<think>\n```\nb", false, "```\n<think>\n```\nb"),
            ("1 < 2 <b>x</b> <thin", false, "1 < 2 <b>x</b> <thin"),
            ("<think>open", false, ""),
            ("<think>Use the ` char</think>\nAnswer `x`.", false, "\nAnswer `x`."),
            ("<think>The tag `</think>` ends it</think>Hi", false, "Hi"),
            ("<think>\n```\nopen</think>\nHi", false, "\nHi"),
            ("<think>a `</think> b", false, " b"),
            ("<think>``</think>a <think>`</think>b", false, "a b"),
            ("<think>a `<think>\nb</think>c", false, "c"),
            ("<think>a `</final>\nb</think>c", false, "c"),
            ("a<think>```\nb</think> c```d", false, "a c```d"),
        ] {
            let final_tag = if enforced { FinalTag::Enforced } else { FinalTag::Optional };
            assert_eq!(visible(text, final_tag), expect, "{text}");
        }
        assert_eq!(thinking("<think>a</think>x<think>b"), "ab");
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            words in prop::collection::vec(prop::sample::select(vec![
                "<think>", "</think>", "<final>", "</final>", "`", "```", "\n", "\n\n", "~~~", " ", "a", "<", ">", "<thi", "é",
            ]), 0..40),
            enforced: bool,
        ) {
            let text = words.concat();
            let final_tag = if enforced { FinalTag::Enforced } else { FinalTag::Optional };
            let (mut scan, mut out) = (Scan::new(final_tag), Pieces::new());
            for c in text.chars() {
                scan.text(c.encode_utf8(&mut [0; 4]), &mut out);
            }
            scan.settle(&mut out);
            let shown: String = out.iter().filter_map(|p| match p { Piece::Visible(t) => Some(t.as_str()), _ => None }).collect();
            prop_assert_eq!(shown, visible(&text, final_tag));
        }
    }

    #[test]
    fn a_stage_passes_whole_texts_on_as_what_they_are() {
        let pushed = |final_tag: FinalTag, texts: &[&str]| {
            let (mut scan, mut out) = (Scan::new(final_tag), Pieces::new());
            texts.iter().for_each(|text| scan.push(Piece::Text((*text).to_owned()), &mut out));
            scan.finish(&mut out);
            let (visible, thought): (Vec<_>, Vec<_>) =
                out.into_iter().partition(|piece| matches!(piece, Piece::Visible(_)));
            let texts = |pieces: Vec<Piece>| {
                pieces.into_iter().map(|piece| match piece {
                    Piece::Visible(text) | Piece::Thought(text) => text,
                    other => format!("({other:?})"),
                })
            };
            (texts(visible).collect::<String>(), texts(thought).collect::<String>())
        };
        for (final_tag, texts, visible, thought) in [
            (FinalTag::Optional, &["a", " b", " c <thi"][..], "a b c <thi", ""),
            (FinalTag::Optional, &["<think>a", "b", "c</think>d", "e"], "de", "abc(ThoughtEnd)"),
            (FinalTag::Enforced, &["a", "b", "<final>c", "d", "e</final>", "f", "g"], "cde", ""),
            (FinalTag::Enforced, &["<think>a", "b"], "", "ab"),
            (FinalTag::Optional, &["<think>`</think>", "ab", "c`", "d</think>e"], "e", "`</think>abc`d(ThoughtEnd)"),
            (FinalTag::Enforced, &["<think>a<final>b", "</think>c"], "", "ab(ThoughtEnd)"),
            (FinalTag::Enforced, &["<final/>a", "b<final>c"], "c", ""),
        ] {
            assert_eq!(pushed(final_tag, texts), (visible.to_owned(), thought.to_owned()), "{texts:?}");
        }
    }

    #[test]
    fn a_quoted_closing_tag_is_waited_for_on_its_line_and_not_for_ever() {
        for (n, is_quoted) in [(MAX_DOUBTFUL - 1, true), (MAX_DOUBTFUL, false)] {
            let text = format!("<think>a `</think>{}` b", "x".repeat(n));
            assert_eq!(thinking(&text).contains("x"), is_quoted, "{n}");
        }
        assert_eq!(visible("<think>a `</think>b\nc` d", FinalTag::Optional), "b\nc` d");
    }

    #[test]
    fn only_an_opened_final_tag_counts() {
        for (text, expect) in [
            ("<final>a", true),
            ("a</final>", false),
            ("<final/>a", false),
            ("<final>a</final><final/>", true),
            ("<think><final>", false),
        ] {
            let (mut scan, mut out) = (Scan::new(FinalTag::Optional), Pieces::new());
            scan.text(text, &mut out);
            assert_eq!(scan.has_final(), expect, "{text}");
        }
    }
}

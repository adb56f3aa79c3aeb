//! Reply directives: `[[reply_to_current]]`, `[[reply_to:id]]`, `[[audio_as_voice]]`, their short forms, and `MEDIA:` lines.
//!
//! A directive is removed together with the white space around it; the rest of the text is unchanged. Nothing inside code is a directive.

use std::borrow::Cow;
use std::ops::Range;

use super::Stage;
use super::piece::{BlockReply, Piece, Pieces, ReplySpan};
use super::tokens::is_silent;

pub mod media;
mod line;
pub mod threading;

use line::MAX_TAG;
pub(super) use line::{Ending, GrowingLine, MEDIA_KEYWORD};
use media::{MediaRoots, media_target};

/// A text with its directives parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The text without directives.
    pub text: String,
    /// Media named by the text.
    pub media_urls: Vec<String>,
    /// The explicit message to reply to.
    pub reply_to_id: Option<String>,
    /// Whether to reply to the message that started the run.
    pub reply_to_current: bool,
    /// Whether there was a reply tag.
    pub reply_to_tag: bool,
    /// Whether to deliver audio as a voice note.
    pub audio_as_voice: bool,
    /// Whether the whole text was the silent token.
    pub is_silent: bool,
}

impl Parsed {
    /// Converts it to a reply; values that directives do not set are taken from `like`.
    pub fn into_reply(self, like: BlockReply) -> BlockReply {
        BlockReply {
            text: self.text,
            media_urls: self.media_urls,
            audio_as_voice: self.audio_as_voice,
            reply_to_id: self.reply_to_id,
            reply_to_tag: self.reply_to_tag,
            reply_to_current: self.reply_to_current,
            ..like
        }
    }

    /// Merges later findings.
    fn take(&mut self, mut later: Self) {
        self.media_urls.append(&mut later.media_urls);
        self.reply_to_id = later.reply_to_id.or_else(|| self.reply_to_id.take());
        self.reply_to_current |= later.reply_to_current;
        self.reply_to_tag |= later.reply_to_tag;
        self.audio_as_voice |= later.audio_as_voice;
    }

    /// Returns whether there is anything to deliver.
    pub fn is_renderable(&self) -> bool {
        !self.text.is_empty() || !self.media_urls.is_empty() || self.audio_as_voice
    }
}

/// Which directives are recognised.
#[derive(Clone, Debug, Default)]
pub struct DirectiveRules {
    /// Directories whose files may be named by absolute paths.
    pub media_roots: MediaRoots,
    /// Which forms of tags are directives.
    pub tags: TagForms,
}

/// Which forms of tags are directives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagForms {
    /// The long forms, and the short ones: `[[reply]]`, `[[reply:id]]`, `[[voice]]` and `[[media:target]]`.
    #[default]
    All,
    /// Only the long forms: `[[reply_to_current]]`, `[[reply_to:id]]` and `[[audio_as_voice]]`.
    Long,
    /// None, and no `MEDIA:` lines either: the text is not a model's.
    None,
}

/// Parses the directives of a whole text. `current` is the id of the message that started the run.
pub fn parse(raw: &str, current: Option<&str>) -> Parsed {
    parse_text(raw.into(), current, &DirectiveRules::default())
}

/// Like [`parse`], with other rules. An owned text without directives is not copied.
pub fn parse_text(raw: Cow<'_, str>, current: Option<&str>, rules: &DirectiveRules) -> Parsed {
    let mut parsed = Parsed::default();
    parsed.text = cleaned(&raw, &mut parsed, rules).unwrap_or_else(|| match raw {
        Cow::Borrowed(raw) => raw.trim_end().to_owned(),
        Cow::Owned(mut raw) => {
            raw.truncate(raw.trim_end().len());
            raw
        }
    });
    if is_silent(&parsed.text) {
        parsed.text.clear();
        parsed.is_silent = true;
    }
    if parsed.reply_to_id.is_none() && parsed.reply_to_current {
        parsed.reply_to_id = current.map(str::to_owned);
    }
    parsed
}

/// Returns whether a text has words or media besides directives. Unlike [`parse_text`], does not copy a text without directives.
pub fn has_content(raw: &str, rules: &DirectiveRules) -> bool {
    let mut found = Parsed::default();
    let text = cleaned(raw, &mut found, rules).map_or(Cow::Borrowed(raw), Cow::Owned);
    let is_blank = text.trim().is_empty() || is_silent(text.trim_end());
    !is_blank || !found.media_urls.is_empty()
}

/// Returns the text without its directives, which are added to `found`; `None` if there are none.
fn cleaned(raw: &str, found: &mut Parsed, rules: &DirectiveRules) -> Option<String> {
    if rules.tags == TagForms::None || (!raw.contains("[[") && !raw.contains(MEDIA_KEYWORD)) {
        return None;
    }
    let mut lines = Lines { line: GrowingLine::new(rules.clone()), ..Lines::default() };
    for line in raw.split('\n') {
        lines.push(line, found);
    }
    lines.changed.then(|| lines.text.trim_end().to_owned())
}

/// Collects the lines of a cleaned text.
#[derive(Debug, Default)]
struct Lines {
    text: String,
    line: GrowingLine,
    gap: Gap,
    changed: bool,
}

impl Lines {
    /// Adds a whole line.
    fn push(&mut self, line: &str, found: &mut Parsed) {
        self.line.push(line);
        let ending = self.line.end(found);
        self.changed |= self.line.is_changed(ending);
        match ending {
            Ending::Gone => self.gap.removed(),
            Ending::Kept | Ending::Replaced if self.line.is_blank() => self.gap.blank(),
            Ending::Kept | Ending::Replaced => {
                self.gap.fill(&mut self.text);
                self.text.push_str(self.line.shown());
                self.gap = self.gap.filled();
            }
        }
        self.line.next();
    }
}

/// Blank lines between the previous text and the next. A removed line takes the surrounding blank lines along, except for one if there was
/// any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    n_blank: usize,
    is_removed: bool,
    has_text: bool,
}

impl Gap {
    /// Records a blank line.
    pub(super) fn blank(&mut self) {
        self.n_blank += 1;
    }

    /// Records a line removed with its directives.
    pub(super) fn removed(&mut self) {
        self.is_removed = true;
    }

    /// Adds the line feeds before a non-blank line.
    pub(super) fn fill(self, text: &mut String) {
        let n_feeds = match (self.has_text, self.is_removed) {
            (false, _) => 0,
            (true, true) => 1 + usize::from(self.n_blank > 0),
            (true, false) => self.n_blank + 1,
        };
        text.extend(std::iter::repeat_n('\n', n_feeds));
    }

    /// Returns the state after a non-blank line.
    pub(super) fn filled(self) -> Self {
        Self { has_text: true, ..Self::default() }
    }
}

/// The longest directive name, in bytes.
const MAX_NAME: usize = "reply_to_current".len();

/// Names of the short forms.
const SHORT_NAMES: [&str; 3] = ["reply", "voice", "media"];

/// Parses the inside of `[[…]]`; false if it is not a directive.
fn take_tag(body: &str, found: &mut Parsed, rules: &DirectiveRules) -> bool {
    let body = body.trim();
    let (name, value) =
        body.split_once(':').map_or((body, None), |(name, value)| (name.trim_end(), Some(value.trim())));
    // Most texts in brackets are not directives, so they are only read up to the length of the longest name.
    if name.len() > MAX_NAME {
        return false;
    }
    let name = name.to_ascii_lowercase();
    match rules.tags {
        TagForms::None => return false,
        TagForms::Long if SHORT_NAMES.contains(&name.as_str()) => return false,
        TagForms::Long | TagForms::All => {}
    }
    match (name.as_str(), value) {
        ("reply_to_current" | "reply", None) => {
            (found.reply_to_current, found.reply_to_tag) = (true, true);
        }
        ("reply_to" | "reply", Some(id)) if !id.is_empty() && !id.contains(']') => {
            found.reply_to_id = Some(id.to_owned());
            found.reply_to_tag = true;
        }
        ("audio_as_voice" | "voice", None) => found.audio_as_voice = true,
        ("media", Some(target)) => match media_target(target, true, &rules.media_roots) {
            Some(target) => found.media_urls.push(target),
            None => return false,
        },
        _ => return false,
    }
    true
}

/// Parses directives of a text that arrives in blocks, including tags split between two blocks and tags that precede their block.
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    tail: String,
    pending: Parsed,
    rules: DirectiveRules,
}

/// Whether more of the text follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKind {
    /// Yes: an unfinished tag at the end is held back.
    Partial,
    /// No.
    Final,
}

impl Accumulator {
    /// Consumes a block and returns what can be delivered.
    pub fn consume(&mut self, chunk: &str, kind: ChunkKind) -> Option<Parsed> {
        let mut text = std::mem::take(&mut self.tail);
        text.push_str(chunk);
        if kind == ChunkKind::Partial {
            self.tail = text.split_off(complete_len(&text));
        }
        if text.is_empty() {
            return None;
        }
        let mut parsed = parse_text(text.into(), None, &self.rules);
        let pending = std::mem::take(&mut self.pending);
        parsed.reply_to_tag |= pending.reply_to_tag;
        parsed.reply_to_current |= pending.reply_to_current;
        parsed.reply_to_id = parsed.reply_to_id.or(pending.reply_to_id);
        if parsed.is_renderable() {
            return Some(parsed);
        }
        self.pending = parsed;
        None
    }
}

/// Returns the length of the text without an unfinished tag at its end.
fn complete_len(text: &str) -> usize {
    let from = text.len() - pinch_stdx::text::suffix(text, MAX_TAG).len();
    match text[from..].rfind("[[").map(|at| from + at) {
        Some(at) if !text[at..].contains("]]") && !text[at..].contains('\n') => at,
        _ if text.ends_with('[') && !text.ends_with("[[") => text.len() - 1,
        _ => text.len(),
    }
}

/// The stage: parses the directives of blocks.
#[derive(Debug, Default)]
pub struct Directives {
    accumulator: Accumulator,
    /// Span of the unfinished tag held back at the end of the last block.
    held: Option<ReplySpan>,
}

impl Directives {
    /// Creates the stage.
    pub fn new(rules: DirectiveRules) -> Self {
        Self { accumulator: Accumulator { rules, ..Accumulator::default() }, held: None }
    }

    fn reset(&mut self) {
        *self = Self::new(std::mem::take(&mut self.accumulator.rules));
    }

    fn settle(&mut self, out: &mut Pieces) {
        let parsed = self.accumulator.consume("", ChunkKind::Final);
        emit(parsed, self.held.take(), out);
    }

    /// Returns the span of a block: from what was held back of the previous block to what is held back of this one.
    fn place(&mut self, span: Option<ReplySpan>) -> Option<ReplySpan> {
        let held = self.held.take();
        let whole = held.map_or_else(|| span.clone(), |held| Some(held.through(span.as_ref()?)))?;
        let Range { start, end } = whole.bytes;
        let kept_from = end.saturating_sub(self.accumulator.tail.len() as u64).max(start);
        if !self.accumulator.tail.is_empty() {
            self.held = Some(ReplySpan { message: whole.message, bytes: kept_from..end });
        }
        Some(ReplySpan { message: whole.message, bytes: start..kept_from })
    }
}

fn emit(parsed: Option<Parsed>, span: Option<ReplySpan>, out: &mut Pieces) {
    out.extend(parsed.map(|parsed| Piece::Block(parsed.into_reply(BlockReply { span, ..BlockReply::default() }))));
}

impl Stage for Directives {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        match piece {
            Piece::Block(block) if block.is_reasoning => out.push(Piece::Block(block)),
            Piece::Block(block) => {
                let parsed = self.accumulator.consume(&block.text, ChunkKind::Partial);
                let span = self.place(block.span);
                emit(parsed, span, out);
            }
            Piece::MessageEnd(_) => {
                self.settle(out);
                out.push(piece);
            }
            Piece::Restart | Piece::MessageStart => {
                self.reset();
                out.push(piece);
            }
            other => out.push(other),
        }
    }

    fn finish(&mut self, out: &mut Pieces) {
        self.settle(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directive_is_removed() {
        for (raw, text) in [
            ("a [[reply_to_current]] b", "a b"),
            ("a[[voice]]b", "a b"),
            ("[[voice]] x", "x"),
            ("    code [[voice]]\n    more", "    code\n    more"),
            ("one\n\n[[voice]]\n\ntwo", "one\n\ntwo"),
            ("one\n[[voice]]\ntwo", "one\ntwo"),
            ("`[[voice]]`", "`[[voice]]`"),
            ("```\n[[voice]]\n```", "```\n[[voice]]\n```"),
            ("[[reply_to:]] x", "[[reply_to:]] x"),
            ("[[unknown]] x  ", "[[unknown]] x"),
        ] {
            assert_eq!(parse(raw, None).text, text, "{raw:?}");
        }
    }

    #[test]
    fn short_forms_are_text_if_disabled() {
        let rules = DirectiveRules { tags: TagForms::Long, ..DirectiveRules::default() };
        let text = "a [[reply]] [[reply:7]] [[Voice]] [[media:https://e.com/a.png]] b";
        let parsed = parse_text(text.into(), Some("1"), &rules);
        assert_eq!(parsed, Parsed { text: text.to_owned(), ..Parsed::default() });
        let none = DirectiveRules { tags: TagForms::None, ..DirectiveRules::default() };
        let text = "[[reply_to_current]] a [[voice]]\nMEDIA:https://e.com/a.png";
        let whole = parse_text(text.into(), Some("1"), &none);
        assert_eq!(whole, Parsed { text: text.to_owned(), ..Parsed::default() });
        let long = parse_text("[[reply_to:7]] [[audio_as_voice]] b\nMEDIA:https://e.com/a.png".into(), None, &rules);
        assert_eq!((long.text.as_str(), long.reply_to_id.as_deref(), long.audio_as_voice), ("b", Some("7"), true));
        assert_eq!(long.media_urls, ["https://e.com/a.png"]);
    }

    #[test]
    fn a_tag_applies_to_the_next_block_only() {
        let mut accumulator = Accumulator::default();
        assert_eq!(accumulator.consume("[[reply_to:7]]", ChunkKind::Partial), None);
        let first = accumulator.consume("a [", ChunkKind::Partial).unwrap();
        assert_eq!((first.text.as_str(), first.reply_to_id.as_deref()), ("a", Some("7")));
        let second = accumulator.consume("x]", ChunkKind::Partial).unwrap();
        assert_eq!((second.text.as_str(), second.reply_to_id), ("[x]", None));
    }

    #[test]
    fn white_space_and_directives_are_no_content() {
        let rules = DirectiveRules::default();
        for (text, expect) in [
            ("", false),
            (" \n", false),
            ("NO_REPLY \n", false),
            ("[[reply_to_current]] NO_REPLY", false),
            ("[[voice]]\n[[reply:7]]", false),
            ("Hi", true),
            ("[[voice]] Hi", true),
            ("MEDIA:https://e.com/a.png", true),
            ("[[media:https://e.com/a.png]]", true),
        ] {
            assert_eq!(has_content(text, &rules), expect, "{text:?}");
        }
    }

    #[test]
    fn directives_of_all_lines_count() {
        let text =
            "[[reply_to:7]] a\n[[voice]] [[media:https://e.com/a.png]]\n[[media:/etc/passwd]] b\n[[reply_to:8]]\n`c`";
        let expect = Parsed {
            text: "a\n[[media:/etc/passwd]] b\n`c`".to_owned(),
            media_urls: vec!["https://e.com/a.png".to_owned()],
            reply_to_id: Some("8".to_owned()),
            reply_to_tag: true,
            audio_as_voice: true,
            ..Parsed::default()
        };
        assert_eq!(parse(text, Some("1")), expect);
        let current = parse("[[reply_to_current]] a\nb", Some("1"));
        assert_eq!((current.reply_to_current, current.reply_to_id.as_deref()), (true, Some("1")));
        assert_eq!(parse("[[voice]] a\n[[b]] c\nd", None).text, "a\n[[b]] c\nd");
        assert!(parse("NO_REPLY", None).is_silent && !parse("a", None).is_silent);
    }

    #[test]
    fn a_reply_takes_from_its_directives_and_keeps_the_rest() {
        let parsed = parse("[[reply_to_current]] [[voice]] a\nMEDIA:https://e.com/a.png", Some("7"));
        let span = Some(ReplySpan { message: 1, bytes: 0..9 });
        let expect = BlockReply {
            media_urls: vec!["https://e.com/a.png".to_owned()],
            audio_as_voice: true,
            reply_to_id: Some("7".to_owned()),
            reply_to_tag: true,
            reply_to_current: true,
            span: span.clone(),
            ..BlockReply::text("a")
        };
        assert_eq!(parsed.into_reply(BlockReply { span, ..BlockReply::default() }), expect);
    }

    #[test]
    fn tags_may_be_split_between_blocks_and_apply_to_the_next_one() {
        let long = "x".repeat(5_000);
        for (blocks, expect) in [
            (&["a [[reply_to_cur", "rent]] b", "c"][..], &["a", "current tagged b", "c"][..]),
            (&["[[reply_to_current]]", "a", "b"], &["current tagged a", "b"]),
            (&["[[reply_to:7]]", "[[voice]]", "a"], &["tagged to 7 voice ", "a"]),
            (&["a [[not ]] b [", "[voice]] c"], &["a [[not ]] b", "voice c"]),
            (&["a [[b\nc", "]] d"], &["a [[b\nc", "]] d"]),
            (&["é [[", "voice]] a"], &["é", "voice a"]),
            (&["a [[", &long, "]] b"], &["a", &format!("[[{long}"), "]] b"]),
            (&["a [[reply_to:7"], &["a", "[[reply_to:7"]),
        ] {
            let (mut stage, mut out) = (Directives::new(DirectiveRules::default()), Pieces::new());
            for block in blocks {
                stage.push(Piece::Block(BlockReply::text(*block)), &mut out);
            }
            stage.finish(&mut out);
            let shown: Vec<String> = out
                .into_iter()
                .map(|piece| match piece {
                    Piece::Block(block) => {
                        let id = block.reply_to_id.map(|id| format!("to {id} ")).unwrap_or_default();
                        let set = [(block.reply_to_current, "current "), (block.reply_to_tag, "tagged "), (true, &*id)];
                        let set = set.into_iter().chain([(block.audio_as_voice, "voice ")]).filter(|(is, _)| *is);
                        set.map(|(_, name)| name).collect::<String>() + &block.text
                    }
                    other => format!("{other:?}"),
                })
                .collect();
            assert_eq!(shown, expect, "{blocks:?}");
        }
    }

    #[test]
    fn a_new_answer_has_no_tags_of_the_last() {
        for begin in [Piece::MessageStart, Piece::Restart] {
            let (mut stage, mut out) = (Directives::new(DirectiveRules::default()), Pieces::new());
            stage.push(Piece::Block(BlockReply::text("[[reply_to:7]] [[voi")), &mut out);
            stage.push(begin.clone(), &mut out);
            stage.push(Piece::Block(BlockReply::text("ce]] a")), &mut out);
            assert_eq!(out, [begin, Piece::Block(BlockReply::text("ce]] a"))]);
        }
    }
}

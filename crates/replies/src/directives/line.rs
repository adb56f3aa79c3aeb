//! Removes directives from one line of an answer as it grows.
//!
//! Every character is processed once. Text that may still become a tag is held back; everything before it is final, except in a line that
//! begins with `MEDIA:`, which may turn out to contain only media.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::super::code::CodeState;
use super::media::{LineMedia, media_line};
use super::{DirectiveRules, Parsed, TagForms, take_tag};

/// The longest tag including brackets, in bytes. Longer text between brackets is not a directive.
pub(crate) const MAX_TAG: usize = 4200;

/// The longest incomplete line that is scanned for media, in bytes.
const MAX_PREVIEW: usize = 4096;

/// The keyword at the start of a line that names media.
pub(crate) const MEDIA_KEYWORD: &str = "MEDIA:";

/// Whether the line may name media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MediaLine {
    /// Too little of the line is known.
    #[default]
    Undecided,
    /// It begins with the keyword.
    Yes,
    /// It does not.
    No,
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing is left, because it contained only directives.
    Gone,
    /// [`GrowingLine::shown`] is the line, and extends what was shown before.
    Kept,
    /// [`GrowingLine::shown`] is the remaining text of a `MEDIA:` line.
    Replaced,
}

/// The growing line.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrowingLine {
    code: CodeState,
    /// The raw line, from `raw_at` on.
    raw: String,
    raw_at: usize,
    /// How much of the line is in `shown`.
    done: usize,
    shown: String,
    /// Length of `shown` without trailing white space.
    n_solid: usize,
    /// Length of `shown` without trailing spaces and tabs.
    n_words: usize,
    /// Whether the part of `shown` that the owner took was not blank.
    taken_words: bool,
    /// Positions of `[[` that are not closed yet.
    open: VecDeque<usize>,
    /// Position of a trailing bracket that another may follow.
    half: Option<usize>,
    /// Whether a tag was just removed, so that following white space is also removed.
    gap: bool,
    any_tag: bool,
    media: MediaLine,
    found: Parsed,
    rules: DirectiveRules,
}

impl GrowingLine {
    /// Creates an empty line.
    pub(crate) fn new(rules: DirectiveRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Appends text, without a line feed.
    pub(crate) fn push(&mut self, text: &str) {
        let start = self.raw_at + self.raw.len();
        self.raw.push_str(text);
        // Most text contains neither brackets nor code.
        let is_plain = !text.bytes().any(|byte| byte == b'[' || byte == b']') && self.code.push_plain(text).is_some();
        if is_plain {
            self.half = None;
        } else {
            self.follow_tags(text, start);
        }
        if self.code.in_fence() {
            self.open.clear();
            self.half = None;
        }
        self.decide_media();
        let end = self.raw_at + self.raw.len();
        while self.open.front().is_some_and(|start| end - start > MAX_TAG) {
            self.open.pop_front();
        }
        self.show_to(self.open.front().copied().or(self.half).unwrap_or(end));
        self.forget();
    }

    /// Scans the newest text of the line, which begins at `start`, for tags.
    fn follow_tags(&mut self, text: &str, start: usize) {
        for (n, c) in text.char_indices() {
            let in_code = self.code.push(c);
            let at = start + n;
            match c {
                '[' if !in_code && self.half.take().is_some() => self.open.push_back(at - 1),
                '[' if !in_code => self.half = Some(at),
                ']' if !self.open.is_empty() && self.byte_before(at) == Some(b']') => {
                    self.half = None;
                    self.close_tags(at + 1);
                }
                _ => self.half = None,
            }
        }
    }

    fn byte_before(&self, at: usize) -> Option<u8> {
        self.raw.as_bytes().get((at - self.raw_at).checked_sub(1)?).copied()
    }

    /// Stops holding back what might have become a tag: nothing more of the line will come.
    pub(crate) fn release(&mut self) {
        self.open.clear();
        self.half = None;
        self.show_to(self.raw_at + self.raw.len());
    }

    /// Returns what can be shown of the line so far, including trailing white space.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Takes what can be shown, without trailing white space; this part never changes again. `None` for lines that may name media.
    pub(crate) fn take_solid(&mut self) -> Option<String> {
        if self.media != MediaLine::No || self.n_solid == 0 {
            return None;
        }
        let rest = self.shown.split_off(self.n_solid);
        let solid = std::mem::replace(&mut self.shown, rest);
        self.n_words -= self.n_solid;
        (self.n_solid, self.taken_words) = (0, true);
        Some(solid)
    }

    /// Returns what a line that may name media shows so far; `None` for other lines, and for those too long to be parsed repeatedly.
    pub(crate) fn media_preview(&self) -> Option<Cow<'_, str>> {
        (self.media != MediaLine::No && self.raw.len() <= MAX_PREVIEW).then(|| {
            match media_line(&self.shown, &self.rules.media_roots) {
                Some(media) => Cow::Owned(media.rest),
                None => Cow::Borrowed(&self.shown[..self.n_solid]),
            }
        })
    }

    /// Returns the media that the line names, if it ends here.
    pub(crate) fn media(&self) -> Vec<String> {
        let media = (self.media == MediaLine::Yes).then(|| media_line(&self.shown, &self.rules.media_roots)).flatten();
        media.map_or_else(Vec::new, |media| media.targets)
    }

    /// Returns the directives found so far, except media of the growing line.
    pub(crate) fn found(&self) -> &Parsed {
        &self.found
    }

    /// Ends the line and adds its directives to `found`. The caller must then call [`GrowingLine::next`].
    pub(crate) fn end(&mut self, found: &mut Parsed) -> Ending {
        self.release();
        self.code.push('\n');
        if self.media == MediaLine::Yes
            && let Some(LineMedia { mut targets, rest }) = media_line(&self.shown, &self.rules.media_roots)
        {
            found.take(std::mem::take(&mut self.found));
            found.media_urls.append(&mut targets);
            self.shown = rest;
            return if self.shown.is_empty() { Ending::Gone } else { Ending::Replaced };
        }
        let is_blank = !self.taken_words && self.n_solid == 0;
        found.take(std::mem::take(&mut self.found));
        if self.any_tag && is_blank { Ending::Gone } else { Ending::Kept }
    }

    /// Returns whether the finished line has a directive, and thus differs from the model's text.
    pub(crate) fn is_changed(&self, ending: Ending) -> bool {
        self.any_tag || ending != Ending::Kept
    }

    /// Returns whether the finished line is blank.
    pub(crate) fn is_blank(&self) -> bool {
        !self.taken_words && self.shown.trim().is_empty()
    }

    /// Starts the next line.
    pub(crate) fn next(&mut self) {
        let (code, rules) = (std::mem::take(&mut self.code), std::mem::take(&mut self.rules));
        let (mut raw, mut shown) = (std::mem::take(&mut self.raw), std::mem::take(&mut self.shown));
        raw.clear();
        shown.clear();
        *self = Self { code, raw, shown, rules, ..Self::default() };
    }

    /// Closes all open tags here, and removes those that are directives.
    fn close_tags(&mut self, end: usize) {
        while let Some(start) = self.open.pop_front() {
            if start < self.done {
                continue;
            }
            let body = &self.raw[start + 2 - self.raw_at..end - 2 - self.raw_at];
            if body.len() <= MAX_TAG && take_tag(body, &mut self.found, &self.rules) {
                self.show_to(start);
                self.done = end;
                (self.any_tag, self.gap) = (true, true);
                if self.n_words > 0 {
                    self.shown.truncate(self.n_words);
                } else if self.taken_words {
                    self.shown.clear();
                }
            }
        }
    }

    fn show_to(&mut self, end: usize) {
        if end <= self.done {
            return;
        }
        let mut text = &self.raw[self.done - self.raw_at..end - self.raw_at];
        self.done = end;
        if self.gap {
            text = text.trim_start_matches([' ', '\t']);
            if text.is_empty() {
                return;
            }
            self.gap = false;
            if self.n_words > 0 || self.taken_words {
                self.shown.push(' ');
            }
        }
        let before = self.shown.len();
        self.shown.push_str(text);
        let n_solid = text.trim_end().len();
        if n_solid > 0 {
            self.n_solid = before + n_solid;
        }
        let n_words = text.trim_end_matches([' ', '\t']).len();
        if n_words > 0 {
            self.n_words = before + n_words;
        }
    }

    fn decide_media(&mut self) {
        if self.media != MediaLine::Undecided {
            return;
        }
        let trimmed = self.raw.trim_start();
        let n_blank = self.raw.len() - trimmed.len();
        self.media = match () {
            () if self.code.in_fence() || self.rules.tags == TagForms::None => MediaLine::No,
            () if trimmed.starts_with(MEDIA_KEYWORD) => MediaLine::Yes,
            () if MEDIA_KEYWORD.starts_with(trimmed) => MediaLine::Undecided,
            () => MediaLine::No,
        };
        // White space before the keyword is irrelevant and is not read again.
        let n_shown = (self.done - self.raw_at).min(n_blank);
        if self.media != MediaLine::No && n_shown > 0 {
            self.raw.drain(..n_shown);
            self.raw_at += n_shown;
        }
    }

    /// Drops what is shown and no longer needed.
    fn forget(&mut self) {
        let n_shown = self.done - self.raw_at;
        if self.media == MediaLine::No && n_shown > 256 && n_shown * 2 > self.raw.len() {
            self.raw.drain(..n_shown);
            self.raw_at = self.done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_long_line_is_cleaned_piece_by_piece_and_not_kept() {
        let (mut line, mut found) = (GrowingLine::default(), Parsed::default());
        let (mut text, mut shown) = (String::new(), String::new());
        for n in 0..2_000 {
            let part = ["word ", "[[voice]] ", "`[[x]]` ", "[[reply_to:", "7]] ", "[y] "][n % 6];
            line.push(part);
            text += part;
            shown.extend(line.take_solid());
            assert!(line.raw.len() < 1_024, "{}", line.raw.len());
        }
        assert_eq!(line.end(&mut found), Ending::Kept);
        shown += line.shown();
        assert_eq!(shown.trim_end(), parse(&text, None).text);
        assert!(found.audio_as_voice && found.reply_to_id.as_deref() == Some("7"));
    }

    #[test]
    fn text_that_may_become_a_tag_is_held_back_up_to_the_length_of_a_tag() {
        let mut line = GrowingLine::default();
        let tag = format!("[[{}", "x".repeat(MAX_TAG - 2));
        line.push(&tag);
        assert_eq!(line.shown(), "");
        line.push("y");
        assert_eq!(line.shown(), tag + "y");
        for (text, expect) in
            [("a [", "a "), ("a [b", "a [b"), ("a [[", "a "), ("`a [", "`a ["), ("`a [[b", "`a [[b"), ("a]", "a]")]
        {
            let mut line = GrowingLine::default();
            line.push(text);
            assert_eq!(line.shown(), expect, "{text}");
            line.release();
            assert_eq!(line.shown(), text);
        }
    }

    #[test]
    fn white_space_at_the_start_of_a_line_stays() {
        for (text, expect) in [
            ("  [[voice]] x", "  x"),
            ("a\n\t[[voice]]\tb", "a\n\tb"),
            ("a\n  \nb [[x]]", "a\n  \nb [[x]]"),
            ("a\n   MEDIA: x [[voice]]", "a\n   MEDIA: x"),
            ("```\nMEDIA:https://e.com/a.png [[voice]]\n```", "```\nMEDIA:https://e.com/a.png [[voice]]\n```"),
            ("``` [[voice]]\na\n``` [[voice]]\n```\n[[voice]] b", "``` [[voice]]\na\n``` [[voice]]\n```\nb"),
        ] {
            assert_eq!(parse(text, None).text, expect, "{text:?}");
        }
    }
}

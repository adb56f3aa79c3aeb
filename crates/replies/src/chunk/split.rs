//! Splits inside a fence or inline markup, which are closed at the end of a block and reopened at the start of the next.

use super::super::inline::InlineSpan;
use super::{Break, Chunker};

/// How often a break inside markup is moved before the markup is split without closing it.
const MAX_MOVES: usize = 16;

/// The longest start of a line that may still become a fence: three spaces and two characters of its marker.
const MAX_FENCE_START: usize = 5;

/// Keeps markers that begin no fence from beginning one at the start of a block: a space that is no indentation.
const NO_FENCE: &str = "\u{a0}";

/// How far a fence may be indented.
const MAX_INDENT: usize = 3;

/// How much white space before and after a break is looked through for a marker, in characters.
const MAX_SPACE: usize = 64;

/// The longest line that names media and is kept whole, in bytes.
const MAX_MEDIA_LINE: usize = 4_200;

impl Chunker {
    /// If the window ends inside a `MEDIA:` line, returns a break before or after the line, or `None` within if the line has not ended: part of
    /// a path or URL would name another file.
    pub(super) fn beside_media(&self, window: &str) -> Option<Option<Break>> {
        let (start, end) = self.marks.media_at(self.absolute(window.len())?)?;
        let head = self.offset + self.head;
        let length = end.unwrap_or(self.offset + self.text.len()) - start.max(head);
        if length > MAX_MEDIA_LINE || start < head {
            return None;
        }
        let place = |at: usize| at - head + self.reopened.len();
        if !self.between(head, start).trim().is_empty() {
            return Some(Some(Break::At(place(start))));
        }
        Some(end.map(|end| Break::At(place(end))))
    }

    /// Returns a break at the end of the window: inside a fence, one that closes it.
    pub(super) fn hard_break(&self, window: &str) -> Break {
        let fence = self.absolute(window.len()).and_then(|at| self.marks.fence_at(at));
        let Some(span) = fence else {
            return Break::At(self.beside_markers(window, window.len(), self.reopened.len()));
        };
        let start = self.offset + self.head;
        let room = self.max.saturating_sub(self.options.unit.len(&span.closing) + 1);
        let inside = self.options.unit.prefix(window, room);
        // The content begins after the opening line; a block with only that line is of no use.
        let content = if span.start < start {
            self.reopened.len()
        } else {
            let line = (span.start - start) + self.reopened.len();
            window[line..].find('\n').map_or(window.len(), |n| line + n + 1)
        };
        let reopen = format!("{}\n", if span.open_line.is_empty() { &span.closing } else { &span.open_line });
        // Besides the lines of the fence, a block needs room for a character.
        let unit = self.options.unit;
        let has_room = |n_opening: usize| n_opening + unit.len(&span.closing) + 1 + unit.widest() <= self.max;
        let n_before = unit.len(&window[..content]);
        if span.start > start && (content >= inside.len() || !has_room(n_before)) {
            // The fence begins near the end of the window, so all of it goes into the next block.
            return Break::At(span.start - start + self.reopened.len());
        }
        // Otherwise the fence cannot be preserved.
        if content >= window.len() || !has_room(unit.len(&reopen).max(n_before)) {
            return Break::At(window.len());
        }
        let newline = inside.get(content..).and_then(|rest| rest.rfind('\n')).map(|n| content + n);
        let (end, next) = match newline.filter(|at| *at > content) {
            Some(at) => (at, at + 1),
            None => {
                let first = window[content..].chars().next().map_or(0, char::len_utf8);
                let at = self.beside_markers(window, inside.len().max(content + first), content);
                if span.start > start && self.newline_at(at) == 0 && closes(&span.closing, &window[content..at]) {
                    // The beginning of a line must not close the fence.
                    return Break::At(span.start - start + self.reopened.len());
                }
                // The end of the block ends the line.
                (at, at + self.newline_at(at))
            }
        };
        Break::Fence { end, next, closing: span.closing.clone(), reopen }
    }

    /// Returns the length of the end of a line at an offset in the window, if there is one.
    fn newline_at(&self, at: usize) -> usize {
        let rest =
            at.checked_sub(self.reopened.len()).and_then(|at| self.text.get(self.head + at..)).unwrap_or_default();
        ["\r\n", "\n"].into_iter().find(|end| rest.starts_with(end)).map_or(0, str::len)
    }

    /// Returns a break at a position or before it: inside inline markup, one that closes it.
    pub(super) fn markup_break(&self, window: &str, at: usize, least: usize) -> Break {
        let unit = self.options.unit;
        let (mut end, mut reserve) = (at, 0);
        for _ in 0..MAX_MOVES {
            let Some(place) = self.absolute(end) else { break };
            let around = self.marks.markup_around(place);
            let n_before = self.offset + self.head;
            let around = around.into_iter().filter(|span| span.close.is_none_or(|(from, _)| from >= n_before));
            let mut around: Vec<(&InlineSpan, &str)> =
                around.filter_map(|span| Some((span, self.closing_of(span)?))).collect();
            // What is open inside of markup ends with it, so nothing else is around its closing marker.
            let closes = around.iter().position(|(span, _)| span.close.is_some_and(|(from, _)| from < place));
            if let Some(closes) = closes {
                around.truncate(closes + 1);
            }
            let Some((inner, _)) = around.last() else {
                return Break::At(self.beside_markers(window, end, self.reopened.len()));
            };
            let is_blank = |from: usize, to: usize| self.between(from, to).trim().is_empty();
            if is_blank(inner.content.max(n_before), place) && inner.content >= n_before {
                // Markup that would be empty goes into the next block.
                let start = inner.start.checked_sub(n_before).filter(|_| !is_blank(n_before, inner.start));
                let Some(start) = start else { break };
                end = start + self.reopened.len();
                continue;
            }
            // The marker that closes the markup, if nothing else of it is left.
            let last = inner.close.filter(|(closing, _)| place >= *closing || is_blank(place, *closing));
            if let Some((closing, closed)) = last {
                if closed - n_before + self.reopened.len() <= window.len() {
                    end = closed - n_before + self.reopened.len();
                    continue;
                }
                end = end.min(closing - n_before + self.reopened.len());
            }
            let mut closing: String = around.iter().rev().map(|(_, closing)| *closing).collect();
            let reopen: String = around.iter().map(|(span, _)| span.opening.as_str()).collect();
            let content = window[..end].trim_end();
            // The markers of nested strikethroughs are a fence together.
            if reopen.starts_with("~~~") {
                break;
            }
            let next = self.text[self.head + end - self.reopened.len()..].trim_start();
            // Markers next to those of the content are others, and a fence at the start of a line.
            let n_space = usize::from(reopen.ends_with('`'));
            if reopen.ends_with('`') {
                closing.insert_str(0, if content.ends_with('`') { " " } else { "" });
            } else if closing.starts_with('~') && (content.ends_with('~') || next.starts_with('~')) {
                break;
            }
            let n_closing = unit.len(&closing);
            if n_closing + unit.len(&reopen) + n_space + unit.widest() > self.max {
                break;
            }
            if last.is_none() && unit.len(content) + n_closing <= self.max {
                let markup = around.iter().map(|(span, _)| span.start).collect();
                return Break::Markup { at: end, closing, markup };
            }
            reserve = n_closing.max(reserve + 1);
            let shorter = unit.prefix(window, self.max.saturating_sub(reserve)).len();
            if shorter <= self.reopened.len() {
                break;
            }
            // White space at the end is removed.
            let space = window[shorter..].chars().next().filter(|c| c.is_whitespace());
            let shorter = &window[..shorter + space.map_or(0, char::len_utf8)];
            let found = self.pick(shorter, least, &|at| self.is_outside_fences(at));
            end = found.unwrap_or(shorter.len());
        }
        Break::At(at)
    }

    /// Returns the markers that open split markup again before the buffered text. Markup that turned out to be text is not opened again.
    pub(super) fn markup_to_reopen(&self) -> String {
        let around = self.marks.markup_around(self.offset + self.head);
        let openings = around.iter().filter(|span| self.reopened_markup.contains(&span.start));
        let mut markers: String = openings.map(|span| span.opening.as_str()).collect();
        if markers.starts_with("~~~") {
            markers.clear();
        }
        let next = &self.text[self.head..];
        // Markers next to those of the text are others, and a fence at the start of a line.
        match next.chars().next() {
            Some('`') if markers.ends_with('`') => markers.push(' '),
            Some('~') if markers.ends_with('~') => markers.clear(),
            _ => {}
        }
        let unit = self.options.unit;
        let has_room = unit.len(NO_FENCE) + unit.widest() <= self.max;
        if markers.is_empty() && has_room && self.looks_like_fence(next) {
            markers.push_str(NO_FENCE);
        }
        markers
    }

    /// Returns whether text at the start of a block would be a fence, but is none.
    fn looks_like_fence(&self, next: &str) -> bool {
        let n_spaces = next.bytes().take(MAX_INDENT).take_while(|byte| *byte == b' ').count();
        begins_fence(&next.as_bytes()[n_spaces..])
            && self.marks.fence_at(self.offset + self.head + n_spaces + 1).is_none()
    }

    /// Updates what is opened again after text arrived or is complete.
    pub(super) fn update_reopened(&mut self) {
        if self.reopened_markup.is_empty() && !self.is_start_unknown {
            return;
        }
        let markers = self.markup_to_reopen();
        self.n_units =
            (self.n_units + self.options.unit.len(&markers)).saturating_sub(self.options.unit.len(&self.reopened));
        self.reopened = markers;
        // More characters do not change what the text looks like.
        self.is_start_unknown &= self.text.len() - self.head <= MAX_FENCE_START;
    }

    /// Returns whether a break turns a marker that begins no fence into one, or splits one that may still become a fence.
    pub(super) fn makes_fence(&self, at: usize) -> bool {
        let (before, after) = self.text.split_at(self.head + at.saturating_sub(self.reopened.len()));
        if before.is_empty() || (after.is_empty() && self.is_complete) {
            return false;
        }
        let piece = &before[self.head..];
        if self.reopened.is_empty() && piece.len() <= MAX_SPACE && piece.trim_start().is_empty() {
            return self.removed_space_makes_fence(before.len(), after);
        }
        // A line that may begin a fence stays what it is. One that is indented too far loses white space at a break.
        let n_spaces = after.bytes().take(MAX_INDENT).take_while(|byte| *byte == b' ').count();
        if before.ends_with('\n') && !after[n_spaces..].starts_with(char::is_whitespace) {
            return false;
        }
        if after.is_empty() {
            // Only the last characters matter, however long the line is.
            let tail = &before.as_bytes()[before.len().saturating_sub(MAX_FENCE_START + 1)..];
            let line = tail.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            let n_spaces = line.iter().take_while(|byte| **byte == b' ').count();
            let marker = &line[n_spaces..];
            return line.len() <= MAX_FENCE_START && !marker.is_empty() && marker.iter().all(|byte| is_marker(*byte));
        }
        // The break removes one white-space character and line ends. After a line feed, the next line stays what it is. After a return, the
        // marker may not have arrived at all.
        let rest = after.strip_prefix(char::is_whitespace).unwrap_or(after);
        let rest = &rest[rest.bytes().take(MAX_SPACE).take_while(|byte| matches!(byte, b'\r' | b'\n')).count()..];
        let (removed, after) = after.split_at(after.len() - rest.len());
        if removed.ends_with('\n') {
            return false;
        }
        let is_return = removed.ends_with('\r');
        let n_spaces = after.bytes().take(MAX_INDENT).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let marker = &after.as_bytes()[n_spaces..];
        let n_marker = marker.iter().take(3).take_while(|byte| is_marker(**byte)).count();
        let may_grow = !self.is_complete && n_marker == marker.len() && (n_marker > 0 || is_return);
        begins_fence(marker) || may_grow
    }

    /// The same for a break between white space, all of which is removed: `after` is the text after it, and begins at `at`.
    fn removed_space_makes_fence(&self, at: usize, after: &str) -> bool {
        let space = after.chars().take(MAX_SPACE).take_while(|c| c.is_whitespace());
        let n_space: usize = space.map(char::len_utf8).sum();
        let marker = &after.as_bytes()[n_space..];
        if marker.len() < 3 && marker.iter().all(|byte| is_marker(*byte)) {
            return !self.is_complete;
        }
        begins_fence(marker) && self.marks.fence_at(self.offset + at + n_space + 1).is_none()
    }

    /// Returns the last position up to `at`, and after `least`, that makes no fence; `at` if there is none.
    fn beside_markers(&self, window: &str, at: usize, least: usize) -> usize {
        let earlier = window[..at].char_indices().rev().map(|(at, _)| at).take_while(|at| *at > least);
        std::iter::once(at).chain(earlier).find(|at| !self.makes_fence(*at)).unwrap_or(at)
    }

    /// Returns the text that closes markup, unless it leaves no room for content, or its opening marker would begin a fence.
    fn closing_of<'a>(&'a self, span: &'a InlineSpan) -> Option<&'a str> {
        match (&span.closing, span.close) {
            (Some(closing), _) => Some(closing.as_str()).filter(|_| !span.opening.starts_with("```")),
            (None, Some((from, to))) => {
                Some(self.between(from, to)).filter(|closing| 2 * self.options.unit.len(closing) <= self.max)
            }
            (None, None) => None,
        }
    }

    /// Returns the buffered text between two positions of the answer.
    fn between(&self, from: usize, to: usize) -> &str {
        self.text.get(from.saturating_sub(self.offset)..to.saturating_sub(self.offset)).unwrap_or_default()
    }
}

/// Returns whether the last line of a text closes a fence with this closing line.
fn closes(closing: &str, text: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap_or_default().trim_end();
    let (marker, body) = (closing.trim_start(), line.trim_start_matches(' '));
    line.len() - body.len() <= MAX_INDENT
        && body.len() >= marker.len()
        && marker.chars().next().is_some_and(|first| body.chars().all(|c| c == first))
}

fn begins_fence(text: &[u8]) -> bool {
    text.starts_with(b"```") || text.starts_with(b"~~~")
}

fn is_marker(byte: u8) -> bool {
    matches!(byte, b'`' | b'~')
}

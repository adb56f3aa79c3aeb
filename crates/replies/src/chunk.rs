//! Splits visible text into blocks: at paragraphs, lines or sentences, and inside code only if a fence is longer than a block may be.
//!
//! A fence or inline markup that must be split is closed at the end of one block and reopened at the start of the next, so that each block is
//! complete.
//! Lengths are in the channel's unit.

use pinch_stdx::text::append;

use super::fence::Marks;
use super::unit::TextUnit;

/// Where a block is preferably split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BreakPreference {
    /// At blank lines, else at lines, else at sentences.
    #[default]
    Paragraph,
    /// At lines.
    Newline,
    /// At sentences.
    Sentence,
}

/// How text is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// Shorter text is held back unless it must be sent.
    pub min_chars: usize,
    /// Maximum length of a block.
    pub max_chars: usize,
    /// Where a block is preferably split.
    pub preference: BreakPreference,
    /// Whether each paragraph is sent as soon as it ends, however short.
    pub flush_on_paragraph: bool,
    /// Unit of the lengths.
    pub unit: TextUnit,
}

impl Default for Chunking {
    fn default() -> Self {
        Self {
            min_chars: 800,
            max_chars: 1200,
            preference: BreakPreference::Paragraph,
            flush_on_paragraph: false,
            unit: TextUnit::Utf16,
        }
    }
}

/// The longest text that is recounted, in bytes.
const MAX_RECOUNT: usize = 16 * 1024;

/// Number of scans of a text without a break while its length doubles.
const SEARCHES_PER_DOUBLING: usize = 64;

/// How much of the buffer to emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// What is due.
    Ready,
    /// Everything.
    All,
}

/// Buffers text until a block is due.
#[derive(Clone, Debug)]
pub struct Chunker {
    min: usize,
    max: usize,
    options: Chunking,
    /// Opening line of a split fence, with its newline, or markers of split markup; they precede the text.
    reopened: String,
    /// Where the markup begins that `reopened` opens again.
    reopened_markup: Vec<usize>,
    /// Whether too little has arrived since the last break to tell if the text there looks like a fence.
    is_start_unknown: bool,
    text: String,
    /// Where the buffered part of `text` begins.
    head: usize,
    /// Bytes removed from the front of `text` so far.
    offset: usize,
    /// Bytes emitted before the text was last emptied.
    n_before: usize,
    /// Length of `reopened` and the buffered text, in units.
    n_units: usize,
    /// Units added since the last search for a break.
    n_new: usize,
    has_new_line: bool,
    /// No more text will follow.
    is_complete: bool,
    marks: Marks,
}

/// A break within a window; positions are byte offsets into the window.
enum Break {
    At(usize),
    /// Inside a fence: content ends at the first position and continues at the second.
    Fence {
        end: usize,
        next: usize,
        closing: String,
        reopen: String,
    },
    /// Inside inline markup, which begins at some positions of the answer: like a fence, but white space at the break is removed.
    Markup {
        at: usize,
        closing: String,
        markup: Vec<usize>,
    },
}

impl Chunker {
    /// Creates an empty chunker.
    pub fn new(options: Chunking) -> Self {
        let min = options.min_chars.max(1);
        Self {
            min,
            max: options.max_chars.max(min),
            options,
            reopened: String::new(),
            reopened_markup: Vec::new(),
            is_start_unknown: false,
            text: String::new(),
            head: 0,
            offset: 0,
            n_before: 0,
            n_units: 0,
            n_new: 0,
            has_new_line: false,
            is_complete: false,
            marks: Marks::default(),
        }
    }

    /// Appends text to the buffer.
    pub fn append(&mut self, text: &str) {
        self.is_complete = false;
        append(&mut self.text, text);
        // Text that is never split needs no marks.
        if self.max < usize::MAX {
            self.marks.push(text);
        }
        let n_units = self.options.unit.len(text);
        self.n_units += n_units;
        self.n_new += n_units;
        self.has_new_line |= text.contains('\n');
        self.update_reopened();
    }

    /// Returns whether to search for a break: a long text without one is only searched again after it has grown considerably.
    fn should_search_for_break(&self) -> bool {
        self.n_units >= self.max || self.n_new * SEARCHES_PER_DOUBLING > self.n_units
    }

    /// Returns whether the buffer contains anything.
    pub fn has_buffered(&self) -> bool {
        self.n_units > 0
    }

    /// Returns the length of the buffer.
    pub fn n_units(&self) -> usize {
        self.n_units
    }

    /// Declares the text complete: markers of markup that have no counterpart are text.
    pub fn complete(&mut self) {
        self.is_complete = true;
        self.marks.finish();
        self.update_reopened();
    }

    /// Returns the buffered text.
    pub fn buffered(&self) -> String {
        format!("{}{}", self.reopened, &self.text[self.head..])
    }

    /// Discards the buffer.
    pub fn reset(&mut self) {
        *self = Self::new(self.options);
    }

    /// Emits what is due: each block, and how many bytes of the text appended since the last [`Chunker::reset`] it consumes.
    pub fn drain(&mut self, drain: Drain, emit: &mut dyn FnMut(String, usize)) {
        let force = drain == Drain::All;
        if force {
            self.complete();
        }
        if self.options.flush_on_paragraph && !force {
            return self.drain_paragraphs(emit);
        }
        if !force && (self.n_units < self.min || !self.should_search_for_break()) {
            return;
        }
        self.n_new = 0;
        if force && self.n_units <= self.max {
            return self.emit_rest(emit);
        }
        while force || self.n_units >= self.min {
            let found = match force {
                true if self.n_units <= self.max => self.soft_pick(),
                true => self.window_pick(1),
                false => self.window_pick(self.min),
            };
            match found {
                Some(found) => self.emit_break(found, emit),
                None if force => return self.emit_rest(emit),
                None => return,
            }
            if !force && self.n_units < self.max {
                return;
            }
        }
    }

    fn emit_rest(&mut self, emit: &mut dyn FnMut(String, usize)) {
        let n_text = self.text.len();
        // A reopened fence without content is omitted.
        let rest = match self.head < self.text.len() {
            true if self.head == 0 && self.reopened.is_empty() => std::mem::take(&mut self.text),
            true => self.buffered(),
            false => String::new(),
        };
        let end = self.n_before + self.offset + n_text;
        self.reset();
        self.n_before = end;
        if !rest.trim().is_empty() {
            emit(rest, end);
        }
    }

    /// Returns how many bytes of the appended text are consumed.
    fn position(&self) -> usize {
        self.n_before + self.offset + self.head
    }

    /// Returns the first `max` units of the buffer, or its first character if that one is longer.
    fn window(&self) -> String {
        let mut window = self.reopened.clone();
        let left = self.max.saturating_sub(self.options.unit.len(&window));
        let rest = &self.text[self.head..];
        let n_first = rest.chars().next().map_or(0, char::len_utf8);
        let n_bytes = self.options.unit.prefix(rest, left).len().max(n_first);
        window.push_str(&rest[..n_bytes]);
        window
    }

    /// Converts an offset in the window to one in the answer; `None` inside a reopened line.
    fn absolute(&self, at: usize) -> Option<usize> {
        at.checked_sub(self.reopened.len()).filter(|at| *at > 0).map(|at| self.offset + self.head + at)
    }

    fn is_good(&self, at: usize) -> bool {
        self.absolute(at).is_some_and(|at| self.marks.is_good(at)) && !self.makes_fence(at)
    }

    fn window_pick(&self, min: usize) -> Option<Break> {
        let window = self.window();
        let least = self.options.unit.prefix(&window, min).len().max(1);
        let is_blocked = self.absolute(least).is_some_and(|at| self.marks.is_blocked_from(at));
        let found = if is_blocked { None } else { self.pick(&window, least, &|at| self.is_good(at)) };
        if found.is_some() || self.n_units < self.max {
            return found.map(|at| self.markup_break(&window, at, least));
        }
        // Characters that arrived in parts were counted in parts, so the text may fit although its number of units does not.
        let is_whole = self.head + window.len() - self.reopened.len() == self.text.len();
        if !self.is_complete && is_whole && (self.marks.ends_with_fence() || self.is_in_fence(&window)) {
            // The next character decides whether the last line closes the fence, and whether it ends here.
            return None;
        }
        // A break inside a table or a code span is better than one inside a word.
        let is_blocked = self.absolute(least).is_some_and(|at| self.marks.is_in_fence_from(at));
        let found = if is_blocked { None } else { self.pick(&window, least, &|at| self.is_outside_fences(at)) };
        if found.is_none()
            && let Some(beside) = self.beside_media(&window)
        {
            return beside;
        }
        Some(match found.map_or_else(|| self.hard_break(&window), Break::At) {
            Break::At(at) => self.markup_break(&window, at, least),
            fence => fence,
        })
    }

    /// Returns whether the window ends inside a fence.
    fn is_in_fence(&self, window: &str) -> bool {
        self.absolute(window.len()).is_some_and(|at| self.marks.fence_at(at).is_some())
    }

    /// Returns whether a position is outside of fences and `MEDIA:` lines.
    fn is_outside_fences(&self, at: usize) -> bool {
        let is_outside = |at| self.marks.fence_at(at).is_none() && self.marks.media_at(at).is_none();
        self.absolute(at).is_some_and(is_outside) && !self.makes_fence(at)
    }

    /// Returns the last good break in a window, of the best available kind.
    fn pick(&self, window: &str, least: usize, is_good: &dyn Fn(usize) -> bool) -> Option<usize> {
        let fits = |at: &usize| *at >= least && is_good(*at);
        let preference = self.options.preference;
        if preference == BreakPreference::Paragraph {
            let mut ends =
                window.rmatch_indices('\n').filter_map(|(at, _)| second_feed(window, at).map(|next| (at, next)));
            if let Some(at) = ends.find_map(|(at, next)| [at, next].into_iter().find(fits)) {
                return Some(at);
            }
        }
        if preference != BreakPreference::Sentence
            && let Some(at) = window.rmatch_indices('\n').map(|(at, _)| at).find(fits)
        {
            return Some(at);
        }
        if preference != BreakPreference::Newline {
            if let Some(at) =
                sentence_ends(window, self.has_more(window)).filter(|end| *end > least && is_good(*end)).last()
            {
                return Some(at);
            }
        } else if self.n_units < self.max {
            return None;
        }
        let mut spaces = window.char_indices().rev().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at);
        spaces.find(fits)
    }

    /// Returns a break if everything fits and must be sent: after the first paragraph or line, or the last sentence.
    fn soft_pick(&self) -> Option<Break> {
        let window = self.window();
        let preference = self.options.preference;
        let fits = |at: &usize| self.is_good(*at);
        if preference == BreakPreference::Paragraph {
            let mut ends = window.match_indices('\n').filter_map(|(at, _)| Some((at, second_feed(&window, at)?)));
            if let Some(at) = ends.find_map(|(at, next)| [at, next].into_iter().find(fits)) {
                return Some(Break::At(at));
            }
        }
        if preference != BreakPreference::Sentence
            && let Some(at) = window.match_indices('\n').map(|(at, _)| at).find(fits)
        {
            return Some(Break::At(at));
        }
        if preference != BreakPreference::Newline {
            return sentence_ends(&window, Tail::IsComplete).filter(fits).last().map(Break::At);
        }
        None
    }

    /// Returns whether a word at the end of the window may continue.
    fn has_more(&self, window: &str) -> Tail {
        let end = self.head + window.len() - self.reopened.len();
        match self.text[end..].chars().next() {
            Some(next) if next.is_whitespace() => Tail::IsComplete,
            _ => Tail::MayContinue,
        }
    }

    fn emit_break(&mut self, found: Break, emit: &mut dyn FnMut(String, usize)) {
        let (n_reopened, head) = (self.reopened.len(), self.head);
        let n_reopened_units = self.options.unit.len(&self.reopened);
        let end = match &found {
            Break::At(at) | Break::Markup { at, .. } => *at,
            Break::Fence { end, .. } => *end,
        };
        let mut piece = std::mem::take(&mut self.reopened);
        self.reopened_markup.clear();
        self.is_start_unknown = false;
        piece.push_str(&self.text[self.head..self.head + (end - n_reopened)]);
        if piece.ends_with('\r') {
            piece.pop();
        }
        let is_blank = piece.trim().is_empty();
        match found {
            Break::Fence { next, closing, reopen, .. } => {
                if !piece.ends_with('\n') {
                    piece.push('\n');
                }
                piece.push_str(&closing);
                self.head += next - n_reopened;
                self.reopened = reopen;
            }
            Break::Markup { at, closing, markup } => {
                piece.truncate(piece.trim_end().len());
                piece.push_str(&closing);
                self.head += at - n_reopened;
                self.head = self.text.len() - self.text[self.head..].trim_start().len();
                self.reopened_markup = markup;
                self.reopened = self.markup_to_reopen();
            }
            Break::At(at) => {
                self.head += at - n_reopened;
                let rest = &self.text[self.head..];
                let kept = if is_blank {
                    rest.trim_start()
                } else {
                    let mut chars = rest.chars();
                    let after_space = if chars.next().is_some_and(char::is_whitespace) { chars.as_str() } else { rest };
                    after_space.trim_start_matches(['\r', '\n'])
                };
                self.head = self.text.len() - kept.len();
                self.is_start_unknown = true;
            }
        }
        self.settle(head, n_reopened_units);
        if !is_blank {
            emit(piece, self.position());
        }
    }

    /// Updates the counters after the buffer was cut at `head`, with a reopened line of so many units before it.
    fn settle(&mut self, head: usize, n_reopened_units: usize) {
        let n_cut = n_reopened_units + self.options.unit.len(&self.text[head..self.head]);
        let is_short = self.text.len() - self.head <= MAX_RECOUNT;
        self.n_units = match self.head == self.text.len() || (is_short && self.options.unit == TextUnit::Graphemes) {
            // Characters that arrived in parts were counted in parts.
            true => self.options.unit.len(&self.reopened) + self.options.unit.len(&self.text[self.head..]),
            false => (self.n_units + self.options.unit.len(&self.reopened)).saturating_sub(n_cut),
        };
        if self.head * 2 > self.text.len() {
            self.text.drain(..self.head);
            self.offset += self.head;
            self.head = 0;
        }
        self.marks.discard_before(self.offset + self.head);
    }

    fn drain_paragraphs(&mut self, emit: &mut dyn FnMut(String, usize)) {
        if !std::mem::take(&mut self.has_new_line) && self.n_units < self.max {
            return;
        }
        loop {
            let window = self.window();
            match self.paragraph_end(&window) {
                Some((at, next)) => {
                    let (head, n_reopened_units) = (self.head, self.options.unit.len(&self.reopened));
                    let paragraph = &self.text[self.head..self.head + (at - self.reopened.len())];
                    let piece = format!("{}{}", self.reopened, paragraph.trim_end_matches('\r'));
                    self.head += next - self.reopened.len();
                    self.reopened.clear();
                    self.reopened_markup.clear();
                    let n_newlines =
                        self.text.len() - self.head - self.text[self.head..].trim_start_matches(['\r', '\n']).len();
                    self.head += n_newlines;
                    self.settle(head, n_reopened_units);
                    if !piece.trim().is_empty() {
                        emit(piece, self.position());
                    }
                }
                None if self.n_units >= self.max => match self.window_pick(1) {
                    Some(found) => self.emit_break(found, emit),
                    None => return,
                },
                None => return,
            }
        }
    }

    /// Returns the end of the first paragraph and the start of what follows it.
    fn paragraph_end(&self, window: &str) -> Option<(usize, usize)> {
        window.match_indices('\n').find_map(|(at, _)| {
            let rest = &window[at + 1..];
            let after_space = rest.trim_start_matches([' ', '\t', '\r']);
            let is_end = after_space.starts_with('\n');
            let next = || window.len() - after_space.trim_start_matches(['\r', '\n']).len();
            (is_end && self.is_good(at)).then(|| (at, next()))
        })
    }
}

/// Returns the position of the line feed that ends a blank line after another one, at `at`.
fn second_feed(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at + 1..];
    let n_return = usize::from(rest.starts_with('\r'));
    rest[n_return..].starts_with('\n').then_some(at + 1 + n_return)
}

/// Returns the best place to split a text longer than the minimum: the end of its last paragraph, line, sentence or word within the
/// maximum; in the middle of a word only if the word is that long. `None`: more text is needed.
pub(crate) fn pick_break(text: &str, options: &Chunking) -> Option<usize> {
    let window = options.unit.prefix(text, options.max_chars);
    let least = options.unit.prefix(text, options.min_chars).len();
    let last = [
        window.rmatch_indices('\n').find_map(|(at, _)| second_feed(window, at)).map(|at| at + 1),
        window.rfind('\n').map(|at| at + 1),
        sentence_ends(window, Tail::MayContinue).last(),
    ];
    let found = last.into_iter().flatten().find(|end| *end >= least && *end < text.len());
    found.or_else(|| (window.len() < text.len()).then_some(window.len()).filter(|end| *end > 0))
}

/// Whether a word may continue after the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    MayContinue,
    IsComplete,
}

/// Returns the ends of sentences: right after a mark followed by white space, or at the end of a text that cannot continue. Otherwise the
/// mark may be part of a number or an address.
fn sentence_ends(text: &str, tail: Tail) -> impl Iterator<Item = usize> {
    text.match_indices(['.', '!', '?']).map(|(at, _)| at + 1).filter(move |end| {
        let rest = &text[*end..];
        rest.starts_with(char::is_whitespace) || (rest.is_empty() && tail == Tail::IsComplete)
    })
}

mod split;

#[cfg(test)]
mod tests;

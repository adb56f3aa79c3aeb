//! Search in the transcript. It searches texts, a limited amount per frame, and lays out only entries with matches.

use std::ops::Range;

use ratatui_core::style::{Modifier, Style};

use super::entry::ViewCx;
use super::fold::Unfold;
use super::mark::mark;
use super::pattern::{RowMatch, SearchPattern};
use super::place::{RowPlace, Spot};
use super::{TranscriptView, texts};
use crate::Row;
use crate::keymap::Keymap;
use crate::theme::{ColorRole, Palette};

/// Number of bytes searched per frame. Each message adds a fixed number, and laying out counts as well.
const STEP: usize = 256 * 1024;
const PER_TEXT: usize = 128;
const PER_LAYOUT: usize = 16 * 1024;

/// Direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchDirection {
    /// Towards the beginning.
    Up,
    /// Towards the end.
    Down,
}

/// State of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchStatus {
    /// The search text is empty.
    Empty,
    Searching,
    NotFound,
    Found {
        /// Set if the search has wrapped around to the other end.
        wrapped: Option<SearchDirection>,
        /// Whether the match is in collapsed output or hidden thinking.
        hidden: bool,
    },
}

/// A search in progress.
#[derive(Clone, Copy, Debug)]
struct SearchWalk {
    direction: SearchDirection,
    from: Spot,
    /// Index of the next entry.
    at: usize,
    /// Index of the next message, if the entry is folded.
    message: Option<usize>,
    /// Whether the search has wrapped around; its first entry is then searched again, entirely.
    wrapped: bool,
}

/// A search.
#[derive(Debug)]
pub(super) struct TranscriptSearch {
    pattern: Option<SearchPattern>,
    /// Where searches for the typed text begin.
    origin: Spot,
    current: Option<Spot>,
    walk: Option<SearchWalk>,
    status: SearchStatus,
}

impl TranscriptSearch {
    pub(super) fn entries_moved(&mut self, at: usize, by: isize) {
        let walk = self.walk.as_mut().map(|walk| &mut walk.from);
        for spot in [&mut self.origin].into_iter().chain(self.current.as_mut()).chain(walk) {
            if spot.place.entry > at {
                spot.place.entry = spot.place.entry.saturating_add_signed(by);
            }
        }
    }
}

impl TranscriptView {
    /// Begins a search at the end of the window.
    pub(crate) fn search_begin(&mut self) {
        let last = RowPlace { entry: self.entries.len(), row: 0 };
        let place = self.viewport.shown.last().copied().unwrap_or(last);
        self.viewport.search = Some(TranscriptSearch {
            pattern: None,
            origin: Spot { place, column: usize::MAX },
            current: None,
            walk: None,
            status: SearchStatus::Empty,
        });
    }

    pub(crate) fn search_end(&mut self) {
        self.viewport.search = None;
    }

    pub(crate) fn search_status(&self) -> Option<SearchStatus> {
        self.viewport.search.as_ref().map(|search| search.status)
    }

    /// Searches for a text as it is typed: the nearest match above the start of the search.
    pub(crate) fn search_for(&mut self, typed: &str) {
        let Some(search) = &mut self.viewport.search else { return };
        search.pattern = SearchPattern::new(typed);
        (search.current, search.walk, search.status) = (None, None, SearchStatus::Empty);
        if search.pattern.is_some() {
            let from = search.origin;
            self.walk(SearchDirection::Up, from);
        }
    }

    /// Searches for the next match.
    pub(crate) fn search_next(&mut self, direction: SearchDirection) {
        let Some(search) = &self.viewport.search else { return };
        if search.pattern.is_some() && search.walk.is_none() {
            let from = search.current.unwrap_or(search.origin);
            self.walk(direction, from);
        }
    }

    fn walk(&mut self, direction: SearchDirection, from: Spot) {
        let Some(last) = self.entries.len().checked_sub(1) else { return };
        if let Some(search) = &mut self.viewport.search {
            let mut from = from;
            if from.place.entry > last {
                from = Spot { place: RowPlace { entry: last, row: usize::MAX }, column: usize::MAX };
            }
            search.walk = Some(SearchWalk { direction, from, at: from.place.entry, message: None, wrapped: false });
            search.status = SearchStatus::Searching;
        }
    }

    /// Continues the search by the amount of one frame.
    pub(crate) fn search_step(&mut self, columns: usize, theme: &Palette, keymap: &Keymap) {
        let options = self.options.clone();
        let cx = ViewCx { columns, theme, keymap, options: &options, now_ms: self.last_activity_ms, is_final: false };
        let mut budget = STEP;
        self.viewport.tails.clear();
        while let Some(search) = &self.viewport.search
            && let (Some(walk), Some(pattern)) = (search.walk, search.pattern.clone())
        {
            if budget == 0 {
                return;
            }
            if self.messages_behind(walk.at).is_some() {
                self.search_messages(walk, &pattern, &mut budget);
            } else if let Some((spot, hidden)) = self.search_entry(walk, &pattern, &mut budget, cx) {
                let wrapped = walk.wrapped.then_some(walk.direction);
                self.set_search(Some(spot), SearchStatus::Found { wrapped, hidden });
                self.viewport.reveal = Some(spot.place);
            } else {
                self.search_on(walk);
            }
        }
    }

    fn set_search(&mut self, current: Option<Spot>, status: SearchStatus) {
        if let Some(search) = &mut self.viewport.search {
            (search.walk, search.current, search.status) = (None, current, status);
        }
    }

    fn set_walk(&mut self, walk: SearchWalk) {
        if let Some(search) = &mut self.viewport.search {
            search.walk = Some(walk);
        }
    }

    /// Continues with the next entry.
    fn search_on(&mut self, walk: SearchWalk) {
        let last = self.entries.len().saturating_sub(1);
        if walk.wrapped && walk.at == walk.from.place.entry {
            return self.set_search(None, SearchStatus::NotFound);
        }
        let (at, wrapped) = match walk.direction {
            SearchDirection::Up => walk.at.checked_sub(1).map_or((last, true), |at| (at, walk.wrapped)),
            SearchDirection::Down if walk.at >= last => (0, true),
            SearchDirection::Down => (walk.at + 1, walk.wrapped),
        };
        self.set_walk(SearchWalk { at, wrapped, message: None, ..walk });
    }

    /// Searches folded messages, and unfolds those around a possible match.
    fn search_messages(&mut self, walk: SearchWalk, pattern: &SearchPattern, budget: &mut usize) {
        let Some(messages) = self.messages_behind(walk.at) else { return };
        let is_up = walk.direction == SearchDirection::Up;
        let next = walk.message.unwrap_or(if is_up { messages.len() } else { 0 });
        let mut left: Range<usize> = if is_up { 0..next } else { next..messages.len() };
        let mut found = None;
        while *budget > 0
            && found.is_none()
            && let Some(at) = if is_up { left.next_back() } else { left.next() }
        {
            let mut may_be = false;
            if let Some(message) = messages.get(at) {
                texts::in_message(message, &mut |text| {
                    *budget = budget.saturating_sub(text.len() + PER_TEXT);
                    may_be = may_be || pattern.may_be_in(text);
                });
            }
            *budget = budget.saturating_sub(PER_TEXT);
            found = may_be.then_some(at);
        }
        let Some(found) = found else {
            return match left.is_empty() {
                true => self.search_on(walk),
                false => self.set_walk(SearchWalk { message: Some(if is_up { left.end } else { left.start }), ..walk }),
            };
        };
        *budget = budget.saturating_sub(PER_LAYOUT);
        let Some(moved) = self.unfold(walk.at, Unfold::Around(found)) else { return };
        let last = walk.at.saturating_add_signed(moved);
        // Messages that are still folded on the side that the search comes from have been searched.
        let at = match is_up {
            true if self.messages_behind(last).is_some() && last > walk.at => last - 1,
            true => last,
            false => walk.at + usize::from(self.messages_behind(walk.at).is_some()),
        };
        if let Some(walk) = self.viewport.search.as_mut().and_then(|search| search.walk.as_mut()) {
            (walk.at, walk.message) = (at.min(self.entries.len().saturating_sub(1)), None);
        }
    }

    /// Returns the nearest match in an entry, and whether it is hidden.
    fn search_entry(
        &mut self,
        walk: SearchWalk,
        pattern: &SearchPattern,
        budget: &mut usize,
        cx: ViewCx<'_>,
    ) -> Option<(Spot, bool)> {
        let cached = self.entries.get(walk.at)?;
        let (mut may_be, mut is_there) = (false, false);
        cached.entry.texts(&mut |text| {
            *budget = budget.saturating_sub(text.len() + PER_TEXT);
            may_be = may_be || pattern.may_be_in(text);
            is_there = is_there || (may_be && pattern.is_in(text));
        });
        if !may_be {
            return None;
        }
        *budget = budget.saturating_sub(PER_LAYOUT);
        let n = self.n_rows(walk.at, cx);
        let matches = pattern.matches(&self.rows_of(walk.at, 0..n, cx));
        let spot = |found: &RowMatch| Spot { place: RowPlace { entry: walk.at, row: found.row }, column: found.column };
        let is_start = walk.at == walk.from.place.entry && !walk.wrapped;
        let mut spots = matches.iter().map(spot);
        let found = match walk.direction {
            SearchDirection::Up => spots.rfind(|spot| !is_start || *spot < walk.from),
            SearchDirection::Down => spots.find(|spot| !is_start || *spot > walk.from),
        };
        let hidden = || Spot { place: RowPlace { entry: walk.at, row: 0 }, column: 0 };
        let is_hidden = matches.is_empty() && is_there && n > 0 && (!is_start || walk.from.column == usize::MAX);
        found.map(|spot| (spot, false)).or_else(|| is_hidden.then(|| (hidden(), true)))
    }

    /// Highlights the matches in the rows of the window.
    pub(super) fn mark_matches(&self, rows: &mut [Row], cx: ViewCx<'_>) {
        let Some(search) = &self.viewport.search else { return };
        let Some(pattern) = &search.pattern else { return };
        let all = cx.theme.bg(ColorRole::SelectedBg).add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        let current = Style::new().add_modifier(Modifier::REVERSED);
        let mut begin = 0;
        for entry in self.viewport.shown.chunk_by(|a, b| a.entry == b.entry) {
            let Some(rows) = rows.get_mut(begin..begin + entry.len()) else { return };
            begin += entry.len();
            let Some(first) = entry.first() else { continue };
            for found in pattern.matches(rows) {
                let place = RowPlace { row: first.row + found.row, ..*first };
                let is_current = search.current == Some(Spot { place, column: found.column });
                for (row, columns) in &found.parts {
                    if let Some(row) = rows.get_mut(*row) {
                        mark(row, columns, if is_current { current } else { all });
                    }
                }
            }
        }
    }
}

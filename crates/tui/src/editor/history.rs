//! History of submissions, which can be recalled one by one or searched.

use std::collections::VecDeque;

use super::change::UndoUnit;
use super::marker::{MarkedText, TextMarker};
use super::submission::Submission;
use super::{Editor, LastOperation, TextPosition};

/// Maximum number of entries.
const MAX_ENTRIES: usize = 100;

/// Earlier submissions, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    entries: VecDeque<MarkedText>,
    browsing: Option<Browsing>,
    search: Option<HistorySearch>,
}

/// State while the user browses the entries.
#[derive(Clone, Debug)]
struct Browsing {
    /// Index of the entry; the number of entries for the draft.
    entry: usize,
    /// Text and cursor before browsing began.
    draft: (MarkedText, TextPosition),
}

/// State while the user searches the entries.
#[derive(Clone, Debug, Default)]
struct HistorySearch {
    query: String,
    has_found: bool,
}

impl History {
    fn add(&mut self, entry: MarkedText) {
        if entry.text.is_empty() || self.entries.back() == Some(&entry) {
            return;
        }
        self.entries.push_back(entry);
        if self.entries.len() > MAX_ENTRIES {
            self.entries.pop_front();
        }
    }

    /// Ends browsing, since the changed text is no longer an entry.
    pub(super) fn stop_browsing(&mut self) {
        self.browsing = None;
    }

    /// Returns whether the user is browsing the entries.
    pub(super) fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// Returns the search text, and whether an entry matches.
    pub(super) fn search(&self) -> Option<(&str, bool)> {
        self.search.as_ref().map(|search| (&*search.query, search.has_found))
    }

    /// Returns the newest entry before another one that contains a text, ignoring case.
    fn find(&self, query: &str, before: usize) -> Option<usize> {
        let query = query.to_lowercase();
        (0..before.min(self.entries.len())).rev().find(|at| self.entries[*at].text.to_lowercase().contains(&query))
    }
}

impl Editor {
    /// Adds a submission to the history, unless it equals the newest entry.
    pub fn remember(&mut self, submission: &Submission) {
        if !self.is_masked {
            self.history.add(submission.marked.clone());
        }
    }

    /// Adds a text submitted in an earlier session to the history.
    pub fn add_history(&mut self, text: &str) {
        if !self.is_masked {
            self.history.add(MarkedText::plain(self.cleaned(text)).trimmed());
        }
    }

    /// Adds texts older than everything in the history, newest last. Texts already in the history are skipped.
    pub fn add_older_history(&mut self, texts: Vec<String>) {
        if self.is_masked {
            return;
        }
        for text in texts.into_iter().rev() {
            let entry = MarkedText::plain(self.cleaned(&text)).trimmed();
            let is_full = self.history.entries.len() >= MAX_ENTRIES;
            if is_full || entry.text.is_empty() || self.history.entries.iter().any(|known| known.text == entry.text) {
                continue;
            }
            self.history.entries.push_front(entry);
            if let Some(browsing) = &mut self.history.browsing {
                browsing.entry += 1;
            }
        }
    }

    /// Replaces the text with an earlier submission. Pasted texts and dropped files become markers again, as far as the history knows them.
    pub fn restore(&mut self, text: &str) {
        let mut marked = MarkedText::plain(self.cleaned(text));
        let mut pasted = Vec::new();
        for entry in self.history.entries.iter().rev() {
            marked.take_images(entry);
            pasted.extend(entry.markers().filter_map(TextMarker::text));
        }
        self.forget_markers();
        let mut text = self.markers.adopt(&marked);
        for content in pasted {
            if text.contains(&*content)
                && let Some(label) = self.marker_for(&content)
            {
                text = text.replace(&*content, &label);
            }
        }
        self.wrap_if_marked(&text);
        self.replace(TextPosition::default(), self.buffer.end(), &text, UndoUnit::Own);
    }

    /// Recalls the previous entry; false if there is none.
    pub(super) fn recall_older(&mut self) -> bool {
        let entry = self.history.browsing.as_ref().map_or(self.history.entries.len(), |browsing| browsing.entry);
        let Some(older) = entry.checked_sub(1) else { return false };
        self.recall(older);
        true
    }

    /// Recalls the next entry, or the draft after the newest; false if there is none.
    pub(super) fn recall_newer(&mut self) -> bool {
        let Some(entry) = self.history.browsing.as_ref().map(|browsing| browsing.entry) else { return false };
        self.recall(entry + 1);
        true
    }

    /// Recalls an entry. Entries recalled in succession are one undo step.
    fn recall(&mut self, entry: usize) {
        let unit = if self.last == LastOperation::Recall { UndoUnit::Joined } else { UndoUnit::Own };
        let browsing = self.history.browsing.take();
        let draft = browsing.map_or_else(|| (self.markers.marked(self.buffer.text()), self.cursor), |one| one.draft);
        let (marked, cursor) = match self.history.entries.get(entry) {
            Some(marked) => (marked, None),
            None => (&draft.0, Some(draft.1)),
        };
        let text = self.markers.adopt(marked);
        self.wrap_if_marked(&text);
        let last = self.last;
        let is_change = !(text.is_empty() && self.buffer.is_empty());
        self.replace(TextPosition::default(), self.buffer.end(), &text, unit);
        self.last = if is_change { LastOperation::Recall } else { last };
        if let Some(cursor) = cursor {
            self.set_cursor(cursor);
        }
        if entry < self.history.entries.len() || self.history.search.is_some() {
            self.history.browsing = Some(Browsing { entry, draft });
        }
    }

    /// Begins a search, or continues it after the last match.
    pub(super) fn search_history(&mut self) {
        let n = self.history.entries.len();
        match self.history.search.take() {
            None => {
                self.history.search = Some(HistorySearch { query: String::new(), has_found: true });
                let entry = self.history.browsing.as_ref().map_or(n, |browsing| browsing.entry);
                self.recall(entry);
            }
            Some(search) => {
                let before = self.history.browsing.as_ref().map_or(n, |browsing| browsing.entry);
                self.history.search = Some(search.clone());
                self.find(search.query, before);
            }
        }
    }

    /// Changes the search text, and searches again from the newest entry.
    pub(super) fn search_for(&mut self, change: impl FnOnce(&mut String)) {
        let Some((query, _)) = self.history.search() else { return };
        let mut query = query.to_owned();
        change(&mut query);
        let n = self.history.entries.len();
        if query.is_empty() {
            self.history.search = Some(HistorySearch { query, has_found: true });
            return self.recall(n);
        }
        self.find(query, n);
    }

    fn find(&mut self, query: String, before: usize) {
        let found = self.history.find(&query, before);
        self.history.search = Some(HistorySearch { query, has_found: found.is_some() });
        if let Some(entry) = found {
            self.recall(entry);
        }
    }

    /// Ends a search and keeps the match.
    pub(super) fn end_search(&mut self) {
        self.history.search = None;
        let n = self.history.entries.len();
        if self.history.browsing.as_ref().is_some_and(|browsing| browsing.entry >= n) {
            self.history.stop_browsing();
        }
    }

    /// Ends a search and restores the draft.
    pub(super) fn cancel_search(&mut self) {
        self.history.search = None;
        self.recall(self.history.entries.len());
    }
}

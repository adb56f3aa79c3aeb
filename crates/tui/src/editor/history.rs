//! Earlier submissions: recalled one by one, or searched.

use std::collections::VecDeque;

use super::change::UndoUnit;
use super::marker::{MarkedText, TextMarker};
use super::submission::Submission;
use super::{Editor, LastOperation, TextPosition};

/// Entries at most.
const MAX_ENTRIES: usize = 100;

/// Earlier submissions; the newest one is the last.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    entries: VecDeque<MarkedText>,
    browsing: Option<Browsing>,
    search: Option<HistorySearch>,
}

/// The user looks at an entry.
#[derive(Clone, Debug)]
struct Browsing {
    /// The entry; their number for the draft.
    entry: usize,
    /// What was written before, and where the cursor was.
    draft: (MarkedText, TextPosition),
}

/// The user searches for an entry.
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

    /// The text was changed: it is no entry any more.
    pub(super) fn stop_browsing(&mut self) {
        self.browsing = None;
    }

    /// Whether the user looks at an entry.
    pub(super) fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// What is searched for, and whether an entry has it.
    pub(super) fn search(&self) -> Option<(&str, bool)> {
        self.search.as_ref().map(|search| (&*search.query, search.has_found))
    }

    /// The newest entry before one that has a text, whatever its case.
    fn find(&self, query: &str, before: usize) -> Option<usize> {
        let query = query.to_lowercase();
        (0..before.min(self.entries.len())).rev().find(|at| self.entries[*at].text.to_lowercase().contains(&query))
    }
}

impl Editor {
    /// Adds a submission to the history. One that equals the newest entry is not added again.
    pub fn remember(&mut self, submission: &Submission) {
        if !self.is_masked {
            self.history.add(submission.marked.clone());
        }
    }

    /// Adds a text to the history that was submitted in an earlier session.
    pub fn add_history(&mut self, text: &str) {
        if !self.is_masked {
            self.history.add(MarkedText::plain(self.cleaned(text)).trimmed());
        }
    }

    /// Adds texts that were submitted before everything in the history, the newest one last. Those that are there already are left out.
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

    /// Replaces the text by one that was submitted before. What was pasted or dropped into it becomes markers again, as far as the history has it.
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

    /// Puts the entry before the present one in; false when there is none.
    pub(super) fn recall_older(&mut self) -> bool {
        let entry = self.history.browsing.as_ref().map_or(self.history.entries.len(), |browsing| browsing.entry);
        let Some(older) = entry.checked_sub(1) else { return false };
        self.recall(older);
        true
    }

    /// Puts the entry behind the present one in, or the draft behind the newest; false when there is none.
    pub(super) fn recall_newer(&mut self) -> bool {
        let Some(entry) = self.history.browsing.as_ref().map(|browsing| browsing.entry) else { return false };
        self.recall(entry + 1);
        true
    }

    /// Puts an entry in. All that are looked at one after another are one step for undo.
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

    /// Begins a search, or continues it behind the entry that it found.
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

    /// Changes what is searched for, and looks from the newest entry on.
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

    /// Ends a search; the entry that was found stays.
    pub(super) fn end_search(&mut self) {
        self.history.search = None;
        let n = self.history.entries.len();
        if self.history.browsing.as_ref().is_some_and(|browsing| browsing.entry >= n) {
            self.history.stop_browsing();
        }
    }

    /// Ends a search, and brings the draft back.
    pub(super) fn cancel_search(&mut self) {
        self.history.search = None;
        self.recall(self.history.entries.len());
    }
}

//! Text and reasoning of an answer so far, accumulated from increments.

use pinch_stdx::text::append;
use serde_json::{Value, json};

use crate::replies::piece::{Edit, Growth, ReasoningGrowth};
use crate::replies::unit::TextLimit;

/// The text of an answer so far. It is borrowed, so only sinks that need a copy pay for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialReply<'a> {
    /// The whole text, or with [`PartialScope::Change`] the text from `at` on.
    pub text: &'a str,
    /// Length in bytes of the part of the previous text that is unchanged.
    pub at: usize,
    /// The new part.
    pub delta: &'a str,
    /// Media named in the new part.
    pub media_urls: &'a [String],
}

impl PartialReply<'_> {
    /// Returns OpenClaw's JSON form of the event: `{text, delta, mediaUrls?}`. Copies the whole text.
    pub fn to_value(&self) -> Value {
        let mut data = json!({"text": self.text, "delta": self.delta});
        if !self.media_urls.is_empty() {
            data["mediaUrls"] = json!(self.media_urls);
        }
        data
    }
}

/// How much of a growing answer a sink gets with each [`PartialReply`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartialScope {
    /// The whole text, as for a message that a channel edits.
    #[default]
    Whole,
    /// What has changed, for a sink that passes it on. The run then keeps no copy of the text for the sink.
    Change,
}

/// The reasoning of an answer so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasoningSnapshot<'a> {
    /// Formatted for display: a heading, and each line in italics.
    pub formatted: &'a str,
    /// As received from the model.
    pub raw: &'a str,
}

/// Accumulates increments. The cost of each depends only on its own length.
#[derive(Clone, Debug, Default)]
pub struct ReplySnapshot {
    scope: PartialScope,
    /// The whole text, or its last change.
    text: String,
    /// Where the last change begins in the whole text.
    at: usize,
    /// Whether the last change is not for people.
    is_unshown: bool,
    delta_at: usize,
    media_urls: Vec<String>,
    formatted: String,
    raw: String,
    draft: String,
    /// Length of the part of the draft that fits into a message, if not all of it does.
    n_shown: Option<usize>,
    /// Where the part of the formatted reasoning begins that the last increment added; 0 if it changed earlier text.
    reasoning_at: usize,
}

impl ReplySnapshot {
    /// Creates an empty snapshot for a sink.
    pub fn with_scope(scope: PartialScope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// Applies an increment to the text.
    pub fn grow(&mut self, growth: &Growth) {
        match self.scope {
            PartialScope::Whole => {
                self.text.truncate(self.text.floor_char_boundary(growth.at));
                self.at = self.text.len();
            }
            // A change that was not shown is a part of the next one.
            PartialScope::Change if self.is_unshown && growth.at >= self.at => {
                self.text.truncate(self.text.floor_char_boundary(growth.at - self.at));
            }
            PartialScope::Change => {
                self.text.clear();
                self.at = growth.at;
            }
        }
        self.is_unshown = !growth.shown;
        append(&mut self.text, &growth.restored);
        self.delta_at = self.text.len();
        append(&mut self.text, &growth.delta);
        self.media_urls.clone_from(&growth.media_urls);
    }

    /// Returns the text, and what the last increment added.
    pub fn partial(&self) -> PartialReply<'_> {
        let delta = &self.text[self.delta_at..];
        PartialReply { text: &self.text, at: self.at, delta, media_urls: &self.media_urls }
    }

    /// Applies an increment to the reasoning.
    pub fn grow_reasoning(&mut self, growth: &ReasoningGrowth) {
        // Only the end of the text is replaced, often by itself plus more text.
        let is_extension =
            self.formatted.get(growth.formatted.at..).is_some_and(|end| growth.formatted.text.starts_with(end));
        self.reasoning_at = if is_extension { self.formatted.len() } else { 0 };
        growth.formatted.apply(&mut self.formatted);
        growth.raw.apply(&mut self.raw);
    }

    /// Applies an edit to the draft. Returns the draft as far as it is within the limits of a message, or `None` if that part is unchanged.
    pub(super) fn change_draft(&mut self, edit: &Edit, limits: impl IntoIterator<Item = TextLimit>) -> Option<&str> {
        let n_shown = self.n_shown.filter(|n_shown| edit.at >= *n_shown);
        edit.apply(&mut self.draft);
        // A message that is full stays as it is.
        if n_shown.is_some() {
            return None;
        }
        let shown = limits.into_iter().fold(&*self.draft, |text, limit| limit.unit.prefix(text, limit.max));
        self.n_shown = (shown.len() < self.draft.len()).then_some(shown.len());
        Some(shown)
    }

    /// Returns the reasoning so far.
    pub fn reasoning(&self) -> ReasoningSnapshot<'_> {
        ReasoningSnapshot { formatted: &self.formatted, raw: &self.raw }
    }

    /// Returns the formatted reasoning, and what the last increment added.
    pub fn partial_reasoning(&self) -> PartialReply<'_> {
        let delta = &self.formatted[self.reasoning_at..];
        PartialReply { text: &self.formatted, at: self.reasoning_at, delta, media_urls: &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replies::reasoning::ReasoningTracker;
    use crate::replies::unit::TextUnit;

    #[test]
    fn changes_without_the_text_give_the_same_text() {
        let (mut whole, mut changes) = (ReplySnapshot::default(), ReplySnapshot::with_scope(PartialScope::Change));
        let mut text = String::new();
        for (at, restored, delta, shown, changed) in [
            (0, "", "Grüße", true, (0, "Grüße")),
            (7, "", " an", true, (7, " an")),
            (2, "ün", "e", true, (2, "üne")),
            (5, "", "", true, (5, "")),
            (5, "", "en", false, (5, "en")),
            (7, "", "d", true, (5, "end")),
            (6, "", "x", false, (6, "x")),
            (6, "", "z", false, (6, "z")),
            (2, "", "w", true, (2, "w")),
        ] {
            let growth = Growth { at, restored: restored.into(), delta: delta.into(), shown, ..Growth::default() };
            whole.grow(&growth);
            changes.grow(&growth);
            let change = changes.partial();
            assert_eq!((change.at, change.text), changed);
            if shown {
                text.truncate(change.at);
                text.push_str(change.text);
                assert_eq!((text.as_str(), change.delta), (whole.partial().text, whole.partial().delta));
            }
        }
    }

    #[test]
    fn a_draft_stops_at_the_limit_of_a_message() {
        let mut snapshot = ReplySnapshot::default();
        let limits = [TextLimit { max: 6, unit: TextUnit::Chars }, TextLimit { max: 8, unit: TextUnit::Bytes }];
        let mut change = |at, text: &str| {
            let edit = Edit { at, text: text.to_owned() };
            snapshot.change_draft(&edit, limits).map(str::to_owned)
        };
        assert_eq!(change(0, "ééé").as_deref(), Some("ééé"));
        assert_eq!(change(6, "abc").as_deref(), Some("éééab"));
        assert_eq!(change(9, "def"), None, "the message is full");
        assert_eq!(change(7, "x").as_deref(), Some("éééax"));
        assert_eq!(change(8, "yz").as_deref(), Some("éééax"));
        assert_eq!(change(10, "z"), None);
        assert_eq!(change(0, "new").as_deref(), Some("new"));
    }

    #[test]
    fn the_delta_of_reasoning_is_its_extension_or_the_whole_text() {
        let (mut follow, mut snapshot) = (ReasoningTracker::new("Reasoning:"), ReplySnapshot::default());
        for (added, delta) in
            [("one", "Reasoning:\n_one_"), ("\ntwo", "\n_two_"), (" more", "Reasoning:\n_one_\n_two more_")]
        {
            snapshot.grow_reasoning(&follow.add(added).unwrap());
            assert_eq!(snapshot.partial_reasoning().delta, delta, "{added}");
        }
    }
}

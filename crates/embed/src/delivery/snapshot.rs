//! The text and the reasoning of an answer as far as they came: what the growths add up to.

use serde_json::{Value, json};

use crate::replies::piece::{Edit, Growth, ReasoningGrowth};

/// The text of an answer so far. Borrowed: a sink that copies the whole text at every growth pays for it itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialReply<'a> {
    /// All of it.
    pub text: &'a str,
    /// What is new.
    pub delta: &'a str,
    /// Media named in the new part.
    pub media_urls: &'a [String],
}

impl PartialReply<'_> {
    /// The event as upstream writes it: `{text, delta, mediaUrls?}`. Copies the whole text.
    pub fn to_value(&self) -> Value {
        let mut data = json!({"text": self.text, "delta": self.delta});
        if !self.media_urls.is_empty() {
            data["mediaUrls"] = json!(self.media_urls);
        }
        data
    }
}

/// The reasoning of an answer so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasoningSnapshot<'a> {
    /// As it is shown: a heading, and each line in italics.
    pub formatted: &'a str,
    /// As the model gave it.
    pub raw: &'a str,
}

/// Adds growths up. Each costs what it brings, however long the text is.
#[derive(Clone, Debug, Default)]
pub struct ReplySnapshot {
    text: String,
    delta_at: usize,
    media_urls: Vec<String>,
    formatted: String,
    raw: String,
    draft: String,
    /// Where the part begins that the last growth added to the formatted reasoning; 0 if it changed what was there.
    reasoning_at: usize,
}

impl ReplySnapshot {
    /// The text of the answer grew.
    pub fn grow(&mut self, growth: &Growth) {
        self.text.truncate(self.text.floor_char_boundary(growth.at));
        self.text.push_str(&growth.restored);
        self.delta_at = self.text.len();
        self.text.push_str(&growth.delta);
        self.media_urls.clone_from(&growth.media_urls);
    }

    /// The text with what the last growth added.
    pub fn partial(&self) -> PartialReply<'_> {
        PartialReply { text: &self.text, delta: &self.text[self.delta_at..], media_urls: &self.media_urls }
    }

    /// The reasoning grew.
    pub fn grow_reasoning(&mut self, growth: &ReasoningGrowth) {
        // Only the end of the text is replaced, and often by itself with more behind it.
        let is_extension =
            self.formatted.get(growth.formatted.at..).is_some_and(|end| growth.formatted.text.starts_with(end));
        self.reasoning_at = if is_extension { self.formatted.len() } else { 0 };
        growth.formatted.apply(&mut self.formatted);
        growth.raw.apply(&mut self.raw);
    }

    /// The draft changed.
    pub(super) fn change_draft(&mut self, edit: &Edit) {
        edit.apply(&mut self.draft);
    }

    /// The draft so far.
    pub(super) fn draft(&self) -> &str {
        &self.draft
    }

    /// The reasoning so far.
    pub fn reasoning(&self) -> ReasoningSnapshot<'_> {
        ReasoningSnapshot { formatted: &self.formatted, raw: &self.raw }
    }

    /// The formatted reasoning with what the last growth added.
    pub fn partial_reasoning(&self) -> PartialReply<'_> {
        PartialReply { text: &self.formatted, delta: &self.formatted[self.reasoning_at..], media_urls: &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replies::reasoning::Follow;

    #[test]
    fn the_delta_of_reasoning_is_what_extends_it_or_all_of_it() {
        let (mut follow, mut snapshot) = (Follow::new("Reasoning:"), ReplySnapshot::default());
        for (added, delta) in
            [("one", "Reasoning:\n_one_"), ("\ntwo", "\n_two_"), (" more", "Reasoning:\n_one_\n_two more_")]
        {
            snapshot.grow_reasoning(&follow.add(added).unwrap());
            assert_eq!(snapshot.partial_reasoning().delta, delta, "{added}");
        }
    }
}

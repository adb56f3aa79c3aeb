//! What a reader has of an answer: the text and the reasoning that growths add up to.

use crate::replies::piece::{Growth, ReasoningGrowth};

use super::sinks::{AgentData, PartialReply, ReasoningSoFar};

/// Adds growths up. Each costs what it brings, however long the text is.
#[derive(Clone, Debug, Default)]
pub struct SoFar {
    text: String,
    delta_at: usize,
    media_urls: Vec<String>,
    formatted: String,
    raw: String,
    /// Where the part of the reasoning begins that the last growth added; 0 when it changed what stood there before.
    reasoning_at: usize,
}

impl SoFar {
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

    /// The event for programs that goes with the last growth of the text.
    pub fn text_event(&self) -> AgentData<'_> {
        AgentData::Text(self.partial())
    }

    /// The reasoning grew.
    pub fn reason(&mut self, growth: &ReasoningGrowth) {
        let at = growth.formatted.at;
        self.reasoning_at = if at == self.formatted.len() { at } else { 0 };
        growth.formatted.apply(&mut self.formatted);
        growth.raw.apply(&mut self.raw);
    }

    /// The reasoning so far.
    pub fn reasoning(&self) -> ReasoningSoFar<'_> {
        ReasoningSoFar { formatted: &self.formatted, raw: &self.raw }
    }

    /// The event for programs that goes with the last growth of the reasoning.
    pub fn reasoning_event(&self) -> AgentData<'_> {
        AgentData::Text(PartialReply {
            text: &self.formatted,
            delta: &self.formatted[self.reasoning_at..],
            media_urls: &[],
        })
    }
}

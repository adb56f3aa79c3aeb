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
    /// Where the part begins that the last growth added to the formatted reasoning; 0 when it changed what was there.
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
        // Only the end of the text is replaced, and often by itself with more behind it.
        let is_extension =
            self.formatted.get(growth.formatted.at..).is_some_and(|end| growth.formatted.text.starts_with(end));
        self.reasoning_at = if is_extension { self.formatted.len() } else { 0 };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replies::reasoning::Follow;

    #[test]
    fn the_delta_of_reasoning_is_what_extends_it_or_all_of_it() {
        let (mut follow, mut so_far) = (Follow::default(), SoFar::default());
        for (added, delta) in
            [("one", "Reasoning:\n_one_"), ("\ntwo", "\n_two_"), (" more", "Reasoning:\n_one_\n_two more_")]
        {
            so_far.reason(&follow.add(added).unwrap());
            match so_far.reasoning_event() {
                AgentData::Text(reply) => assert_eq!(reply.delta, delta, "{added}"),
                AgentData::Value(value) => panic!("{value}"),
            }
        }
    }
}

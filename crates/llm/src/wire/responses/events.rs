//! The events of a response. Texts borrow from the frame; members of an unexpected type count as missing.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ReportedError;
use crate::wire::frame_json::{self, JsonText, RareText, ReadFrame, TextMember, TextQuality};

#[derive(Deserialize)]
pub(super) struct ResponseEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: TextMember<'a>,
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) output_index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) item_id: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) delta: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: RareText<'a>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
}

/// Other members of an `error` event. Boxed separately, because the parser moves its values several times.
#[derive(Default, Deserialize)]
pub(super) struct ErrorEvent<'a> {
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) status: Option<u64>,
}

#[derive(Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) id: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) name: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) namespace: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: JsonText<'a>,
    #[serde(borrow, default)]
    pub(super) input: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) phase: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) summary: Option<Vec<ResponsePart<'a>>>,
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<ResponsePart<'a>>>,
}

impl Item<'_> {
    /// Returns the text of a message.
    pub(super) fn text(&self) -> String {
        self.content.iter().flatten().filter_map(|part| part.text.get().or(part.refusal.get())).collect()
    }

    /// Returns the readable part of reasoning: summaries, else the reasoning itself.
    pub(super) fn thinking(&self) -> String {
        let joined = |parts: &Option<Vec<ResponsePart<'_>>>| {
            let texts: Vec<&str> = parts.iter().flatten().filter_map(|part| part.text.non_empty()).collect();
            texts.join("\n\n")
        };
        let summaries = joined(&self.summary);
        if summaries.is_empty() { joined(&self.content) } else { summaries }
    }
}

#[derive(Deserialize)]
pub(super) struct ResponsePart<'a> {
    #[serde(borrow, default)]
    pub(super) text: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: TextMember<'a>,
}

#[derive(Default, Deserialize)]
pub(super) struct ResponseOutcome<'a> {
    #[serde(borrow, default)]
    pub(super) id: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) model: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) status: TextMember<'a>,
    #[serde(borrow, default)]
    pub(super) service_tier: TextMember<'a>,
    #[serde(default)]
    pub(super) usage: Option<ResponseUsage>,
    #[serde(borrow, default)]
    pub(super) error: Option<ReportedError<'a>>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow, default)]
    pub(super) reason: TextMember<'a>,
}

#[derive(Default, Deserialize)]
pub(super) struct ResponseUsage {
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) total_tokens: Option<u64>,
    /// Cached tokens, which some servers report here.
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(default)]
    pub(super) input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
pub(super) struct InputDetails {
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(super) reasoning_tokens: Option<u64>,
}

/// Parses a member separately, so that an invalid one does not affect the others. `scratch` holds its text if it had to be repaired.
pub(super) fn read_part<'a, T: Deserialize<'a> + Default>(
    raw: Option<&'a RawValue>,
    scratch: &'a mut String,
) -> ReadFrame<T> {
    let read = raw.and_then(|raw| frame_json::read(raw.get(), scratch).ok());
    read.unwrap_or(ReadFrame { value: T::default(), quality: TextQuality::Intact })
}

//! Error responses and failures in the Responses format.

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::models;
use crate::error::{LlmError, LlmErrorKind, classify};
use crate::model::Model;
use crate::wire::frame_json::{self, TextMember};
use crate::wire::refusal;

/// Classifies a response with a failing status; `title` names the provider.
pub(in crate::wire) fn refusal(
    title: &str,
    model: &Model,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> LlmError {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let json: Option<Value> = serde_json::from_str(text).ok();
    let error = json.as_ref().and_then(|json| json.get("error")).filter(|error| !error.is_null());
    let code = error.and_then(|error| error["code"].as_str().or_else(|| error["type"].as_str())).map(str::to_owned);
    let said = error.map_or_else(|| text.to_owned(), Value::to_string);
    if said.is_empty() {
        // The text by which an overflow without a body is recognised.
        return refusal::error(model, status, headers, code, json.as_ref(), "");
    }
    let text = format!("{title} ({}): {said}", status.as_u16());
    refusal::with_text(model, status, headers, code, json.as_ref(), text)
}

/// Code and message of a failure inside the stream.
#[derive(Clone, Debug, Default, Deserialize)]
pub(in crate::wire) struct ReportedError<'a> {
    #[serde(borrow, default)]
    pub(in crate::wire) code: TextMember<'a>,
    #[serde(borrow, default, rename = "type")]
    pub(in crate::wire) kind: TextMember<'a>,
    #[serde(borrow, default)]
    pub(in crate::wire) message: TextMember<'a>,
    #[serde(borrow, default)]
    pub(in crate::wire) plan_type: TextMember<'a>,
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(in crate::wire) resets_at: Option<u64>,
}

impl ReportedError<'_> {
    /// Returns the provider's name for the failure.
    pub(in crate::wire) fn code(&self) -> Option<&str> {
        self.code.non_empty().or_else(|| self.kind.non_empty().filter(|kind| *kind != "error"))
    }
}

/// Creates the error for a failure inside the stream.
pub(in crate::wire) fn in_stream(
    model: &Model,
    status: Option<StatusCode>,
    code: Option<&str>,
    text: String,
) -> LlmError {
    let kind = classify::classify(status, code, &text);
    let code = code.map(str::to_owned);
    LlmError { code, status, ..LlmError::new(model.provider.clone(), kind, text) }
}

/// Creates the error for an answer stopped by a filter.
pub(in crate::wire) fn filtered(model: &Model, text: String) -> LlmError {
    LlmError::new(model.provider.clone(), LlmErrorKind::ContentFiltered, text)
}

/// A response's report of its own failure.
#[derive(Debug, Default)]
pub(in crate::wire) struct ResponseFailure<'a> {
    pub(in crate::wire) error: Option<ReportedError<'a>>,
    /// Why it is incomplete.
    pub(in crate::wire) incomplete: Option<&'a str>,
}

/// Behaviour that differs between providers of this format.
pub(in crate::wire) trait Manner: Send + std::fmt::Debug {
    /// Returns the price factor for the tier named in the response.
    fn price_factor(&self, model: &Model, tier: Option<&str>) -> f64;

    /// Classifies an `error` event; `data` is the complete event.
    fn error_event(
        &self,
        model: &Model,
        status: Option<StatusCode>,
        reported: &ReportedError<'_>,
        data: &str,
    ) -> LlmError {
        let _ = data;
        let message = reported.message.get().unwrap_or("no message");
        let text = match reported.code() {
            Some(code) => format!("Error Code {code}: {message}"),
            None => message.to_owned(),
        };
        in_stream(model, status, reported.code(), text)
    }

    /// Classifies a failed response.
    fn failed(&self, model: &Model, failure: &ResponseFailure<'_>) -> LlmError {
        if let Some(reported) = &failure.error {
            let code = reported.code().unwrap_or("unknown");
            let text = format!("{code}: {}", reported.message.non_empty().unwrap_or("no message"));
            return in_stream(model, None, reported.code(), text);
        }
        match failure.incomplete {
            Some(reason) => in_stream(model, None, Some(reason), format!("incomplete: {reason}")),
            None => in_stream(model, None, None, "Unknown error (no error details in response)".into()),
        }
    }

    /// Returns the error text for unreadable frames.
    fn bad_json(&self) -> &'static str {
        "Could not parse event"
    }
}

/// OpenAI's behaviour.
#[derive(Debug)]
pub(super) struct OpenAi {
    /// The requested service tier.
    pub(super) tier: Option<String>,
}

impl Manner for OpenAi {
    fn price_factor(&self, model: &Model, tier: Option<&str>) -> f64 {
        tier.or(self.tier.as_deref()).map_or(1.0, |tier| models::tier_factor(model, tier))
    }
}

//! Error responses of Anthropic.

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{LlmError, LlmErrorKind, classify};
use crate::model::Model;
use crate::wire::{frame_json, refusal};

/// Phrases of errors about strict schemas: the same request may succeed without them.
const STRICT_LIMITS: [&str; 3] =
    ["compiled grammar is too large", "too many strict tools (", "too many parameters with union types ("];

/// Classifies a response with a failing status.
pub(super) fn refusal(model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
    let text = String::from_utf8_lossy(body);
    let json: Option<Value> = serde_json::from_str(text.trim()).ok();
    let said = match &json {
        Some(json) => json["message"].as_str().map_or_else(|| json.to_string(), str::to_owned),
        None => text.trim().to_owned(),
    };
    let code = json.as_ref().and_then(|json| json["error"]["type"].as_str()).map(str::to_owned);
    refusal::error(model, status, headers, code, json.as_ref(), &said)
}

/// Classifies an `error` event in the stream.
pub(super) fn in_stream(model: &Model, data: &str) -> LlmError {
    #[derive(Deserialize)]
    struct AnthropicErrorEvent<'a> {
        #[serde(borrow, default)]
        error: AnthropicErrorBody<'a>,
    }
    #[derive(Deserialize, Default)]
    struct AnthropicErrorBody<'a> {
        #[serde(borrow, rename = "type", default)]
        kind: frame_json::TextMember<'a>,
    }
    let code =
        serde_json::from_str::<AnthropicErrorEvent<'_>>(data).ok().and_then(|e| e.error.kind.get().map(str::to_owned));
    let words = serde_json::from_str::<Value>(data).ok().as_ref().and_then(refusal::own_words);
    let kind = classify::classify(None, code.as_deref(), words.as_deref().unwrap_or(data));
    LlmError { code, ..LlmError::new(model.provider.clone(), kind, data) }
}

/// Returns whether an error is about strict schemas.
pub(in crate::wire) fn is_strict_limit(error: &LlmError) -> bool {
    let text = error.text.to_lowercase();
    error.status == Some(StatusCode::BAD_REQUEST)
        && error.kind != LlmErrorKind::ContextOverflow
        && STRICT_LIMITS.iter().any(|words| text.contains(words))
}

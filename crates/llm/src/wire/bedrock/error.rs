//! Error responses and exceptions of Bedrock.

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{LlmError, LlmErrorKind, classify};
use crate::model::Model;
use crate::wire::{frame_json, refusal};

/// Exceptions with their own message prefix.
const PREFIXES: [(&str, &str); 5] = [
    ("InternalServerException", "Internal server error"),
    ("ModelStreamErrorException", "Model stream error"),
    ("ValidationException", "Validation error"),
    ("ThrottlingException", "Throttling error"),
    ("ServiceUnavailableException", "Service unavailable"),
];

/// Classifies a response with a failing status.
pub(super) fn refusal(model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let json: Option<Value> = serde_json::from_str(text).ok();
    let member = |name: &str| json.as_ref().and_then(|json| json[name].as_str());
    let name = header("x-amzn-errortype").or_else(|| member("__type")).map(plain_name).filter(|name| !name.is_empty());
    let message = member("message").or_else(|| member("Message")).unwrap_or(text);
    let mut error = match name {
        Some(name) => {
            let mut error =
                refusal::with_text(model, status, headers, Some(name.clone()), json.as_ref(), worded(&name, message));
            error.kind = kind(&name, Some(status), &error.text);
            error
        }
        None => refusal::error(model, status, headers, None, json.as_ref(), message),
    };
    error.request_id = header("x-amzn-requestid").map(str::to_owned).or(error.request_id);
    error
}

/// Classifies an exception or error that ends a stream.
pub(super) fn in_stream(model: &Model, name: &str, data: &str) -> LlmError {
    #[derive(Deserialize, Default)]
    struct ConverseErrorBody<'a> {
        #[serde(borrow, default, alias = "Message")]
        message: frame_json::TextMember<'a>,
    }
    let name = plain_name(name);
    let mut scratch = String::new();
    let body = frame_json::read::<ConverseErrorBody<'_>>(data, &mut scratch).map(|read| read.value).unwrap_or_default();
    let text = worded(&name, body.message.get().unwrap_or(data.trim()));
    let kind = kind(&name, None, &text);
    LlmError { code: Some(name), ..LlmError::new(model.provider.clone(), kind, text) }
}

/// Returns `ThrottlingException` for `throttlingException`, `ns#ThrottlingException` or `ThrottlingException:http://…`.
fn plain_name(name: &str) -> String {
    let name = name.split(':').next().unwrap_or(name);
    let name = name.rsplit('#').next().unwrap_or(name).trim();
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}

fn worded(name: &str, message: &str) -> String {
    let prefix = PREFIXES.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| *words);
    match (prefix.is_empty(), message.is_empty()) {
        (true, _) => message.to_owned(),
        (false, true) => prefix.to_owned(),
        (false, false) => format!("{prefix}: {message}"),
    }
}

fn kind(name: &str, status: Option<StatusCode>, text: &str) -> LlmErrorKind {
    match name {
        "ThrottlingException" => LlmErrorKind::RateLimit,
        "ModelNotReadyException" | "ServiceUnavailableException" => LlmErrorKind::Overloaded,
        "ModelStreamErrorException" | "ModelErrorException" | "InternalServerException" => LlmErrorKind::Server,
        "ModelTimeoutException" => LlmErrorKind::Timeout,
        "ServiceQuotaExceededException" => LlmErrorKind::Billing,
        "ResourceNotFoundException" => LlmErrorKind::ModelNotFound,
        "AccessDeniedException"
        | "UnrecognizedClientException"
        | "ExpiredTokenException"
        | "InvalidSignatureException"
        | "IncompleteSignatureException"
        | "MissingAuthenticationTokenException"
        | "ExpiredToken" => LlmErrorKind::Auth,
        // A stream has no status, but this is a bad request all the same.
        "ValidationException" => classify(Some(status.unwrap_or(StatusCode::BAD_REQUEST)), Some(name), text),
        _ => classify(status, Some(name), text),
    }
}

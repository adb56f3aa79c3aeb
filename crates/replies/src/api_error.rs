//! Provider errors in texts: finds JSON payloads surrounded by other text, and formats them for display.

pub use pinch_llm::error::leading_status;
use serde_json::Value;

use crate::texts::{Phrase, TextTable};

/// Details of an error text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiErrorInfo {
    /// A leading HTTP status.
    pub status: Option<u16>,
    /// The provider's error type.
    pub kind: Option<String>,
    /// The message.
    pub message: Option<String>,
}

/// The longest text that is shown in full.
const MAX_SHOWN: usize = 600;

/// Returns the payload of an error text: the text itself, or what follows an error prefix or a status.
pub fn raw_payload(text: &str) -> Option<Value> {
    payload_candidates(text).into_iter().find_map(|candidate| {
        let value: Value = serde_json::from_str(candidate).ok()?;
        is_payload(&value).then_some(value)
    })
}

/// Returns the payload with its keys sorted: two texts of the same error have equal fingerprints.
pub fn fingerprint(text: &str) -> Option<String> {
    raw_payload(text).map(|value| sorted(&value).to_string())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            keys.into_iter().map(|key| (key.clone(), sorted(&map[key]))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn payload_candidates(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut candidates = vec![text];
    if let Some(rest) = without_error_prefix(text) {
        candidates.push(rest);
    }
    if let Some((_, rest)) = leading_status(text) {
        candidates.push(rest);
        candidates.extend(without_error_prefix(rest));
    }
    candidates.retain(|candidate| candidate.starts_with('{'));
    candidates
}

/// Strips a prefix such as `Error:`, `API error` or `<word> error:`, and a status after it.
pub fn without_error_prefix(text: &str) -> Option<&str> {
    let head = text.get(..text.floor_char_boundary(64))?.to_ascii_lowercase();
    let at = head.find("error")?;
    let before: Vec<&str> = head[..at].split_whitespace().collect();
    let is_prefix = match before.as_slice() {
        [] | [_] => true,
        [_, last] => *last == "api",
        _ => false,
    };
    let rest = text[at + "error".len()..].trim_start();
    let rest = leading_status(rest).map_or(rest, |(_, rest)| rest);
    let rest = rest.trim_start_matches(|c: char| matches!(c, ':' | '-') || c.is_whitespace());
    let is_word_end = !text[at + "error".len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (is_prefix && is_word_end).then_some(rest)
}

fn is_payload(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let error = &value["error"];
    value["type"] == "error"
        || ["request_id", "requestId"].iter().any(|name| object.get(*name).is_some_and(Value::is_string))
        || ["message", "type", "code"].iter().any(|name| error[*name].is_string())
        || (error.is_string() && value["message"].is_string())
}

/// Returns the details of an error text, if it contains a payload.
pub fn info(text: &str) -> Option<ApiErrorInfo> {
    let value = raw_payload(text)?;
    let error = &value["error"];
    let word = |value: &Value| value.as_str().map(str::to_owned).filter(|text| !text.is_empty());
    let kind = word(&error["type"]).or_else(|| word(&error["code"])).or_else(|| word(error));
    let kind = kind.or_else(|| word(&value["type"]));
    let message = word(&error["message"]).or_else(|| word(&value["message"]));
    Some(ApiErrorInfo { status: leading_status(text.trim()).map(|(status, _)| status), kind, message })
}

/// Formats an error text for display if there is no better message.
pub fn shown(text: &str, texts: &TextTable) -> String {
    let text = text.trim();
    if text.is_empty() {
        return texts.get(Phrase::UnknownError).to_owned();
    }
    let status = leading_status(text);
    if let Some((status, rest)) = status.filter(|(_, rest)| !rest.starts_with('{') && !rest.is_empty()) {
        return cut(&format!("HTTP {status}: {rest}"));
    }
    match info(text) {
        Some(ApiErrorInfo { status, kind, message: Some(message) }) => {
            let head =
                status.map_or_else(|| texts.get(Phrase::ProviderError).to_owned(), |status| format!("HTTP {status}"));
            cut(&kind.map_or_else(|| format!("{head}: {message}"), |kind| format!("{head} {kind}: {message}")))
        }
        _ => cut(text),
    }
}

/// Truncates a text that is too long for display.
pub fn cut(text: &str) -> String {
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_errors_are_removed() {
        for (text, expected) in [
            ("Error: no", Some("no")),
            ("error 500: no", Some("no")),
            ("API error - no", Some("no")),
            ("OpenAI API error: no", Some("no")),
            ("Codex error: no", Some("no")),
            ("error", Some("")),
            ("An odd error: no", None),
            ("errors: no", None),
            ("error_code: no", None),
            ("nothing", None),
        ] {
            assert_eq!(without_error_prefix(text), expected, "{text}");
        }
    }

    #[test]
    fn only_objects_that_look_like_errors_are_payloads() {
        for (text, expected) in [
            (r#"{"type": "error"}"#, true),
            (r#"{"type": "message"}"#, false),
            (r#"{"request_id": "r"}"#, true),
            (r#"{"requestId": "r"}"#, true),
            (r#"{"requestId": 1}"#, false),
            (r#"{"error": {"message": "m"}}"#, true),
            (r#"{"error": {"type": "t"}}"#, true),
            (r#"{"error": {"code": "c"}}"#, true),
            (r#"{"error": {"code": 1}}"#, false),
            (r#"{"error": "e", "message": "m"}"#, true),
            (r#"{"error": "e"}"#, false),
            (r#"{"message": "m"}"#, false),
            (r#"[{"type": "error"}]"#, false),
            (r#"Error: {"type": "error"}"#, true),
            (r#"500 {"type": "error"}"#, true),
            (r#"500 error: {"type": "error"}"#, true),
            (r#"see {"type": "error"}"#, false),
        ] {
            assert_eq!(raw_payload(text).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn equal_errors_have_equal_fingerprints() {
        let one = fingerprint(r#"{"type": "error", "error": {"message": "m", "details": [{"b": 1, "a": 2}]}}"#);
        let same = fingerprint(r#"500 {"error": {"details": [{"a": 2, "b": 1}], "message": "m"}, "type": "error"}"#);
        assert_eq!(one.as_deref(), Some(r#"{"error":{"details":[{"a":2,"b":1}],"message":"m"},"type":"error"}"#));
        assert_eq!(one, same);
        assert_eq!(fingerprint("no payload"), None);
    }

    #[test]
    fn errors_are_shown_with_their_status_kind_and_message() {
        let english = TextTable::default();
        for (text, expected) in [
            ("  ", english.get(Phrase::UnknownError)),
            ("503 down for now", "HTTP 503: down for now"),
            ("503", "503"),
            (r#"503 {"error": {"type": "busy", "message": "m"}}"#, "HTTP 503 busy: m"),
            (r#"{"error": {"type": "busy", "message": "m"}}"#, "LLM error busy: m"),
            (r#"{"error": "busy", "message": "m"}"#, "LLM error busy: m"),
            (r#"503 {"request_id": "r", "message": "m"}"#, "HTTP 503: m"),
            (r#"{"error": {"code": "c"}}"#, r#"{"error": {"code": "c"}}"#),
            (" no payload ", "no payload"),
        ] {
            assert_eq!(shown(text, &english), expected, "{text}");
        }
    }

    #[test]
    fn long_errors_are_cut() {
        let exact = "é".repeat(MAX_SHOWN);
        assert_eq!(cut(&exact), exact);
        assert_eq!(cut(&format!("{exact}é")), format!("{exact}…"));
    }
}

//! Payloads as a person reads them, or as JSON.

use pinch_embed::run::RunResult;
use pinch_embed::run::payloads::Payload;
use pinch_embed::stdx::json;
use serde_json::{Value, json};

/// The result as `pinch agent --json` prints it: payloads, always there, and meta.
pub(crate) fn json(result: &RunResult) -> String {
    let mut value = result.to_json();
    if value.get("payloads").is_none()
        && let Value::Object(object) = &mut value
    {
        object.shift_insert(0, "payloads".into(), json!([]));
    }
    json::to_pretty(&value).unwrap_or_else(|_| value.to_string())
}

/// The texts with a blank line between payloads; media as lines of their own. What an answer failed at that did not come to its end is said
/// elsewhere.
pub(crate) fn text(result: &RunResult) -> String {
    let payload = |payload: &Payload| {
        let text = Some(payload.reply.text.trim().to_owned()).filter(|text| !text.is_empty());
        let media = payload.reply.media_urls.iter().map(|url| format!("MEDIA:{url}"));
        text.into_iter().chain(media).collect::<Vec<_>>().join("\n")
    };
    let is_shown = |payload: &&Payload| !(payload.is_error && result.meta.partial.is_some());
    result.payloads.iter().filter(is_shown).map(payload).collect::<Vec<_>>().join("\n\n")
}

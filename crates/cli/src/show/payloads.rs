//! Payloads as text or as JSON.

use pinch_embed::run::RunResult;
use pinch_embed::run::payloads::Payload;
use pinch_embed::run::result::RunMeta;
use serde_json::{Map, Value, json};

/// Returns the result as printed by `pinch agent --json`: `{payloads, meta}`, or `{ok: false, error: {kind, message}, payloads, meta}` if
/// it reports a failure.
pub(crate) fn json(result: RunResult) -> Value {
    let mut root = Map::new();
    if let Some(failure) = result.failure() {
        put_failure(&mut root, failure.kind.as_str(), &failure.message);
    }
    root.insert("payloads".into(), json!([]));
    if let Value::Object(members) = result.into_json() {
        root.extend(members);
    }
    Value::Object(root)
}

/// Returns the failure of a run without a result, in the same form.
pub(crate) fn failure_json(kind: &str, message: &str, meta: Option<RunMeta>) -> Value {
    let mut root = Map::new();
    put_failure(&mut root, kind, message);
    root.insert("payloads".into(), json!([]));
    root.insert("meta".into(), meta.map_or_else(|| json!({}), RunMeta::into_json));
    Value::Object(root)
}

fn put_failure(root: &mut Map<String, Value>, kind: &str, message: &str) {
    root.insert("ok".into(), false.into());
    root.insert("error".into(), json!({"kind": kind, "message": message}));
}

/// Returns the texts, with a blank line between payloads; media are separate lines. The failure of an answer that broke off goes to stderr
/// instead.
pub(crate) fn text(result: &RunResult) -> String {
    let payload = |payload: &Payload| {
        let text = Some(payload.reply.text.trim().to_owned()).filter(|text| !text.is_empty());
        let media = payload.reply.media_urls.iter().map(|url| format!("MEDIA:{url}"));
        text.into_iter().chain(media).collect::<Vec<_>>().join("\n")
    };
    let is_shown = |payload: &&Payload| !(payload.is_error && result.meta.partial.is_some());
    result.payloads.iter().filter(is_shown).map(payload).collect::<Vec<_>>().join("\n\n")
}

//! Error texts: their classification and their wording.

use pinch_embed::reason::{Classified, FailoverReason, NamedError, classify, is_abort, is_timeout};
use pinch_embed::replies::api_error;
use pinch_embed::replies::user_text::sanitise;
use pinch_embed::run::error_text::{ErrorSubject, error_text, sanitise_error};
use pinch_embed::texts::TextTable;
use pinch_llm::error::rejection::{image_dimension, image_size_mb};
use pinch_llm::error::{LlmError, overflow, payment, text as texts};
use serde_json::{Value, json};

use super::text;

/// The result of an operation; `None` for other operations.
pub(super) fn run(op: &str, input: &Value) -> Option<Result<Value, String>> {
    let given = text(&input["text"]);
    let named = |value: &'_ Value| (text(&value["name"]).to_owned(), text(&value["message"]).to_owned());
    let status = || input["status"].as_u64().and_then(|n| u16::try_from(n).ok());
    Some(Ok(match op {
        "classify_failover_reason" => word(refused(None, None, given)),
        "classify_failover_signal" => {
            match refused(status(), input["code"].as_str(), text(&input["message"])) {
                Classified::Reason(reason) => json!({"kind": "reason", "reason": reason.as_str()}),
                Classified::ContextOverflow => json!({"kind": "context_overflow"}),
                Classified::None => json!({"kind": "none"}),
            }
        }
        "classify_http_status" => word(refused(status(), None, text(&input["message"]))),
        "classify_error_code" => word(refused(None, input["code"].as_str(), "")),
        "failover_status" => FailoverReason::parse(text(&input["reason"])).and_then(FailoverReason::status).into(),
        "is_billing" => payment::is_billing(given).into(),
        "is_auth" => texts::is_auth(given).into(),
        "is_cloud_code_assist_format" => (texts::is_format(given) && image_dimension(given).is_none()).into(),
        "is_context_overflow" => overflow::is_overflow_text(given).into(),
        "is_likely_context_overflow" => overflow::is_likely_overflow_text(given).into(),
        "is_compaction_failure" => overflow::is_compaction_failure(given).into(),
        "is_transient_http" => texts::is_transient_http(given).into(),
        "observed_overflow_tokens" => overflow::observed_tokens(given).into(),
        "parse_image_dimension" => image_dimension(given).map_or(Value::Null, |found| {
            json!({"maxDimensionPx": found.max_px, "messageIndex": found.message_idx, "contentIndex": found.content_idx})
        }),
        "parse_image_size_mb" => image_size_mb(given).into(),
        "format_raw_error" => api_error::shown(given, &TextTable::default()).into(),
        "format_assistant_error" => {
            let failed = input["stopReason"] == "error";
            let subject = ErrorSubject { provider: input["provider"].as_str(), model: input["model"].as_str() };
            failed.then(|| error_text(text(&input["errorMessage"]), subject, &TextTable::default())).into()
        }
        "sanitize_user_facing" if input["errorContext"] == true => sanitise_error(given, &TextTable::default()).into(),
        "sanitize_user_facing" => sanitise(given, &TextTable::default()).into(),
        "is_abort_error" => {
            let (name, message) = named(input);
            is_abort(NamedError { name: &name, message: &message }).into()
        }
        "is_timeout_error" => {
            let ((name, message), (cause, cause_message)) = (named(input), named(&input["cause"]));
            let error = NamedError { name: &name, message: &message };
            is_timeout(error, &[NamedError { name: &cause, message: &cause_message }]).into()
        }
        _ => return None,
    }))
}

/// The classification of a failure as reported by a provider. Unknown kinds are ignored.
fn refused(status: Option<u16>, code: Option<&str>, message: &str) -> Classified {
    let status = status.and_then(|status| http::StatusCode::from_u16(status).ok());
    match classify(&LlmError::refused("p".into(), status, code, message)) {
        Classified::Reason(FailoverReason::Unknown) => Classified::None,
        known => known,
    }
}

fn word(classified: Classified) -> Value {
    match classified {
        Classified::Reason(reason) => reason.as_str().into(),
        Classified::ContextOverflow | Classified::None => Value::Null,
    }
}

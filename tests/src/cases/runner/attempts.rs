//! Pure decisions about one model: limits, levels, failure classes.

use pinch_embed::config::agents::RunRetries;
use pinch_embed::reason::{Classified, classify};
use pinch_embed::run::FailoverReason;
use pinch_embed::run::decide::thinking;
use pinch_llm::error::LlmError;
use pinch_llm::error::overflow::{is_compaction_failure, is_likely_overflow_text, is_overflow_text};
use pinch_llm::error::rejection::{image_dimension, image_size_mb, is_image_size};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Value, json};

use super::{check, config};

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    let text = given["text"].as_str().unwrap_or("");
    let actual = match area {
        "iteration-bound" => {
            let n = given["candidates"].as_u64().unwrap_or(0) as usize;
            let defaults = config(json!({"agents": {"defaults": {"runRetries": given["runRetries"]}}})).agents.defaults;
            let retries: RunRetries = defaults.run_retries;
            retries.bound(n).into()
        }
        "thinking-fallback" => {
            let tried = given["attempted"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let tried: Vec<ThinkingLevel> = tried.filter_map(ThinkingLevel::parse).collect();
            json!(thinking::next_level(text, &tried).map(ThinkingLevel::as_str))
        }
        "failover-status" => {
            json!(given["reason"].as_str().and_then(FailoverReason::parse).and_then(FailoverReason::status))
        }
        "classify-later" => {
            let status = given["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            reason_of(status, given["code"].as_str(), text)
        }
        "classify-2.9" => reason_of(None, None, text),
        "overflow-text" => json!({
            "strict": is_overflow_text(text), "likely": is_likely_overflow_text(text),
            "compactionFailure": is_compaction_failure(text),
        }),
        "image-errors" => match image_dimension(text) {
            Some(found) => json!({
                "maxDimensionPx": found.max_px, "messageIndex": found.message_idx, "contentIndex": found.content_idx,
            }),
            None if is_image_size(text) => json!({"maxMb": image_size_mb(text)}),
            None => Value::Null,
        },
        _ => return None,
    };
    Some(check(expect, &actual))
}

/// The reason of a failure as reported by a provider.
fn reason_of(status: Option<u16>, code: Option<&str>, text: &str) -> Value {
    let status = status.and_then(|status| http::StatusCode::from_u16(status).ok());
    match classify(&LlmError::refused("p".into(), status, code, text)) {
        Classified::Reason(reason) if reason != FailoverReason::Unknown => json!(reason.as_str()),
        Classified::Reason(_) | Classified::ContextOverflow | Classified::None => Value::Null,
    }
}

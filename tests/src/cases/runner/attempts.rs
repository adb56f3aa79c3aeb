//! Pure judgements of one model: bounds, levels, classes of failures.

use pinch_embed::config::agents::RunRetries;
use pinch_embed::reason::image::{image_dimension, image_size_mb, is_image_size};
use pinch_embed::reason::overflow::{is_compaction_failure, is_context_overflow, is_likely_context_overflow};
use pinch_embed::reason::{Classified, Signal, reason_of_signal, reason_of_text};
use pinch_embed::run::FailoverReason;
use pinch_embed::run::decide::thinking;
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
            match reason_of_signal(Signal { status, code: given["code"].as_str(), message: Some(text) }) {
                Classified::Reason(reason) => json!(reason.as_str()),
                Classified::ContextOverflow | Classified::None => Value::Null,
            }
        }
        "classify-2.9" => json!(reason_of_text(text).map(FailoverReason::as_str)),
        "overflow-text" => json!({
            "strict": is_context_overflow(text), "likely": is_likely_context_overflow(text),
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

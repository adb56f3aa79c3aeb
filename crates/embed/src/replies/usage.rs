//! Token counts in the spellings of providers and old files.

use pinch_llm::message::Usage;
use serde_json::Value;

/// Reads usage in any of the spellings providers and old files have; `None` when there is no positive number.
pub fn normalise(raw: &Value) -> Option<Usage> {
    let get = |names: &[&str]| {
        let number = names.iter().find_map(|name| raw.get(*name)?.as_f64()).filter(|n| n.is_finite() && *n > 0.0);
        // Whole tokens: a fraction is nobody's.
        number.map_or(0, |n| n as u64)
    };
    let usage = Usage {
        input: get(&["input", "inputTokens", "input_tokens", "promptTokens", "prompt_tokens"]),
        output: get(&["output", "outputTokens", "output_tokens", "completionTokens", "completion_tokens"]),
        cache_read: get(&["cacheRead", "cache_read", "cache_read_input_tokens"]),
        cache_write: get(&["cacheWrite", "cache_write", "cache_creation_input_tokens"]),
        total_tokens: get(&["total", "totalTokens", "total_tokens"]),
        ..Usage::default()
    };
    (!usage.is_zero()).then_some(usage)
}

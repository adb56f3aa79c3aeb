//! Tokens of a run, summed over its answers.

use pinch_llm::message::Usage;
use serde_json::Value;

/// What a run used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageTotals {
    total: Usage,
    last: Option<Usage>,
}

impl UsageTotals {
    /// Adds the usage of one answer. One without any number is passed over.
    pub fn add(&mut self, usage: &Usage) {
        if usage.is_zero() {
            return;
        }
        let mut usage = *usage;
        usage.total_tokens = usage.context_tokens();
        self.total.add(&usage);
        self.last = Some(usage);
    }

    /// The sum; `None` when nothing was counted.
    pub fn total(&self) -> Option<Usage> {
        self.last.map(|_| self.total)
    }

    /// The usage of the last answer: what stands in the model's context.
    pub fn last(&self) -> Option<Usage> {
        self.last
    }
}

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

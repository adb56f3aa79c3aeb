//! Recognises texts about rate limits and periodic limits.

use super::find::{any, word};

pub(super) fn is_rate_limit(text: &str) -> bool {
    any(
        text,
        &[
            "rate limit",
            "rate_limit",
            "too many requests",
            "429",
            "model_cooldown",
            "exceeded your current quota",
            "resource has been exhausted",
            "quota exceeded",
            "resource_exhausted",
            "usage limit",
            "tokens per minute",
            "tokens per day",
        ],
    ) || word(text, "tpm")
}

/// Whether a text is about a daily, weekly or monthly limit.
pub(super) fn is_periodic_limit(text: &str) -> bool {
    ["daily", "weekly", "monthly"].iter().any(|period| {
        text.match_indices(period).any(|(at, _)| {
            let mut rest = &text[at + period.len()..];
            while let Some(next) = ["/daily", "/weekly", "/monthly"].iter().find_map(|more| rest.strip_prefix(more)) {
                rest = next;
            }
            let Some(rest) = rest.strip_prefix(' ') else { return false };
            let rest = rest.strip_prefix("usage ").unwrap_or(rest);
            let after = rest.strip_prefix("limits").or_else(|| rest.strip_prefix("limit"));
            after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    })
}

/// Whether a text is about too many requests.
pub fn is_rate_limit_text(text: &str) -> bool {
    is_rate_limit(&text.to_lowercase())
}

//! Recognises texts about rate limits and periodic limits.

use super::patterns::{LIMIT, PERIODIC_LIMIT, RATE_LIMIT, TOKEN_RATE, beginning};

pub(super) fn is_rate_limit(text: &str) -> bool {
    RATE_LIMIT.finds_any(text) || LIMIT.finds_any(text) || TOKEN_RATE.finds_any(text)
}

/// Returns whether a text is about a daily, weekly or monthly limit.
pub(super) fn is_periodic_limit(text: &str) -> bool {
    PERIODIC_LIMIT.finds_any(text)
}

/// Returns whether a text is about too many requests.
pub fn is_rate_limit_text(text: &str) -> bool {
    is_rate_limit(&beginning(text))
}

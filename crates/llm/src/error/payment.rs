//! Recognises texts about payment, and classifies status 402.

use super::LlmErrorKind;
use super::patterns::{BILLING, NO_MONEY, beginning};
use super::rate::is_rate_limit;
use super::words::{all, any, then, word};

/// Longer texts are prose, in which only unambiguous markers are considered.
const MAX_TEXT: usize = 512;

/// Returns whether a text is about payment or exhausted credit.
pub fn is_billing(text: &str) -> bool {
    let lower = beginning(text);
    if lower.chars().count() > MAX_TEXT {
        return has_hard_mark(&lower);
    }
    if has_hard_mark(&lower) || got_402(&lower) || BILLING.finds_any(&lower) || NO_MONEY.finds_any(&lower) {
        return true;
    }
    let start = lower.trim_start();
    let start = start.strip_prefix("error").map_or(start, |rest| rest.trim_start_matches([':', '-', ' ']));
    let is_headed = ["billing", "credit balance", "insufficient credit", "payment required", "http 402"]
        .iter()
        .any(|head| start.strip_prefix(head).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric())));
    is_headed && any(&lower, &["upgrade", "credits", "payment", "plan"])
}

/// Returns whether a 402 in the text is certainly a status.
fn has_hard_mark(text: &str) -> bool {
    let marked = text.match_indices("402").any(|(at, _)| {
        let after = text[at + 3..].chars().next();
        if after.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            return false;
        }
        let before = text[..at].trim_end();
        let sign = before.trim_end_matches([':', '=']).trim_end();
        let named = sign.trim_end_matches(['"', '\'']);
        let has_sign = sign.len() < before.len();
        (has_sign && (named.ends_with("status") || named.ends_with("code")))
            || ends_with_word(before, "http")
            || ends_with_word(sign, "error")
            || (ends_with_word(sign, "code") && ends_with_word(sign.trim_end_matches("code").trim_end(), "error"))
    });
    let start = text.trim_start();
    marked || start.strip_prefix("402").is_some_and(|rest| rest.trim_start().starts_with("payment"))
}

fn got_402(text: &str) -> bool {
    ["got", "returned", "received"]
        .iter()
        .any(|verb| word(text, &format!("{verb} 402")) || word(text, &format!("{verb} a 402")))
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Returns whether a text is about a status 402.
pub(super) fn is_402_text(text: &str) -> bool {
    if has_hard_mark(text) || got_402(text) {
        return true;
    }
    let Some(rest) = text.trim_start().strip_prefix("402") else { return false };
    if !rest.starts_with(|c: char| c.is_whitespace() || c == ':') {
        return false;
    }
    let rest = rest.trim_start_matches(|c: char| c == ':' || c.is_whitespace());
    any(rest, &["payment required", "used up your points", "no available asset for api access"])
        || is_rate_limit(rest)
        || is_explicit(rest)
        || is_temporary(rest)
}

/// Classifies a status 402: billing, or a transient limit.
pub(super) fn kind_of_402(text: &str) -> LlmErrorKind {
    let lower = beginning(text);
    let mut rest = lower.trim();
    while let Some(shorter) =
        ["error", "http", "402", "payment required"].iter().find_map(|head| rest.strip_prefix(head))
    {
        rest = shorter.trim_start_matches(|c: char| matches!(c, ':' | '-' | '=' | ',' | '.') || c.is_whitespace());
    }
    if rest.is_empty() {
        return LlmErrorKind::Billing;
    }
    let refreshes = any(rest, &["automatic quota refresh", "rolling time window"]);
    if refreshes && rest.contains("subscription quota limit") {
        LlmErrorKind::RateLimit
    } else if is_explicit(rest) {
        LlmErrorKind::Billing
    } else if is_rate_limit(rest) || is_temporary(rest) {
        LlmErrorKind::RateLimit
    } else {
        LlmErrorKind::Billing
    }
}

fn is_explicit(text: &str) -> bool {
    any(
        text,
        &[
            "insufficient credits",
            "insufficient quota",
            "insufficient_quota",
            "insufficient balance",
            "credit balance",
            "plans & billing",
            "add more credits",
            "top up",
            "billing hard limit",
            "hard limit reached",
        ],
    ) || (any(text, &["upgrade your plan", "upgrade plan", "current plan", "subscription"]) && text.contains("limit"))
        || all(text, &["maximum allowed", "limit"])
}

fn is_temporary(text: &str) -> bool {
    let periods = any(text, &["daily", "weekly", "monthly"]);
    (any(text, &["try again", "retry", "temporary", "cooldown"])
        && any(text, &["usage limit", "rate limit", "organization usage"]))
        || (periods && any(text, &["usage limit", "spend limit", "spending limit"]))
        || (periods && all(text, &["limit", "reset"]))
        || (then(text, &["organization", "workspace"], &["limit"])
            && any(text, &["spend limit", "spending limit", "billing period", "exceeded", "reached", "exhausted"]))
}

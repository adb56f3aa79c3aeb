//! Decides whether and when to retry a failed call. Nothing here waits or sends: that is up to the caller.

use std::time::Duration;

use http::HeaderMap;
use pinch_stdx::host::ms_from_http_date;
use serde_json::Value;

use super::patterns::{NOT_RETRYABLE, RETRYABLE, beginning};
use super::{LlmError, LlmErrorKind};

/// Limits on the number of retries, and on the delay that a provider may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Maximum number of retries.
    pub max_retries: u32,
    /// The longest delay a provider may ask for; zero means any.
    pub max_delay: Duration,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self { max_retries: 0, max_delay: Duration::from_secs(60) }
    }
}

/// Returns whether a retry may help. The provider's own advice takes precedence, unless the caller cancelled.
pub fn retryable(error: &LlmError) -> bool {
    let by_kind = match error.kind {
        LlmErrorKind::Aborted => return false,
        LlmErrorKind::Connect
        | LlmErrorKind::Timeout
        | LlmErrorKind::StreamCut
        | LlmErrorKind::RateLimit
        | LlmErrorKind::Overloaded
        | LlmErrorKind::Server
        | LlmErrorKind::ServerFault => true,
        LlmErrorKind::Billing
        | LlmErrorKind::Quota
        | LlmErrorKind::Auth
        | LlmErrorKind::AuthPermanent
        | LlmErrorKind::SessionExpired
        | LlmErrorKind::NoDetails
        | LlmErrorKind::ModelNotFound
        | LlmErrorKind::ContextOverflow
        | LlmErrorKind::InvalidRequest
        | LlmErrorKind::ContentFiltered
        | LlmErrorKind::Protocol => false,
    };
    error.should_retry.unwrap_or(by_kind)
}

/// Returns whether an error text without its typed error, as in old transcripts, describes something that a retry may fix. Overflows are
/// not considered: check [`super::overflow::is_context_overflow`] first.
pub fn text_is_retryable(text: &str) -> bool {
    let text = beginning(text);
    !NOT_RETRYABLE.finds_any(&text) && RETRYABLE.iter().any(|table| table.finds_any(&text))
}

/// Returns the delay before the next retry after `n_done` retries, or `None` if there must not be one. `jitter`, from 0 to 1, shortens our
/// own delays by up to a quarter; a delay requested by the provider is kept exactly, unless it is longer than allowed.
pub fn retry_delay(error: &LlmError, n_done: u32, limits: &RetryLimits, jitter: f64) -> Option<Duration> {
    if n_done >= limits.max_retries || !retryable(error) || asks_too_much(error, limits) {
        return None;
    }
    Some(error.retry_after.unwrap_or_else(|| {
        let nominal =
            Duration::from_millis(500).saturating_mul(2_u32.saturating_pow(n_done)).min(Duration::from_secs(8));
        nominal.mul_f64(1.0 - jitter.clamp(0.0, 1.0) * 0.25)
    }))
}

/// Returns the message for a provider that asks for a longer delay than is allowed, or `None` if it does not.
pub fn too_long_text(error: &LlmError, limits: &RetryLimits) -> Option<String> {
    let asked = error.retry_after.filter(|_| asks_too_much(error, limits))?;
    let (asked, max) = (asked.as_secs_f64().ceil(), limits.max_delay.as_secs_f64().ceil());
    Some(format!("Server requested {asked}s retry delay (max: {max}s). {}", error.text))
}

fn asks_too_much(error: &LlmError, limits: &RetryLimits) -> bool {
    !limits.max_delay.is_zero() && error.retry_after.is_some_and(|asked| asked > limits.max_delay)
}

/// Returns the delay requested in response headers: `retry-after-ms`, else `retry-after` in seconds or as a date. Unreadable values count
/// as absent.
pub fn retry_after(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let get = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str| text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    get("retry-after-ms")
        .and_then(|text| text.parse::<f64>().ok())
        .and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok())
        .or_else(|| get("retry-after").and_then(seconds))
        .or_else(|| {
            let until = ms_from_http_date(get("retry-after")?)?;
            Some(Duration::from_millis(u64::try_from(until.saturating_sub(now_ms)).unwrap_or(0)))
        })
}

/// Returns the delay requested in a Google error body: `retryDelay` of its `RetryInfo`, e.g. `"34.07s"`.
pub fn retry_after_in_body(body: &Value) -> Option<Duration> {
    let error = if body.is_array() { &body[0]["error"] } else { &body["error"] };
    let delays = error["details"].as_array()?.iter().filter_map(|detail| detail["retryDelay"].as_str());
    delays
        .filter_map(|delay| delay.strip_suffix('s')?.parse::<f64>().ok())
        .find_map(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(kind: LlmErrorKind, retry_after: Option<u64>) -> LlmError {
        let mut error = LlmError::new("p".into(), kind, "boom");
        error.retry_after = retry_after.map(Duration::from_secs);
        error
    }

    #[test]
    fn retryable_texts_are_recognised() {
        for (text, expect) in [
            ("529 {\"type\":\"overloaded_error\"}", true),
            ("code 15003", false),
            ("request req_500abc failed", false),
            ("500: {\"message\":\"x\"}", true),
            ("429 {\"code\":\"1308\"}", false),
            ("429 insufficient_quota", false),
            ("Rate-Limit reached", true),
            ("Provider returned error", true),
            ("getaddrinfo ENOTFOUND api.example", true),
            ("request to https://x/v1 failed, reason: certificate", true),
            ("Anthropic stream ended before message_stop", true),
            ("401 invalid x-api-key", false),
        ] {
            assert_eq!(text_is_retryable(text), expect, "{text}");
        }
    }

    #[test]
    fn delays_grow_up_to_the_limit() {
        let limits = RetryLimits { max_retries: 6, ..RetryLimits::default() };
        let server = error(LlmErrorKind::Server, None);
        let nominal: Vec<u128> =
            (0..7).filter_map(|n| retry_delay(&server, n, &limits, 0.0)).map(|d| d.as_millis()).collect();
        assert_eq!(nominal, [500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(retry_delay(&server, 0, &limits, 1.0), Some(Duration::from_millis(375)));
        assert_eq!(retry_delay(&server, 0, &RetryLimits::default(), 0.0), None);
        assert_eq!(retry_delay(&error(LlmErrorKind::Auth, None), 0, &limits, 0.0), None);
        assert_eq!(
            retry_delay(&error(LlmErrorKind::RateLimit, Some(60)), 0, &limits, 1.0),
            Some(Duration::from_secs(60))
        );
    }

    #[test]
    fn a_provider_cannot_request_an_unlimited_delay() {
        let limits = RetryLimits { max_retries: 1, ..RetryLimits::default() };
        let slow = error(LlmErrorKind::RateLimit, Some(3600));
        assert_eq!(retry_delay(&slow, 0, &limits, 0.0), None);
        assert_eq!(too_long_text(&slow, &limits).unwrap(), "Server requested 3600s retry delay (max: 60s). boom");
        assert_eq!(retry_delay(&slow, 0, &RetryLimits { max_delay: Duration::ZERO, ..limits }, 0.0), slow.retry_after);
    }

    #[test]
    fn the_providers_advice_takes_precedence() {
        let mut reported = error(LlmErrorKind::InvalidRequest, None);
        reported.should_retry = Some(true);
        assert!(retryable(&reported));
        reported.kind = LlmErrorKind::Aborted;
        assert!(!retryable(&reported));
    }

    #[test]
    fn the_requested_delay_is_read_from_headers_and_bodies() {
        let now = 1_445_412_470_000;
        for (name, value, expect) in [
            ("retry-after-ms", "1500.5", Some(1500)),
            ("retry-after", "2.5", Some(2500)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", Some(10_000)),
            ("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(retry_after(&headers, now).map(|d| d.as_millis()), expect, "{name}: {value}");
        }
        let body = json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "34s"}]}});
        assert_eq!(retry_after_in_body(&body), Some(Duration::from_secs(34)));
    }
}

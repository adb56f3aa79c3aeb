//! Error responses and failures of ChatGPT subscriptions.

use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use regex::Regex;
use serde::Deserialize;

use crate::error::{LlmError, LlmErrorKind};
use crate::model::Model;
use crate::wire::frame_json::TextMember;
use crate::wire::refusal;
use crate::wire::responses::error::{Manner, ReportedError, ResponseFailure, in_stream};
use crate::wire::responses::models;

/// Codes which mean that the plan is used up, or that there were too many requests in a short time.
const LIMITS: [&str; 3] = ["usage_limit_reached", "usage_not_included", "rate_limit_exceeded"];

/// Matches bodies about a busy server, whatever the status.
static BUSY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("(?i)rate.?limit|overloaded|service.?unavailable|upstream.?connect|connection.?refused").ok()
});

/// Classifies a response with a failing status. `now` is the time of the call, in Unix milliseconds.
pub(super) fn refusal(model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8], now: i64) -> LlmError {
    #[derive(Default, Deserialize)]
    struct CodexErrorBody<'a> {
        #[serde(borrow, default)]
        error: Option<ReportedError<'a>>,
    }
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let reported = serde_json::from_str::<CodexErrorBody<'_>>(text).unwrap_or_default().error.unwrap_or_default();
    let code = reported.code().map(str::to_owned);
    if status == StatusCode::TOO_MANY_REQUESTS || is_limit(&reported) {
        let error = refusal::with_text(model, status, headers, code, None, limit_text(&reported, now));
        return limit(error, &reported, now);
    }
    let said = match reported.message.non_empty() {
        Some(message) => message,
        None if text.is_empty() => status.canonical_reason().unwrap_or("status code (no body)"),
        None => text,
    };
    let mut error = refusal::with_text(model, status, headers, code, None, said.to_owned());
    let is_server = matches!(status.as_u16(), 500 | 502 | 503 | 504);
    if !is_server && BUSY.as_ref().is_some_and(|busy| busy.is_match(said)) {
        error.kind = LlmErrorKind::Overloaded;
    }
    error
}

fn is_limit(reported: &ReportedError<'_>) -> bool {
    reported.code().is_some_and(|code| LIMITS.iter().any(|limit| code.contains(limit)))
}

/// Describes a limit: the plan and the delay, if they are known.
fn limit_text(reported: &ReportedError<'_>, now: i64) -> String {
    let plan =
        reported.plan_type.non_empty().map(|plan| format!(" ({} plan)", plan.to_lowercase())).unwrap_or_default();
    let wait = wait(reported, now).map(|wait| {
        let minutes = wait.as_secs_f64() / 60.0;
        format!(" Try again in ~{} min.", minutes.round())
    });
    format!("You have hit your ChatGPT usage limit{plan}.{}", wait.unwrap_or_default())
}

/// Turns an error into a rate limit. An early retry does not help if the plan is used up.
fn limit(mut error: LlmError, reported: &ReportedError<'_>, now: i64) -> LlmError {
    error.kind = LlmErrorKind::RateLimit;
    error.retry_after = wait(reported, now).or(error.retry_after);
    let is_plan = reported.resets_at.is_some() || reported.code().is_some_and(|code| code.contains("usage_"));
    if is_plan {
        error.should_retry = Some(false);
    }
    error
}

/// Returns the time until the limit ends.
fn wait(reported: &ReportedError<'_>, now: i64) -> Option<Duration> {
    let until = i64::try_from(reported.resets_at?.checked_mul(1_000)?).ok()?;
    Some(Duration::from_millis(u64::try_from(until.saturating_sub(now)).unwrap_or(0)))
}

/// Error handling of subscriptions.
#[derive(Debug)]
pub(super) struct CodexErrors {
    /// The requested service tier.
    pub(super) tier: Option<String>,
    /// Time of the call, in Unix milliseconds.
    pub(super) now: i64,
    /// Error text for unreadable frames.
    pub(super) bad_json: &'static str,
}

impl Manner for CodexErrors {
    /// A response may report `default` although it was served as requested.
    fn price_factor(&self, model: &Model, tier: Option<&str>) -> f64 {
        let asked = self.tier.as_deref();
        let tier = match (tier, asked) {
            (Some("default"), Some("flex" | "priority")) => asked,
            (reported, asked) => reported.or(asked),
        };
        tier.map_or(1.0, |tier| models::tier_factor(model, tier))
    }

    fn error_event(
        &self,
        model: &Model,
        status: Option<StatusCode>,
        reported: &ReportedError<'_>,
        data: &str,
    ) -> LlmError {
        if is_limit(reported) {
            let error = in_stream(model, status, reported.code(), limit_text(reported, self.now));
            return limit(error, reported, self.now);
        }
        let said = reported.message.non_empty().or(reported.code()).unwrap_or(data);
        in_stream(model, status, reported.code(), format!("Codex error: {said}"))
    }

    fn failed(&self, model: &Model, failure: &ResponseFailure<'_>) -> LlmError {
        let reported = failure.error.as_ref();
        let said =
            reported.and_then(|reported| TextMember::non_empty(&reported.message)).unwrap_or("Codex response failed");
        in_stream(model, None, reported.and_then(ReportedError::code), said.to_owned())
    }

    fn bad_json(&self) -> &'static str {
        self.bad_json
    }
}

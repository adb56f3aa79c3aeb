//! Error responses of Cloud Code Assist, and the delay that they ask for.

use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use regex::Regex;
use serde_json::Value;

use crate::error::{LlmError, LlmErrorKind, retry};
use crate::model::Model;
use crate::wire::google::error::member;
use crate::wire::refusal;

/// Maximum bytes of a body that are searched for a delay.
const MAX_SEARCHED: usize = 8 * 1024;
/// Added because the service counts whole seconds, and rejects slightly shorter delays again.
const MORE: Duration = Duration::from_secs(1);

/// Matches `reset after 18h31m10s`.
static RESET: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)reset after (?:([0-9]+)h)?(?:([0-9]+)m)?([0-9]+(?:\.[0-9]+)?)s").ok());
/// Matches `Please retry in 5s` or `200ms`.
static RETRY_IN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)please retry in ([0-9]+(?:\.[0-9]+)?)(ms|s)").ok());

/// Classifies a response with a failing status. `now` is the time of the call, in Unix milliseconds.
pub(super) fn refusal(model: &Model, now: i64, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let json: Option<Value> = serde_json::from_str(text).ok();
    let error = json.as_ref().map(member);
    let said = error.and_then(|error| error["message"].as_str()).unwrap_or(text);
    let said = if said.is_empty() { "no body" } else { said };
    let code = error.and_then(|error| error["status"].as_str()).map(str::to_owned);
    let shown = format!("Cloud Code Assist API error ({}): {said}", status.as_u16());
    let mut refused = refusal::with_text(model, status, headers, code, json.as_ref(), shown);
    // 403 and 404 may succeed at another address, but not after a delay.
    if refused.kind == LlmErrorKind::Protocol && status.is_server_error() {
        refused.kind = LlmErrorKind::Server;
    }
    refused.retry_after = in_headers(headers, now)
        .or_else(|| in_text(text))
        .or(json.as_ref().and_then(retry::retry_after_in_body))
        .map(|wait| wait + MORE);
    refused
}

fn in_headers(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = |n: f64| Duration::try_from_secs_f64(n).ok();
    let until = |epoch: f64| seconds(epoch - now as f64 / 1_000.0);
    number("x-ratelimit-reset").and_then(until).or_else(|| number("x-ratelimit-reset-after").and_then(seconds))
}

/// Returns the delay in a text.
fn in_text(text: &str) -> Option<Duration> {
    let text = &text[..text.floor_char_boundary(MAX_SEARCHED)];
    let number = |found: Option<regex::Match<'_>>| found.and_then(|found| found.as_str().parse::<f64>().ok());
    let reset = RESET.as_ref().and_then(|reset| reset.captures(text)).and_then(|found| {
        let part = |at: usize| number(found.get(at)).unwrap_or(0.0);
        Duration::try_from_secs_f64(part(1) * 3_600.0 + part(2) * 60.0 + part(3)).ok()
    });
    reset.or_else(|| {
        let found = RETRY_IN.as_ref()?.captures(text)?;
        let unit = if found.get(2)?.as_str().eq_ignore_ascii_case("ms") { 0.001 } else { 1.0 };
        Duration::try_from_secs_f64(number(found.get(1))? * unit).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_delay_is_read_from_the_text() {
        for (text, ms) in [
            ("Your quota will reset after 18h31m10s.", Some(66_670_000)),
            ("quota will reset after 39s", Some(39_000)),
            ("Please retry in 1.5s", Some(1_500)),
            ("please retry in 200ms", Some(200)),
            ("later", None),
        ] {
            assert_eq!(in_text(text).map(|wait| wait.as_millis()), ms, "{text}");
        }
    }
}

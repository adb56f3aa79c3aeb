//! Describes an agent's auth profiles in Markdown.

use std::fmt::Write as _;

use pinch_embed::profiles::{AuthProfileKind, AuthProfileStatus};

/// Describes profiles at this time, in Unix milliseconds.
pub(super) fn describe(profiles: &[AuthProfileStatus], now_ms: i64) -> String {
    let mut text = String::from("**Auth profiles**\n\n");
    if profiles.is_empty() {
        text.push_str(
            "None. Keys of the environment, auth.json and models.json are used. `pinch auth login` adds credentials.\n",
        );
    }
    for profile in profiles {
        let kind = match profile.kind {
            AuthProfileKind::ApiKey => "API key",
            AuthProfileKind::Token => "token",
            AuthProfileKind::Login => "login",
        };
        let _infallible =
            writeln!(text, "- `{}` ({}, {kind}): {}", profile.id, profile.provider, state(profile, now_ms));
    }
    text
}

fn state(profile: &AuthProfileStatus, now_ms: i64) -> String {
    let Some(until) = profile.unavailable_until else { return "ready".to_owned() };
    let seconds = u64::try_from(until - now_ms).unwrap_or(0).div_ceil(1_000);
    let wait = match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    };
    let reason = profile.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let model = profile.model.as_ref().map(|model| format!(" for {model}")).unwrap_or_default();
    format!("waits {wait}{model}{reason}")
}

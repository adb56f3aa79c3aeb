//! When a session is reset: by a command, every day, or after a period without messages.

use pinch_stdx::host::Host;

use crate::config::sessions::{ResetRules, SessionConfig};

/// A message, with a reset command split off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParsedReset<'a> {
    /// Whether it starts a new session.
    pub(crate) resets: bool,
    /// Rest of the message, for the model.
    pub(crate) text: &'a str,
}

/// Splits a reset command off a message.
pub(crate) fn parse<'a>(config: &SessionConfig, message: &'a str) -> ParsedReset<'a> {
    let text = message.trim();
    let rest =
        config.reset_triggers.iter().map(|trigger| trigger.trim()).filter(|trigger| !trigger.is_empty()).find_map(
            |trigger| {
                let (start, rest) = text.split_at_checked(trigger.len())?;
                let is_it =
                    start.eq_ignore_ascii_case(trigger) && (rest.is_empty() || rest.starts_with(char::is_whitespace));
                is_it.then_some(rest.trim_start())
            },
        );
    match rest {
        Some(text) => ParsedReset { resets: true, text },
        None => ParsedReset { resets: false, text: message },
    }
}

/// Returns whether a session whose last message arrived at `updated_at` must be reset.
pub(crate) fn is_due(rules: ResetRules, updated_at: i64, host: &Host, now: i64) -> bool {
    let is_idle = rules.idle_minutes.is_some_and(|minutes| {
        let limit = i64::try_from(minutes).unwrap_or(i64::MAX).saturating_mul(60_000);
        now.saturating_sub(updated_at) > limit
    });
    is_idle || rules.daily_at_hour.is_some_and(|hour| updated_at < host.last_time_of_day(hour, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    /// Midnight, UTC.
    const NOW: i64 = 1_767_225_600_000;

    #[test]
    fn reset_commands_are_split_off() {
        let config = SessionConfig::default();
        let parsed = |text| parse(&config, text);
        assert_eq!(parsed(" /new "), ParsedReset { resets: true, text: "" });
        assert_eq!(parsed("/Reset  and go on"), ParsedReset { resets: true, text: "and go on" });
        for text in ["/newer", "say /new", "é", "", "/ne"] {
            assert_eq!(parsed(text), ParsedReset { resets: false, text });
        }
    }

    #[test]
    fn the_earliest_reset_rule_applies() {
        let host = Host::builder().clock(NOW, 0).build();
        let due = |daily_at_hour, idle_minutes, age_hours: i64, now_hour: i64| {
            let now = NOW + now_hour * HOUR;
            is_due(ResetRules { daily_at_hour, idle_minutes }, now - age_hours * HOUR, &host, now)
        };
        assert!(!due(None, None, 1000, 5));
        assert!(due(Some(4), None, 2, 5) && !due(Some(4), None, 1, 5), "four o'clock lies between");
        assert!(!due(Some(4), None, 20, 3) && due(Some(4), None, 24, 3), "before four, yesterday's counts");
        assert!(due(None, Some(90), 2, 12) && !due(None, Some(120), 2, 12));
        assert!(due(Some(4), Some(30), 1, 12), "idle comes first");
    }
}

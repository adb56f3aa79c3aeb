//! Schedules of jobs.

use std::time::Duration;

use croner::Cron;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The schedule of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSchedule {
    /// Once, at a Unix time in milliseconds.
    At(i64),
    /// Periodically.
    Every {
        /// The period in milliseconds, at least 1.
        every_ms: i64,
        /// Reference time in milliseconds; the query time by default.
        anchor_ms: Option<i64>,
    },
    /// By a cron expression of five or six fields.
    Cron {
        /// The expression.
        expr: String,
        /// Name of the time zone; UTC by default.
        tz: Option<String>,
    },
}

/// Delay after consecutive errors: the first, the second, …
const BACKOFF: [Duration; 5] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(60 * 60),
];

impl JobSchedule {
    /// Returns the next time at which the job is due, in milliseconds.
    pub fn next(&self, now_ms: i64) -> Option<i64> {
        match self {
            Self::Cron { expr, tz } => next_by_expression(expr, tz.as_deref(), now_ms),
            &Self::At(at) => (at > now_ms).then_some(at),
            &Self::Every { every_ms, anchor_ms } => {
                let every = every_ms.max(1);
                let anchor = anchor_ms.unwrap_or(now_ms);
                let Some(elapsed) = now_ms.checked_sub(anchor).filter(|elapsed| *elapsed >= 0) else {
                    return Some(anchor);
                };
                let periods = (elapsed / every + i64::from(elapsed % every > 0)).max(1);
                anchor.checked_add(periods.checked_mul(every)?)
            }
        }
    }
}

/// Evaluates a cron expression. Returns `None` if the expression or zone is invalid, or if it never matches again.
fn next_by_expression(expr: &str, tz: Option<&str>, now_ms: i64) -> Option<i64> {
    let zone = match tz.map(str::trim).filter(|tz| !tz.is_empty()) {
        Some(name) => TimeZone::get(name).ok()?,
        None => TimeZone::UTC,
    };
    let cron: Cron = expr.trim().parse().ok()?;
    // Expressions have a resolution of one second.
    let now = Timestamp::from_second(now_ms.div_euclid(1000)).ok()?.to_zoned(zone);
    Some(cron.find_next_occurrence(&now, false).ok()?.timestamp().as_millisecond())
}

/// Returns the delay after `n_errors` consecutive errors.
pub fn backoff(n_errors: u32) -> Duration {
    let at = usize::try_from(n_errors).unwrap_or(usize::MAX).saturating_sub(1);
    BACKOFF[at.min(BACKOFF.len() - 1)]
}

/// Parses a time as models write it into milliseconds: a number, a date, or a date with a time. Defaults to UTC.
pub fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    let local: DateTime = text.parse().ok()?;
    Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// Formats a time as JavaScript does.
pub fn iso(at_ms: i64) -> Option<String> {
    let at = Timestamp::from_millisecond(at_ms).ok()?;
    Some(at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated_in_their_zone() {
        let next = |expr: &str, tz: Option<&str>, now: &str| {
            let schedule = JobSchedule::Cron { expr: expr.to_owned(), tz: tz.map(str::to_owned) };
            schedule.next(parse_time(now).unwrap()).and_then(iso)
        };
        let at = |time: &str| Some(format!("{time}.000Z"));
        assert_eq!(next("0 9 * * 1", None, "2026-01-12T09:00:00Z"), at("2026-01-19T09:00:00"));
        assert_eq!(next("0 9 * * *", Some("Europe/Berlin"), "2026-03-28T12:00:00Z"), at("2026-03-29T07:00:00"));
        assert_eq!(next("*/10 * * * * *", None, "2026-01-12T09:00:05.900Z"), at("2026-01-12T09:00:10"));
        assert_eq!(next("0 0 30 2 *", None, "2026-01-12T09:00:00Z"), None);
        assert_eq!(next("every day", None, "2026-01-12T09:00:00Z"), None);
        assert_eq!(next("0 9 * * *", Some("Mars/Olympus"), "2026-01-12T09:00:00Z"), None);
    }

    #[test]
    fn periodic_times_are_aligned_to_the_anchor() {
        let every = |every_ms, anchor_ms| JobSchedule::Every { every_ms, anchor_ms };
        assert_eq!(every(1000, Some(0)).next(2001), Some(3000));
        assert_eq!(every(1000, Some(2000)).next(2000), Some(3000));
        assert_eq!(every(1000, Some(5000)).next(2000), Some(5000));
        assert_eq!(every(0, None).next(7), Some(8));
        assert_eq!(every(i64::MAX, Some(1)).next(i64::MAX), None);
        assert_eq!((JobSchedule::At(5).next(4), JobSchedule::At(5).next(5)), (Some(5), None));
        assert_eq!(parse_time("2026-01-12").and_then(iso).as_deref(), Some("2026-01-12T00:00:00.000Z"));
        assert_eq!(parse_time("2026-01-12T18:00:00+01:00").and_then(iso).as_deref(), Some("2026-01-12T17:00:00.000Z"));
    }
}

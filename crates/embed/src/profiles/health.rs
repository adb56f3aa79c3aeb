//! The health of a profile: pure functions of failures and cooldowns.
//!
//! A profile that failed is in cooldown. After that it is *half-open*: if it fails again before it has been healthy for as long as its last
//! cooldown, the next cooldown is longer; a later failure starts with the first cooldown again, and a success resets everything. Failures
//! during a cooldown never extend it.

use std::time::Duration;

use pinch_llm::ids::ProviderId;
use pinch_ports::HealthRecords;
use serde_json::{Map, Value, json};

use crate::config::{Cooldowns, normalise_provider};
use crate::key::ProfileId;
use crate::reason::FailoverReason;

/// The longest cooldown that a provider may ask for.
const LONGEST_ASKED_MS: i64 = 15 * 60_000;

/// The health of a profile. Times are in milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// When it was last used.
    pub last_used: Option<i64>,
    /// Consecutive failures.
    pub error_count: u32,
    /// Consecutive failures, by reason.
    pub failure_counts: Vec<(String, u32)>,
    /// When it last failed.
    pub last_failure_at: Option<i64>,
    /// When its cooldown ends.
    pub cooldown_until: Option<i64>,
    /// Why it is in cooldown.
    pub cooldown_reason: Option<FailoverReason>,
    /// The only model that the cooldown applies to; `None`: all models.
    pub cooldown_model: Option<String>,
    /// Length of the last cooldown.
    pub last_window_ms: Option<i64>,
    /// When it is enabled again after a billing failure or an invalid credential.
    pub disabled_until: Option<i64>,
    /// Why it is disabled.
    pub disabled_reason: Option<FailoverReason>,
    /// Members written by other versions.
    extra: Map<String, Value>,
}

/// A failure of a profile.
#[derive(Clone, Copy, Debug)]
pub struct ProfileFailure<'a> {
    /// Why it failed.
    pub reason: FailoverReason,
    /// Delay that the provider asks for.
    pub retry_after: Option<Duration>,
    /// The model that was requested.
    pub model: Option<&'a str>,
    /// The provider of the profile.
    pub provider: &'a ProviderId,
    /// Time of the failure, in milliseconds since the epoch.
    pub now: i64,
    /// Whether other models may be tried even if the reason is not a rate limit: a key may be refused for one model only.
    pub of_model: bool,
}

const KNOWN: [&str; 10] = [
    "lastUsed",
    "errorCount",
    "failureCounts",
    "lastFailureAt",
    "cooldownUntil",
    "cooldownReason",
    "cooldownModel",
    "lastWindowMs",
    "disabledUntil",
    "disabledReason",
];

impl Health {
    /// Reads an entry of `usageStats`.
    pub fn read(entry: Option<&Map<String, Value>>) -> Self {
        let Some(entry) = entry else { return Self::default() };
        let time = |name: &str| {
            entry.get(name).and_then(Value::as_f64).filter(|at| at.is_finite() && *at > 0.0).map(|at| at as i64)
        };
        let reason = |name: &str| entry.get(name).and_then(Value::as_str).and_then(FailoverReason::parse);
        let counts = entry.get("failureCounts").and_then(Value::as_object).into_iter().flatten();
        Self {
            last_used: time("lastUsed"),
            error_count: entry.get("errorCount").and_then(Value::as_u64).map_or(0, to_u32),
            failure_counts: counts.filter_map(|(name, n)| Some((name.clone(), to_u32(n.as_u64()?)))).collect(),
            last_failure_at: time("lastFailureAt"),
            cooldown_until: time("cooldownUntil"),
            cooldown_reason: reason("cooldownReason"),
            cooldown_model: entry.get("cooldownModel").and_then(Value::as_str).map(str::to_owned),
            last_window_ms: time("lastWindowMs"),
            disabled_until: time("disabledUntil"),
            disabled_reason: reason("disabledReason"),
            extra: entry
                .iter()
                .filter(|(k, _)| !KNOWN.contains(&k.as_str()))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
        }
    }

    /// Returns the entry for `usageStats`.
    pub fn to_entry(&self) -> Map<String, Value> {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(name.to_owned(), value);
            }
        };
        put("lastUsed", self.last_used.map(Value::from));
        put("errorCount", Some(self.error_count.into()));
        let counts: Map<String, Value> = self.failure_counts.iter().map(|(k, n)| (k.clone(), (*n).into())).collect();
        put("failureCounts", (!counts.is_empty()).then_some(Value::Object(counts)));
        put("lastFailureAt", self.last_failure_at.map(Value::from));
        put("cooldownUntil", self.cooldown_until.map(Value::from));
        put("cooldownReason", self.cooldown_reason.map(|reason| json!(reason.as_str())));
        put("cooldownModel", self.cooldown_model.as_ref().map(|model| json!(model)));
        put("lastWindowMs", self.last_window_ms.map(Value::from));
        put("disabledUntil", self.disabled_until.map(Value::from));
        put("disabledReason", self.disabled_reason.map(|reason| json!(reason.as_str())));
        entry.extend(self.extra.clone());
        entry
    }

    /// Returns when it can be used for all models again; `None` if it can be now.
    pub fn cools_until(&self, now: i64) -> Option<i64> {
        self.cooldown_until.max(self.disabled_until).filter(|until| now < *until)
    }

    /// Returns whether it cannot be used for a model now. A cooldown for a rate limit may apply to one model only.
    pub fn is_cooling(&self, now: i64, model: Option<&str>) -> bool {
        if self.disabled_until.is_some_and(|until| now < until) {
            return true;
        }
        let other_model = match (&self.cooldown_model, model) {
            (Some(bound), Some(wanted)) => {
                use FailoverReason::{Auth, RateLimit};
                matches!(self.cooldown_reason, Some(RateLimit | Auth)) && bound != wanted
            }
            (None, _) | (_, None) => false,
        };
        !other_model && self.cooldown_until.is_some_and(|until| now < until)
    }

    /// Returns its health after a failure.
    #[must_use]
    pub fn after_failure(&self, failure: &ProfileFailure<'_>, terms: &Cooldowns) -> Self {
        use FailoverReason::{AuthPermanent, Billing, Format, ModelNotFound, ServerError, Timeout};
        let mut next = self.clone();
        // A slow model does not indicate a problem with the credential.
        if failure.reason == Timeout {
            return next;
        }
        let now = failure.now;
        if self.starts_anew(now, terms) {
            next.error_count = 0;
            next.failure_counts.clear();
        }
        let count = next.count(failure.reason);
        next.last_failure_at = Some(now);
        let asked = failure.retry_after.map(|asked| to_ms(asked).min(LONGEST_ASKED_MS));
        match failure.reason {
            // The credential is fine: other requests with it would not fail.
            Format | ModelNotFound | ServerError => return next,
            Billing => {
                let provider = normalise_provider(failure.provider.as_str());
                let base = terms.billing_ms_by_provider.get(provider.as_str()).copied().unwrap_or(terms.billing_ms);
                next.disable(failure, doubled(base, terms.billing_max_ms, count));
            }
            AuthPermanent => {
                next.disable(failure, doubled(terms.auth_permanent_ms, terms.auth_permanent_max_ms, count))
            }
            reason => {
                let is_active = self.cooldown_until.is_some_and(|until| now < until);
                let is_of_model = reason == FailoverReason::RateLimit || failure.of_model;
                let model = failure.model.filter(|_| is_of_model).map(str::to_owned);
                next.cooldown_model = match is_active {
                    // A failure of another model, or without a model, extends the cooldown to all models.
                    true => self.cooldown_model.clone().filter(|bound| Some(bound) == model.as_ref()),
                    false => model,
                };
                next.cooldown_reason = Some(reason);
                if !is_active {
                    let window = asked.unwrap_or_else(|| next.next_rest(&terms.series));
                    next.last_window_ms = Some(window);
                    next.cooldown_until = Some(now + window);
                }
            }
        }
        next.error_count += 1;
        next
    }

    /// Returns its health after a success.
    #[must_use]
    pub fn after_success(&self, now: i64) -> Self {
        Self {
            last_used: Some(now),
            last_failure_at: self.last_failure_at,
            extra: self.extra.clone(),
            ..Self::default()
        }
    }

    /// Returns its health corrected for a clock that was set back: no cooldown ends later than one that begins now. `None` if nothing
    /// changes.
    pub fn within(&self, now: i64, terms: &Cooldowns) -> Option<Self> {
        let longest = terms.series.iter().copied().max().unwrap_or(0).max(LONGEST_ASKED_MS);
        let longest_disabled = terms.billing_max_ms.max(terms.auth_permanent_max_ms);
        let capped = |until: Option<i64>, longest: i64| until.map(|until| until.min(now.saturating_add(longest)));
        let next = Self {
            cooldown_until: capped(self.cooldown_until, longest),
            disabled_until: capped(self.disabled_until, longest_disabled),
            last_window_ms: self.last_window_ms.map(|window| window.min(longest.max(longest_disabled))),
            last_failure_at: self.last_failure_at.map(|at| at.min(now)),
            ..self.clone()
        };
        (next.cooldown_until != self.cooldown_until || next.disabled_until != self.disabled_until).then_some(next)
    }

    /// Returns its health without cooldowns that have ended; for display, not for counting.
    #[must_use]
    pub fn without_ended(&self, now: i64) -> Self {
        let mut next = self.clone();
        let ended = |until: Option<i64>| until.is_some_and(|until| until <= now);
        if ended(self.cooldown_until) {
            next.cooldown_until = None;
            next.cooldown_reason = None;
            next.cooldown_model = None;
        }
        if ended(self.disabled_until) {
            next.disabled_until = None;
            next.disabled_reason = None;
        }
        if next != *self && next.cooldown_until.is_none() && next.disabled_until.is_none() {
            next.error_count = 0;
            next.failure_counts.clear();
        }
        next
    }

    /// Returns whether counting restarts: the profile was healthy for as long as its last cooldown, or for the whole failure window.
    fn starts_anew(&self, now: i64, terms: &Cooldowns) -> bool {
        let Some(last) = self.last_failure_at else { return self.error_count == 0 };
        if now - last > terms.failure_window_ms {
            return true;
        }
        let window = self.last_window_ms.unwrap_or_else(|| cooldown(self.error_count, &terms.series));
        let end = self.cooldown_until.max(self.disabled_until).unwrap_or(last + window);
        now - end >= window
    }

    /// Returns the cooldown after one more failure. Failures of concurrent runs count as one step, so the length of the last cooldown
    /// matters more than the number of failures.
    fn next_rest(&self, series: &[i64]) -> i64 {
        let last = self.last_window_ms.filter(|_| self.error_count > 0);
        match last.and_then(|window| series.iter().position(|step| *step == window)) {
            Some(at) => series.get(at + 1).copied().unwrap_or(series[at]),
            None => cooldown(self.error_count + 1, series),
        }
    }

    fn count(&mut self, reason: FailoverReason) -> u32 {
        match self.failure_counts.iter_mut().find(|(name, _)| name == reason.as_str()) {
            Some((_, n)) => {
                *n += 1;
                *n
            }
            None => {
                self.failure_counts.push((reason.as_str().to_owned(), 1));
                1
            }
        }
    }

    fn disable(&mut self, failure: &ProfileFailure<'_>, window: i64) {
        self.disabled_reason = Some(failure.reason);
        if self.disabled_until.is_none_or(|until| until <= failure.now) {
            self.last_window_ms = Some(window);
            self.disabled_until = Some(failure.now + window);
        }
    }
}

/// Returns the health of a profile from these records.
pub(super) fn health_of(records: &HealthRecords, id: &ProfileId) -> Health {
    Health::read(records.profiles.get(id.as_str()))
}

/// Changes the health of a profile in these records.
pub(super) fn change_health(records: &mut HealthRecords, id: &ProfileId, change: impl FnOnce(&Health) -> Health) {
    let health = change(&health_of(records, id));
    records.profiles.insert(id.to_string(), health.to_entry());
}

/// Returns the cooldown after a number of failures, in milliseconds.
pub fn cooldown(n_failures: u32, series: &[i64]) -> i64 {
    let at = (n_failures.max(1) as usize - 1).min(series.len().saturating_sub(1));
    series.get(at).copied().unwrap_or(60_000)
}

/// Returns a cooldown that doubles with each failure, in milliseconds.
pub fn doubled(base: i64, max: i64, n_failures: u32) -> i64 {
    base.saturating_mul(1 << n_failures.saturating_sub(1).min(10)).min(max)
}

/// Returns why none of several profiles can be used: the most frequent reason, where disabled profiles outweigh cooldowns.
pub fn unavailable_reason(healths: &[Health], now: i64) -> Option<FailoverReason> {
    use FailoverReason as R;
    /// Order of equally frequent reasons.
    const PRIORITY: [FailoverReason; 9] = [
        R::AuthPermanent,
        R::Auth,
        R::Billing,
        R::Format,
        R::ModelNotFound,
        R::Overloaded,
        R::Timeout,
        R::RateLimit,
        R::Unknown,
    ];
    let mut scores = [0u64; PRIORITY.len()];
    let mut add = |reason: FailoverReason, n: u64| {
        if let Some(at) = PRIORITY.iter().position(|known| *known == reason) {
            scores[at] += n;
        }
    };
    for health in healths {
        if health.disabled_until.is_some_and(|until| now < until)
            && let Some(reason) = health.disabled_reason
        {
            add(reason, 1000);
        } else if health.cooldown_until.is_some_and(|until| now < until) {
            if health.failure_counts.is_empty() {
                add(R::Unknown, 1);
            }
            for (name, n) in &health.failure_counts {
                add(FailoverReason::parse(name).unwrap_or(R::Unknown), u64::from(*n));
            }
        }
    }
    let best = scores.iter().copied().max().filter(|score| *score > 0)?;
    scores.iter().position(|score| *score == best).map(|at| PRIORITY[at])
}

fn to_u32(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn to_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

//! Limits probes of providers in cooldown, which detect cooldowns that are too long.

use std::collections::BTreeMap;

/// Minimum time between two probes of one provider, in milliseconds.
const PAUSE_MS: i64 = 30_000;

/// How long before the end of a cooldown a probe is allowed, in milliseconds.
const MARGIN_MS: i64 = 120_000;

/// Maximum number of remembered providers.
const MAX_ENTRIES: usize = 256;

/// Time after which a probe is forgotten, in milliseconds.
const FORGET_MS: i64 = 24 * 3_600_000;

/// When each provider was last probed. Lives as long as the engine.
#[derive(Clone, Debug, Default)]
pub struct ProbeThrottle(BTreeMap<String, i64>);

impl ProbeThrottle {
    /// Claims a probe of a provider; false if it was probed recently.
    pub(super) fn take(&mut self, provider: &str, now: i64) -> bool {
        if self.0.get(provider).is_some_and(|last| now - last < PAUSE_MS) {
            return false;
        }
        self.0.retain(|_, last| now - *last < FORGET_MS);
        if self.0.len() >= MAX_ENTRIES
            && let Some(oldest) = self.0.iter().min_by_key(|(_, last)| **last).map(|(name, _)| name.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.insert(provider.to_owned(), now);
        true
    }
}

/// Returns whether a cooldown is nearly over.
pub(super) fn is_near(until: i64, now: i64) -> bool {
    now >= until - MARGIN_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_probed_at_most_every_thirty_seconds() {
        let mut throttle = ProbeThrottle::default();
        assert!(throttle.take("a", 0));
        assert!(!throttle.take("a", PAUSE_MS - 1));
        assert!(throttle.take("b", 1));
        assert!(throttle.take("a", PAUSE_MS));
        assert!((is_near(MARGIN_MS, 0), is_near(MARGIN_MS + 1, 0)) == (true, false));
    }

    #[test]
    fn only_recent_probes_are_remembered() {
        let mut throttle = ProbeThrottle::default();
        assert!(throttle.take("old", 0) && throttle.take("new", 1));
        assert!(throttle.take("late", FORGET_MS));
        assert_eq!(throttle.0.keys().collect::<Vec<_>>(), ["late", "new"]);
        let n_names = i64::try_from(MAX_ENTRIES).unwrap() + 5;
        let mut throttle = ProbeThrottle::default();
        assert!((0..n_names).all(|at| throttle.take(&format!("p{at:03}"), at)));
        assert_eq!((throttle.0.len(), throttle.0.keys().next().unwrap().as_str()), (MAX_ENTRIES, "p005"));
    }
}

//! `preset`: the OpenClaw release whose defaults apply, as a table of values.

use std::num::NonZeroU64;
use std::time::Duration;

use super::agents::DEFAULT_TIMEOUT_SECONDS;
use super::auth::Cooldowns;
use super::compaction::{CompactionConfig, QualityGuard};
use super::messages::{InboxMode, QueueConfig};
use super::sessions::ResetRules;

/// The OpenClaw release whose defaults apply (`preset`). Every value can still be set by its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// `2026.2`.
    #[default]
    V2026_2,
    /// `2026.9`.
    V2026_9,
}

/// The defaults of a preset.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PresetValues {
    /// Time limit of a run, in seconds.
    pub timeout_seconds: f64,
    /// How long a model may be silent; `None`: according to the settings.
    pub silence: Option<SilenceLimits>,
    /// Retries of transient failures.
    pub retries: TransientRetries,
    /// Cooldowns of profiles after failures.
    pub cooldowns: Cooldowns,
    /// Handling of messages that arrive while their session is busy.
    pub queue: QueueConfig,
    /// When a session is reset automatically.
    pub reset: ResetRules,
    /// Maximum number of sessions that run concurrently.
    pub main_slots: usize,
    /// How conversations are summarised.
    pub compaction: CompactionConfig,
    /// The reserve for answers is at most the window divided by this; `None`: it does not depend on the window.
    pub reserve_divisor: Option<NonZeroU64>,
}

const QUARTER: NonZeroU64 = NonZeroU64::new(4).unwrap();

impl Default for PresetValues {
    fn default() -> Self {
        Self {
            timeout_seconds: DEFAULT_TIMEOUT_SECONDS,
            silence: None,
            retries: TransientRetries::default(),
            cooldowns: Cooldowns::default(),
            queue: QueueConfig::default(),
            reset: ResetRules::default(),
            main_slots: 4,
            compaction: CompactionConfig::default(),
            reserve_divisor: None,
        }
    }
}

/// Retries of transient failures (rate limits, overload, server and connection errors) with the same profile.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TransientRetries {
    /// Whether to retry before trying another profile or model. Otherwise only the last profile is retried; if another model follows, at
    /// most once, and never after a rate limit.
    pub before_rotation: bool,
    /// Maximum number of retries after rate limits.
    pub rate_limits: u32,
    /// Maximum number of retries after other failures.
    pub others: u32,
    /// Time in which retries after other failures must begin, counted from the first failure since a completed answer.
    pub window: Option<Duration>,
    /// Delay before the first retry; each further one doubles.
    pub first_delay: Duration,
    /// Longest delay, unless the provider asks for more.
    pub max_delay: Duration,
    /// Fraction by which a delay may be randomly longer or shorter.
    pub jitter: f64,
    /// Whether to wait for a provider that asks for more than a minute if no other model follows.
    pub waits_long: bool,
}

impl Default for TransientRetries {
    fn default() -> Self {
        Self {
            before_rotation: false,
            rate_limits: 3,
            others: 3,
            window: None,
            first_delay: Duration::from_secs(2),
            max_delay: Duration::MAX,
            jitter: 0.1,
            waits_long: false,
        }
    }
}

impl TransientRetries {
    /// Returns the behaviour of 2026.9.6, which retries the same profile first: nine times after rate limits, and eight times in 90 seconds
    /// after other failures.
    pub fn same_profile_first() -> Self {
        Self {
            before_rotation: true,
            rate_limits: 9,
            others: 8,
            window: Some(Duration::from_secs(90)),
            first_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            jitter: 0.5,
            waits_long: true,
        }
    }

    /// Limits the number of retries.
    #[must_use]
    pub fn at_most(self, n: u32) -> Self {
        Self { rate_limits: self.rate_limits.min(n), others: self.others.min(n), ..self }
    }
}

/// How long a model may be silent before its request counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimits {
    /// Limit for a provider on the internet.
    pub cloud: Duration,
    /// Limit for a server on this machine or its network.
    pub self_hosted: Duration,
}

impl SilenceLimits {
    /// Returns the limit for a server.
    pub fn of_server(self, url: &str) -> Duration {
        if pinch_llm::http::url_parts::is_near(url) { self.self_hosted } else { self.cloud }
    }
}

impl Preset {
    /// Parses the name used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "2026.2" => Self::V2026_2,
            "2026.9" => Self::V2026_9,
            _ => return None,
        })
    }

    /// Returns the defaults. Those of 2026.9 are from its documentation, or measured where its behaviour differs.
    pub fn values(self) -> PresetValues {
        const MINUTE_MS: i64 = 60_000;
        match self {
            Self::V2026_2 => PresetValues::default(),
            Self::V2026_9 => PresetValues {
                timeout_seconds: 172_800.0,
                silence: Some(SilenceLimits { cloud: Duration::from_secs(120), self_hosted: Duration::from_secs(300) }),
                retries: TransientRetries::same_profile_first(),
                cooldowns: Cooldowns {
                    series: vec![MINUTE_MS / 2, MINUTE_MS, 5 * MINUTE_MS],
                    billing_ms: 10 * MINUTE_MS,
                    ..Cooldowns::default()
                },
                queue: QueueConfig {
                    mode: InboxMode::Steer,
                    debounce: Duration::from_millis(500),
                    ..QueueConfig::default()
                },
                reset: ResetRules::NEVER,
                main_slots: std::thread::available_parallelism().map_or(8, |n| (4 * n.get()).max(8)),
                compaction: CompactionConfig {
                    quality: QualityGuard { enabled: true, max_retries: 1, is_required: true },
                    timeout: Duration::from_secs(180),
                    ..CompactionConfig::default()
                },
                reserve_divisor: Some(QUARTER),
            },
        }
    }
}

//! `preset`: which release of OpenClaw the defaults are those of, in one table of values.

use std::time::Duration;

use super::agents::DEFAULT_TIMEOUT_SECONDS;
use super::auth::Cooldowns;
use super::compaction::{CompactionConfig, QualityGuard};
use super::messages::{InboxMode, QueueConfig};
use super::sessions::ResetRules;

/// The release of OpenClaw whose defaults a configuration builds on (`preset`). Every value can still be set by its own key.
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
    /// The time limit of a run, in seconds.
    pub timeout_seconds: f64,
    /// How long a model may be silent; `None`: as the settings say.
    pub silence: Option<SilenceLimits>,
    /// How failures that may pass are retried.
    pub retries: TransientRetries,
    /// How long profiles cool down after failures.
    pub cooldowns: Cooldowns,
    /// What happens to messages that arrive while their session is busy.
    pub queue: QueueConfig,
    /// When a session starts anew by itself.
    pub reset: ResetRules,
    /// How many sessions work at once.
    pub main_slots: usize,
    /// How conversations are summarised.
    pub compaction: CompactionConfig,
}

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
        }
    }
}

/// How failures that may pass (rate limits, overload, faults of a server or a connection) are retried with the same profile.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TransientRetries {
    /// Before another profile is tried, and before another model. Otherwise the last profile is retried; where another model follows, once at
    /// most, and never after a rate limit.
    pub before_rotation: bool,
    /// The maximum number of retries after rate limits.
    pub rate_limits: u32,
    /// The maximum number of retries after other failures.
    pub others: u32,
    /// The time in which retries after other failures must begin, from the first failure since a completed answer.
    pub window: Option<Duration>,
    /// The wait before the first retry; each further one is twice as long.
    pub first_delay: Duration,
    /// The longest wait that is not asked for by the provider.
    pub max_delay: Duration,
    /// The fraction by which a wait may be randomly longer or shorter.
    pub jitter: f64,
    /// Waits for a provider that asks for more than a minute where no other model follows.
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
    /// Retries of the same profile first, as 2026.9.6 makes them: nine after rate limits, and eight in 90 seconds after other failures.
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

    /// At most this many retries.
    #[must_use]
    pub fn at_most(self, n: u32) -> Self {
        Self { rate_limits: self.rate_limits.min(n), others: self.others.min(n), ..self }
    }
}

/// How long a model may be silent before its request counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceLimits {
    /// A provider on the internet.
    pub cloud: Duration,
    /// A server on this machine or its network.
    pub self_hosted: Duration,
}

impl SilenceLimits {
    /// The limit for a server.
    pub fn of_server(self, url: &str) -> Duration {
        if pinch_llm::http::url_parts::is_near(url) { self.self_hosted } else { self.cloud }
    }
}

impl Preset {
    /// Parses the word used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "2026.2" => Self::V2026_2,
            "2026.9" => Self::V2026_9,
            _ => return None,
        })
    }

    /// The defaults. Those of 2026.9 are in its documents and were measured where they differ from them.
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
                    quality: QualityGuard { enabled: true, max_retries: 1 },
                    timeout: Duration::from_secs(180),
                    ..CompactionConfig::default()
                },
            },
        }
    }
}

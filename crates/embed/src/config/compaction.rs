//! `agents.defaults.compaction`: how long conversations are summarised.

use std::time::Duration;

use pinch_coding_agent::document::Problem;

use super::memory_flush::MemoryFlushConfig;
use super::node::Node;

/// `agents.defaults.compaction`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompactionConfig {
    /// Tokens that are always reserved (`reserveTokensFloor`).
    pub reserve_tokens_floor: Option<u64>,
    /// How summaries are made (`mode`).
    pub mode: SummaryMode,
    /// Which model writes them (`model`).
    pub model: SummaryModelSetting,
    /// Share of the window that old messages may fill before the oldest are summarised separately (`maxHistoryShare`, 0.1 to 0.9).
    pub max_history_share: f64,
    /// Number of newest summarised turns that are also repeated verbatim (`recentTurnsPreserve`, at most 12).
    pub recent_turns: usize,
    /// How summaries are checked (`qualityGuard`).
    pub quality: QualityGuard,
    /// How identifiers are treated (`identifierPolicy`, `identifierInstructions`).
    pub identifiers: IdentifierPolicy,
    /// What every summary should focus on (`customInstructions`).
    pub instructions: Option<String>,
    /// Timeout of a summary request (`timeoutSeconds`).
    pub timeout: Duration,
    /// Memories saved before a compaction (`memoryFlush`).
    pub memory_flush: MemoryFlushConfig,
}

/// How summaries are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryMode {
    /// In chunks that fit the window, with tool failures and the newest turns, and checked if configured.
    #[default]
    Safeguard,
    /// As `pinch-coding-agent` makes them.
    Default,
}

/// Which model writes summaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SummaryModelSetting {
    /// A cheaper model of the run's provider with at least as large a window, if there is one; else the run's model.
    #[default]
    Auto,
    /// The run's model.
    Run,
    /// This model, as `provider/model`; if it cannot be used, the run's model.
    Named(String),
}

/// Checks of summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QualityGuard {
    /// Whether summaries are checked.
    pub enabled: bool,
    /// Number of times an incomplete summary is requested again.
    pub max_retries: u32,
    /// Whether a summary that is still incomplete is discarded and the conversation is left as it is (`required`).
    pub is_required: bool,
}

/// How summaries treat identifiers such as paths, addresses and hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IdentifierPolicy {
    /// They are kept verbatim, and the check looks for them.
    #[default]
    Strict,
    /// The prompt does not mention them.
    Off,
    /// According to these instructions.
    Custom(String),
}

/// Maximum number of turns repeated verbatim.
const MAX_RECENT_TURNS: u64 = 12;
/// Maximum number of retries after failed checks.
const MAX_QUALITY_RETRIES: u64 = 3;

impl CompactionConfig {
    pub(super) fn read(node: &Node<'_>, default: &Self, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let mode = node.get("mode").word(problems, &["safeguard", "default"], |word| match word {
            "safeguard" => Some(SummaryMode::Safeguard),
            "default" => Some(SummaryMode::Default),
            _ => None,
        });
        let model = node.get("model").text(problems).map(|name| match name.trim() {
            "" | "auto" => SummaryModelSetting::Auto,
            "run" => SummaryModelSetting::Run,
            name => SummaryModelSetting::Named(name.to_owned()),
        });
        let share = node.get("maxHistoryShare").number(problems).filter(|share| share.is_finite());
        let guard = node.get("qualityGuard");
        guard.object(problems);
        let retries = guard.get("maxRetries").count(problems).map(|n| n.min(MAX_QUALITY_RETRIES));
        let instructions = node.get("identifierInstructions").text(problems);
        let identifiers =
            node.get("identifierPolicy").word(problems, &["strict", "off", "custom"], |word| match word {
                "strict" => Some(IdentifierPolicy::Strict),
                "off" => Some(IdentifierPolicy::Off),
                "custom" => Some(IdentifierPolicy::Custom(instructions.clone().unwrap_or_default())),
                _ => None,
            });
        let timeout = node.get("timeoutSeconds").seconds(problems);
        Self {
            reserve_tokens_floor: node.get("reserveTokensFloor").count(problems),
            mode: mode.unwrap_or(default.mode),
            model: model.unwrap_or_else(|| default.model.clone()),
            max_history_share: share.map_or(default.max_history_share, |share| share.clamp(0.1, 0.9)),
            recent_turns: (node.get("recentTurnsPreserve").count(problems))
                .and_then(|n| usize::try_from(n.min(MAX_RECENT_TURNS)).ok())
                .unwrap_or(default.recent_turns),
            quality: QualityGuard {
                enabled: guard.get("enabled").flag(problems).unwrap_or(default.quality.enabled),
                max_retries: retries.and_then(|n| u32::try_from(n).ok()).unwrap_or(default.quality.max_retries),
                is_required: guard.get("required").flag(problems).unwrap_or(default.quality.is_required),
            },
            identifiers: identifiers.unwrap_or_else(|| default.identifiers.clone()),
            instructions: node.get("customInstructions").text(problems),
            timeout: timeout.map_or(default.timeout, |seconds| Duration::from_secs_f64(seconds.clamp(1.0, 86_400.0))),
            memory_flush: MemoryFlushConfig::read(&node.get("memoryFlush"), &default.memory_flush, problems),
        }
    }
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            reserve_tokens_floor: None,
            mode: SummaryMode::default(),
            model: SummaryModelSetting::default(),
            max_history_share: 0.5,
            recent_turns: 3,
            quality: QualityGuard { enabled: false, max_retries: 1, is_required: false },
            identifiers: IdentifierPolicy::default(),
            instructions: None,
            timeout: Duration::from_secs(900),
            memory_flush: MemoryFlushConfig::default(),
        }
    }
}

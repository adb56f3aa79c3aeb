//! `agents.defaults.contextPruning`: which old tool results are shortened in requests.

use std::time::Duration;

use pinch_coding_agent::document::Problem;

use super::node::Node;
use super::pattern::glob;

/// How old tool results are shortened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PruningConfig {
    /// Whether no mode is configured: then only the prompts of Anthropic's own service are pruned.
    pub is_default: bool,
    /// How long a provider caches a prompt (`ttl`). Nothing is shortened earlier, because that would invalidate the cache.
    pub ttl: Duration,
    /// Results since this many answers are left alone (`keepLastAssistants`).
    pub keep_last_assistants: usize,
    /// Share of the window from which long results are shortened (`softTrimRatio`, 0 to 1).
    pub soft_trim_ratio: f64,
    /// Share of the window from which results are cleared (`hardClearRatio`, 0 to 1).
    pub hard_clear_ratio: f64,
    /// Results are only cleared if they have at least this many characters in total (`minPrunableToolChars`).
    pub min_prunable_chars: usize,
    /// How results are shortened (`softTrim`).
    pub soft_trim: SoftTrim,
    /// Text that replaces a cleared result; `None`: results are not cleared (`hardClear`).
    pub placeholder: Option<String>,
    /// The tools whose results may be shortened (`tools`).
    pub tools: ToolFilter,
}

/// How a result is shortened, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftTrim {
    /// Shorter results are left alone.
    pub max_chars: usize,
    /// Number of characters kept at the beginning.
    pub head_chars: usize,
    /// Number of characters kept at the end.
    pub tail_chars: usize,
}

/// Tool names, with `*` for any text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these; empty: all.
    pub allow: Vec<String>,
    /// Not these.
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Returns whether the filter matches a tool, ignoring case.
    pub fn allows(&self, tool: &str) -> bool {
        let tool = tool.trim().to_lowercase();
        let names = |list: &[String]| list.iter().any(|pattern| glob(&pattern.trim().to_lowercase(), &tool));
        !names(&self.deny) && (self.allow.is_empty() || names(&self.allow))
    }
}

/// How long prompts are cached if no mode is configured.
const LONG_TTL: Duration = Duration::from_secs(3600);
/// The same with the mode `cache-ttl`.
const SHORT_TTL: Duration = Duration::from_secs(300);
/// What replaces a cleared result.
const PLACEHOLDER: &str = "[Old tool result content cleared]";

impl Default for PruningConfig {
    fn default() -> Self {
        Self {
            is_default: true,
            ttl: LONG_TTL,
            keep_last_assistants: 3,
            soft_trim_ratio: 0.3,
            hard_clear_ratio: 0.5,
            min_prunable_chars: 50_000,
            soft_trim: SoftTrim { max_chars: 4_000, head_chars: 1_500, tail_chars: 1_500 },
            placeholder: Some(PLACEHOLDER.to_owned()),
            tools: ToolFilter::default(),
        }
    }
}

/// What is configured about pruning.
#[derive(Clone, Debug, PartialEq)]
pub enum PruningSetting {
    /// No mode is configured: these settings apply to Anthropic's own service.
    Unset(PruningConfig),
    /// The mode `off`.
    Off,
    /// The mode `cache-ttl`.
    On(PruningConfig),
}

impl Default for PruningSetting {
    fn default() -> Self {
        Self::Unset(PruningConfig::default())
    }
}

impl PruningSetting {
    /// Returns the settings for the requests of a run, which [apply](PruningConfig::is_default) to some providers only.
    pub fn effective(&self) -> Option<PruningConfig> {
        match self {
            Self::Unset(config) | Self::On(config) => Some(config.clone()),
            Self::Off => None,
        }
    }

    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let mode = node.get("mode").word(problems, &["off", "cache-ttl"], |word| match word {
            "off" => Some(false),
            "cache-ttl" => Some(true),
            _ => None,
        });
        let config = PruningConfig::read(node, mode.is_none(), problems);
        match mode {
            Some(true) => Self::On(config),
            Some(false) => Self::Off,
            None => Self::Unset(config),
        }
    }
}

impl PruningConfig {
    fn read(node: &Node<'_>, is_default: bool, problems: &mut Vec<Problem>) -> Self {
        let default = Self::default();
        let ratio = |name: &str, default: f64, problems: &mut Vec<Problem>| {
            let ratio = node.get(name).number(problems).filter(|ratio| ratio.is_finite());
            ratio.map_or(default, |ratio| ratio.clamp(0.0, 1.0))
        };
        let whole = |node: Node<'_>, default: usize, problems: &mut Vec<Problem>| {
            let number = node.number(problems).filter(|number| number.is_finite());
            number.map_or(default, |number| number.max(0.0) as usize)
        };
        let (soft, hard, tools) = (node.get("softTrim"), node.get("hardClear"), node.get("tools"));
        let placeholder = hard.get("placeholder").text(problems).filter(|text| !text.trim().is_empty());
        let clears = hard.get("enabled").flag(problems).unwrap_or(true);
        Self {
            is_default,
            ttl: node.get("ttl").value().and_then(ttl).unwrap_or(if is_default { LONG_TTL } else { SHORT_TTL }),
            keep_last_assistants: whole(node.get("keepLastAssistants"), default.keep_last_assistants, problems),
            soft_trim_ratio: ratio("softTrimRatio", default.soft_trim_ratio, problems),
            hard_clear_ratio: ratio("hardClearRatio", default.hard_clear_ratio, problems),
            min_prunable_chars: whole(node.get("minPrunableToolChars"), default.min_prunable_chars, problems),
            soft_trim: SoftTrim {
                max_chars: whole(soft.get("maxChars"), default.soft_trim.max_chars, problems),
                head_chars: whole(soft.get("headChars"), default.soft_trim.head_chars, problems),
                tail_chars: whole(soft.get("tailChars"), default.soft_trim.tail_chars, problems),
            },
            placeholder: clears.then(|| placeholder.unwrap_or_else(|| PLACEHOLDER.to_owned())),
            tools: ToolFilter {
                allow: tools.get("allow").texts(problems).unwrap_or_default(),
                deny: tools.get("deny").texts(problems).unwrap_or_default(),
            },
        }
    }
}

/// Parses a duration: a number of minutes, or a number with the unit `ms`, `s`, `m`, `h` or `d`.
fn ttl(value: &serde_json::Value) -> Option<Duration> {
    let text = match value {
        serde_json::Value::String(text) => text.trim().to_lowercase(),
        serde_json::Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match text[digits.len()..].trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "" | "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let number: f64 = digits.trim().parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

//! `agents.defaults.contextPruning`: which old tool results are shortened in requests.

use std::time::Duration;

use pinch_coding_agent::document::Problem;

use super::node::Node;
use super::pattern::glob;

/// `agents.defaults.contextPruning` with mode `cache-ttl`.
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

const DEFAULT_TTL: Duration = Duration::from_secs(300);
/// The default if no mode is configured.
const LONG_TTL: Duration = Duration::from_secs(3600);

impl PruningConfig {
    /// Reads the settings; `None` if the mode is `off`.
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Self> {
        node.object(problems);
        let mode = node.get("mode").word(problems, &["off", "cache-ttl"], |word| match word {
            "off" => Some(false),
            "cache-ttl" => Some(true),
            _ => None,
        });
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
        let placeholder = placeholder.unwrap_or_else(|| "[Old tool result content cleared]".to_owned());
        let clears = hard.get("enabled").flag(problems).unwrap_or(true);
        let config = Self {
            is_default: mode.is_none(),
            ttl: node.get("ttl").value().and_then(ttl).unwrap_or(if mode.is_none() { LONG_TTL } else { DEFAULT_TTL }),
            keep_last_assistants: whole(node.get("keepLastAssistants"), 3, problems),
            soft_trim_ratio: ratio("softTrimRatio", 0.3, problems),
            hard_clear_ratio: ratio("hardClearRatio", 0.5, problems),
            min_prunable_chars: whole(node.get("minPrunableToolChars"), 50_000, problems),
            soft_trim: SoftTrim {
                max_chars: whole(soft.get("maxChars"), 4_000, problems),
                head_chars: whole(soft.get("headChars"), 1_500, problems),
                tail_chars: whole(soft.get("tailChars"), 1_500, problems),
            },
            placeholder: clears.then_some(placeholder),
            tools: ToolFilter {
                allow: tools.get("allow").texts(problems).unwrap_or_default(),
                deny: tools.get("deny").texts(problems).unwrap_or_default(),
            },
        };
        mode.unwrap_or(true).then_some(config)
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

//! The keys that settings may have: their types, their defaults, and who may set them.

use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Map, Value};

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Flag,
    /// A flag, or one of some words.
    FlagOr(&'static [&'static str]),
    /// A whole number from 0 up.
    Count,
    /// A whole number; who sets it gets it between these bounds.
    Within(u64, u64),
    /// A number that is rounded down, but not below 1.
    AtLeastOne,
    /// Milliseconds, or "disabled".
    Limit,
    Text,
    Texts,
    /// Names of tools. It restricts: what of it makes no sense is left out, and the rest holds.
    Tools,
    Word(&'static [&'static str]),
    Level,
    /// A flag, number or text whose meaning is another part's business.
    Scalar,
    /// Sources of packages: texts, or objects with a text "source".
    Packages,
    /// Thinking levels by `provider/id`.
    Levels,
    /// Objects of two counts by `provider/id`.
    Compactions,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Its place; members of objects stand behind a dot.
    pub(super) path: &'static str,
    pub(super) kind: ValueType,
    /// JSON of the value that holds when nobody says anything; empty = none.
    default: &'static str,
    /// A project has no say in it.
    pub(super) user_only: bool,
}

const fn key(path: &'static str, kind: ValueType, default: &'static str) -> Key {
    Key { path, kind, default, user_only: false }
}

const fn of_user(path: &'static str, kind: ValueType, default: &'static str) -> Key {
    Key { path, kind, default, user_only: true }
}

const QUEUE: ValueType = ValueType::Word(&["all", "one-at-a-time"]);
const TREE_FILTERS: &[&str] = &["default", "no-tools", "user-only", "labeled-only", "all"];

/// All keys.
pub(super) const KEYS: &[Key] = &[
    key("defaultProvider", ValueType::Text, ""),
    key("defaultModel", ValueType::Text, ""),
    key("defaultThinkingLevel", ValueType::Level, ""),
    key("modelThinkingLevels", ValueType::Levels, ""),
    key("enabledModels", ValueType::Texts, ""),
    key("thinkingBudgets.minimal", ValueType::Count, ""),
    key("thinkingBudgets.low", ValueType::Count, ""),
    key("thinkingBudgets.medium", ValueType::Count, ""),
    key("thinkingBudgets.high", ValueType::Count, ""),
    key("steeringMode", QUEUE, "\"one-at-a-time\""),
    key("followUpMode", QUEUE, "\"one-at-a-time\""),
    key("compaction.enabled", ValueType::Flag, "true"),
    key("compaction.mode", ValueType::Word(&["threshold", "overflow"]), "\"threshold\""),
    key("compaction.reserveTokens", ValueType::Count, "16384"),
    key("compaction.keepRecentTokens", ValueType::Count, "20000"),
    key("compaction.modelOverrides", ValueType::Compactions, ""),
    key("branchSummary.reserveTokens", ValueType::Count, "16384"),
    key("branchSummary.skipPrompt", ValueType::Flag, "false"),
    key("retry.enabled", ValueType::Flag, "true"),
    key("retry.maxRetries", ValueType::Count, "3"),
    key("retry.baseDelayMs", ValueType::Count, "2000"),
    key("retry.maxAgentDelayMs", ValueType::Count, "60000"),
    key("retry.provider.timeoutMs", ValueType::Count, ""),
    key("retry.provider.maxRetries", ValueType::Count, "0"),
    key("retry.provider.maxRetryDelayMs", ValueType::Count, "60000"),
    key("transport", ValueType::Word(&["sse", "websocket", "websocket-cached", "auto"]), "\"auto\""),
    key("httpConnectTimeoutMs", ValueType::Limit, ""),
    key("httpHeadersTimeoutMs", ValueType::Limit, ""),
    key("httpFirstContentTimeoutMs", ValueType::Limit, ""),
    key("httpIdleTimeoutMs", ValueType::Limit, ""),
    key("websocketConnectTimeoutMs", ValueType::Limit, "15000"),
    of_user("httpProxy", ValueType::Text, ""),
    key("cacheWarming", ValueType::Scalar, ""),
    key("showCacheMissNotices", ValueType::Flag, "false"),
    key("shellPath", ValueType::Text, ""),
    key("shellCommandPrefix", ValueType::Text, ""),
    of_user("shellEnvironment.inherit", ValueType::Word(&["all", "core", "none"]), ""),
    of_user("shellEnvironment.include", ValueType::Texts, "[]"),
    of_user("shellEnvironment.exclude", ValueType::Texts, "[]"),
    key("defaultTools", ValueType::Tools, ""),
    key("npmCommand", ValueType::Texts, ""),
    of_user("selfUpdateCommand", ValueType::Scalar, ""),
    key("sessionDir", ValueType::Text, ""),
    key("maxInputBytes", ValueType::AtLeastOne, "67108864"),
    key("runTimeoutMs", ValueType::Count, "0"),
    key("durability", ValueType::Word(&["os", "turn", "entry"]), "\"os\""),
    key("sessionShareDestination", ValueType::Text, ""),
    of_user("defaultProjectTrust", ValueType::Word(&["ask", "always", "never"]), "\"ask\""),
    key("packages", ValueType::Packages, "[]"),
    key("extensions", ValueType::Texts, "[]"),
    key("skills", ValueType::Texts, "[]"),
    key("prompts", ValueType::Texts, "[]"),
    key("themes", ValueType::Texts, "[]"),
    key("enableSkillCommands", ValueType::Flag, "true"),
    key("codemode.mode", ValueType::Word(&["on", "only"]), ""),
    key("codemode.inlineBudget", ValueType::Count, "3000"),
    key("images.autoResize", ValueType::Flag, "true"),
    key("images.blockImages", ValueType::Flag, "false"),
    key("theme", ValueType::Text, ""),
    key("tuiMode", ValueType::Text, ""),
    key("quietStartup", ValueType::FlagOr(&["header"]), "false"),
    key("collapseChangelog", ValueType::Flag, "false"),
    key("lastChangelogVersion", ValueType::Text, ""),
    key("enableInstallTelemetry", ValueType::Flag, "true"),
    // Accepted for pi's sake: nothing here counts or sends anything.
    of_user("enableAnalytics", ValueType::Flag, ""),
    key("hideThinkingBlock", ValueType::Flag, "false"),
    key("doubleEscapeAction", ValueType::Word(&["tree", "fork", "none"]), "\"tree\""),
    key("treeFilterMode", ValueType::Word(TREE_FILTERS), "\"default\""),
    key("editorPaddingX", ValueType::Within(0, 3), "0"),
    key("autocompleteMaxVisible", ValueType::Within(3, 20), "5"),
    key("showHardwareCursor", ValueType::Flag, "false"),
    key("externalEditor", ValueType::Text, ""),
    key("outputPad", ValueType::Scalar, ""),
    key("markdown.codeBlockIndent", ValueType::Text, "\"  \""),
    key("markdown.mermaid", ValueType::Scalar, ""),
    key("warnings.anthropicExtraUsage", ValueType::Flag, "true"),
    key("terminal.showImages", ValueType::Flag, "true"),
    key("terminal.imageWidthCells", ValueType::AtLeastOne, "60"),
    key("terminal.clearOnShrink", ValueType::Flag, "false"),
    key("terminal.showTerminalProgress", ValueType::Flag, "false"),
    key("terminal.hyperlinks", ValueType::Scalar, ""),
    key("terminal.images", ValueType::Scalar, ""),
    key("terminal.trueColor", ValueType::Scalar, ""),
];

/// The key of a place.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The settings of somebody who has none.
pub(super) fn defaults() -> Map<String, Value> {
    let mut root = Map::new();
    for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
        if let Ok(value) = serde_json::from_str(key.default) {
            put(&mut root, key.path, value);
        }
    }
    root
}

/// The value at a place.
pub(super) fn get<'a>(root: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = root.get(first)?;
    match rest {
        None => Some(value),
        Some(rest) => get(value.as_object()?, rest),
    }
}

/// Puts a value at a place; `null` takes away what is there. Objects on the way are made, other values on the way give way to them.
pub(super) fn put(root: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        match value {
            Value::Null => drop(root.shift_remove(path)),
            value => drop(root.insert(path.to_owned(), value)),
        }
        return;
    };
    if value.is_null() && !root.get(first).is_some_and(Value::is_object) {
        return;
    }
    let section = root.entry(first).or_insert_with(|| Value::Object(Map::new()));
    if !section.is_object() {
        *section = Value::Object(Map::new());
    }
    if let Value::Object(section) = section {
        put(section, rest, value);
    }
}

impl ValueType {
    /// The value as it is used, or what it must be.
    pub(super) fn read(self, value: &Value) -> Result<Value, String> {
        let keep = |is_good: bool, wanted: &str| if is_good { Ok(value.clone()) } else { Err(wanted.to_owned()) };
        let is_word = |words: &[&str]| value.as_str().is_some_and(|word| words.contains(&word));
        let whole = "a whole number from 0 up";
        match self {
            Self::Flag => keep(value.is_boolean(), "true or false"),
            Self::FlagOr(words) => {
                keep(value.is_boolean() || is_word(words), &format!("true, false or {}", words.join(", ")))
            }
            Self::Count | Self::Within(..) => count(value).map(Value::from).ok_or_else(|| whole.to_owned()),
            Self::AtLeastOne => {
                let number = value.as_f64().map(|n| n.floor().clamp(1.0, f64::from(u32::MAX)) as u64);
                number.map(Value::from).ok_or_else(|| "a number".to_owned())
            }
            Self::Limit if value == "disabled" => Ok(Value::from(0)),
            Self::Limit => count(value).map(Value::from).ok_or_else(|| format!("{whole}, or \"disabled\"")),
            Self::Text => keep(value.is_string(), "a string"),
            Self::Texts | Self::Tools => keep(is_list(value, Value::is_string), "a list of strings"),
            Self::Word(words) => keep(is_word(words), &words.join(", ")),
            Self::Level => keep(is_level(value), &level_words()),
            Self::Scalar => keep(!value.is_object() && !value.is_array(), "a string, a number, true or false"),
            Self::Packages => {
                let is_source = |one: &Value| one.is_string() || one["source"].is_string();
                keep(is_list(value, is_source), "a list of strings, or objects with a \"source\"")
            }
            Self::Levels => {
                let is_good = value.as_object().is_some_and(|all| all.values().all(is_level));
                keep(is_good, "an object of thinking levels by provider/id")
            }
            Self::Compactions => keep(
                value.as_object().is_some_and(|all| all.values().all(Value::is_object)),
                "an object by provider/id",
            ),
        }
    }

    /// What holds of a value that is not what it must be; `null` = nothing.
    pub(super) fn rest_of(self, value: &Value) -> Value {
        match (self, value) {
            (Self::Tools, Value::Array(list)) => list.iter().filter(|one| one.is_string()).cloned().collect(),
            (Self::Tools, Value::String(_)) => Value::Array(vec![value.clone()]),
            // Whoever says anything about tools does not mean the usual ones.
            (Self::Tools, _) => Value::Array(Vec::new()),
            _ => Value::Null,
        }
    }

    /// The value as it is stored when somebody sets it.
    pub(super) fn write(self, value: &Value) -> Result<Value, String> {
        match (self, value.as_f64()) {
            (Self::Within(low, high), Some(number)) => {
                let number = number.floor().clamp(low as f64, high as f64);
                Ok(Value::from(number as u64))
            }
            _ => self.read(value).map(|read| if self == Self::Limit { value.clone() } else { read }),
        }
    }
}

/// The word a thinking level may be, as a list.
fn level_words() -> String {
    ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ")
}

fn is_level(value: &Value) -> bool {
    value.as_str().and_then(ThinkingLevel::parse).is_some()
}

fn is_list(value: &Value, is_good: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(is_good))
}

/// A whole number that JavaScript can hold exactly.
pub(super) fn count(value: &Value) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let number = value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0 && *n <= LARGEST)?;
    Some(number as u64)
}

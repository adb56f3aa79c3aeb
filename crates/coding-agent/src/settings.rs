//! settings.json: what a user wants, as small values for the parts that need them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_agent_core::queue::QueueMode;
use pinch_llm::request::{Deadlines, ThinkingBudgets};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Map, Value};

use crate::compaction::{CompactionMode, CompactionRules, CompactionSettings, ModelCompaction};
use crate::document::{self, Problem};
use crate::recovery::{OverflowRecovery, RecoveryPlan};
use crate::store::Durability;

/// The settings of a user. Keys nobody knows are passed over; a value of a wrong type is reported and counts as absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Provider of the model that is used when nobody names one.
    pub default_provider: Option<String>,
    /// That model.
    pub default_model: Option<String>,
    /// The thinking level of new sessions.
    pub default_thinking: Option<ThinkingLevel>,
    /// Tokens of thinking by level.
    pub thinking_budgets: ThinkingBudgets,
    /// How waiting messages are taken.
    pub steering_mode: QueueMode,
    /// How waiting follow-ups are taken.
    pub follow_up_mode: QueueMode,
    /// When conversations are compacted.
    pub compaction: CompactionRules,
    /// Tokens of the window that stay free when a branch is summarised.
    pub branch_reserve_tokens: Option<u64>,
    /// What is repeated.
    pub recovery: RecoveryPlan,
    /// Time limits of requests.
    pub deadlines: Deadlines,
    /// The shell that runs commands.
    pub shell_path: Option<PathBuf>,
    /// Put before every command.
    pub shell_command_prefix: Option<String>,
    /// Where sessions are kept.
    pub session_dir: Option<String>,
    /// When what is appended to a session is forced to the disk.
    pub durability: Durability,
    /// The tools of sessions when nobody names any; a list of `+name` and `-name` changes the usual ones.
    pub default_tools: Option<Vec<String>>,
}

impl Settings {
    /// Reads a user's settings. A damaged document counts as empty and is reported.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        match document::read_object(path) {
            Ok(object) => {
                let mut reader = Reader { file: path, problems: Vec::new() };
                (reader.settings(&object), reader.problems)
            }
            Err(problem) => (Self::default(), vec![problem]),
        }
    }
}

/// Reads values and notes those of a wrong type.
struct Reader<'a> {
    file: &'a Path,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn settings(&mut self, root: &Map<String, Value>) -> Settings {
        let empty = Map::new();
        let section = |name: &str| root.get(name).and_then(Value::as_object).unwrap_or(&empty);
        let compaction = section("compaction");
        let retry = section("retry");
        let of_provider = retry.get("provider").and_then(Value::as_object).unwrap_or(&empty);
        let budgets = section("thinkingBudgets");
        Settings {
            default_provider: self.text(root, "defaultProvider"),
            default_model: self.text(root, "defaultModel"),
            default_thinking: self.word(root, "defaultThinkingLevel", ThinkingLevel::parse, "off … xhigh, max"),
            thinking_budgets: ThinkingBudgets {
                minimal: self.count(budgets, "minimal"),
                low: self.count(budgets, "low"),
                medium: self.count(budgets, "medium"),
                high: self.count(budgets, "high"),
            },
            // The old name of the first of the two is still understood.
            steering_mode: self
                .word(root, "steeringMode", QueueMode::parse, "one-at-a-time or all")
                .or_else(|| self.word(root, "queueMode", QueueMode::parse, "one-at-a-time or all"))
                .unwrap_or_default(),
            follow_up_mode: self
                .word(root, "followUpMode", QueueMode::parse, "one-at-a-time or all")
                .unwrap_or_default(),
            compaction: self.compaction(compaction),
            branch_reserve_tokens: self.count(section("branchSummary"), "reserveTokens"),
            recovery: self.recovery(retry, of_provider, compaction),
            deadlines: self.deadlines(root, of_provider),
            shell_path: self.text(root, "shellPath").map(PathBuf::from),
            shell_command_prefix: self.text(root, "shellCommandPrefix"),
            session_dir: self.text(root, "sessionDir"),
            durability: self.word(root, "durability", Durability::parse, "os, turn or entry").unwrap_or_default(),
            default_tools: self.texts(root, "defaultTools"),
        }
    }

    fn compaction(&mut self, section: &Map<String, Value>) -> CompactionRules {
        let empty = Map::new();
        let of_models = section.get("modelOverrides").and_then(Value::as_object).unwrap_or(&empty);
        let of_model = |reader: &mut Self, values: &Value| {
            let values = values.as_object().unwrap_or(&empty);
            ModelCompaction {
                reserve_tokens: reader.count(values, "reserveTokens"),
                keep_recent_tokens: reader.count(values, "keepRecentTokens"),
            }
        };
        CompactionRules {
            settings: self.compaction_of_all(section),
            of_models: of_models.iter().map(|(name, values)| (name.clone(), of_model(self, values))).collect(),
        }
    }

    fn compaction_of_all(&mut self, section: &Map<String, Value>) -> CompactionSettings {
        let default = CompactionSettings::default();
        let mode = |word: &str| match word {
            "threshold" => Some(CompactionMode::Threshold),
            "overflow" => Some(CompactionMode::Overflow),
            _ => None,
        };
        CompactionSettings {
            enabled: self.flag(section, "enabled").unwrap_or(default.enabled),
            mode: self.word(section, "mode", mode, "threshold or overflow").unwrap_or(default.mode),
            reserve_tokens: self.count(section, "reserveTokens").unwrap_or(default.reserve_tokens),
            keep_recent_tokens: self.count(section, "keepRecentTokens").unwrap_or(default.keep_recent_tokens),
        }
    }

    fn recovery(
        &mut self,
        retry: &Map<String, Value>,
        of_provider: &Map<String, Value>,
        compaction: &Map<String, Value>,
    ) -> RecoveryPlan {
        let mut plan = RecoveryPlan::default();
        // Who switches compaction off wants none after an overflow either. A wrong value is reported where the section is read.
        if compaction.get("enabled") == Some(&Value::Bool(false)) {
            plan.overflow = OverflowRecovery::Off;
        }
        let as_u32 = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        if let Some(n) = self.count(retry, "maxRetries") {
            plan.turn.max_retries = as_u32(n);
        }
        if self.flag(retry, "enabled") == Some(false) {
            plan.turn.max_retries = 0;
        }
        if let Some(ms) = self.count(retry, "baseDelayMs") {
            plan.turn.base_delay = Duration::from_millis(ms);
        }
        if let Some(ms) = self.count(retry, "maxAgentDelayMs") {
            plan.turn.max_delay = Duration::from_millis(ms);
        }
        if let Some(n) = self.count(of_provider, "maxRetries") {
            plan.transport.max_retries = as_u32(n);
        }
        let asked = self.count(of_provider, "maxRetryDelayMs").or_else(|| self.count(retry, "maxDelayMs"));
        if let Some(ms) = asked {
            plan.transport.max_delay = Duration::from_millis(ms);
            plan.turn.max_asked_delay = Duration::from_millis(ms);
        }
        plan
    }

    fn deadlines(&mut self, root: &Map<String, Value>, of_provider: &Map<String, Value>) -> Deadlines {
        let limit = |ms: u64| (ms > 0).then(|| Duration::from_millis(ms));
        let mut deadlines = Deadlines::default();
        if let Some(ms) = self.count(of_provider, "timeoutMs") {
            deadlines.headers = limit(ms);
        }
        if root.get("httpIdleTimeoutMs").is_some_and(|value| value != "disabled")
            && let Some(ms) = self.count(root, "httpIdleTimeoutMs")
        {
            deadlines.idle = limit(ms);
        }
        deadlines
    }

    fn text(&mut self, map: &Map<String, Value>, name: &str) -> Option<String> {
        match map.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            _ => self.wrong(name, "a string"),
        }
    }

    fn texts(&mut self, map: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
        match map.get(name)? {
            Value::Null => None,
            value => {
                let list = value.as_array().into_iter().flatten().map(|one| one.as_str().map(str::to_owned));
                let texts: Option<Vec<String>> = list.collect();
                texts.filter(|_| value.is_array()).or_else(|| self.wrong(name, "a list of strings"))
            }
        }
    }

    fn flag(&mut self, map: &Map<String, Value>, name: &str) -> Option<bool> {
        match map.get(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::Null => None,
            _ => self.wrong(name, "true or false"),
        }
    }

    fn count(&mut self, map: &Map<String, Value>, name: &str) -> Option<u64> {
        match map.get(name)? {
            Value::Null => None,
            value => value
                .as_f64()
                .filter(|n| *n >= 0.0 && n.fract() == 0.0 && *n <= 9_007_199_254_740_991.0)
                .map(|n| n as u64)
                .or_else(|| self.wrong(name, "a whole number from 0 up")),
        }
    }

    fn word<T>(
        &mut self,
        map: &Map<String, Value>,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        choices: &str,
    ) -> Option<T> {
        match map.get(name)? {
            Value::Null => None,
            value => value.as_str().and_then(parse).or_else(|| self.wrong(name, choices)),
        }
    }

    fn wrong<T>(&mut self, name: &str, wanted: &str) -> Option<T> {
        self.problems.push(Problem::new(self.file, format!("must be {wanted}")).at(name).remedy("It is ignored"));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_wrong_ones_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        let text = r#"{"defaultModel": "m", "defaultThinkingLevel": "loud", "unknown": 1,
            "durability": "entry", "retry": {"enabled": false, "provider": {"timeoutMs": 0}}, "defaultTools": ["read", 1], "compaction": {"reserveTokens": -1,
            "modelOverrides": {"p/m": {"reserveTokens": 5, "keepRecentTokens": 1.5}}}, "branchSummary": {"reserveTokens": 9}}"#;
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), text.as_bytes()).unwrap();
        let (settings, problems) = Settings::load(&path);
        assert_eq!(settings.default_model.as_deref(), Some("m"));
        assert_eq!(settings.recovery.turn.max_retries, 0);
        assert_eq!(settings.durability, Durability::Entry);
        assert_eq!(settings.deadlines.headers, None);
        assert_eq!(settings.compaction.settings, CompactionSettings::default());
        let of_model = ModelCompaction { reserve_tokens: Some(5), keep_recent_tokens: None };
        assert_eq!(settings.compaction.of_models["p/m"], of_model);
        assert_eq!(settings.branch_reserve_tokens, Some(9));
        let places: Vec<_> = problems.iter().filter_map(|p| p.at.as_deref()).collect();
        assert_eq!(places, ["defaultThinkingLevel", "reserveTokens", "keepRecentTokens", "defaultTools"]);
        assert_eq!(settings.default_tools, None);
    }
}

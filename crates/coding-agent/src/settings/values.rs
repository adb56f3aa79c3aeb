//! The values of the merged settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_agent_core::queue::QueueMode;
use pinch_llm::request::{ThinkingBudgets, Timeouts};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Map, Value};

use super::keys::{self, count};
use super::layer::{Layer, SettingsScope, lay_over};
use crate::compaction::{CompactionMode, CompactionRules, CompactionSettings, ModelCompaction};
use crate::document::Problem;
use crate::packages::PackageEntry;
use crate::recovery::{OverflowRecovery, RecoveryPlan};
use crate::resources::ScopeSettings;
use crate::resources::trust::DefaultTrust;
use crate::store::Durability;
use crate::tools::environment::{Inherit, ShellEnvironment};

mod interface;
mod sandbox;

pub use interface::{DoubleEscape, Interface, QuietStartup, Terminal};
pub use sandbox::SandboxDefaults;

/// The settings of a user in a project.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Provider of the default model.
    pub default_provider: Option<String>,
    /// The default model.
    pub default_model: Option<String>,
    /// The thinking level of new sessions.
    pub default_thinking: Option<ThinkingLevel>,
    /// Thinking levels of single models, by `provider/id`.
    pub model_thinking: BTreeMap<String, ThinkingLevel>,
    /// Patterns of the available models; `None` allows all.
    pub enabled_models: Option<Vec<String>>,
    /// Thinking tokens by level.
    pub thinking_budgets: ThinkingBudgets,
    /// How many steering messages are taken at a time.
    pub steering_mode: QueueMode,
    /// How many follow-up messages are taken at a time.
    pub follow_up_mode: QueueMode,
    /// Compaction settings.
    pub compaction: CompactionRules,
    /// Tokens of the window reserved when a branch is summarised.
    pub branch_reserve_tokens: u64,
    /// Whether to leave a branch without offering a summary.
    pub branch_skip_prompt: bool,
    /// What to retry.
    pub recovery: RecoveryPlan,
    /// Maximum retries of a failed answer, if retries are enabled.
    pub retry_limit: u32,
    /// Timeouts of requests.
    pub timeouts: Timeouts,
    /// Network settings of requests.
    pub network: NetworkSettings,
    /// Value of the key for cache warming, uninterpreted.
    pub cache_warming: Option<Value>,
    /// The shell that runs commands.
    pub shell_path: Option<PathBuf>,
    /// Text inserted before every command.
    pub shell_command_prefix: Option<String>,
    /// Environment variables visible to commands.
    pub shell_environment: ShellEnvironment,
    /// Sandbox settings for tools.
    pub sandbox: SandboxDefaults,
    /// Directory of sessions.
    pub session_dir: Option<String>,
    /// When appended session entries are flushed to disk.
    pub durability: Durability,
    /// Destination of shared sessions.
    pub session_share_destination: Option<String>,
    /// The default tools of sessions; a list of `+name` and `-name` modifies the built-in default.
    pub default_tools: Option<Vec<String>>,
    /// Image settings.
    pub images: Images,
    /// Resources and packages to load.
    pub resources: ScopeSettings,
    /// Whether skills are available as slash commands.
    pub skill_commands: bool,
    /// Whether to trust projects without a decision.
    pub default_project_trust: DefaultTrust,
    /// Whether providers may learn which program sends a request.
    pub telemetry: bool,
    /// How tools are called from code.
    pub codemode: Codemode,
    /// The package installer command and its arguments.
    pub npm_command: Option<Vec<String>>,
    /// Value of the key for the update command, uninterpreted.
    pub self_update_command: Option<Value>,
    /// URL of the model catalog server.
    pub model_catalog_url: Option<String>,
    /// User interface settings.
    pub interface: Interface,
}

/// Network settings of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkSettings {
    /// The transport for answers.
    pub transport: TransportSetting,
    /// URL of a proxy for all requests.
    pub proxy: Option<String>,
}

/// The transport for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportSetting {
    /// Server-sent events in the response.
    Sse,
    /// Events over a WebSocket, if the provider supports it; the whole conversation is sent each time.
    WebSocket,
    /// Like [`Self::WebSocket`], sending only what is new in a conversation.
    WebSocketCached,
    /// A WebSocket where it is preferable.
    Auto,
}

impl TransportSetting {
    /// Returns the name used in settings and request options.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::WebSocketCached => "websocket-cached",
            Self::Auto => "auto",
        }
    }
}

/// Image settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Images {
    /// Whether to resize images that are too large.
    pub auto_resize: bool,
    /// Whether to block images from being sent to models.
    pub block: bool,
}

/// How tools are called from code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Codemode {
    /// `on` or `only`; `None` disables it.
    pub mode: Option<String>,
    /// Maximum tokens of tool descriptions in the prompt.
    pub inline_budget: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::of(&keys::defaults())
    }
}

impl Settings {
    /// Loads a user's settings only. A damaged document counts as empty and is reported; a value of a wrong type is ignored and reported.
    /// Unknown keys are ignored.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        let (layer, broken) = Layer::read(path);
        let (good, problems) = layer.checked(SettingsScope::Global);
        let mut all = keys::defaults();
        lay_over(&mut all, &good);
        (Self::of(&all), broken.into_iter().chain(problems.into_iter().map(|p| p.problem)).collect())
    }

    /// Returns the values of a validated document with all defaults.
    pub(super) fn of(root: &Map<String, Value>) -> Self {
        let read = SettingsReader(root);
        Self {
            default_provider: read.text("defaultProvider"),
            default_model: read.text("defaultModel"),
            default_thinking: read.word("defaultThinkingLevel", ThinkingLevel::parse),
            model_thinking: read.levels("modelThinkingLevels"),
            enabled_models: read.texts("enabledModels"),
            thinking_budgets: ThinkingBudgets {
                minimal: read.count("thinkingBudgets.minimal"),
                low: read.count("thinkingBudgets.low"),
                medium: read.count("thinkingBudgets.medium"),
                high: read.count("thinkingBudgets.high"),
            },
            steering_mode: read.word("steeringMode", QueueMode::parse).unwrap_or_default(),
            follow_up_mode: read.word("followUpMode", QueueMode::parse).unwrap_or_default(),
            compaction: read.compaction(),
            branch_reserve_tokens: read.number("branchSummary.reserveTokens"),
            branch_skip_prompt: read.flag("branchSummary.skipPrompt"),
            recovery: read.recovery(),
            retry_limit: read.retry_limit(),
            timeouts: read.timeouts(),
            network: NetworkSettings {
                transport: match read.str("transport") {
                    Some("sse") => TransportSetting::Sse,
                    Some("websocket") => TransportSetting::WebSocket,
                    Some("websocket-cached") => TransportSetting::WebSocketCached,
                    _ => TransportSetting::Auto,
                },
                proxy: read.text("httpProxy"),
            },
            cache_warming: read.value("cacheWarming").cloned(),
            shell_path: read.text("shellPath").map(PathBuf::from),
            shell_command_prefix: read.text("shellCommandPrefix"),
            shell_environment: ShellEnvironment {
                inherit: read.word("shellEnvironment.inherit", Inherit::parse).unwrap_or_default(),
                include: read.texts("shellEnvironment.include").unwrap_or_default(),
                exclude: read.texts("shellEnvironment.exclude").unwrap_or_default(),
            },
            sandbox: read.sandbox(),
            session_dir: read.text("sessionDir"),
            durability: read.word("durability", Durability::parse).unwrap_or_default(),
            session_share_destination: read.text("sessionShareDestination"),
            default_tools: read.texts("defaultTools"),
            images: Images { auto_resize: read.flag("images.autoResize"), block: read.flag("images.blockImages") },
            resources: read.resources(),
            skill_commands: read.flag("enableSkillCommands"),
            default_project_trust: match read.str("defaultProjectTrust") {
                Some("always") => DefaultTrust::Always,
                Some("never") => DefaultTrust::Never,
                _ => DefaultTrust::Ask,
            },
            telemetry: read.flag("enableInstallTelemetry"),
            codemode: Codemode {
                mode: read.text("codemode.mode"),
                inline_budget: read.number("codemode.inlineBudget"),
            },
            npm_command: read.texts("npmCommand"),
            self_update_command: read.value("selfUpdateCommand").cloned(),
            model_catalog_url: read.text("modelCatalogUrl"),
            interface: read.interface(),
        }
    }
}

/// Reads a validated document with all defaults, in which every value with a default is present and has its type.
struct SettingsReader<'a>(&'a Map<String, Value>);

impl SettingsReader<'_> {
    fn value(&self, path: &str) -> Option<&Value> {
        keys::get(self.0, path)
    }

    fn str(&self, path: &str) -> Option<&str> {
        self.value(path)?.as_str()
    }

    fn text(&self, path: &str) -> Option<String> {
        self.str(path).map(str::to_owned)
    }

    fn texts(&self, path: &str) -> Option<Vec<String>> {
        self.value(path).and_then(texts)
    }

    fn flag(&self, path: &str) -> bool {
        self.value(path) == Some(&Value::Bool(true))
    }

    fn count(&self, path: &str) -> Option<u64> {
        self.value(path).and_then(count)
    }

    fn number(&self, path: &str) -> u64 {
        self.count(path).unwrap_or_default()
    }

    fn word<T>(&self, path: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.str(path).and_then(parse)
    }

    fn members(&self, path: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.value(path).and_then(Value::as_object).into_iter().flatten()
    }

    fn levels(&self, path: &str) -> BTreeMap<String, ThinkingLevel> {
        let level = |(name, word): (&String, &Value)| Some((name.clone(), ThinkingLevel::parse(word.as_str()?)?));
        self.members(path).filter_map(level).collect()
    }

    fn compaction(&self) -> CompactionRules {
        let of_model = |values: &Value| ModelCompaction {
            reserve_tokens: count(&values["reserveTokens"]),
            keep_recent_tokens: count(&values["keepRecentTokens"]),
        };
        CompactionRules {
            reserve_divisor: None,
            settings: CompactionSettings {
                enabled: self.flag("compaction.enabled"),
                mode: match self.str("compaction.mode") {
                    Some("overflow") => CompactionMode::Overflow,
                    _ => CompactionMode::Threshold,
                },
                reserve_tokens: self.number("compaction.reserveTokens"),
                keep_recent_tokens: self.number("compaction.keepRecentTokens"),
            },
            of_models: (self.members("compaction.modelOverrides"))
                .map(|(name, values)| (name.clone(), of_model(values)))
                .collect(),
        }
    }

    fn retry_limit(&self) -> u32 {
        u32::try_from(self.number("retry.maxRetries")).unwrap_or(u32::MAX)
    }

    fn recovery(&self) -> RecoveryPlan {
        let ms = |path: &str| Duration::from_millis(self.number(path));
        let times = |path: &str| u32::try_from(self.number(path)).unwrap_or(u32::MAX);
        let mut plan = RecoveryPlan::default();
        // Disabling compaction also disables it after an overflow.
        if !self.flag("compaction.enabled") {
            plan.overflow = OverflowRecovery::Off;
        }
        plan.turn.max_retries = if self.flag("retry.enabled") { self.retry_limit() } else { 0 };
        plan.turn.base_delay = ms("retry.baseDelayMs");
        plan.turn.max_delay = ms("retry.maxAgentDelayMs");
        plan.turn.max_asked_delay = ms("retry.provider.maxRetryDelayMs");
        plan.transport.max_retries = times("retry.provider.maxRetries");
        plan.transport.max_delay = ms("retry.provider.maxRetryDelayMs");
        plan
    }

    fn timeouts(&self) -> Timeouts {
        let mut timeouts = Timeouts::default();
        let set = |deadline: &mut Option<Duration>, key: &str| {
            if let Some(ms) = self.count(key) {
                *deadline = limit(ms);
            }
        };
        set(&mut timeouts.connect, "httpConnectTimeoutMs");
        set(&mut timeouts.websocket, "websocketConnectTimeoutMs");
        // The later of two keys for one limit wins.
        set(&mut timeouts.headers, "retry.provider.timeoutMs");
        set(&mut timeouts.headers, "httpHeadersTimeoutMs");
        set(&mut timeouts.first_content, "httpFirstContentTimeoutMs");
        set(&mut timeouts.idle, "httpIdleTimeoutMs");
        timeouts
    }

    fn resources(&self) -> ScopeSettings {
        let list = |path: &str| self.texts(path).unwrap_or_default();
        ScopeSettings {
            packages: (self.value("packages").and_then(Value::as_array).into_iter().flatten())
                .filter_map(PackageEntry::of)
                .collect(),
            extensions: list("extensions"),
            skills: list("skills"),
            prompts: list("prompts"),
            themes: list("themes"),
        }
    }
}

/// Converts milliseconds to a limit; 0 means none.
fn limit(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_invalid_ones_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        let text = r#"{"defaultModel": "m", "defaultThinkingLevel": "loud", "unknown": 1,
            "durability": "entry", "retry": {"enabled": false, "provider": {"timeoutMs": 0}}, "defaultTools": ["read", 1], "compaction": {"reserveTokens": -1,
            "modelOverrides": {"p/m": {"reserveTokens": 5}}}, "branchSummary": {"reserveTokens": 9},
            "packages": ["a", {"source": "b", "skills": []}]}"#;
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), text.as_bytes()).unwrap();
        let (settings, problems) = Settings::load(&path);
        assert_eq!(settings.default_model.as_deref(), Some("m"));
        assert_eq!(settings.recovery.turn.max_retries, 0);
        assert_eq!(settings.durability, Durability::Entry);
        assert_eq!(settings.timeouts.headers, None);
        assert_eq!(settings.compaction.settings, CompactionSettings::default());
        let of_model = ModelCompaction { reserve_tokens: Some(5), keep_recent_tokens: None };
        assert_eq!(settings.compaction.of_models["p/m"], of_model);
        assert_eq!(settings.branch_reserve_tokens, 9);
        let places: Vec<_> = problems.iter().filter_map(|p| p.at.as_deref()).collect();
        assert_eq!(places, ["defaultThinkingLevel", "compaction.reserveTokens", "defaultTools"]);
        assert_eq!(settings.default_tools, Some(vec!["read".to_owned()]), "a list that restricts is never passed over");
        let packages = &settings.resources.packages;
        assert_eq!(
            (packages[0].source.as_str(), packages[1].filter.as_ref().and_then(|filter| filter.skills.as_deref())),
            ("a", Some(&[][..]))
        );
    }

    #[test]
    fn each_timeout_has_its_key_and_zero_disables_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        let text = r#"{"httpConnectTimeoutMs": 1, "websocketConnectTimeoutMs": 2, "httpHeadersTimeoutMs": 3,
            "httpFirstContentTimeoutMs": 0, "httpIdleTimeoutMs": "disabled", "retry": {"provider": {"timeoutMs": 9}}}"#;
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), text.as_bytes()).unwrap();
        let (settings, problems) = Settings::load(&path);
        let ms = |n| Some(Duration::from_millis(n));
        let timeouts = Timeouts::default().with_connect(ms(1)).with_websocket(ms(2)).with_headers(ms(3));
        let timeouts = timeouts.with_first_content(None).with_idle(None);
        assert_eq!((settings.timeouts, problems.len()), (timeouts, 0));
    }

    #[test]
    fn defaults_match_those_of_the_parts() {
        let settings = Settings::default();
        assert_eq!(settings.recovery, RecoveryPlan::default());
        assert_eq!(settings.compaction, CompactionRules::default());
        assert_eq!(settings.timeouts, Timeouts::default());
    }
}

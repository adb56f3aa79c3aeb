//! Configuration: `pinch.json` or `openclaw.json`, as JSON5 or YAML. Parsing is lenient: problems are reported with their location and
//! skipped.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::document::Problem;
use pinch_stdx::host::Env;
use pinch_tools::policy::ToolPolicies;
use serde_json::{Map, Value};

mod text;
mod source;
mod renamed;
mod node;
mod pattern;
pub(crate) mod paths;
pub mod models;
pub mod secrets;
pub mod auth;
pub mod elevated;
pub mod exec;
pub(crate) mod exec_variables;
mod tools;
pub mod tool_search;
pub mod thinking;
pub mod streaming;
pub mod channels;
pub mod params;
pub mod memory_flush;
pub mod compaction;
pub mod cli;
pub mod pruning;
pub mod prompt;
pub mod subagents;
pub mod agents;
pub mod sessions;
pub mod messages;
pub mod skills;
pub mod plugins;
pub mod sandbox;
pub mod preset;

pub use agents::{AgentConfig, AgentDefaults, Agents};
pub use auth::{AuthConfig, Cooldowns, InlineProfile};
use channels::ChannelsConfig;
use elevated::ElevatedConfig;
use exec::ExecConfig;
use messages::{QueueConfig, ReplyTexts};
pub use models::{ModelsConfig, ProviderConfig, normalise_provider};
use plugins::PluginsConfig;
pub use preset::{Preset, PresetValues};
use prompt::OwnerDisplay;
use sandbox::SandboxSettings;
use sessions::SessionConfig;
use skills::SkillsConfig;
use tool_search::ToolSearchConfig;

use self::node::{Node, UsedKeys};
use self::source::ConfigSource;

/// A configuration. The default is that of an empty file.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `preset`: the source of values that are not configured.
    pub preset: Preset,
    /// The values of the preset.
    pub defaults: PresetValues,
    /// `agents`.
    pub agents: Agents,
    /// `auth`.
    pub auth: AuthConfig,
    /// `models`.
    pub models: ModelsConfig,
    /// Tool policies: which tools are offered to which callers.
    pub tools: Arc<ToolPolicies>,
    /// `tools.exec`: which commands may run, and how.
    pub exec: ExecConfig,
    /// `tools.elevated`: who may run commands outside the sandbox.
    pub elevated: ElevatedConfig,
    /// `tools.loopDetection`: when repeated calls count as a loop.
    pub loop_detection: Value,
    /// `tools.toolSearch`: whether tools are searched for instead of declared.
    pub tool_search: ToolSearchConfig,
    /// `tools.fs.workspaceOnly`: whether file tools see only the workspace.
    pub workspace_only: bool,
    /// Paths of keys whose tool restrictions are not enforced.
    pub unenforced: Vec<String>,
    /// Paths of keys that are enforced only for sandboxed runs.
    pub need_sandbox: Vec<String>,
    /// `sandbox`, for all agents and for each: which runs are isolated from the rest of the machine.
    pub sandbox: SandboxSettings,
    /// `channels`.
    pub channels: ChannelsConfig,
    /// `session`.
    pub session: SessionConfig,
    /// `messages.queue`.
    pub messages: QueueConfig,
    /// The texts of replies (`messages.responsePrefix`, `messages.suppressToolErrors`, `replies`).
    pub replies: ReplyTexts,
    /// `skills`.
    pub skills: SkillsConfig,
    /// `plugins`.
    pub plugins: PluginsConfig,
    /// How owners are named in system prompts (`commands.ownerDisplay`).
    pub owner_display: OwnerDisplay,
    /// Maximum number of concurrent cron runs (`cron.maxConcurrentRuns`).
    pub max_concurrent_cron_runs: Option<usize>,
    /// Paths of members that have no effect in this version; [`Config::document`] keeps them.
    pub ignored: Vec<String>,
    /// The file it was read from, if any.
    pub file: Option<PathBuf>,
    /// Why the file is unusable, if it is. No run starts then.
    pub unusable: Option<String>,
    /// The whole document, for sections that other code reads.
    pub document: Map<String, Value>,
}

/// Names of configuration files, in lookup order.
const FILES: [&str; 4] = ["pinch.json", "pinch.yml", "openclaw.json", "openclaw.yml"];

impl Config {
    /// Returns the configuration file of a state directory: the first of `pinch.json`, `pinch.yml`, `openclaw.json` and `openclaw.yml` that
    /// exists.
    pub fn find(state_dir: &Path) -> Option<PathBuf> {
        FILES.iter().map(|name| state_dir.join(name)).find(|path| path.is_file())
    }

    /// Loads a file: YAML if its name ends in `.yml` or `.yaml`, otherwise JSON5. A missing file counts as empty. `env` provides the
    /// variables for `${NAME}`.
    ///
    /// If the file cannot be read at all, no run starts, because its restrictions are unknown.
    pub fn load(path: &Path, env: &Env) -> (Self, Vec<Problem>) {
        let ConfigSource { document, files, mut problems } = match ConfigSource::read(path, env) {
            Ok(source) => source,
            Err(problem) => {
                let config = Self { unusable: Some(problem.to_string()), ..Self::default() };
                return (config, vec![problem]);
            }
        };
        if files.is_empty() {
            return (Self::default(), problems);
        }
        let (mut config, more) = Self::from_document(document, path);
        problems.extend(more);
        config.file = Some(path.to_owned());
        problems.extend(config.without_effect(path));
        if config.auth.has_secrets()
            && let Some(open) = files.iter().find(|file| is_open_to_others(file))
        {
            problems.push(
                Problem::new(open, "contains credentials and can be read by other users of this machine")
                    .at("auth.profiles")
                    .remedy("Run chmod 600 on it"),
            );
        }
        (config, problems)
    }

    /// Returns a problem that names some of the members without effect.
    fn without_effect(&self, file: &Path) -> Option<Problem> {
        /// Maximum number of members named.
        const MAX_NAMED: usize = 8;
        let named = self.ignored.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.ignored.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let remedy = "They are kept; run pinch doctor for the full list";
        (!named.is_empty()).then(|| {
            Problem::new(file, format!("has keys without effect in this version: {named}{more}")).remedy(remedy)
        })
    }

    /// Reads a parsed document; problems name `file`.
    pub fn from_document(document: Map<String, Value>, file: &Path) -> (Self, Vec<Problem>) {
        let mut document = document;
        let mut problems = renamed::modernise(&mut document, file);
        let old_keys: Vec<String> = problems.iter().filter_map(|notice| notice.at.clone()).collect();
        let root = Value::Object(document);
        let used = UsedKeys::default();
        let node = Node::root(&root, file, &used);
        let preset = node.get("preset").word(&mut problems, &["2026.2", "2026.9"], Preset::parse).unwrap_or_default();
        let defaults = preset.values();
        let mut agents = Agents::read(&node.get("agents"), &defaults.compaction, &mut problems);
        agents.defaults.timeout_seconds.get_or_insert(defaults.timeout_seconds);
        agents.defaults.max_concurrent.get_or_insert(defaults.main_slots);
        let auth = AuthConfig::read(&node.get("auth"), &node.get("secrets"), &defaults.cooldowns, &mut problems);
        let models = ModelsConfig::read(&node.get("models"), &mut problems);
        let unenforced = tools::unenforced(&node.get("tools"));
        let need_sandbox = tools::need_sandbox(&node.get("tools"));
        let sandbox = SandboxSettings::read(&node, &mut problems);
        let exec = ExecConfig::read(&node.get("tools").get("exec"), &mut problems);
        let elevated = ElevatedConfig::read(&node.get("tools").get("elevated"), &mut problems);
        let loop_detection = tools::loop_detection(&node.get("tools"), &mut problems);
        let tool_search = ToolSearchConfig::read(&node.get("tools"), &mut problems);
        let workspace_only = tools::workspace_only(&node.get("tools")).unwrap_or(false);
        let tools = Arc::new(tools::policies(&node, &mut problems));
        let channels = ChannelsConfig::read(&node.get("channels"), &mut problems);
        let session = SessionConfig::read(&node.get("session"), defaults.reset, &mut problems);
        let messages = QueueConfig::read(&node.get("messages"), &defaults.queue, &mut problems);
        let replies = ReplyTexts::read(&node, &mut problems);
        let skills = SkillsConfig::read(&node.get("skills"), &mut problems);
        let plugins = PluginsConfig::read(&node.get("plugins"), &mut problems);
        let owner_display = OwnerDisplay::read(&node.get("commands"), &mut problems);
        let cron = node.get("cron").get("maxConcurrentRuns");
        let max_concurrent_cron_runs = cron.count(&mut problems).and_then(|n| usize::try_from(n).ok());
        let document = match root {
            Value::Object(document) => document,
            _ => Map::new(),
        };
        // The notice about a renamed key already covers it.
        let mut ignored = used.ignored(&document);
        ignored.retain(|key| !old_keys.contains(key));
        (
            Self {
                preset,
                defaults,
                ignored,
                agents,
                auth,
                models,
                tools,
                exec,
                elevated,
                loop_detection,
                tool_search,
                workspace_only,
                unenforced,
                need_sandbox,
                sandbox,
                channels,
                session,
                messages,
                replies,
                skills,
                plugins,
                owner_display,
                max_concurrent_cron_runs,
                file: None,
                unusable: None,
                document,
            },
            problems,
        )
    }
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Config, Vec<String>) {
        let path = Path::new("pinch.json");
        let (document, mut problems) = match text::parse(text, path) {
            Ok(parsed) => parsed,
            Err(problem) => return (Config::default(), vec![problem.to_string()]),
        };
        let (config, more) = Config::from_document(document, path);
        problems.extend(more);
        (config, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_complete_configuration_is_read() {
        let (config, problems) = read(
            r#"{ // comment
              agents: { defaults: {
                model: {primary: "anthropic/claude-opus-4-6", fallbacks: ["openai/gpt-5"]},
                models: {"anthropic/claude-opus-4-6": {alias: "opus", params: {temperature: 0.2}}},
                workspace: "~/w", timeoutSeconds: 60, maxConcurrent: 4, thinkingDefault: "low", contextTokens: 100000,
                compaction: {mode: "safeguard", reserveTokensFloor: 20000},
                blockStreamingDefault: "on", blockStreamingBreak: "text_end", blockStreamingChunk: {minChars: 10, maxChars: 90},
              }, list: [{id: "Ops", workspace: "/ops", model: {fallbacks: []}}] },
              auth: { profiles: [{id: "a", provider: "Z.AI", apiKey: "k"}], order: {"z-ai": ["a"]}, cooldowns: {series: [1000]} },
              models: {providers: {acme: {baseUrl: "x", models: [{id: "m", contextWindow: 5}]}}},
            }"#,
        );
        assert_eq!(problems, Vec::<String>::new());
        let defaults = &config.agents.defaults;
        assert_eq!(defaults.model.primary.as_deref(), Some("anthropic/claude-opus-4-6"));
        assert_eq!(defaults.max_concurrent, Some(4));
        assert_eq!(defaults.block_streaming.chunk.map(|chunk| chunk.max_chars), Some(90));
        assert_eq!(config.agents.list[0].id.as_str(), "ops");
        assert_eq!(config.agents.list[0].fallbacks.as_deref(), Some(&[][..]));
        assert_eq!(config.auth.profiles[0].provider.as_str(), "zai");
        assert_eq!(config.auth.order["zai"][0].as_str(), "a");
        assert_eq!(config.models.providers[0].models[0].context_window, Some(5));
    }

    #[test]
    fn a_preset_decides_what_is_not_configured() {
        use messages::InboxMode;
        let (now, problems) = read("{preset: '2026.9', session: {reset: {atHour: 5}}}");
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(now.agents.defaults.timeout(None).map(|limit| limit.as_secs()), Some(172_800));
        assert_eq!((now.messages.mode, now.messages.debounce.as_millis()), (InboxMode::Steer, 500));
        assert_eq!((now.auth.cooldowns.series[0], now.session.reset.daily_at_hour), (30_000, Some(5)));
        assert!(now.agents.defaults.max_concurrent >= Some(8));
        assert_eq!(
            (now.defaults.reserve_divisor.map(std::num::NonZero::get), PresetValues::default().reserve_divisor),
            (Some(4), None)
        );
        for text in ["{}", "{preset: '2026.2'}"] {
            let (then, _) = read(text);
            assert_eq!(then.agents.defaults.timeout(None).map(|limit| limit.as_secs()), Some(600));
            assert_eq!((then.messages.mode, then.messages.debounce.as_millis()), (InboxMode::Collect, 1000));
            assert_eq!(then.session.reset.daily_at_hour, Some(4));
            assert_eq!(then.agents.defaults.max_concurrent, Some(4));
        }
        let (chosen, _) =
            read("{preset: '2026.9', messages: {queue: {mode: 'collect'}}, agents: {defaults: {timeoutSeconds: 5}}}");
        assert_eq!(chosen.messages.mode, InboxMode::Collect);
        assert_eq!(chosen.agents.defaults.timeout(None).map(|limit| limit.as_secs()), Some(5));
        let (_, problems) = read("{preset: '2027'}");
        assert!(problems[0].starts_with("pinch.json:preset: \"2027\" is not one of 2026.2, 2026.9"), "{problems:?}");
    }

    #[test]
    fn unknown_model_parameters_are_reported_and_not_sent() {
        let (config, problems) =
            read("{agents: {defaults: {models: {'a/b': {params: {temprature: 2, top_p: 0.5, extraBody: {x: 1}}}}}}}");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("agents.defaults.models.a/b.params.temprature"), "{problems:?}");
        let params = &config.agents.defaults.models[0].1.params;
        assert_eq!(Value::Object(params.extra.clone()), serde_json::json!({"top_p": 0.5, "x": 1}));
    }

    #[test]
    fn problems_name_file_location_and_remedy() {
        let (_, problems) = read(
            r#"{agents: {defaults: {timeoutSeconds: "x", thinkingDefault: "much"}, list: [{id: "a"}, {id: "A"}, 5]},
                auth: {profiles: [{id: "p", provider: "x", apiKey: "1"}, {id: "p", provider: "x", apiKey: "2"}]}, auth: {}}"#,
        );
        assert_eq!(
            problems,
            [
                "pinch.json:auth: the key appears twice; the last value is used. Remove one of them",
                "pinch.json:agents.defaults.timeoutSeconds: must be a non-negative number of seconds, not a text. Correct it; until then it is ignored",
                "pinch.json:agents.defaults.thinkingDefault: \"much\" is not one of off, minimal, low, medium, adaptive, high, xhigh, max, ultra. \
                 Correct it; until then it is ignored",
                "pinch.json:agents.list[1].id: \"a\" is already the name of another agent. Give each agent a unique name",
                "pinch.json:agents.list[2]: must be an object, not a number. Correct it; until then it is ignored",
            ]
        );
        let (_, problems) = read(
            r#"{auth: {profiles: [{id: "p", provider: "x", apiKey: "1"}, {id: "p", provider: "x", apiKey: "2"}, {provider: 1}]}}"#,
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("pinch.json:auth.profiles[1].id: "));
    }

    #[test]
    fn damaged_files_are_reported_with_their_position() {
        let (_, problems) = read("{\n  a: }");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("pinch.json:2:6: is not valid JSON5: "), "{problems:?}");
    }
}

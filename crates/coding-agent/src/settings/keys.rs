//! The table of settings keys: their types, defaults, scopes and descriptions.

use serde_json::{Map, Value};

mod value_type;

pub use value_type::ValueType;
pub(super) use value_type::count;

/// A settings key.
#[derive(Clone, Copy, Debug)]
pub struct SettingKey {
    /// Path in the document; members of objects follow a dot.
    pub path: &'static str,
    /// The type of its value.
    pub value_type: ValueType,
    /// JSON of the default value; empty if there is none.
    default: &'static str,
    /// Whether only the user's own document may set it, not a project's.
    pub user_only: bool,
    /// Description in Markdown.
    pub about: &'static str,
}

/// A group of related keys.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KeyGroup {
    /// Title of the group.
    pub title: &'static str,
    /// The keys.
    pub keys: &'static [SettingKey],
}

impl SettingKey {
    /// Returns the JSON of the default value, if there is one.
    pub fn default(&self) -> Option<&'static str> {
        Some(self.default).filter(|default| !default.is_empty())
    }
}

const fn key(path: &'static str, value_type: ValueType, default: &'static str, about: &'static str) -> SettingKey {
    SettingKey { path, value_type, default, user_only: false, about }
}

const fn of_user(path: &'static str, value_type: ValueType, default: &'static str, about: &'static str) -> SettingKey {
    SettingKey { path, value_type, default, user_only: true, about }
}

const QUEUE: ValueType = ValueType::Word(&["all", "one-at-a-time"]);
const TREE_FILTERS: &[&str] = &["default", "no-tools", "user-only", "labeled-only", "all"];

/// Description of keys that pi's programs use and pinch does not.
const COMPATIBILITY: &str = "Checked and kept for programs that share the file; pinch itself does not use it";

/// All keys: the source of the parser, the defaults and the reference.
pub const GROUPS: &[KeyGroup] = &[
    KeyGroup {
        title: "Model",
        keys: &[
            key("defaultProvider", ValueType::Text, "", "Provider of the default model"),
            key("defaultModel", ValueType::Text, "", "Model of new sessions when `--model` names none"),
            key("defaultThinkingLevel", ValueType::Level, "", "Thinking level of new sessions (`medium` when unset)"),
            key(
                "modelThinkingLevels",
                ValueType::Levels,
                "",
                "Thinking level of new sessions by model, e.g. `{\"anthropic/claude-sonnet-4-5\": \"high\"}`; takes precedence over `defaultThinkingLevel`",
            ),
            of_user(
                "modelCatalogUrl",
                ValueType::Text,
                "",
                "Server that `pinch update --models` fetches model catalogs from; unset: `https://pi.dev`",
            ),
            key(
                "enabledModels",
                ValueType::Texts,
                "",
                "Patterns of the models to cycle through, as for `--models`; new sessions use the first one unless the default model is among them",
            ),
            key(
                "thinkingBudgets.minimal",
                ValueType::Count,
                "",
                "Thinking tokens at level `minimal`, for models with a token budget",
            ),
            key(
                "thinkingBudgets.low",
                ValueType::Count,
                "",
                "Thinking tokens at level `low`, for models with a token budget",
            ),
            key(
                "thinkingBudgets.medium",
                ValueType::Count,
                "",
                "Thinking tokens at level `medium`, for models with a token budget",
            ),
            key(
                "thinkingBudgets.high",
                ValueType::Count,
                "",
                "Thinking tokens at level `high`, for models with a token budget",
            ),
        ],
    },
    KeyGroup {
        title: "Session",
        keys: &[
            key(
                "sessionDir",
                ValueType::Text,
                "",
                "Directory to store sessions in; unset: `sessions/` in the agent directory",
            ),
            key(
                "durability",
                ValueType::Word(&["os", "turn", "entry"]),
                "\"os\"",
                "When a session is flushed to disk: `os` leaves it to the operating system, `turn` does it after each turn, `entry` after each entry",
            ),
            key("steeringMode", QUEUE, "\"one-at-a-time\"", "How many steering messages a turn takes from the queue"),
            key("followUpMode", QUEUE, "\"one-at-a-time\"", "How many follow-up messages a turn takes from the queue"),
            key("maxInputBytes", ValueType::AtLeastOne, "67108864", "Longest piped input, in bytes"),
            key(
                "runTimeoutMs",
                ValueType::Count,
                "0",
                "Time limit of a run of `pinch -p`, in milliseconds; 0 means none. `--timeout` takes precedence",
            ),
            key(
                "theme",
                ValueType::Text,
                "",
                "Theme of the interactive mode and of exported pages; unset or `system`: light or dark, as the terminal is",
            ),
        ],
    },
    KeyGroup {
        title: "Compaction",
        keys: &[
            key("compaction.enabled", ValueType::Flag, "true", "Compact conversations automatically"),
            key(
                "compaction.mode",
                ValueType::Word(&["threshold", "overflow"]),
                "\"threshold\"",
                "`threshold` compacts before the context window is full, `overflow` only after the provider has rejected a request",
            ),
            key("compaction.reserveTokens", ValueType::Count, "16384", "Tokens of the context window to keep free"),
            key(
                "compaction.keepRecentTokens",
                ValueType::Count,
                "20000",
                "Tokens of recent messages that are not summarized",
            ),
            key(
                "compaction.modelOverrides",
                ValueType::Compactions,
                "",
                "`reserveTokens` and `keepRecentTokens` by model, e.g. `{\"anthropic/claude-sonnet-4-5\": {\"reserveTokens\": 8000}}`",
            ),
            key(
                "branchSummary.reserveTokens",
                ValueType::Count,
                "16384",
                "Tokens of the context window to keep free when a branch is summarized",
            ),
        ],
    },
    KeyGroup {
        title: "Retries and timeouts",
        keys: &[
            key("retry.enabled", ValueType::Flag, "true", "Retry failed answers"),
            key("retry.maxRetries", ValueType::Count, "3", "Retries of a failed answer"),
            key(
                "retry.baseDelayMs",
                ValueType::Count,
                "2000",
                "Delay before the first retry, in milliseconds; it doubles with each retry",
            ),
            key("retry.maxAgentDelayMs", ValueType::Count, "60000", "Longest delay before a retry, in milliseconds"),
            key(
                "retry.provider.timeoutMs",
                ValueType::Count,
                "",
                "Older name of `httpHeadersTimeoutMs`, which takes precedence",
            ),
            key(
                "retry.provider.maxRetries",
                ValueType::Count,
                "0",
                "Silent retries of requests that failed before the first event of the answer",
            ),
            key(
                "retry.provider.maxRetryDelayMs",
                ValueType::Count,
                "60000",
                "Longest delay that a provider may ask for, in milliseconds; if it asks for more, the request is not retried",
            ),
            key(
                "httpConnectTimeoutMs",
                ValueType::Limit,
                "",
                "Time limit for connecting to a provider, in milliseconds; 30 s when unset",
            ),
            key(
                "httpHeadersTimeoutMs",
                ValueType::Limit,
                "",
                "Time limit for the headers of a response, in milliseconds; 300 s when unset",
            ),
            key(
                "httpFirstContentTimeoutMs",
                ValueType::Limit,
                "",
                "Time limit for the first content of an answer, in milliseconds; 300 s when unset",
            ),
            key(
                "httpIdleTimeoutMs",
                ValueType::Limit,
                "",
                "Time limit between two chunks of an answer, in milliseconds; 300 s when unset",
            ),
            key(
                "websocketConnectTimeoutMs",
                ValueType::Limit,
                "15000",
                "Time limit for opening a WebSocket, in milliseconds",
            ),
        ],
    },
    KeyGroup {
        title: "Network",
        keys: &[
            key(
                "transport",
                ValueType::Word(&["sse", "websocket", "websocket-cached", "auto"]),
                "\"auto\"",
                "Transport of answers for OpenAI Codex: `websocket` sends the whole conversation each time, `websocket-cached` only new messages",
            ),
            of_user(
                "httpProxy",
                ValueType::Text,
                "",
                "URL of a proxy for all requests; `HTTP_PROXY` and `HTTPS_PROXY` take precedence",
            ),
        ],
    },
    KeyGroup {
        title: "Tools",
        keys: &[
            key(
                "defaultTools",
                ValueType::Tools,
                "",
                "Tools of sessions (`[\"read\", \"grep\"]`), or changes to the default tools (`[\"+ls\", \"-bash\"]`). Unknown names are reported and ignored",
            ),
            key("shellPath", ValueType::Text, "", "Shell that runs commands; unset: `/bin/bash`, else `/bin/sh`"),
            key("shellCommandPrefix", ValueType::Text, "", "Text to put before every command"),
            of_user(
                "shellEnvironment.inherit",
                ValueType::Word(&["all", "core", "none"]),
                "",
                "Environment variables that commands see: `all`, `core` (`HOME`, `PATH`, `SHELL`, `USER`, `LOGNAME`, `TERM`, `TZ`, temporary directories, language) or `none`; unset: all except credentials, and `core` in a sandbox",
            ),
            of_user(
                "shellEnvironment.include",
                ValueType::Texts,
                "[]",
                "Variables that commands always see; takes precedence over `exclude`",
            ),
            of_user(
                "shellEnvironment.exclude",
                ValueType::Texts,
                "[]",
                "Variables that commands do not see; `*` and `?` are wildcards",
            ),
            key("images.autoResize", ValueType::Flag, "true", "Resize images to the limits of the model"),
            key("images.blockImages", ValueType::Flag, "false", "Send no image to models"),
        ],
    },
    KeyGroup {
        title: "Sandbox",
        keys: &[
            of_user(
                "sandbox.backend",
                ValueType::StrictWord(&["auto", "bubblewrap", "landlock", "docker", "podman", "runc", "none"]),
                "\"none\"",
                "Sandbox that confines tools and commands to the working directory; `auto`: bubblewrap, else landlock. `--sandbox` takes precedence. See [security.md](security.md)",
            ),
            of_user(
                "sandbox.workspaceAccess",
                ValueType::StrictWord(&["ro", "rw"]),
                "\"rw\"",
                "Whether the working directory is writable in the sandbox",
            ),
            of_user(
                "sandbox.network",
                ValueType::StrictWord(&["off", "domains", "on"]),
                "\"off\"",
                "Whether commands in the sandbox can use the network; `domains`: only the servers in `sandbox.domains`, through a proxy (bubblewrap)",
            ),
            of_user(
                "sandbox.domains",
                ValueType::Texts,
                "[]",
                "Servers for `\"network\": \"domains\"`: `example.com`, `*.example.com` for its subdomains, or an address, each with an optional `:port` (default: 80 and 443)",
            ),
            of_user(
                "sandbox.hideProcesses",
                ValueType::StrictFlag,
                "false",
                "Whether processes outside must be hidden from commands in the sandbox. Bubblewrap and containers always hide them; landlock cannot, and is refused then",
            ),
            of_user(
                "sandbox.image",
                ValueType::Text,
                "\"debian:stable-slim\"",
                "Container image, which must exist locally: nothing is pulled",
            ),
            of_user(
                "sandbox.rootfs",
                ValueType::Text,
                "",
                "Directory with the root file system for `runc`, as made by mmdebstrap or `podman export`; nothing in it is changed",
            ),
            of_user(
                "sandbox.extraRoots",
                ValueType::Texts,
                "[]",
                "Additional files and directories that are readable in the sandbox, and writable if followed by `:rw`; `~` is the home directory",
            ),
        ],
    },
    KeyGroup {
        title: "Resources and packages",
        keys: &[
            key(
                "packages",
                ValueType::Packages,
                "[]",
                "Packages to load: sources, or objects that choose from a package; see [resources.md](resources.md)",
            ),
            key("extensions", ValueType::Texts, "[]", "Extensions to load: paths, and patterns to exclude"),
            key("skills", ValueType::Texts, "[]", "Skills to load: paths, and patterns to exclude"),
            key("prompts", ValueType::Texts, "[]", "Prompt templates to load: paths, and patterns to exclude"),
            key("themes", ValueType::Texts, "[]", "Themes to load: paths, and patterns to exclude"),
            key("enableSkillCommands", ValueType::Flag, "true", "Make skills available as `/skill:NAME`"),
            of_user(
                "defaultProjectTrust",
                ValueType::Word(&["ask", "always", "never"]),
                "\"ask\"",
                "Whether to trust projects without a decision; `ask` means no where nobody can be asked",
            ),
            key(
                "npmCommand",
                ValueType::Texts,
                "",
                "Command that installs npm packages, with its arguments, e.g. `[\"pnpm\"]`",
            ),
        ],
    },
    KeyGroup {
        title: "Interactive programs",
        keys: &[
            key(
                "branchSummary.skipPrompt",
                ValueType::Flag,
                "false",
                "Navigate in the session tree without asking whether to summarize the abandoned branch",
            ),
            key("cacheWarming", ValueType::Scalar, "", COMPATIBILITY),
            key("codemode.mode", ValueType::Word(&["on", "only"]), "", COMPATIBILITY),
            key("codemode.inlineBudget", ValueType::Count, "3000", COMPATIBILITY),
            key("sessionShareDestination", ValueType::Text, "", COMPATIBILITY),
            of_user("selfUpdateCommand", ValueType::Scalar, "", COMPATIBILITY),
            key(
                "tuiMode",
                ValueType::Text,
                "",
                "Screen mode of the interactive mode: `regular` keeps the terminal's scrollback, `fullscreen` uses the alternate screen; unset: `regular`",
            ),
            of_user(
                "ui.plain",
                ValueType::Flag,
                "false",
                "Screen-reader mode of the interactive mode and the chat: plain lines, read line by line",
            ),
            key(
                "quietStartup",
                ValueType::FlagOr(&["header"]),
                "false",
                "Start the interactive mode without the header and the list of resources; `\"header\"` shows the header only",
            ),
            key(
                "collapseChangelog",
                ValueType::Flag,
                "false",
                "Show a single line instead of the changelog after an update",
            ),
            key(
                "lastChangelogVersion",
                ValueType::Text,
                "",
                "Version whose changelog was shown last; written by the interactive mode",
            ),
            of_user(
                "versionCheckUrl",
                ValueType::Text,
                "",
                "Server that names the latest version when the interactive mode starts: a JSON object with `version` and an optional `note`; unset: no check",
            ),
            key("enableInstallTelemetry", ValueType::Flag, "true", COMPATIBILITY),
            of_user("enableAnalytics", ValueType::Flag, "", COMPATIBILITY),
            key("showCacheMissNotices", ValueType::Flag, "false", COMPATIBILITY),
            key("hideThinkingBlock", ValueType::Flag, "false", "Show a single line instead of the model's thinking"),
            key(
                "doubleEscapeAction",
                ValueType::Word(&["tree", "fork", "none"]),
                "\"tree\"",
                "What pressing escape twice does in an empty editor",
            ),
            key(
                "treeFilterMode",
                ValueType::Word(TREE_FILTERS),
                "\"default\"",
                "Which entries the session tree shows at first",
            ),
            key("editorPaddingX", ValueType::Within(0, 3), "0", "Columns left and right of the editor"),
            of_user(
                "editor.historyFile",
                ValueType::Flag,
                "true",
                "Keep prompts in `prompt-history.jsonl` in the agent directory, for the up key in later sessions of the project",
            ),
            key("editorViKeys", ValueType::Flag, "false", "Edit the prompt with the keys of vi"),
            key("autocompleteMaxVisible", ValueType::Within(3, 20), "5", "Number of suggestions shown at a time"),
            key(
                "showHardwareCursor",
                ValueType::Flag,
                "true",
                "Show the terminal's own cursor in the editor, instead of a drawn one",
            ),
            key("externalEditor", ValueType::Text, "", "Command that edits the prompt; unset: `$VISUAL` or `$EDITOR`"),
            key("outputPad", ValueType::Scalar, "", COMPATIBILITY),
            key("markdown.codeBlockIndent", ValueType::Text, "\"  \"", "Indentation of lines in code blocks"),
            key("markdown.mermaid", ValueType::Scalar, "", COMPATIBILITY),
            key("warnings.anthropicExtraUsage", ValueType::Flag, "true", COMPATIBILITY),
            key("terminal.showImages", ValueType::Flag, "true", "Show images in terminals that support them"),
            key("terminal.imageWidthCells", ValueType::AtLeastOne, "60", "Maximum columns of an image, up to 120"),
            key("terminal.clearOnShrink", ValueType::Flag, "false", COMPATIBILITY),
            key(
                "terminal.showTerminalProgress",
                ValueType::Flag,
                "false",
                "Report progress to the terminal while a run is active",
            ),
            key(
                "terminal.notify",
                ValueType::Word(&["auto", "off", "bell", "osc9", "osc777"]),
                "\"auto\"",
                "How the terminal notifies you when a run ends or a question is pending while its window is in the background",
            ),
            key(
                "terminal.hyperlinks",
                ValueType::Scalar,
                "\"auto\"",
                "Clickable links: `auto` (in terminals known to support them, not in tmux or screen), `on` or `off`",
            ),
            key(
                "terminal.images",
                ValueType::Scalar,
                "\"auto\"",
                "Image protocol: `auto` (by the terminal), `kitty`, `iterm2` or `off`",
            ),
            key("terminal.trueColor", ValueType::Scalar, "", COMPATIBILITY),
        ],
    },
];

/// Returns all keys, in the order of [`GROUPS`].
pub fn all() -> impl Iterator<Item = &'static SettingKey> {
    GROUPS.iter().flat_map(|group| group.keys)
}

/// Returns the key with a path.
pub(super) fn find(path: &str) -> Option<&'static SettingKey> {
    all().find(|key| key.path == path)
}

/// Returns the default settings.
pub(super) fn defaults() -> Map<String, Value> {
    let mut root = Map::new();
    for key in all().filter(|key| !key.default.is_empty()) {
        if let Ok(value) = serde_json::from_str(key.default) {
            put(&mut root, key.path, value);
        }
    }
    root
}

/// Returns the value at a path.
pub(super) fn get<'a>(root: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = root.get(first)?;
    match rest {
        None => Some(value),
        Some(rest) => get(value.as_object()?, rest),
    }
}

/// Sets the value at a path; `null` removes it. Missing objects on the path are created, and other values on it are replaced by objects.
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

//! The manual's sections besides flags: exit codes, environment variables, files.

/// Exit codes and their meaning.
pub const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Success"),
    ("1", "Usage: an invalid option, a missing file, an unknown model or session, a truncated answer"),
    ("2", "Configuration: no model or API key, an invalid file. For `pinch doctor`: something is broken"),
    ("3", "Provider: the request failed"),
    ("4", "Internal: disk, lock, a bug"),
    ("129, 130, 143", "Terminated by SIGHUP, SIGINT or SIGTERM"),
];

/// An environment variable that is read.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name.
    pub name: &'static str,
    /// Another program's name for it, used when ours is not set.
    pub other: Option<&'static str>,
    /// Its purpose.
    pub about: &'static str,
}

const fn variable(name: &'static str, other: Option<&'static str>, about: &'static str) -> Variable {
    Variable { name, other, about }
}

/// Environment variables that are read.
pub const ENVIRONMENT: &[Variable] = &[
    variable(
        "PINCH_AGENT_DIR",
        Some("PI_CODING_AGENT_DIR"),
        "Directory of auth.json, models.json, settings.json and sessions/",
    ),
    variable("PINCH_SESSION_DIR", Some("PI_CODING_AGENT_SESSION_DIR"), "Directory of sessions"),
    variable("PINCH_OFFLINE", Some("PI_OFFLINE"), "1: use no network except for the model, as --offline does"),
    variable(
        "PINCH_MODEL_CATALOG_URL",
        None,
        "Server of `pinch update --models`, instead of the setting modelCatalogUrl",
    ),
    variable("PINCH_PLAIN", None, "1: screen-reader mode, as --plain does"),
    variable(
        "PINCH_SKIP_VERSION_CHECK",
        Some("PI_SKIP_VERSION_CHECK"),
        "1: do not check the server of the setting versionCheckUrl for a newer version",
    ),
    variable("PINCH_TRUST", None, "1: trust the project, as --approve does"),
    variable("PINCH_STATE_DIR", Some("OPENCLAW_STATE_DIR"), "State directory of embedded runs (default: ~/.pinch)"),
    variable("PINCH_LOG", None, "Log levels, e.g. info or warn,pinch_embed=debug"),
    variable("PINCH_LOG_FILE", None, "Log file (default: stderr)"),
    variable("PINCH_CONFIG_PATH", Some("OPENCLAW_CONFIG_PATH"), "Configuration of embedded runs"),
    variable("PI_CACHE_RETENTION", None, "long: ask providers to cache prompts for longer"),
    variable("PI_OAUTH_CALLBACK_HOST", None, "Host of the callback server for browser logins (default: 127.0.0.1)"),
    variable(
        "ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …",
        None,
        "API keys; each provider has its own variable",
    ),
    variable("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY", None, "Proxies"),
    variable("HOME, PATH", None, "Home directory, and search path for programs"),
];

/// Files that are read or written.
pub const FILES: &[(&str, &str)] = &[
    ("~/.pinch/agent/auth.json", "Credentials by provider"),
    ("~/.pinch/agent/models.json", "Your own servers and models, and changes to built-in ones"),
    ("~/.pinch/agent/models-store.json", "Model catalogs fetched by `pinch update --models`"),
    ("~/.pinch/agent/settings.json", "Settings: model, thinking, compaction, retries, shell"),
    ("~/.pinch/agent/trust.json", "Trusted projects"),
    ("~/.pinch/agent/AGENTS.md", "Instructions for every session"),
    (
        "~/.pinch/agent/SYSTEM.md, APPEND_SYSTEM.md",
        "Replacement for the default system prompt, and text to append to it",
    ),
    ("~/.pinch/agent/skills/, prompts/, themes/, extensions/", "Your own resources"),
    ("~/.pinch/agent/sessions/", "Sessions, one directory per working directory"),
    ("~/.pinch/pinch.json", "Configuration of embedded runs"),
    ("AGENTS.md, CLAUDE.md", "Instructions of a project, in its directory and those above it"),
    (".pinch/ or .pi/", "Settings and resources of a project, loaded if it is trusted"),
];

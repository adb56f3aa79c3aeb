//! What the manual says besides flags: exit codes, variables, files.

/// Exit codes and what they mean.
pub const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "It is done."),
    ("1", "Your mistake: a bad option, a missing file, an unknown model or session, a cut-off answer."),
    (
        "2",
        "The configuration: no model or key, a document that stops the run. For `pinch doctor`: something is broken.",
    ),
    ("3", "The provider: the answer failed."),
    ("4", "This program or the machine: disk, lock, a bug."),
    ("129, 130, 143", "Ended by a signal: SIGHUP, SIGINT, SIGTERM."),
];

/// A variable that is read.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name.
    pub name: &'static str,
    /// Another program's name for it, which counts where ours is not set.
    pub other: Option<&'static str>,
    /// What it says.
    pub about: &'static str,
}

const fn variable(name: &'static str, other: Option<&'static str>, about: &'static str) -> Variable {
    Variable { name, other, about }
}

/// Variables that are read.
pub const ENVIRONMENT: &[Variable] = &[
    variable(
        "PINCH_AGENT_DIR",
        Some("PI_CODING_AGENT_DIR"),
        "Folder of auth.json, models.json, settings.json and sessions/.",
    ),
    variable("PINCH_SESSION_DIR", Some("PI_CODING_AGENT_SESSION_DIR"), "Folder of sessions."),
    variable("PINCH_OFFLINE", Some("PI_OFFLINE"), "1: no network but the model's, as with --offline."),
    variable("PINCH_TRUST", None, "1: trusts the project, as with --approve."),
    variable("PINCH_STATE_DIR", None, "Folder of embedded runs (default: ~/.pinch)."),
    variable("PINCH_CONFIG_PATH", Some("OPENCLAW_CONFIG_PATH"), "Configuration of embedded runs."),
    variable("PI_CACHE_RETENTION", None, "long: providers keep prompts in their caches for longer than usual."),
    variable("PI_OAUTH_CALLBACK_HOST", None, "Where a browser comes back to after a login (default: 127.0.0.1)."),
    variable(
        "ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …",
        None,
        "Keys; each provider has a variable of its own.",
    ),
    variable("HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY", None, "Proxies on the way to servers."),
    variable("HOME, PATH", None, "The home folder, and where programs are looked for."),
];

/// Files that are read or written.
pub const FILES: &[(&str, &str)] = &[
    ("~/.pinch/agent/auth.json", "Credentials by provider."),
    ("~/.pinch/agent/models.json", "Servers and models of your own, and changes to built-in ones."),
    ("~/.pinch/agent/settings.json", "What is usual: model, thinking, compaction, retries, shell."),
    ("~/.pinch/agent/trust.json", "Which projects are trusted."),
    ("~/.pinch/agent/AGENTS.md", "Instructions for every conversation."),
    ("~/.pinch/agent/SYSTEM.md, APPEND_SYSTEM.md", "A system prompt in place of the usual one, and a text behind it."),
    ("~/.pinch/agent/skills/, prompts/, themes/, extensions/", "Resources of yours."),
    ("~/.pinch/agent/sessions/", "Sessions, one folder for each working directory."),
    ("~/.pinch/pinch.json", "Configuration of embedded runs."),
    ("AGENTS.md, CLAUDE.md", "Instructions of a project, in its folder and those above it."),
    (".pinch/ or .pi/", "Settings and resources of a project; they count when it is trusted."),
];

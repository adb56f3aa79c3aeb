//! Names of tools, groups of tools, and built-in profiles.

/// Returns the name that policies compare: trimmed, in lower case, and with aliases resolved. `bash` is an alias of `exec`.
pub fn canonical_name(name: &str) -> String {
    let name = name.trim().to_lowercase();
    match name.as_str() {
        "bash" => "exec".to_owned(),
        "apply-patch" => "apply_patch".to_owned(),
        // Newer names of the same tools.
        "view_image" => "image".to_owned(),
        "automations" => "cron".to_owned(),
        _ => name,
    }
}

/// Groups and their tools. Groups do not nest.
const GROUPS: [(&str, &[&str]); 11] = [
    ("fs", &["read", "write", "edit", "apply_patch", "grep", "find", "ls"]),
    ("runtime", &["exec", "process", "code_execution"]),
    ("web", &["web_search", "web_fetch", "x_search"]),
    ("memory", &["memory_search", "memory_get"]),
    (
        "sessions",
        &[
            "sessions_list",
            "sessions_history",
            "sessions_send",
            "sessions_spawn",
            "session_status",
            "subagents",
            "sessions_yield",
        ],
    ),
    ("ui", &["browser", "canvas"]),
    ("automation", &["cron", "gateway"]),
    ("messaging", &["message"]),
    ("nodes", &["nodes", "computer"]),
    ("agents", &["agents_list", "ask_user"]),
    ("media", &["image", "image_generate", "tts"]),
];

/// OpenClaw's own tools, in its order.
const OPENCLAW: [&str; 20] = [
    "browser",
    "canvas",
    "nodes",
    "cron",
    "message",
    "gateway",
    "agents_list",
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "session_status",
    "memory_search",
    "memory_get",
    "web_search",
    "web_fetch",
    "image",
    "subagents",
    "tts",
    "sessions_yield",
];

/// Returns the tools of a group, e.g. `fs`, or `None` if the group does not exist.
pub(super) fn group(name: &str) -> Option<&'static [&'static str]> {
    if name == "openclaw" {
        return Some(&OPENCLAW);
    }
    GROUPS.iter().find(|(known, _)| *known == name).map(|(_, tools)| *tools)
}

/// Returns whether a group exists, including those whose members only a run knows.
pub(super) fn is_group(name: &str) -> bool {
    name == "plugins" || group(name).is_some()
}

/// Returns the allow list of a built-in profile, or `None` if it restricts nothing.
pub(super) fn profile(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "minimal" => &["session_status"],
        "coding" => &[
            "group:fs",
            "group:runtime",
            "group:sessions",
            "group:memory",
            "image",
            "web_search",
            "web_fetch",
            "cron",
            "subagents",
            "ask_user",
        ],
        "messaging" => &["group:messaging", "sessions_list", "sessions_history", "sessions_send", "session_status"],
        _ => return None,
    })
}

/// Returns whether tools with this name are reserved for the owner of the agent.
pub(super) fn is_owner_only(name: &str) -> bool {
    matches!(name, "whatsapp_login" | "cron" | "gateway" | "nodes")
}

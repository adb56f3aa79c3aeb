//! The tool list in the system prompt.

use super::params::ToolSummary;

/// Descriptions of well-known tools, in the order in which they are listed.
const KNOWN: [(&str, &str); 27] = [
    ("read", "Read file contents"),
    ("write", "Create or overwrite files"),
    ("edit", "Change exact pieces of text in files"),
    ("apply_patch", "Apply a patch to several files at once"),
    ("grep", "Search the contents of files"),
    ("find", "Find files by name"),
    ("ls", "List folders"),
    ("bash", "Run shell commands"),
    ("exec", "Run shell commands"),
    ("process", "Look after commands in the background"),
    ("web_search", "Search the web"),
    ("web_fetch", "Fetch a page and read it as text"),
    ("browser", "Control a web browser"),
    ("canvas", "Show and control the canvas"),
    ("nodes", "List and control paired devices"),
    (
        "cron",
        "Manage scheduled jobs and reminders; word a reminder so that it reads as one when it fires, with the context it needs",
    ),
    ("message", "Send messages and act in channels"),
    ("gateway", "Restart, update or configure the running service"),
    ("agents_list", "List the agents that sub-agents may be"),
    ("sessions_list", "List sessions"),
    ("sessions_history", "Read the history of another session"),
    ("sessions_send", "Send a message to another session"),
    ("sessions_spawn", "Start a sub-agent"),
    ("subagents", "List, steer or stop the sub-agents of this session"),
    ("session_status", "Show the state of the session: usage, time, model; ask it which model is in use"),
    ("image", "Look at an image with a model that sees"),
    ("memory_search", "Search memories"),
];
/// Tools listed if the actual ones are unknown.
const USUAL: [&str; 8] = ["read", "write", "edit", "exec", "process", "web_search", "web_fetch", "message"];
/// Maximum length of a tool's own description, in characters.
const MAX_SUMMARY: usize = 200;

/// Returns one line per tool: well-known ones in a fixed order, then the others by name.
pub(super) fn tool_lines(tools: Option<&[ToolSummary]>) -> Vec<String> {
    let usual;
    let tools = match tools {
        Some(tools) => tools,
        None => {
            usual = USUAL.map(ToolSummary::named);
            &usual
        }
    };
    let mut unique: Vec<&ToolSummary> = Vec::new();
    for tool in tools.iter().filter(|tool| !tool.name.trim().is_empty()) {
        if !unique.iter().any(|known| known.name.eq_ignore_ascii_case(&tool.name)) {
            unique.push(tool);
        }
    }
    let place = |tool: &ToolSummary| KNOWN.iter().position(|(name, _)| name.eq_ignore_ascii_case(&tool.name));
    unique.sort_by_cached_key(|tool| match place(tool) {
        Some(at) => (at, String::new()),
        None => (KNOWN.len(), tool.name.clone()),
    });
    unique.into_iter().map(|tool| line(tool, place(tool))).collect()
}

fn line(tool: &ToolSummary, place: Option<usize>) -> String {
    let own = tool.summary.as_deref().and_then(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
    let summary = place.map(|at| KNOWN[at].1).or(own);
    match summary {
        Some(summary) => format!("- {}: {}", tool.name, pinch_stdx::text::shortened(summary, MAX_SUMMARY)),
        None => format!("- {}", tool.name),
    }
}

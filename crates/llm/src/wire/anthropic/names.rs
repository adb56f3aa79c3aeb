//! Names that requests of a Claude subscription use.

/// The user agent of Claude Code in a subscription's requests.
pub(super) const CLAUDE_CODE_VERSION: &str = "claude-cli/2.1.280";
/// The start of a subscription's prompt.
pub(super) const CLAUDE_CODE_IDENTITY: &str = "You are Claude Code, Anthropic's official CLI for Claude.";

/// Returns whether a key is a subscription's access token, which is used in the same way as Claude Code does.
pub(super) fn is_subscription_token(key: &str) -> bool {
    key.contains("sk-ant-oat")
}

/// Tool names with this capitalization in a subscription's requests.
const CLAUDE_CODE_TOOLS: [&str; 17] = [
    "Read",
    "Write",
    "Edit",
    "Bash",
    "Grep",
    "Glob",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillShell",
    "NotebookEdit",
    "Skill",
    "Task",
    "TaskOutput",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
];

/// Returns the name under which a tool is sent.
pub(super) fn sent_name(name: &str, subscription: bool) -> &str {
    let known = CLAUDE_CODE_TOOLS.iter().find(|known| subscription && known.eq_ignore_ascii_case(name));
    known.copied().unwrap_or(name)
}

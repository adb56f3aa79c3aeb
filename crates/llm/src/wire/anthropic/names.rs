//! Names that requests of a Claude subscription use.

/// Claude Code, as a subscription's requests name it.
pub(super) const CLAUDE_CODE_VERSION: &str = "claude-cli/2.1.280";
/// What a subscription's prompt begins with.
pub(super) const CLAUDE_CODE_IDENTITY: &str = "You are Claude Code, Anthropic's official CLI for Claude.";

/// Whether a key is a subscription's access token, which is used the way Claude Code does.
pub(super) fn is_subscription_token(key: &str) -> bool {
    key.contains("sk-ant-oat")
}

/// Names that requests of a subscription write in this case.
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

/// A tool's name as it is sent.
pub(super) fn sent_name(name: &str, subscription: bool) -> &str {
    let known = CLAUDE_CODE_TOOLS.iter().find(|known| subscription && known.eq_ignore_ascii_case(name));
    known.copied().unwrap_or(name)
}

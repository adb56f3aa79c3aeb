//! Changes to the entry of a session key: when a session begins, and when a run has ended.

use std::collections::BTreeMap;

use pinch_ports::{SessionEntry, SessionRoute};
use serde_json::Value;

use crate::run::RunRequest;
use crate::run::result::RunMeta;

/// When the agent last saved memories before a compaction.
const FLUSHED_AT: &str = "memoryFlushAt";
/// Number of compactions at that time.
pub(crate) const FLUSHED_AT_COMPACTION: &str = "memoryFlushCompactionCount";
/// Length of the transcript at that time, in bytes.
pub(crate) const FLUSHED_AT_BYTES: &str = "memoryFlushTranscriptBytes";

/// Ids of the session in command-line agents, by backend.
pub(crate) const CLI_SESSIONS: &str = "cliSessionIds";
/// The older member, only for [`CLAUDE`].
pub(crate) const CLAUDE_SESSION: &str = "claudeCliSessionId";
/// The backend of Claude Code.
pub(crate) const CLAUDE: &str = "claude-cli";

/// The member that limits what the runs of a session may do.
pub(crate) const PERMISSION_MODE: &str = "permissionMode";

/// How deeply the session is nested in sub-agents.
pub(crate) const SPAWN_DEPTH: &str = "spawnDepth";

/// Members used by OpenClaw that belong to a single session and have no type in this version.
const OF_ONE_SESSION: [&str; 12] = [
    "systemSent",
    "systemPromptReport",
    "skillsSnapshot",
    CLI_SESSIONS,
    CLAUDE_SESSION,
    FLUSHED_AT,
    FLUSHED_AT_COMPACTION,
    FLUSHED_AT_BYTES,
    "contextBudgetStatus",
    "totalTokensFresh",
    "cacheRead",
    "cacheWrite",
];

/// Creates the entry of a key that has none. A thread inherits the settings of its conversation.
pub(crate) fn begin(session_id: &str, now_ms: i64, parent: Option<&SessionEntry>) -> SessionEntry {
    let mut entry = SessionEntry::new(session_id, now_ms);
    if let Some(parent) = parent {
        entry.thinking_level.clone_from(&parent.thinking_level);
        entry.verbose_level.clone_from(&parent.verbose_level);
        entry.reasoning_level.clone_from(&parent.reasoning_level);
        entry.provider_override.clone_from(&parent.provider_override);
        entry.model_override.clone_from(&parent.model_override);
        if let Some(mode) = parent.extra.get(PERMISSION_MODE) {
            entry.extra.insert(PERMISSION_MODE.to_owned(), mode.clone());
        }
    }
    entry
}

/// Returns the entry with a new session. Settings of the user and the route are kept.
pub(crate) fn start_anew(entry: &SessionEntry, session_id: &str, now_ms: i64) -> SessionEntry {
    let mut next = entry.clone();
    next.session_id = session_id.into();
    next.updated_at = now_ms;
    next.session_file = None;
    (next.input_tokens, next.output_tokens, next.total_tokens) = (None, None, None);
    (next.compaction_count, next.aborted_last_run) = (None, None);
    for member in OF_ONE_SESSION {
        next.extra.shift_remove(member);
    }
    next
}

/// Returns the entry after its session was compacted.
pub(crate) fn after_compaction(entry: &SessionEntry, tokens: Option<u64>, now_ms: i64) -> SessionEntry {
    let mut next = entry.clone();
    next.updated_at = now_ms;
    next.compaction_count = Some(entry.compaction_count.unwrap_or(0) + 1);
    next.total_tokens = tokens.or(entry.total_tokens);
    next
}

/// Returns the entry after the agent was asked to save memories.
pub(crate) fn after_flush(entry: &SessionEntry, now_ms: i64, transcript_bytes: u64) -> SessionEntry {
    let mut next = entry.clone();
    next.extra.insert(FLUSHED_AT.to_owned(), now_ms.into());
    next.extra.insert(FLUSHED_AT_COMPACTION.to_owned(), entry.compaction_count.unwrap_or(0).into());
    next.extra.insert(FLUSHED_AT_BYTES.to_owned(), transcript_bytes.into());
    next
}

/// Returns the entry after command-line agents reported their session ids.
pub(crate) fn after_cli(entry: &SessionEntry, learned: &BTreeMap<String, String>) -> SessionEntry {
    let mut next = entry.clone();
    let mut ids = next.extra.get(CLI_SESSIONS).and_then(Value::as_object).cloned().unwrap_or_default();
    ids.extend(learned.iter().map(|(name, id)| (name.clone(), Value::from(id.as_str()))));
    next.extra.insert(CLI_SESSIONS.to_owned(), ids.into());
    if let Some(id) = learned.get(CLAUDE) {
        next.extra.insert(CLAUDE_SESSION.to_owned(), id.as_str().into());
    }
    next
}

/// What is recorded about a run.
#[derive(Clone, Debug)]
pub(crate) struct RunRecord {
    aborted: bool,
    n_compactions: u64,
    tokens: Option<TokenCounts>,
    /// Provider and model of the last answer.
    model: Option<(String, String)>,
    route: SessionRoute,
}

#[derive(Clone, Copy, Debug)]
struct TokenCounts {
    input: u64,
    output: u64,
    in_context: u64,
    window: Option<u64>,
}

impl RunRecord {
    pub(crate) fn new(request: &RunRequest, meta: &RunMeta) -> Self {
        let agent = &meta.agent;
        let tokens = agent.last_call_usage.as_ref().map(|last| {
            let prompt = last.input + last.cache_read + last.cache_write;
            TokenCounts {
                input: agent.usage.input,
                output: agent.usage.output,
                in_context: if prompt > 0 { prompt } else { last.total_tokens },
                window: agent.budget.map(|budget| budget.window),
            }
        });
        let caller = &request.caller;
        let mut route = SessionRoute::default();
        route.channel.clone_from(&caller.channel);
        route.to.clone_from(&request.message_to);
        route.account_id.clone_from(&caller.account);
        route.thread_id = caller.thread.as_deref().map(Value::from);
        Self {
            aborted: meta.aborted,
            n_compactions: agent.compaction_count.into(),
            tokens,
            model: agent.receipt.is_some().then(|| (agent.provider.clone(), agent.model.clone())),
            route,
        }
    }
}

/// Returns the entry after a run of its session.
pub(crate) fn after_run(entry: &SessionEntry, run: &RunRecord, now_ms: i64) -> SessionEntry {
    let mut next = entry.clone();
    next.updated_at = now_ms;
    next.aborted_last_run = Some(run.aborted);
    next.compaction_count = Some(entry.compaction_count.unwrap_or(0) + run.n_compactions);
    if let Some(tokens) = run.tokens {
        next.input_tokens = Some(tokens.input);
        next.output_tokens = Some(tokens.output);
        next.context_tokens = tokens.window.or(entry.context_tokens);
        let limit = next.context_tokens.unwrap_or(u64::MAX);
        next.total_tokens = Some(tokens.in_context.min(limit));
    }
    if let Some((provider, model)) = &run.model {
        next.model_provider = Some(provider.clone());
        next.model = Some(model.clone());
    }
    if run.route != SessionRoute::default() {
        let before = entry.route.clone().unwrap_or_default();
        let mut route = run.route.clone();
        route.channel = route.channel.or(before.channel);
        route.to = route.to.or(before.to);
        route.account_id = route.account_id.or(before.account_id);
        route.thread_id = route.thread_id.or(before.thread_id);
        route.extra = before.extra;
        next.route = Some(route);
    }
    next
}

//! What is stored about a sub-agent. The JSON members are those of OpenClaw's `subagents/runs.json`; times are milliseconds since the
//! epoch.

use pinch_llm::message::Usage;
use pinch_ports::{Caller, SessionRoute};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::limits::RequesterLimits;
use crate::key::{RunId, SessionKey};

/// Maximum length of a stored result, in bytes.
const MAX_RESULT: usize = 48 * 1024;
/// Characters of the task that are kept once the sub-agent has reported.
const MAX_OLD_TASK: usize = 1_000;

/// A sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SubagentRecord {
    /// Id of its first run, by which it is known.
    pub(crate) run_id: RunId,
    pub(crate) child_session_key: SessionKey,
    pub(crate) requester_session_key: SessionKey,
    /// Where the message came from that the requester worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requester_origin: Option<SessionRoute>,
    /// The requester for people.
    pub(crate) requester_display_key: String,
    pub(crate) task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    pub(crate) cleanup: SubagentCleanup,
    pub(crate) created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<SubagentOutcome>,
    /// When it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) archive_at_ms: Option<i64>,
    /// Whether somebody announces it, or has.
    pub(crate) cleanup_handled: bool,
    /// When that was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cleanup_completed_at: Option<i64>,
    /// Number of failed announcements.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) announce_retry_count: u32,
    /// Its last answer, until it is announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frozen_result_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_timeout_seconds: Option<u64>,
    /// Nesting depth.
    pub(crate) spawn_depth: u32,
    /// What its requester's run was limited to.
    pub(crate) requester_limits: RequesterLimits,
    /// Whether it must be in a sandbox, because its requester was.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) requires_sandbox: bool,
    /// Tokens and cost of its runs.
    #[serde(skip_serializing_if = "SubagentUsage::is_zero")]
    pub(crate) usage: SubagentUsage,
    /// Members of other versions, which are kept.
    #[serde(flatten)]
    pub(crate) extra: Map<String, Value>,
}

/// What happens to the session of a sub-agent that has reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SubagentCleanup {
    /// It is deleted.
    Delete,
    /// It is kept until it is archived.
    #[default]
    Keep,
}

/// How a sub-agent ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SubagentOutcome {
    pub(crate) status: SubagentStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The status of an outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SubagentStatus {
    Ok,
    Error,
    Timeout,
    #[default]
    Unknown,
}

/// What a sub-agent used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SubagentUsage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cost_usd: f64,
}

impl SubagentUsage {
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the usage of a run.
    pub(crate) fn add(&mut self, usage: &Usage) {
        self.input_tokens += usage.input + usage.cache_read + usage.cache_write;
        self.output_tokens += usage.output;
        self.cost_usd += usage.cost.total;
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl SubagentOutcome {
    pub(crate) fn new(status: SubagentStatus, error: Option<String>) -> Self {
        Self { status, error }
    }
}

impl SubagentRecord {
    /// Returns its name for people: the label, or the beginning of the task.
    pub(crate) fn name(&self) -> String {
        match self.label.as_deref().map(str::trim).filter(|label| !label.is_empty()) {
            Some(label) => label.to_owned(),
            None => shortened(&self.task, 60),
        }
    }

    /// Returns the caller of a run that continues a conversation with the requester's chat, without the person who spoke last.
    pub(crate) fn origin(&self) -> (Caller, Option<String>) {
        let route = self.requester_origin.clone().unwrap_or_default();
        let mut caller = Caller::new();
        (caller.channel, caller.account) = (route.channel, route.account_id);
        caller.thread = route.thread_id.map(|thread| thread.as_str().map_or_else(|| thread.to_string(), str::to_owned));
        (caller, route.to)
    }

    /// Stores an answer.
    pub(crate) fn keep_result(&mut self, text: &str) {
        let text = text.trim();
        let kept = &text[..text.floor_char_boundary(MAX_RESULT)];
        let mark = if kept.len() < text.len() { "\n[The rest of the answer is left out.]" } else { "" };
        self.frozen_result_text = (!text.is_empty()).then(|| format!("{kept}{mark}"));
    }

    /// Drops what only its report needs.
    pub(crate) fn forget_details(&mut self) {
        self.frozen_result_text = None;
        if self.task.len() > MAX_OLD_TASK {
            self.task = shortened(&self.task, MAX_OLD_TASK);
        }
    }
}

/// Returns a text on one line, of at most this many characters.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_limited_length() {
        let mut record = SubagentRecord { task: "é".repeat(MAX_OLD_TASK + 1), ..SubagentRecord::default() };
        record.keep_result(&"é".repeat(MAX_RESULT));
        let result = record.frozen_result_text.clone().unwrap();
        assert!(result.ends_with("é\n[The rest of the answer is left out.]") && result.len() < MAX_RESULT + 50);
        record.forget_details();
        assert_eq!((record.frozen_result_text, record.task.chars().count()), (None, MAX_OLD_TASK + 1));
    }
}

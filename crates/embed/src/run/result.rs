//! What comes out of a run, and its JSON form.

use pinch_coding_agent::models::pattern::NotFound;
use pinch_llm::error::LlmError;
use pinch_llm::message::Usage;
use pinch_stdx::cancel::CancelReason;
use serde_json::{Map, Value, json};

use super::payloads::Payload;
use crate::models::window::{MIN_WINDOW, Window};
use crate::profiles::ProfileId;
use crate::reason::FailoverReason;

/// What a run says, and what is to be known about it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunResult {
    /// What is to be sent, in order; empty when nothing is to be said.
    pub payloads: Vec<Payload>,
    /// What is to be known.
    pub meta: RunMeta,
}

/// What is to be known about a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunMeta {
    /// From the grant of the lanes to the end, in milliseconds.
    pub duration_ms: u64,
    /// The last attempt was stopped, by the user or by its wall clock.
    pub aborted: bool,
    /// Why the last answer ended.
    pub stop_reason: Option<String>,
    /// The conversation and its model.
    pub agent: AgentMeta,
    /// The failure the payload tells of, when the run could not be done.
    pub error: Option<MetaError>,
    /// What was given out of an answer that did not come to its end.
    pub partial: Option<PartialAnswer>,
    /// A call the caller has to run.
    pub pending_tool_calls: Vec<PendingToolCall>,
    /// Every attempt.
    pub attempts: Vec<AttemptReport>,
    /// Every tool that ran.
    pub tools: Vec<ToolReport>,
}

/// What was given out of an answer that failed or was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialAnswer {
    /// Payloads that tell of no failure.
    pub payloads: usize,
    /// Characters of their texts.
    pub characters: usize,
}

/// The conversation and its model.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AgentMeta {
    /// Names the conversation.
    pub session_id: String,
    /// Who answered last.
    pub provider: String,
    /// The model that answered last.
    pub model: String,
    /// Tokens of all attempts.
    pub usage: Usage,
    /// Tokens of the last call.
    pub last_call_usage: Option<Usage>,
    /// How often the conversation was compacted.
    pub compaction_count: u32,
}

/// Why a run could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaError {
    /// What kind.
    pub kind: RunErrorKind,
    /// The failure, raw.
    pub message: String,
}

/// What kind of failure the payload of a run tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunErrorKind {
    /// The conversation is too long, and nothing helped.
    ContextOverflow,
    /// The conversation is too long, and compacting failed.
    CompactionFailure,
    /// The provider does not take the order of the messages.
    RoleOrdering,
    /// An image is too large.
    ImageSize,
    /// Too many attempts.
    RetryLimit,
    /// A limit of the request was passed.
    Budget,
}

impl RunErrorKind {
    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContextOverflow => "context_overflow",
            Self::CompactionFailure => "compaction_failure",
            Self::RoleOrdering => "role_ordering",
            Self::ImageSize => "image_size",
            Self::RetryLimit => "retry_limit",
            Self::Budget => "budget",
        }
    }
}

/// A call the caller has to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingToolCall {
    /// Name of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with, as JSON text.
    pub arguments: String,
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptReport {
    /// Who was asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// Whose credentials.
    pub profile: Option<ProfileId>,
    /// How it ended: `ok`, `aborted`, `timeout`, or the reason of the failure.
    pub outcome: String,
    /// What was decided then.
    pub action: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// All runs of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolReport {
    /// The tool.
    pub name: String,
    /// How often it ran.
    pub calls: u32,
    /// How often it failed.
    pub errors: u32,
    /// How long it took in all, in milliseconds.
    pub duration_ms: u64,
}

/// Why a run gives no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// Somebody stopped it before an attempt was made.
    #[error("cancelled ({0:?})")]
    Cancelled(CancelReason),
    /// The session is in use elsewhere, or the lane was cleared.
    #[error("{0}")]
    Busy(String),
    /// The request or the configuration asks for something that is not there.
    #[error("{0}")]
    Config(String),
    /// No model is named, and no provider has a key.
    #[error(
        "No model is configured and no key was found. Set a key such as ANTHROPIC_API_KEY, or name a model with \
         agents.defaults.model.primary in pinch.json"
    )]
    NoModel,
    /// The model that is named does not exist.
    #[error(transparent)]
    UnknownModel(#[from] NotFound),
    /// The model could not do it; another one may.
    #[error(transparent)]
    Failover(Box<FailoverError>),
    /// Our own fault.
    #[error("{0}")]
    Internal(String),
}

impl From<FailoverError> for RunError {
    fn from(error: FailoverError) -> Self {
        Self::Failover(Box::new(error))
    }
}

/// Why one model could not do it.
#[derive(Clone, Debug, Default, thiserror::Error)]
#[error("{message}")]
pub struct FailoverError {
    /// For a person.
    pub message: String,
    /// The class; `None` when nothing is known.
    pub reason: Option<FailoverReason>,
    /// Who was asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// Whose credentials.
    pub profile: Option<ProfileId>,
    /// HTTP status, the provider's or the one that stands for the reason.
    pub status: Option<u16>,
    /// The provider's own code.
    pub code: Option<String>,
    /// The conversation is too long: a smaller model would fail worse.
    pub is_overflow: bool,
    /// The failed call.
    #[source]
    pub source: Option<std::sync::Arc<LlmError>>,
}

impl FailoverError {
    /// The window is too small for any run; a larger model may do it.
    pub fn window_too_small(window: Window, provider: &str, model: &str) -> Self {
        Self {
            message: format!("Model context window too small ({} tokens). Minimum is {MIN_WINDOW}.", window.tokens),
            reason: Some(FailoverReason::Unknown),
            provider: provider.to_owned(),
            model: model.to_owned(),
            code: Some("context_window_too_small".into()),
            ..Self::default()
        }
    }
}

impl RunResult {
    /// Whether the result tells of a failure and of nothing else, or of an answer that broke off with one.
    pub fn has_failed(&self) -> bool {
        let failures = self.payloads.iter().filter(|payload| payload.is_error).count();
        let is_failed_answer = self.meta.stop_reason.as_deref() == Some("error") && !self.meta.aborted;
        self.meta.error.is_some() || is_failed_answer || (failures > 0 && failures == self.payloads.len())
    }

    /// The form programs know. Members that say nothing are left out.
    pub fn to_json(&self) -> Value {
        let mut root = Map::new();
        if !self.payloads.is_empty() {
            root.insert("payloads".into(), self.payloads.iter().map(payload_json).collect());
        }
        root.insert("meta".into(), self.meta.to_json());
        Value::Object(root)
    }
}

/// The form programs know: `text` and `mediaUrl` are always there, everything else only when it says something.
pub fn payload_json(payload: &Payload) -> Value {
    let reply = &payload.reply;
    let mut object = Map::new();
    object.insert("text".into(), json!(Some(reply.text.trim()).filter(|text| !text.is_empty())));
    object.insert("mediaUrl".into(), json!(reply.media_urls.first()));
    if !reply.media_urls.is_empty() {
        object.insert("mediaUrls".into(), json!(reply.media_urls));
    }
    put(&mut object, "replyToId", reply.reply_to_id.as_deref());
    for (name, flag) in [
        ("replyToTag", reply.reply_to_tag),
        ("replyToCurrent", reply.reply_to_current),
        ("audioAsVoice", reply.audio_as_voice),
        ("isError", payload.is_error),
        ("isReasoning", reply.is_reasoning),
    ] {
        if flag {
            object.insert(name.into(), Value::Bool(true));
        }
    }
    Value::Object(object)
}

impl RunMeta {
    /// The form programs know.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("durationMs".into(), self.duration_ms.into());
        object.insert("aborted".into(), self.aborted.into());
        put(&mut object, "stopReason", self.stop_reason.as_deref());
        object.insert("agentMeta".into(), self.agent.to_json());
        if let Some(error) = &self.error {
            object.insert("error".into(), json!({"kind": error.kind.as_str(), "message": error.message}));
        }
        if let Some(PartialAnswer { payloads, characters }) = self.partial {
            let delivered = json!({"complete": false, "payloads": payloads, "characters": characters});
            object.insert("delivered".into(), delivered);
        }
        put_list(
            &mut object,
            "pendingToolCalls",
            &self.pending_tool_calls,
            |call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}),
        );
        put_list(&mut object, "attempts", &self.attempts, |attempt| {
            let mut entry = Map::new();
            entry.insert("provider".into(), json!(attempt.provider));
            entry.insert("model".into(), json!(attempt.model));
            put(&mut entry, "profileId", attempt.profile.as_ref().map(ProfileId::as_str));
            entry.insert("outcome".into(), json!(attempt.outcome));
            entry.insert("action".into(), json!(attempt.action));
            entry.insert("durationMs".into(), json!(attempt.duration_ms));
            Value::Object(entry)
        });
        put_list(
            &mut object,
            "tools",
            &self.tools,
            |tool| json!({"name": tool.name, "calls": tool.calls, "errors": tool.errors, "durationMs": tool.duration_ms}),
        );
        Value::Object(object)
    }
}

impl AgentMeta {
    /// Tokens of the last call's request, from cache or not.
    pub fn prompt_tokens(&self) -> Option<u64> {
        let usage = self.last_call_usage.as_ref()?;
        Some(usage.input + usage.cache_read + usage.cache_write).filter(|tokens| *tokens > 0)
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("sessionId".into(), json!(self.session_id));
        object.insert("provider".into(), json!(self.provider));
        object.insert("model".into(), json!(self.model));
        // The sums are for billing; the total is what a display of the context needs: that of the last call.
        let total = self.last_call_usage.as_ref().unwrap_or(&self.usage).context_tokens();
        if let Some(usage) = usage_json(&self.usage, Some(total)) {
            object.insert("usage".into(), usage);
        }
        if let Some(usage) = self.last_call_usage.as_ref().and_then(|usage| usage_json(usage, None)) {
            object.insert("lastCallUsage".into(), usage);
        }
        if let Some(tokens) = self.prompt_tokens() {
            object.insert("promptTokens".into(), tokens.into());
        }
        if self.compaction_count > 0 {
            object.insert("compactionCount".into(), self.compaction_count.into());
        }
        Value::Object(object)
    }
}

/// The members that are not zero; `None` when all are.
fn usage_json(usage: &Usage, total: Option<u64>) -> Option<Value> {
    let mut object = Map::new();
    for (name, tokens) in [
        ("input", usage.input),
        ("output", usage.output),
        ("cacheRead", usage.cache_read),
        ("cacheWrite", usage.cache_write),
        ("total", total.unwrap_or_else(|| usage.context_tokens())),
    ] {
        if tokens > 0 {
            object.insert(name.into(), tokens.into());
        }
    }
    (!usage.is_zero()).then_some(Value::Object(object))
}

fn put(object: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        object.insert(name.into(), value.into());
    }
}

fn put_list<T>(object: &mut Map<String, Value>, name: &str, list: &[T], each: impl Fn(&T) -> Value) {
    if !list.is_empty() {
        object.insert(name.into(), list.iter().map(each).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_left_out() {
        let mut result = RunResult::default();
        result.meta.agent.session_id = "s1".into();
        assert_eq!(
            result.to_json().to_string(),
            r#"{"meta":{"durationMs":0,"aborted":false,"agentMeta":{"sessionId":"s1","provider":"","model":""}}}"#
        );
        result.payloads.push(Payload::error("no"));
        result.meta.agent.usage = Usage { input: 10, output: 4, ..Usage::default() };
        result.meta.agent.last_call_usage = Some(Usage { input: 3, output: 1, ..Usage::default() });
        result.meta.error = Some(MetaError { kind: RunErrorKind::ContextOverflow, message: "raw".into() });
        let json = result.to_json();
        assert_eq!(json["payloads"].to_string(), r#"[{"text":"no","mediaUrl":null,"isError":true}]"#);
        assert_eq!(json["meta"]["agentMeta"]["usage"].to_string(), r#"{"input":10,"output":4,"total":4}"#);
        assert_eq!(json["meta"]["agentMeta"]["promptTokens"], 3);
        assert_eq!(json["meta"]["error"].to_string(), r#"{"kind":"context_overflow","message":"raw"}"#);
    }
}

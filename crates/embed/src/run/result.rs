//! The result of a run, and its JSON form.

use std::time::Duration;

use pinch_coding_agent::models::pattern::NotFound;
use pinch_llm::error::LlmError;
use pinch_stdx::cancel::CancelReason;
use serde_json::{Map, Value, json};

pub use super::meta::{
    AgentMeta, AttemptReport, AttemptResult, ContextBudget, FailedCandidate, FinalAnswer, Liveness, MetaError,
    PartialAnswer, PendingToolCall, RequestShaping, RunErrorKind, RunMeta, TerminalReceipt, ToolReport,
};
use super::meta::{put, put_list};
use super::payloads::Payload;
use crate::models::window::{MIN_WINDOW, Window};
use crate::profiles::ProfileId;
use crate::reason::FailoverReason;
use crate::replies::markup::trimmed;
use crate::replies::sent::SentTarget;
use crate::texts::Phrase;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunResult {
    /// Messages to send, in order; empty if there is nothing to send.
    pub payloads: Vec<Payload>,
    /// Metadata of the run.
    pub meta: RunMeta,
    /// What messaging tools sent during the run; a host should not confirm it again.
    pub messaging: Messaging,
    /// Jobs that the `cron` tool added.
    pub successful_cron_adds: u32,
}

/// What messaging tools sent, oldest first; the newest 200 of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messaging {
    /// Sent texts.
    pub texts: Vec<String>,
    /// Paths or URLs of media.
    pub media_urls: Vec<String>,
    /// Targets of the messages.
    pub targets: Vec<SentTarget>,
}

impl Messaging {
    /// Returns whether anything was sent.
    pub fn did_send(&self) -> bool {
        !self.texts.is_empty() || !self.media_urls.is_empty()
    }
}

/// Why a run has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run was stopped before an attempt was made.
    #[error("cancelled ({0:?})")]
    Cancelled(CancelReason),
    /// The session is in use elsewhere, or the lane was cleared.
    #[error("{0}")]
    Busy(String),
    /// The engine is [draining](crate::Engine::drain) and starts no more runs.
    #[error("{}", Phrase::Draining.english())]
    Draining,
    /// The request or the configuration names something that does not exist.
    #[error("{0}")]
    Config(String),
    /// No model is configured, and no provider has a key.
    #[error("{}", Phrase::NoModel.english())]
    NoModel,
    /// The requested model does not exist, or its name means several.
    #[error("{}", unknown_text(name, why))]
    UnknownModel {
        /// The requested name, with its provider if there is one.
        name: String,
        /// Why nothing was found.
        #[source]
        why: NotFound,
    },
    /// The model failed; another one may succeed.
    #[error(transparent)]
    Failover(Box<FailoverError>),
    /// An internal error.
    #[error("{0}")]
    Internal(String),
}

fn unknown_text(name: &str, why: &NotFound) -> String {
    match why {
        NotFound::Ambiguous { .. } => why.to_string(),
        _ => format!("Unknown model: {name}"),
    }
}

impl From<FailoverError> for RunError {
    fn from(error: FailoverError) -> Self {
        Self::Failover(Box::new(error))
    }
}

/// Why one model failed.
#[derive(Clone, Debug, Default, thiserror::Error)]
#[error("{message}")]
pub struct FailoverError {
    /// The message for people.
    pub message: String,
    /// The class of the failure; `None` if unknown.
    pub reason: Option<FailoverReason>,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The profile whose credentials were used.
    pub profile: Option<ProfileId>,
    /// HTTP status from the provider, or the equivalent of the reason.
    pub status: Option<u16>,
    /// The provider's own code.
    pub code: Option<String>,
    /// Whether the conversation is too long, so that only a model with a larger window can help.
    pub is_overflow: bool,
    /// How long to wait before a retry may succeed, if known.
    pub retry_after: Option<Duration>,
    /// Number of the provider's profiles if all of them are in cooldown, so that no request was made.
    pub resting_profiles: Option<usize>,
    /// Size of the context window in tokens if it is too small to make a request.
    pub window_tokens: Option<u64>,
    /// Metadata of the run, among them what it used; `None` if it did not get as far as choosing credentials.
    pub meta: Option<Box<RunMeta>>,
    /// The failed call.
    #[source]
    pub source: Option<std::sync::Arc<LlmError>>,
}

impl FailoverError {
    /// Creates the error for a window that is too small to run. A model with a larger one may succeed.
    pub fn window_too_small(window: Window, provider: &str, model: &str) -> Self {
        Self {
            message: format!("Model context window too small ({} tokens). Minimum is {MIN_WINDOW}.", window.tokens),
            reason: Some(FailoverReason::Unknown),
            provider: provider.to_owned(),
            model: model.to_owned(),
            code: Some("context_window_too_small".into()),
            window_tokens: Some(window.tokens),
            ..Self::default()
        }
    }
}

impl RunResult {
    /// Returns the JSON form. Members without a value are omitted. Long texts are moved, not copied.
    pub fn into_json(self) -> Value {
        let mut root = Map::new();
        if !self.payloads.is_empty() {
            root.insert("payloads".into(), self.payloads.into_iter().map(payload_json).collect());
        }
        root.insert("meta".into(), self.meta.into_json());
        if self.messaging.did_send() {
            root.insert("didSendViaMessagingTool".into(), true.into());
        }
        put_list(&mut root, "messagingToolSentTexts", &self.messaging.texts, |text| json!(text));
        put_list(&mut root, "messagingToolSentMediaUrls", &self.messaging.media_urls, |url| json!(url));
        put_list(&mut root, "messagingToolSentTargets", &self.messaging.targets, |target| {
            let mut value = json!({"tool": target.tool, "provider": target.provider, "to": target.to});
            if let Some(account) = &target.account_id {
                value["accountId"] = account.as_str().into();
            }
            value
        });
        if self.successful_cron_adds > 0 {
            root.insert("successfulCronAdds".into(), self.successful_cron_adds.into());
        }
        Value::Object(root)
    }
}

/// Returns the JSON form: `text` and `mediaUrl` are always present, other members only if set.
pub fn payload_json(payload: Payload) -> Value {
    let Payload { mut reply, .. } = payload;
    let text = trimmed(std::mem::take(&mut reply.text));
    let mut object = Map::new();
    object.insert("text".into(), if text.is_empty() { Value::Null } else { text.into() });
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

#[cfg(test)]
mod tests {
    use pinch_llm::message::Usage;

    use super::*;

    #[test]
    fn members_without_a_value_are_omitted() {
        let mut result = RunResult::default();
        result.meta.agent.session_id = "s1".into();
        let json = result.clone().into_json();
        assert_eq!(json.as_object().map(|root| root.keys().collect::<Vec<_>>()), Some(vec![&"meta".to_owned()]));
        assert_eq!(json["meta"]["agentMeta"].to_string(), r#"{"sessionId":"s1","provider":"","model":""}"#);
        for absent in ["completion", "toolSummary", "finalAssistantRawText", "timeoutPhase", "error"] {
            assert_eq!(json["meta"].get(absent), None, "{absent}");
        }
        result.payloads.push(Payload::error("no"));
        result.meta.agent.usage = Usage { input: 10, output: 4, ..Usage::default() };
        result.meta.agent.last_call_usage = Some(Usage { input: 3, output: 1, ..Usage::default() });
        result.meta.error =
            Some(MetaError { kind: RunErrorKind::ContextOverflow, message: "raw".into(), detail: None });
        let json = result.clone().into_json();
        assert_eq!(json["payloads"].to_string(), r#"[{"text":"no","mediaUrl":null,"isError":true}]"#);
        assert_eq!(json["meta"]["agentMeta"]["usage"].to_string(), r#"{"input":10,"output":4,"total":4}"#);
        assert_eq!(json["meta"]["agentMeta"]["promptTokens"], 3);
        assert_eq!(json["meta"]["error"].to_string(), r#"{"kind":"context_overflow","message":"raw"}"#);
    }
}

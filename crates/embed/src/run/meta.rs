//! Metadata of a run.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Usage};
use pinch_llm::thinking::ThinkingLevel;

use super::outcome::FailureStage;
use crate::key::{RunId, SessionId, SessionKey};
use crate::models::window::WindowSource;
use crate::plugin::TurnSizes;
use crate::profiles::ProfileId;
use crate::prompt::PromptReport;
use crate::reason::FailoverReason;
use crate::replies::ReasoningLevel;
use crate::replies::scan::FinalTag;
use crate::replies::tool_notes::Verbose;
use crate::replies::user_text::visible_text;
use crate::texts::TextTable;

mod json;

pub(in crate::run) use json::{put, put_list};

/// Metadata of a run, besides its payloads.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunMeta {
    /// Duration from the grant of the lanes to the end, in milliseconds.
    pub duration_ms: u64,
    /// Whether the last attempt was stopped, by the user or by its time limit.
    pub aborted: bool,
    /// Stop reason of the last answer.
    pub stop_reason: Option<String>,
    /// The conversation and its model.
    pub agent: AgentMeta,
    /// The failure that the payload reports, if the run failed.
    pub error: Option<MetaError>,
    /// What was delivered of an incomplete answer.
    pub partial: Option<PartialAnswer>,
    /// Tool calls that the caller must execute.
    pub pending_tool_calls: Vec<PendingToolCall>,
    /// Reports of all attempts.
    pub attempts: Vec<AttemptReport>,
    /// Reports of all tools that ran.
    pub tools: Vec<ToolReport>,
    /// The last tool failure that no later success resolved.
    pub unresolved_tool: Option<String>,
    /// Settings of the model requests.
    pub shaping: RequestShaping,
    /// The prompt.
    pub final_prompt: String,
    /// The last answer, both as shown and as the model wrote it, if there is one.
    pub final_answer: Option<FinalAnswer>,
    /// The provider's own stop reason of the last answer.
    pub finish_reason: Option<String>,
    /// Whether sending the prompt again may repeat side effects, because a tool ran or the answer is incomplete.
    pub replay_invalid: bool,
    /// The state of the conversation.
    pub liveness: Liveness,
    /// Whether the run ended because of its time limit.
    pub timed_out: bool,
    /// Sizes of the system prompt, if there was one.
    pub system_prompt: Option<SystemPromptMeta>,
}

/// Sizes of a system prompt, and the session it belongs to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SystemPromptMeta {
    /// The sizes.
    pub report: PromptReport,
    /// Routing key of the session.
    pub session_key: Option<SessionKey>,
    /// Working directory of the tools.
    pub workspace: PathBuf,
    /// Sizes of the message that the run added, if it came to that.
    pub turn: Option<TurnSizes>,
}

/// The state of a conversation after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// The run ended with an answer.
    #[default]
    Working,
    /// The run was stopped or timed out.
    Paused,
    /// The conversation is too long for its model and could not be shortened.
    Blocked,
    /// The model stopped without an answer.
    Abandoned,
}

impl Liveness {
    /// Returns the identifier used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The last answer. It shares the message, and its texts are created on demand, so that a long answer is not stored three times.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalAnswer {
    answer: Arc<AssistantMessage>,
    texts: TextTable,
}

impl FinalAnswer {
    pub(crate) fn new(answer: Arc<AssistantMessage>, texts: TextTable) -> Self {
        Self { answer, texts }
    }

    /// Returns the text without reasoning and leaked markup; directives are kept.
    pub fn visible(&self) -> String {
        visible_text(&self.answer.content, FinalTag::Optional, &self.texts).into_owned()
    }

    /// Returns the text as the model wrote it.
    pub fn raw(&self) -> String {
        self.answer.text("\n")
    }
}

/// The settings of a run's model requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestShaping {
    /// The requested thinking level, limited to what the model supports.
    pub thinking: ThinkingLevel,
    /// How reasoning is shown to the user.
    pub reasoning: ReasoningLevel,
    /// How much of the tool activity the user sees.
    pub verbose: Verbose,
    /// Whether blocks were delivered during the run.
    pub block_streaming: bool,
    /// Whether there were fallback models.
    pub has_fallbacks: bool,
}

/// What was delivered of an answer that failed or was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartialAnswer {
    /// Number of payloads that are not failures.
    pub payloads: usize,
    /// Total length of their texts, in characters.
    pub characters: usize,
}

/// The conversation and its model.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AgentMeta {
    /// The session id.
    pub session_id: SessionId,
    /// The provider of the last answer.
    pub provider: String,
    /// The model of the last answer.
    pub model: String,
    /// Token usage of all attempts.
    pub usage: Usage,
    /// Token usage of the last call.
    pub last_call_usage: Option<Usage>,
    /// Number of compactions of the conversation.
    pub compaction_count: u32,
    /// Number of answers in this run.
    pub assistant_turns: u32,
    /// The runtime that carried out the attempts.
    pub runtime: String,
    /// How much of the model's window is used; `None` if no call reported tokens or the window is unknown.
    pub budget: Option<ContextBudget>,
    /// The requested model and the last answer; `None` without an answer.
    pub receipt: Option<TerminalReceipt>,
    /// Models that failed or were skipped before the last one.
    pub failed_candidates: Vec<FailedCandidate>,
}

/// A model that failed or was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedCandidate {
    /// The provider of the model.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The error message.
    pub error: String,
    /// The class of the failure.
    pub reason: FailoverReason,
    /// The provider's code.
    pub code: Option<String>,
}

/// How much of the model's window is used after the last call, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextBudget {
    /// Size of the last request and its answer: the minimum size of the next request.
    pub prompt_tokens: u64,
    /// The model's window.
    pub window: u64,
    /// The source of the window's size.
    pub source: WindowSource,
    /// Tokens reserved for an answer, as configured.
    pub reserve: u64,
    /// Tokens reserved for an answer in this window.
    pub effective_reserve: u64,
}

impl ContextBudget {
    /// Returns by how much the conversation exceeds its share of the window.
    pub fn overflow(&self) -> u64 {
        self.prompt_tokens.saturating_sub(self.window.saturating_sub(self.effective_reserve))
    }
}

/// The requested model, the last answer, and the tools that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalReceipt {
    /// The id of the run.
    pub run_id: RunId,
    /// The provider's id of the last answer, if it has one.
    pub turn_id: Option<String>,
    /// The provider and model that the run started with.
    pub requested: (String, String),
    /// Tools that succeeded, without duplicates, sorted by name.
    pub successful_tools: Vec<String>,
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaError {
    /// The kind of failure.
    pub kind: RunErrorKind,
    /// The original error text.
    pub message: String,
    /// Why a conversation that is too long could not be compacted.
    pub detail: Option<String>,
}

/// The kind of failure reported by the payload of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunErrorKind {
    /// The conversation is too long and could not be shortened.
    ContextOverflow,
    /// The conversation is too long, and compacting it failed.
    CompactionFailure,
    /// The provider rejected the order of the messages.
    RoleOrdering,
    /// An image is too large.
    ImageSize,
    /// Too many attempts.
    RetryLimit,
    /// A limit of the request was exceeded.
    Budget,
    /// The model stopped without an answer, or its time limit passed before an answer.
    IncompleteTurn,
    /// A plugin rejected the run.
    HookBlock,
}

impl RunErrorKind {
    /// Returns the identifier used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContextOverflow => "context_overflow",
            Self::CompactionFailure => "compaction_failure",
            Self::RoleOrdering => "role_ordering",
            Self::ImageSize => "image_size",
            Self::RetryLimit => "retry_limit",
            Self::Budget => "budget",
            Self::IncompleteTurn => "incomplete_turn",
            Self::HookBlock => "hook_block",
        }
    }
}

/// A tool call that the caller must execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingToolCall {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as JSON text.
    pub arguments: String,
}

/// A report of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptReport {
    /// The provider.
    pub provider: String,
    /// The model that was requested.
    pub model: String,
    /// The profile whose credentials were used.
    pub profile: Option<ProfileId>,
    /// Outcome: `ok`, `aborted`, `timeout`, or the reason of the failure.
    pub outcome: String,
    /// The decision that followed.
    pub action: String,
    /// Its effect on the run.
    pub result: AttemptResult,
    /// Whether it failed before or within an answer.
    pub stage: Option<FailureStage>,
    /// HTTP status of the failure.
    pub status: Option<u16>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// The effect of an attempt on the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// It produced an answer.
    Success,
    /// It timed out, and the run ended.
    Timeout,
    /// It was stopped.
    Aborted,
    /// It failed, and its failure is shown to the user.
    SurfaceError,
    /// The same model and profile were tried again.
    SameModelTransient,
    /// The next profile was tried.
    RotateProfile,
    /// The next model was tried.
    FallbackModel,
    /// The run failed with the failure of this attempt.
    CandidateFailed,
    /// The conversation was repaired, or the model is asked for the answer that the attempt lacks.
    Error,
}

impl AttemptResult {
    /// Returns the identifier used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::SurfaceError => "surface_error",
            Self::SameModelTransient => "same_model_transient",
            Self::RotateProfile => "rotate_profile",
            Self::FallbackModel => "fallback_model",
            Self::CandidateFailed => "candidate_failed",
            Self::Error => "error",
        }
    }
}

/// Statistics of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolReport {
    /// The tool.
    pub name: String,
    /// Number of calls.
    pub calls: u32,
    /// Number of failures.
    pub errors: u32,
    /// Total duration in milliseconds.
    pub duration_ms: u64,
}

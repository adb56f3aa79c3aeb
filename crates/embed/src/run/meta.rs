//! Facts about a run beside its payloads.

use pinch_llm::message::Usage;
use pinch_llm::thinking::ThinkingLevel;

use super::outcome::FailureStage;
use crate::profiles::ProfileId;
use crate::reason::FailoverReason;
use crate::replies::ReasoningLevel;
use crate::replies::tool_notes::Verbose;

mod json;

pub(in crate::run) use json::{put, put_list};

/// Facts about a run beside its payloads.
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
    /// The failure that the payload reports, if the run failed.
    pub error: Option<MetaError>,
    /// What was given out of an answer that did not come to its end.
    pub partial: Option<PartialAnswer>,
    /// A call the caller has to run.
    pub pending_tool_calls: Vec<PendingToolCall>,
    /// Every attempt.
    pub attempts: Vec<AttemptReport>,
    /// Every tool that ran.
    pub tools: Vec<ToolReport>,
    /// The tool whose failure nothing has made up for.
    pub unresolved_tool: Option<String>,
    /// What the model was asked with.
    pub shaping: RequestShaping,
    /// The prompt.
    pub final_prompt: String,
    /// The last answer as people see it, and as the model wrote it; `None` without one.
    pub final_answer: Option<FinalAnswer>,
    /// The provider's own word for why the last answer ended.
    pub finish_reason: Option<String>,
    /// Sending the prompt again could repeat effects: a tool ran, or the answer is incomplete.
    pub replay_invalid: bool,
    /// How the conversation stands.
    pub liveness: Liveness,
    /// The time limit of the run ended it.
    pub timed_out: bool,
}

/// How a conversation stands after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// It answers.
    #[default]
    Working,
    /// The run was stopped or took too long.
    Paused,
    /// It is too long for its model, and nothing helped.
    Blocked,
    /// The model ended without an answer.
    Abandoned,
}

impl Liveness {
    /// The word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The texts of the last answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinalAnswer {
    /// Without reasoning and leaked markup; directives are still in it.
    pub visible: String,
    /// As the model wrote it.
    pub raw: String,
}

/// What a run asked its models with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestShaping {
    /// How hard the model was to think, as far as it can.
    pub thinking: ThinkingLevel,
    /// How much of the reasoning the user sees.
    pub reasoning: ReasoningLevel,
    /// How much of the tools the user sees.
    pub verbose: Verbose,
    /// Blocks were handed out while the run went on.
    pub block_streaming: bool,
    /// Another model could have been asked.
    pub has_fallbacks: bool,
}

/// What was given out of an answer that failed or was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialAnswer {
    /// Payloads that are not failures.
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
    /// Answers of the model in this run.
    pub assistant_turns: u32,
    /// The runtime that carried the attempts out.
    pub runtime: String,
    /// How the conversation fits the model's window; `None` if no call reported its tokens or the window is not known.
    pub budget: Option<ContextBudget>,
    /// Who was asked and who answered; `None` without an answer.
    pub receipt: Option<TerminalReceipt>,
    /// Models that failed or were left out before the last one.
    pub failed_candidates: Vec<FailedCandidate>,
}

/// A model that failed or was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCandidate {
    /// Who serves it.
    pub provider: String,
    /// Its name.
    pub model: String,
    /// What was wrong.
    pub error: String,
    /// The class.
    pub reason: FailoverReason,
    /// The provider's code.
    pub code: Option<String>,
}

/// How the conversation fits the model's window after the last call, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextBudget {
    /// The last request with its answer: what the next request will have at least.
    pub prompt_tokens: u64,
    /// The model's window.
    pub window: u64,
    /// Kept free for an answer.
    pub reserve: u64,
}

impl ContextBudget {
    /// The reserve, as far as the window has room for it.
    pub fn effective_reserve(&self) -> u64 {
        self.reserve.min(self.window)
    }

    /// What the conversation has beyond its room.
    pub fn overflow(&self) -> u64 {
        self.prompt_tokens.saturating_sub(self.window - self.effective_reserve())
    }
}

/// Who was asked, who answered, and what was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalReceipt {
    /// The run.
    pub run_id: String,
    /// The provider's name of the last answer, if it has one.
    pub turn_id: Option<String>,
    /// Provider and model that the run began with.
    pub requested: (String, String),
    /// Tools that succeeded, each once, in order of their names.
    pub successful_tools: Vec<String>,
}

/// Why a run could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaError {
    /// What kind.
    pub kind: RunErrorKind,
    /// The failure, raw.
    pub message: String,
}

/// What kind of failure the payload of a run reports.
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
    /// The model ended without an answer, or its time ran out before it gave one.
    IncompleteTurn,
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
            Self::IncompleteTurn => "incomplete_turn",
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
    /// What came of it for the run.
    pub result: AttemptResult,
    /// Whether the failure came in place of an answer or within one.
    pub stage: Option<FailureStage>,
    /// HTTP status of the failure.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// What came of an attempt for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// An answer.
    Success,
    /// Its time ran out, and the run ended.
    Timeout,
    /// It was stopped.
    Aborted,
    /// Its failure is what the user sees.
    SurfaceError,
    /// The same model and profile were tried again.
    SameModelTransient,
    /// The next profile was tried.
    RotateProfile,
    /// The next model was tried.
    FallbackModel,
    /// The run failed with it.
    CandidateFailed,
    /// The conversation was repaired.
    Error,
}

impl AttemptResult {
    /// The word used in JSON.
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

//! What one attempt is to do, and what became of it.

use std::sync::Arc;

use pinch_llm::error::{Emitted, LlmError, LlmErrorKind};
use pinch_llm::ids::ProviderId;
use pinch_llm::message::{AssistantMessage, Usage};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::CancelReason;
use serde_json::Value;

use crate::profiles::ProfileId;

/// What one attempt is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptPlan {
    /// Which attempt of the model this is, from 1.
    pub number: u32,
    /// Whose credentials; `None` = those found without a profile.
    pub profile: Option<ProfileId>,
    /// How hard the model thinks.
    pub thinking: ThinkingLevel,
    /// The prompt enters the log with the first attempt of a run; every later one continues from the log.
    pub start: AttemptStart,
}

/// How an attempt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptStart {
    /// The prompt is sent.
    Prompt,
    /// The attempt continues from the log.
    Resume,
    /// The model ended without the answer that is required: it is asked for it, and may not call tools.
    FinalReply,
}

/// What became of one attempt: facts, no judgement.
#[derive(Clone, Debug)]
pub struct AttemptOutcome {
    /// How it ended.
    pub end: AttemptEnd,
    /// The last answer of this attempt; never one of an earlier run.
    pub last_assistant: Option<Arc<AssistantMessage>>,
    /// Tokens of all calls of the attempt.
    pub usage: Usage,
    /// Tokens of the last call.
    pub last_call_usage: Option<Usage>,
    /// Answers of the model.
    pub n_answers: u32,
    /// Tools that ran, in order.
    pub tools: Vec<ToolRun>,
    /// The last tool failure nothing came after.
    pub last_tool_error: Option<ToolFailure>,
    /// Compactions the session made by itself.
    pub compactions: u32,
    /// What the user saw of the attempt.
    pub emitted: Emitted,
    /// There is something to say: a text, a medium, an image.
    pub has_payload: bool,
    /// A tool result in the context is larger than one may be.
    pub oversized_tool_results: bool,
    /// A tool the caller has to run ended the attempt.
    pub client_tool_call: Option<ClientToolCall>,
    /// A tool ended the turn so that something else may go first.
    pub yielded: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum AttemptEnd {
    /// With an answer.
    Good,
    /// With a failure of the provider.
    Failed {
        /// Where.
        stage: FailureStage,
        /// What.
        error: Arc<LlmError>,
    },
    /// Somebody stopped it.
    Aborted(CancelReason),
    /// Its wall clock ran out.
    TimedOut {
        /// While the conversation was being compacted.
        during_compaction: bool,
    },
}

/// Where an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureStage {
    /// Before or outside an answer: there is no error turn to show, and the run itself fails.
    Prompt,
    /// In an answer: an error turn stands in the log and can be shown.
    Answer,
}

/// One run of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRun {
    /// The tool.
    pub name: String,
    /// It may have changed something outside.
    pub mutates: bool,
    /// It failed.
    pub failed: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// A tool that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure {
    /// The tool.
    pub name: String,
    /// What it was doing, in short.
    pub meta: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// It may have changed something outside.
    pub mutates: bool,
}

/// A call of a tool the caller has to run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientToolCall {
    /// Name of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub params: Value,
}

impl AttemptOutcome {
    /// An outcome that says how the attempt ended and nothing else.
    pub fn new(end: AttemptEnd) -> Self {
        Self {
            end,
            last_assistant: None,
            usage: Usage::default(),
            last_call_usage: None,
            n_answers: 0,
            tools: Vec::new(),
            last_tool_error: None,
            compactions: 0,
            emitted: Emitted::Nothing,
            has_payload: false,
            oversized_tool_results: false,
            client_tool_call: None,
            yielded: false,
        }
    }

    /// Whether a tool that may have changed something ran.
    pub fn has_mutated(&self) -> bool {
        self.tools.iter().any(|tool| tool.mutates)
    }

    /// Whether the attempt was stopped, by somebody or by its wall clock.
    pub fn is_aborted(&self) -> bool {
        matches!(self.end, AttemptEnd::Aborted(_) | AttemptEnd::TimedOut { .. })
    }

    /// The failure of the provider, when the attempt ended with one.
    pub fn error(&self) -> Option<&Arc<LlmError>> {
        match &self.end {
            AttemptEnd::Failed { error, .. } => Some(error),
            AttemptEnd::Good | AttemptEnd::Aborted(_) | AttemptEnd::TimedOut { .. } => None,
        }
    }
}

impl AttemptOutcome {
    /// Where the attempt failed, if it did.
    pub fn stage(&self) -> Option<FailureStage> {
        match &self.end {
            AttemptEnd::Failed { stage, .. } => Some(*stage),
            AttemptEnd::Good | AttemptEnd::Aborted(_) | AttemptEnd::TimedOut { .. } => None,
        }
    }
}

impl AttemptEnd {
    /// The end that a failed call makes: a cancelled call did not fail.
    pub fn failed(stage: FailureStage, error: Arc<LlmError>) -> Self {
        match error.kind {
            LlmErrorKind::Aborted => Self::Aborted(CancelReason::User),
            _ => Self::Failed { stage, error },
        }
    }

    /// The end of an attempt that was stopped.
    pub fn stopped(reason: CancelReason, during_compaction: bool) -> Self {
        match reason {
            CancelReason::Deadline => Self::TimedOut { during_compaction },
            other => Self::Aborted(other),
        }
    }

    /// The end that a failure makes of which only the text is known.
    pub fn failed_with_text(stage: FailureStage, provider: &ProviderId, text: impl Into<String>) -> Self {
        Self::Failed { stage, error: Arc::new(LlmError::refused(provider.clone(), None, None, text)) }
    }
}

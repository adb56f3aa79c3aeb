//! The plan and the outcome of one attempt.

use std::sync::Arc;

use pinch_llm::error::{Emitted, LlmError, LlmErrorKind};
use pinch_llm::ids::ProviderId;
use pinch_llm::message::{AssistantMessage, Block, StopReason, ToolCall, Usage};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::CancelReason;
use serde_json::Value;

use crate::profiles::ProfileId;

/// The plan of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptPlan {
    /// Number of the attempt with this model, starting at 1.
    pub number: u32,
    /// Profile whose credentials to use; `None`: credentials found without a profile.
    pub profile: Option<ProfileId>,
    /// The thinking level.
    pub thinking: ThinkingLevel,
    /// How the attempt begins. The first attempt of a run adds the prompt to the log; later ones continue from the log.
    pub start: AttemptStart,
}

/// How an attempt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptStart {
    /// The prompt is added to the log and sent.
    Prompt,
    /// The attempt continues from the log, which already contains the prompt.
    Resume,
    /// The model stopped without any text, and is asked to go on.
    Continue,
    /// The model stopped without a required answer, and is asked for one without tools.
    FinalReply,
}

/// What a model produced instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingAnswer {
    /// Nothing.
    Nothing,
    /// Reasoning only.
    OnlyReasoning,
    /// No text before the limit of output tokens.
    CutOff,
}

/// The outcome of one attempt: facts, without any decision.
#[derive(Clone, Debug)]
pub struct AttemptOutcome {
    /// How it ended.
    pub end: AttemptEnd,
    /// The last answer of this attempt, never of an earlier run.
    pub last_assistant: Option<Arc<AssistantMessage>>,
    /// Token usage of all calls of the attempt.
    pub usage: Usage,
    /// Token usage of the last call.
    pub last_call_usage: Option<Usage>,
    /// Number of answers.
    pub n_answers: u32,
    /// Tools that ran, in order.
    pub tools: Vec<ToolRun>,
    /// The failure of the last tool run, if it failed.
    pub last_tool_error: Option<ToolFailure>,
    /// Number of compactions made by the session itself.
    pub compactions: u32,
    /// How much of the attempt was shown to the user.
    pub emitted: Emitted,
    /// Whether there is something to deliver: text, media or an image.
    pub has_payload: bool,
    /// Whether a messaging tool has sent something during the run.
    pub has_sent: bool,
    /// Whether a tool result in the context is larger than allowed.
    pub oversized_tool_results: bool,
    /// Whether a tool was running when the attempt was stopped.
    pub stopped_tool: bool,
    /// The calls of client tools that ended the attempt.
    pub client_tool_calls: Vec<ClientToolCall>,
    /// Whether a tool ended the turn to yield to something else.
    pub yielded: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum AttemptEnd {
    /// With an answer.
    Good,
    /// With a failure of the provider.
    Failed {
        /// The stage at which it failed.
        stage: FailureStage,
        /// The error.
        error: Arc<LlmError>,
    },
    /// It was stopped.
    Aborted(CancelReason),
    /// It exceeded its time limit.
    TimedOut {
        /// Whether the conversation was being compacted.
        during_compaction: bool,
    },
}

/// Where an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureStage {
    /// Before or outside an answer: there is no error turn to show, so the run itself fails.
    Prompt,
    /// In an answer: the log contains an error turn that can be shown.
    Answer,
}

/// One execution of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRun {
    /// The tool.
    pub name: String,
    /// Whether it may have had side effects.
    pub mutates: bool,
    /// Whether it failed.
    pub failed: bool,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// A failed execution of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure {
    /// The tool.
    pub name: String,
    /// A short description of what it was doing.
    pub meta: Option<String>,
    /// The error message.
    pub error: Option<String>,
    /// Whether it may have had side effects.
    pub mutates: bool,
}

/// A call of a tool that the caller must execute.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientToolCall {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub params: Value,
}

impl ClientToolCall {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self { id: call.id.to_string(), name: call.name.clone(), params: Value::Object(call.arguments.clone()) }
    }
}

impl AttemptOutcome {
    /// Creates an outcome with only the end of the attempt.
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
            has_sent: false,
            oversized_tool_results: false,
            stopped_tool: false,
            client_tool_calls: Vec::new(),
            yielded: false,
        }
    }

    /// Returns whether a tool ran that may have had side effects.
    pub fn has_mutated(&self) -> bool {
        self.tools.iter().any(|tool| tool.mutates)
    }

    /// Returns whether there is an answer to deliver. Text before a tool call is none.
    pub fn has_answer(&self) -> bool {
        let stop = self.last_assistant.as_ref().map(|answer| answer.stop_reason);
        self.has_payload && stop != Some(StopReason::ToolUse)
    }

    /// Returns what a completed attempt ended with instead of an answer; `None` if there is one, or if none is needed.
    pub fn missing_answer(&self) -> Option<MissingAnswer> {
        let is_settled = self.has_payload || self.has_sent || self.yielded || self.last_tool_error.is_some();
        if is_settled || !self.client_tool_calls.is_empty() {
            return None;
        }
        let answer = self.last_assistant.as_ref()?;
        let is_thought = |block: &Block| matches!(block, Block::Thinking(_));
        if !answer.content.iter().all(|block| is_thought(block) || block.as_text().is_some()) {
            return None;
        }
        match answer.stop_reason {
            StopReason::Length => Some(MissingAnswer::CutOff),
            StopReason::Stop if answer.content.iter().any(|block| is_thought(block)) => {
                Some(MissingAnswer::OnlyReasoning)
            }
            StopReason::Stop => Some(MissingAnswer::Nothing),
            _ => None,
        }
    }

    /// Returns whether the attempt was stopped, including by its time limit.
    pub fn is_aborted(&self) -> bool {
        matches!(self.end, AttemptEnd::Aborted(_) | AttemptEnd::TimedOut { .. })
    }

    /// Returns the failure of the provider, if the attempt ended with one.
    pub fn error(&self) -> Option<&Arc<LlmError>> {
        match &self.end {
            AttemptEnd::Failed { error, .. } => Some(error),
            AttemptEnd::Good | AttemptEnd::Aborted(_) | AttemptEnd::TimedOut { .. } => None,
        }
    }
}

impl AttemptOutcome {
    /// Returns the stage at which the attempt failed, if it did.
    pub fn stage(&self) -> Option<FailureStage> {
        match &self.end {
            AttemptEnd::Failed { stage, .. } => Some(*stage),
            AttemptEnd::Good | AttemptEnd::Aborted(_) | AttemptEnd::TimedOut { .. } => None,
        }
    }
}

impl AttemptEnd {
    /// Returns the end after a failed call; a cancelled call counts as stopped.
    pub fn failed(stage: FailureStage, error: Arc<LlmError>) -> Self {
        match error.kind {
            LlmErrorKind::Aborted => Self::Aborted(CancelReason::User),
            _ => Self::Failed { stage, error },
        }
    }

    /// Returns the end of a stopped attempt.
    pub fn stopped(reason: CancelReason, during_compaction: bool) -> Self {
        match reason {
            CancelReason::Deadline => Self::TimedOut { during_compaction },
            other => Self::Aborted(other),
        }
    }

    /// Returns the end after a failure of which only the text is known.
    pub fn failed_with_text(stage: FailureStage, provider: &ProviderId, text: impl Into<String>) -> Self {
        Self::Failed { stage, error: Arc::new(LlmError::refused(provider.clone(), None, None, text)) }
    }
}

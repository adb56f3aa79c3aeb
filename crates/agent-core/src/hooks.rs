//! Hooks: callbacks at fixed points of a run.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_llm::message::{AssistantMessage, Block, Message, SystemMessage, ToolCall};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use serde_json::Value;

use crate::tool::{JsonObject, ToolOutput, ToolSet};

/// Callbacks at fixed points of a run. By default every method changes nothing.
pub trait Hooks: Send + Sync {
    /// Called before every request, after pending messages have been added; may replace parts of the request.
    ///
    /// # Errors
    /// The error text ends the run with a regular error turn.
    fn next_turn<'a>(&'a self, turn: TurnContext<'a>) -> BoxFuture<'a, Result<TurnPlan, String>> {
        let _ = turn;
        Box::pin(async { Ok(TurnPlan::default()) })
    }

    /// Returns the tools available from here on, or `None` to keep them. Called before every request; changes are declared to the model.
    fn tools(&self) -> Option<ToolSet> {
        None
    }

    /// Returns changes of the prompt since the conversation last stated it. Called before every request like [`Hooks::tools`]; the changes
    /// are sent in the same message as added and removed tools.
    fn system(&self, messages: &[Arc<Message>]) -> Option<SystemMessage> {
        let _ = messages;
        None
    }

    /// Returns the names of prompt sections that are not stable: a cached prefix of the prompt ends before them. Called before every request.
    fn volatile_sections(&self) -> Arc<[String]> {
        Arc::default()
    }

    /// Converts the conversation for the model. The default keeps the four known roles.
    fn to_llm(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        messages.iter().filter(|message| !matches!(***message, Message::Other(_))).cloned().collect()
    }

    /// Called for a message from outside, before its start is emitted; a returned message replaces it and must have the same role. Not
    /// called for the model's answers and tool results. Not cancelled with the run.
    fn incoming<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Option<Arc<Message>>> {
        let _ = message;
        Box::pin(async { None })
    }

    /// Called for a complete message, before it is added to the conversation and before its end is emitted; a returned message replaces it
    /// and must have the same role. Not cancelled with the run: the partial answer of a cancelled run is passed as well.
    fn complete_message<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Option<Arc<Message>>> {
        let _ = message;
        Box::pin(async { None })
    }

    /// Called before a tool runs, with arguments that match its schema. Not called for unknown tools and invalid arguments.
    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        let _ = call;
        Box::pin(async { BeforeTool::Allow })
    }

    /// Called after a tool has run, successfully or not. Not called for calls that never ran.
    fn after_tool<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        let _ = done;
        Box::pin(async { ToolPatch::default() })
    }

    /// Called between two turns: after the `TurnEnd` of a turn that is followed by another, once queued messages have been taken. Not
    /// called before the first turn.
    ///
    /// # Errors
    /// The error text ends the run with a regular error turn.
    fn between_turns<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, Result<NextTurn, String>> {
        let _ = turn;
        Box::pin(async { Ok(NextTurn::default()) })
    }

    /// Called after a turn's messages, before its `TurnEnd`, even for failed turns.
    fn after_turn<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, AfterTurn> {
        let _ = turn;
        Box::pin(async { AfterTurn::Default })
    }
}

/// Hooks that change nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// The state that [`Hooks::next_turn`] sees.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TurnContext<'a> {
    /// The conversation so far.
    pub messages: &'a [Arc<Message>],
    /// The model that will be called.
    pub model: &'a Arc<Model>,
    /// Its thinking level.
    pub thinking: ThinkingLevel,
    /// The tools it may call.
    pub tools: &'a ToolSet,
    /// Whether this is the first request of the run.
    pub first: bool,
}

/// Changes to the coming request; `None` keeps a part.
#[derive(Clone, Debug, Default)]
pub struct TurnPlan {
    /// Other messages, for this request only.
    pub messages: Option<Vec<Arc<Message>>>,
    /// Another model, from here on.
    pub model: Option<Arc<Model>>,
    /// Another thinking level, from here on.
    pub thinking: Option<ThinkingLevel>,
}

/// Changes before the coming turn; `None` keeps a part.
#[derive(Clone, Debug, Default)]
pub struct NextTurn {
    /// Messages to add to the conversation after queued ones.
    pub messages: Vec<Arc<Message>>,
    /// Another model, from here on.
    pub model: Option<Arc<Model>>,
    /// Another thinking level, from here on.
    pub thinking: Option<ThinkingLevel>,
}

/// A call that is about to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PendingCall {
    /// The message that contains the call.
    pub message: Arc<AssistantMessage>,
    /// The call with its raw arguments, as it runs.
    pub call: ToolCall,
    /// The arguments after preparation and validation.
    pub input: JsonObject,
    /// All calls of the message, in order and as they run: a call through a [gateway](crate::tool::ToolGateway) is that of the tool behind.
    pub batch: Arc<[ToolCall]>,
}

/// Decision about a call before it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum BeforeTool {
    /// Run it.
    Allow,
    /// Run it with other arguments, which are not validated again.
    Rewrite(JsonObject),
    /// Do not run it.
    Deny {
        /// Text for the model instead of a result; a fixed text if empty.
        reason: String,
        /// Ends the run if every call of the message sets it.
        end_run: bool,
        /// Details of the result, for programs; the model does not see them.
        details: Option<Value>,
    },
}

impl BeforeTool {
    /// Denies a call without ending the run. `reason`: text for the model.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into(), end_run: false, details: None }
    }
}

/// A call that ran.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FinishedCall {
    /// The message that contains the call.
    pub message: Arc<AssistantMessage>,
    /// The call with its raw arguments, as it ran.
    pub call: ToolCall,
    /// The arguments it ran with.
    pub input: JsonObject,
    /// The result.
    pub output: ToolOutput,
}

/// Changes to a call's result: each given member replaces the old one completely.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolPatch {
    /// Other content.
    pub content: Option<Vec<Block>>,
    /// Other details.
    pub details: Option<Value>,
    /// Other structured data. New content without it drops the old data, which no longer matches.
    pub structured: Option<Value>,
    /// Whether the call counts as failed.
    pub failed: Option<bool>,
    /// Whether it asks the run to end.
    pub end_run: Option<bool>,
}

impl ToolPatch {
    /// Merges later changes, which override earlier ones.
    pub fn add(&mut self, later: Self) {
        if later.content.is_some() {
            self.content = later.content;
            self.structured = None;
        }
        self.structured = later.structured.or(self.structured.take());
        self.details = later.details.or(self.details.take());
        self.failed = later.failed.or(self.failed);
        self.end_run = later.end_run.or(self.end_run);
    }

    /// Applies the changes.
    pub fn apply(self, output: &mut ToolOutput) {
        if let Some(content) = self.content {
            output.content = content;
            output.structured = None;
        }
        if let Some(structured) = self.structured {
            output.structured = Some(structured);
        }
        if let Some(details) = self.details {
            output.details = Some(details);
        }
        if let Some(failed) = self.failed {
            output.failed = failed;
        }
        if let Some(end_run) = self.end_run {
            output.end_run = end_run;
        }
    }
}

/// A turn that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnEnded {
    /// The model's answer.
    pub message: Arc<AssistantMessage>,
    /// Its calls, as they ran: see [`PendingCall::batch`].
    pub calls: Arc<[ToolCall]>,
    /// The results of its calls, in the order of the calls.
    pub results: Vec<Arc<Message>>,
}

/// How a run continues after a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterTurn {
    /// Continue as the loop decides.
    #[default]
    Default,
    /// End the run; queues are not polled.
    Stop,
    /// Make one more request, whatever the loop would decide. Errors and aborts still end the run.
    Continue,
}

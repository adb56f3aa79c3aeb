//! A host's own decision about every tool call.

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::error::BoxError;
use crate::session_key::SessionKey;

/// A tool call that is about to run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardedCall {
    /// Name of the tool.
    pub tool: String,
    /// Id of the call.
    pub call_id: String,
    /// Its arguments.
    pub params: Map<String, Value>,
    /// Id of the agent.
    pub agent_id: String,
    /// The session that it belongs to.
    pub session_key: Option<SessionKey>,
}

impl GuardedCall {
    /// Creates a call without a session key.
    pub fn new(
        tool: impl Into<String>,
        call_id: impl Into<String>,
        params: Map<String, Value>,
        agent_id: impl Into<String>,
    ) -> Self {
        Self { tool: tool.into(), call_id: call_id.into(), params, agent_id: agent_id.into(), session_key: None }
    }
}

/// The decision of a [`Guardrail`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardrailDecision {
    /// The call may run, unless something else forbids it.
    Allow,
    /// The call does not run.
    Block {
        /// The reason for the model; `None`: a fixed text.
        reason: Option<String>,
    },
}

/// Decides about the tool calls of agents before any hook sees them, and once more about calls that a hook changed.
pub trait Guardrail: Send + Sync {
    /// Decides about a call. A failure blocks it.
    ///
    /// Dropping the future ends the check; that happens if the run is aborted, or the check takes too long.
    fn check<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, Result<GuardrailDecision, BoxError>>;
}

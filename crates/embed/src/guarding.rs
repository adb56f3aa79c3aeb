//! Asks the host's guardrail about tool calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_agent_core::hooks::{BeforeTool, PendingCall};
use pinch_agent_core::tool::JsonObject;
use pinch_coding_agent::extension::{Extension, ExtensionCx, HandlerFuture, Point, Points};
use pinch_ports::{GuardedCall, Guardrail, GuardrailDecision, SessionKey};

/// The reason for the model if the guardrail gives none.
const BLOCKED: &str = "Blocked by guardrail policy";
/// The reason for the model if the guardrail fails or does not decide in time.
const FAILED: &str = "Tool call blocked because the guardrail failed";
/// Maximum time for a decision.
const MAX_TIME: Duration = Duration::from_secs(30);

/// The guardrail of one run.
pub(crate) struct RunGuardrail {
    guardrail: Arc<dyn Guardrail>,
    agent_id: String,
    session_key: Option<SessionKey>,
    /// Arguments of the calls that the guardrail allowed and that did not run yet.
    allowed: Mutex<HashMap<String, JsonObject>>,
}

impl RunGuardrail {
    pub(crate) fn new(guardrail: Arc<dyn Guardrail>, agent_id: String, session_key: Option<SessionKey>) -> Arc<Self> {
        Arc::new(Self { guardrail, agent_id, session_key, allowed: Mutex::default() })
    }

    /// Returns the extension that decides before all others, and the one that decides about the changes of others.
    pub(crate) fn extensions(self: &Arc<Self>) -> [Arc<dyn Extension>; 2] {
        [Arc::new(BeforeHooks(Arc::clone(self))), Arc::new(AfterHooks(Arc::clone(self)))]
    }

    fn allowed(&self) -> MutexGuard<'_, HashMap<String, JsonObject>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn decide(&self, call: &PendingCall, cx: &ExtensionCx) -> BeforeTool {
        let mut guarded =
            GuardedCall::new(&call.call.name, call.call.id.to_string(), call.input.clone(), &self.agent_id);
        guarded.session_key.clone_from(&self.session_key);
        let check = tokio::time::timeout(MAX_TIME, self.guardrail.check(&guarded));
        let reason = match cx.wait_untimed(check).await {
            Some(Ok(Ok(GuardrailDecision::Allow))) => return BeforeTool::Allow,
            Some(Ok(Ok(GuardrailDecision::Block { reason }))) => {
                reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| BLOCKED.to_owned())
            }
            Some(Ok(Err(error))) => {
                tracing::warn!(tool = guarded.tool, %error, "the guardrail failed, and the call is blocked");
                FAILED.to_owned()
            }
            Some(Err(_)) => {
                tracing::warn!(tool = guarded.tool, "the guardrail did not decide in time, and the call is blocked");
                FAILED.to_owned()
            }
            None => FAILED.to_owned(),
        };
        BeforeTool::deny(reason)
    }
}

/// Decides before hooks see a call.
struct BeforeHooks(Arc<RunGuardrail>);

impl Extension for BeforeHooks {
    fn name(&self) -> &str {
        "guardrail"
    }

    fn points(&self) -> Points {
        Points::of([Point::ToolCall])
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        Box::pin(async move {
            let decision = self.0.decide(call, cx).await;
            if matches!(decision, BeforeTool::Allow) {
                self.0.allowed().insert(call.call.id.to_string(), call.input.clone());
            }
            Ok(decision)
        })
    }
}

/// Decides again if hooks changed the arguments of a call.
struct AfterHooks(Arc<RunGuardrail>);

impl Extension for AfterHooks {
    fn name(&self) -> &str {
        "guardrail-of-changes"
    }

    fn points(&self) -> Points {
        Points::of([Point::ToolCall])
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        Box::pin(async move {
            let allowed = self.0.allowed().remove(call.call.id.as_str());
            if allowed.is_some_and(|params| params == call.input) {
                return Ok(BeforeTool::Allow);
            }
            Ok(self.0.decide(call, cx).await)
        })
    }
}

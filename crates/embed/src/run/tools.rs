//! The tools of a run, and which of them a model is offered.

use std::fmt;
use std::sync::Arc;

use pinch_agent_core::tool::ToolSet;
use pinch_llm::model::Model;
use pinch_ports::Caller;
use pinch_tools::pipeline::ToolLayers;
use pinch_tools::policy::{PolicyDecision, PolicyRequest, ToolPolicies};

use super::RunError;

/// The tools of a run before policy, and the policies. What remains depends on the caller and on the model.
#[derive(Clone)]
pub struct ToolOffer {
    layers: ToolLayers,
    policies: Arc<ToolPolicies>,
    caller: Caller,
}

impl ToolOffer {
    pub(crate) fn new(layers: ToolLayers, policies: Arc<ToolPolicies>, caller: Caller) -> Self {
        Self { layers, policies, caller }
    }

    fn request<'a>(&'a self, model: &'a Model) -> PolicyRequest<'a> {
        PolicyRequest::new(&self.caller, model.provider.as_str(), model.id.as_str())
    }

    /// The tools that a model is offered.
    ///
    /// # Errors
    /// If an allow list is configured and leaves no tool at all: that is a mistake in the configuration, and an agent without hands would not
    /// notice it.
    pub fn for_model(&self, model: &Model) -> Result<ToolSet, RunError> {
        let offered = self.layers.offer(&self.policies.resolve(&self.request(model)));
        for warning in offered.decision.warnings() {
            tracing::warn!("{warning}");
        }
        for conflict in &offered.conflicts {
            tracing::warn!("{conflict}");
        }
        if !offered.decision.is_emptied() {
            return Ok(offered.tools);
        }
        let reasons = offered.decision.explanations().map(|explanation| explanation.to_string());
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        Err(RunError::Config(format!(
            "the configured tool policy leaves no tool for {}/{}: {reasons}. Correct the allow list, or disable tools in the request",
            model.provider, model.id
        )))
    }

    /// What the policies decide about each tool for a model.
    pub fn decide(&self, model: &Model) -> PolicyDecision {
        self.layers.offer(&self.policies.resolve(&self.request(model))).decision
    }
}

impl fmt::Debug for ToolOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOffer").field("layers", &self.layers).field("caller", &self.caller).finish_non_exhaustive()
    }
}

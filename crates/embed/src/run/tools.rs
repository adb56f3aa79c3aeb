//! The tools of a run, and which of them are offered to a model.

use std::fmt;
use std::sync::Arc;

use pinch_agent_core::tool::{ExternalTool, Tool, ToolSet, ToolSpec};
use pinch_coding_agent::extension::Extensions;
use pinch_coding_agent::session::ArrangeTools;
use pinch_llm::model::Model;
use pinch_ports::Caller;
use pinch_tools::pipeline::{OfferedTools, ToolLayers};
use pinch_tools::policy::{
    Explanation, OfferedTool, PermissionMode, PolicyDecision, PolicyRequest, RunPolicy, ToolPolicies, ToolRules,
};
use pinch_tools::results::{result_limit, with_limit};
use pinch_tools::tool_search::SEARCH_TOOLS;

use super::RunError;
use super::arrangement::{Arrangement, of_extensions};
use crate::config::exec::PatchModels;

/// Name of the tool that manages background commands.
const PROCESS: &str = "process";
/// Name of the tool that applies patches.
pub(crate) const APPLY_PATCH: &str = "apply_patch";

/// A tool and its replacement.
#[derive(Clone)]
pub(crate) struct ToolPair {
    pub(crate) usual: Arc<dyn Tool>,
    pub(crate) instead: Arc<dyn Tool>,
}

/// The tools of a run before policies apply, and the policies. What remains depends on the caller and the model.
#[derive(Clone)]
pub struct ToolOffer {
    layers: ToolLayers,
    /// Replaces `exec` if `process` is not offered.
    foreground: Option<ToolPair>,
    policies: Arc<ToolPolicies>,
    caller: Caller,
    /// Tool rules of the run's sandbox.
    sandbox: Option<ToolRules>,
    /// Upper limit for the permissions of the session.
    mode: Option<PermissionMode>,
    /// How deeply the session is nested in sub-agents, if that is stored.
    depth: Option<u32>,
    /// Which models may apply patches.
    patches: PatchModels,
    /// Number of hits of a search for tools, if they are searched for.
    search: Option<usize>,
    /// Names of tools reserved for the owner of the agent.
    owner_only: Vec<String>,
}

/// The tools of a session with one model.
pub(crate) struct ArrangedTools {
    /// All tools, including those that the client runs.
    pub(crate) tools: ToolSet,
    /// Removes tools of extensions that the policy denies, and defers some tools if they are searched for.
    pub(crate) arrange: ArrangeTools,
}

impl ToolOffer {
    pub(crate) fn new(
        layers: ToolLayers,
        foreground: Option<ToolPair>,
        policies: Arc<ToolPolicies>,
        caller: Caller,
    ) -> Self {
        Self {
            layers,
            foreground,
            policies,
            caller,
            sandbox: None,
            mode: None,
            depth: None,
            patches: PatchModels::default(),
            search: None,
            owner_only: Vec::new(),
        }
    }

    /// Reserves tools for the owner of the agent.
    pub(crate) fn reserved_for_owner(mut self, names: &[String]) -> Self {
        self.owner_only = names.to_vec();
        self
    }

    /// Sets the upper limit for the permissions of the session.
    pub(crate) fn in_mode(mut self, mode: Option<PermissionMode>) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how deeply the session is nested in sub-agents, if that is stored.
    pub(crate) fn at_depth(mut self, depth: Option<u32>) -> Self {
        self.depth = depth;
        self
    }

    /// Limits the models that may apply patches.
    pub(crate) fn patches_by(mut self, models: PatchModels) -> Self {
        self.patches = models;
        self
    }

    /// Lets the model search for the tools that are not for coding, with this many hits.
    pub(crate) fn searched(mut self, limit: Option<usize>) -> Self {
        self.layers.reserved = if limit.is_some() { &SEARCH_TOOLS } else { &[] };
        self.search = limit;
        self
    }

    /// Adds the tool rules of the run's sandbox.
    pub(crate) fn in_sandbox(mut self, rules: Option<ToolRules>) -> Self {
        self.sandbox = rules;
        self
    }

    /// Applies a policy to the tools. Without `process` nothing could manage background commands, so commands stay in the foreground.
    fn offer(&self, policy: &RunPolicy, extensions: &Extensions) -> OfferedTools {
        let theirs = extensions.owned_tools();
        let offer = |layers: &ToolLayers| layers.offer_beside(policy, |own| of_extensions(&theirs, own));
        let offered = offer(&self.layers);
        let replaced = |exec: &ToolPair| {
            let mut layers = self.layers.clone();
            let own = layers.replacements.iter_mut().find(|tool| Arc::ptr_eq(tool, &exec.usual))?;
            *own = Arc::clone(&exec.instead);
            Some(offer(&layers))
        };
        match &self.foreground {
            Some(exec) if offered.tools.get(PROCESS).is_none() => replaced(exec).unwrap_or(offered),
            _ => offered,
        }
    }

    fn request<'a>(&'a self, model: &'a Model) -> PolicyRequest<'a> {
        let request = PolicyRequest::new(&self.caller, model.provider.as_str(), model.id.as_str());
        let setting = self.patches.denied_by(model.provider.as_str(), model.id.as_str());
        let request = setting.into_iter().fold(request, |request, setting| request.disabling(APPLY_PATCH, setting));
        let request = request.owner_only(self.owner_only.iter().cloned());
        let request = self.mode.iter().fold(request, |request, mode| request.mode(*mode));
        let request = self.depth.iter().fold(request, |request, depth| request.depth(*depth));
        match &self.sandbox {
            Some(rules) => request.sandbox(rules.clone()),
            None => request,
        }
    }

    /// Returns the tools to offer to a model beside those of extensions, which are not among them. Their results are limited to its context window. A runtime that does not search for tools
    /// declares all of them.
    ///
    /// # Errors
    /// If an allow list is configured and leaves no tools at all. This is a configuration error that an agent without tools would not
    /// notice.
    pub fn for_model(&self, model: &Model, extensions: &Extensions) -> Result<ToolSet, RunError> {
        self.offer_to(model, &self.policies.resolve(&self.request(model)), extensions).map(|offered| offered.tools)
    }

    /// Returns the tools of a session with a model and these extensions.
    ///
    /// # Errors
    /// If the policy leaves no tools, or if a tool of the client has the name of another one.
    pub(crate) fn for_session(
        &self,
        model: &Model,
        client_tools: &[ToolSpec],
        extensions: &Extensions,
    ) -> Result<ArrangedTools, RunError> {
        let policy = self.policies.resolve(&self.request(model));
        let mut offered = self.offer_to(model, &policy, extensions)?;
        let tools = with_client_tools(&offered.tools, client_tools, self.layers.reserved)?;
        offered.tools = tools.clone();
        let limit = result_limit(model.context_window);
        let arrangement = Arrangement::new(offered, policy, extensions.clone(), self.search, limit);
        Ok(ArrangedTools { tools, arrange: Arc::new(move |active: &ToolSet| arrangement.arrange(active)) })
    }

    fn offer_to(&self, model: &Model, policy: &RunPolicy, extensions: &Extensions) -> Result<OfferedTools, RunError> {
        let mut offered = self.offer(policy, extensions);
        for warning in offered.decision.warnings() {
            tracing::warn!("{warning}");
        }
        for conflict in &offered.conflicts {
            tracing::warn!("{conflict}");
        }
        if !offered.decision.is_emptied() {
            let limit = result_limit(model.context_window);
            offered.tools = offered.tools.iter().map(|tool| with_limit(Arc::clone(tool), limit)).collect();
            return Ok(offered);
        }
        let removed = offered.decision.explanations().filter(|explanation| explanation.removed.is_some());
        let reasons = removed.map(|explanation| explanation.to_string());
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        Err(RunError::Config(format!(
            "the configured tool policy leaves no tool for {}/{}: {reasons}. Correct the allow list, or disable tools in the request",
            model.provider, model.id
        )))
    }

    /// Returns whether patches may be applied, if the policy allows it.
    pub(crate) fn applies_patches(&self) -> bool {
        self.layers.replacements.iter().any(|tool| tool.spec().name == APPLY_PATCH)
    }

    /// Returns why the policy removes one of these tools, if it does, whether or not this engine has them.
    pub(crate) fn removal_of(&self, names: &[&str], model: &Model) -> Option<Explanation> {
        let tools: Vec<OfferedTool> = names.iter().map(|name| OfferedTool::new(*name)).collect();
        let decision = self.policies.resolve(&self.request(model)).decide(&tools);
        decision.explanations().find(|explanation| explanation.removed.is_some())
    }

    /// Returns the policy decision about each tool for a model, including those of extensions.
    pub fn decide(&self, model: &Model, extensions: &Extensions) -> PolicyDecision {
        self.offer(&self.policies.resolve(&self.request(model)), extensions).decision
    }
}

/// Returns the tools to offer to a model together with the client tools.
///
/// # Errors
/// If a name is used twice, or reserved.
fn with_client_tools(tools: &ToolSet, client_tools: &[ToolSpec], reserved: &[&str]) -> Result<ToolSet, RunError> {
    let mut all: Vec<Arc<dyn Tool>> = tools.iter().cloned().collect();
    for spec in client_tools {
        if reserved.contains(&spec.name.as_str()) || all.iter().any(|tool| tool.spec().name == spec.name) {
            let name = &spec.name;
            return Err(RunError::Config(format!(
                "the client tool {name:?} has the name of another tool of the run. Rename it"
            )));
        }
        all.push(Arc::new(ExternalTool::new(spec.clone())));
    }
    Ok(all.into_iter().collect())
}

impl fmt::Debug for ToolOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOffer").field("layers", &self.layers).field("caller", &self.caller).finish_non_exhaustive()
    }
}

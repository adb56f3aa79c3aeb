//! Arranges the tools of a session: removes those of extensions that the policy denies, and, if tools are searched for, splits the others
//! into those that the model is told about and those that it searches for.
//!
//! This happens where the session hands its tools to the loop, because extensions add and change tools at any time. `tool_call` is undone
//! in the loop itself, before events, hooks, the guardrail and loop detection see a call: all of them get the name and the arguments of the
//! tool that runs, so that no rule about a tool can be avoided by calling it indirectly. The conversation keeps what the model wrote.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::{Tool, ToolMode, ToolSet};
use pinch_coding_agent::extension::Extensions;
use pinch_tools::pipeline::{OfferedTools, reporting};
use pinch_tools::policy::{Explanation, OfferedTool, RunPolicy, canonical_name};
use pinch_tools::results::with_limit;
use pinch_tools::tool_search::{SEARCH_TOOLS, TOOL_CALL, ToolCatalog, is_direct, search_tools};

/// Where a tool goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    /// Declared to the model.
    Direct,
    /// In the catalog and in the system prompt.
    Listed,
    /// Only in the catalog.
    Unlisted,
    /// Nowhere.
    Omitted,
}

/// The rules for the tools of one session.
pub(super) struct Arrangement {
    /// The tools of the run; those of extensions are not among them.
    own: OfferedTools,
    policy: RunPolicy,
    extensions: Extensions,
    n_hits: Option<usize>,
    result_limit: usize,
}

/// Describes tools of extensions, each with the name of its extension, as a policy sees them: each extension is a plugin, named like its file
/// without the ending. The name of a tool does not become the name of a plugin.
pub(super) fn of_extensions(theirs: &[(Arc<str>, Arc<dyn Tool>)], own: &[OfferedTool]) -> Vec<OfferedTool> {
    let plugin = |extension: &str| {
        let id = Path::new(extension).file_stem().map_or(extension.into(), |stem| stem.to_string_lossy());
        match own.iter().any(|tool| canonical_name(&tool.name) == canonical_name(&id)) {
            true => format!("extension:{id}"),
            false => id.into_owned(),
        }
    };
    theirs.iter().map(|(extension, tool)| OfferedTool::new(&tool.spec().name).plugin(plugin(extension))).collect()
}

/// The tools of extensions, and the decisions about them.
type ForeignTools = Vec<(Arc<dyn Tool>, Explanation)>;

impl Arrangement {
    /// Creates the rules. `own`: the tools of the run that the policy allows. `n_hits`: number of hits of a search; `None`: all tools are
    /// declared. `result_limit`: maximum characters of a result.
    pub(super) fn new(
        own: OfferedTools,
        policy: RunPolicy,
        extensions: Extensions,
        n_hits: Option<usize>,
        result_limit: usize,
    ) -> Self {
        Self { own, policy, extensions, n_hits, result_limit }
    }

    /// Returns the tools to declare. If tools are searched for, these are the ones that are always declared, and, if others remain, the
    /// three tools that give access to them.
    pub(super) fn arrange(&self, active: &ToolSet) -> ToolSet {
        let theirs = self.foreign_tools();
        let placed: Vec<(Placement, Arc<dyn Tool>)> =
            active.iter().map(|tool| (self.place(tool, &theirs), self.wrapped(tool))).collect();
        let in_place = |wanted: &[Placement]| -> ToolSet {
            placed
                .iter()
                .filter(|(placement, _)| wanted.contains(placement))
                .map(|(_, tool)| Arc::clone(tool))
                .collect()
        };
        let Some(n_hits) = self.n_hits else {
            return in_place(&[Placement::Direct, Placement::Listed, Placement::Unlisted]);
        };
        let direct = in_place(&[Placement::Direct]);
        let deferred = in_place(&[Placement::Listed, Placement::Unlisted]);
        // Without a way to call them, searching for tools is useless.
        if deferred.is_empty() || !self.own.decision.allows(TOOL_CALL) {
            return direct;
        }
        let names = direct.iter().map(|tool| tool.spec().name.clone()).chain(SEARCH_TOOLS.map(str::to_owned));
        let catalog = ToolCatalog::new(deferred, in_place(&[Placement::Listed]), names).with_limit(n_hits);
        let search = search_tools(&Arc::new(catalog)).into_iter();
        let search = search.filter(|tool| self.own.decision.allows(&tool.spec().name));
        let search = search.map(|tool| with_limit(reporting(tool), self.result_limit));
        direct.iter().cloned().chain(search).collect()
    }

    fn foreign_tools(&self) -> ForeignTools {
        let tools = self.extensions.owned_tools();
        if tools.is_empty() {
            return Vec::new();
        }
        let own = &self.own.candidates;
        let decision = self.policy.decide(&[own.clone(), of_extensions(&tools, own)].concat());
        let explanations = decision.explanations().skip(own.len());
        tools.into_iter().map(|(_, tool)| tool).zip(explanations).collect()
    }

    fn is_own(&self, tool: &Arc<dyn Tool>) -> bool {
        self.own.tools.get(&tool.spec().name).is_some_and(|own| Arc::ptr_eq(own, tool))
    }

    /// Returns a tool that reports its failures as results of limited length. The run's own tools do already.
    fn wrapped(&self, tool: &Arc<dyn Tool>) -> Arc<dyn Tool> {
        match self.is_own(tool) {
            true => Arc::clone(tool),
            false => with_limit(reporting(Arc::clone(tool)), self.result_limit),
        }
    }

    fn place(&self, tool: &Arc<dyn Tool>, theirs: &ForeignTools) -> Placement {
        let spec = tool.spec();
        let name = spec.name.as_str();
        let own = self.own.tools.get(name);
        let is_own = self.is_own(tool);
        if !is_own && !self.permits_foreign(tool, theirs) {
            return Placement::Omitted;
        }
        // An extension may replace a coding tool, but not add one.
        let is_coding_tool = is_direct(name) && own.is_some();
        let is_listed = is_own && !self.own.of_plugins.iter().any(|other| other == name);
        match spec.mode == ToolMode::External || is_coding_tool {
            true => Placement::Direct,
            false if is_listed => Placement::Listed,
            false => Placement::Unlisted,
        }
    }

    /// Returns whether an extension may offer a tool of this name.
    fn permits_foreign(&self, tool: &Arc<dyn Tool>, theirs: &ForeignTools) -> bool {
        let name = tool.spec().name.as_str();
        if self.n_hits.is_some() && SEARCH_TOOLS.contains(&canonical_name(name).as_str()) {
            tracing::warn!("tool name conflict: {name} of an extension is the name of a tool of the run");
            return false;
        }
        let known = theirs.iter().find(|(other, _)| Arc::ptr_eq(other, tool));
        let explanation = known.map_or_else(|| self.own.decision.explain(name), |(_, explanation)| explanation.clone());
        if explanation.removed.is_some() {
            tracing::debug!("a tool of an extension is not offered: {explanation}");
        }
        explanation.removed.is_none()
    }
}

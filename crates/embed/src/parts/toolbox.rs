//! The tools that an engine offers: built-in ones that the host enabled by name, and tools of the host itself.

use std::fmt;
use std::sync::Arc;

use pinch_agent_core::tool::{Tool, ToolSet};
use pinch_coding_agent::tools::{ALL, ToolParts, all_tools};

use crate::run::RunRequest;
use crate::run::scope::ToolPolicy;

/// Creates tools for one run, from what is known about its caller.
pub(crate) type ToolsFor = Arc<dyn Fn(&RunRequest) -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// The name of the tool that sends messages, which a request can switch off.
const MESSAGE_TOOL: &str = "message";

/// The tools of an engine. Empty unless the host adds something: nothing on the host is reachable by default.
#[derive(Clone, Default)]
pub(crate) struct Toolbox {
    builtin: Vec<String>,
    tools: Vec<Arc<dyn Tool>>,
    tools_for: Vec<ToolsFor>,
}

impl Toolbox {
    /// Enables built-in tools by name.
    pub(crate) fn enable<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.builtin.extend(names.into_iter().map(str::to_owned));
    }

    /// Adds a tool for every run.
    pub(crate) fn add(&mut self, tool: Arc<dyn Tool>) {
        self.tools.push(tool);
    }

    /// Adds tools that depend on the run.
    pub(crate) fn add_for(&mut self, make: ToolsFor) {
        self.tools_for.push(make);
    }

    /// Enabled names that are not built-in tools.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.builtin.iter().map(String::as_str).filter(|name| !ALL.contains(name))
    }

    /// The tools of one run. A tool of the host replaces a built-in one of the same name; tools that policy denies are left out.
    pub(crate) fn of_run(&self, request: &RunRequest, parts: &ToolParts, policy: &ToolPolicy) -> ToolSet {
        if request.disable_tools {
            return ToolSet::new();
        }
        let builtin = all_tools(parts).filter(|tool| self.builtin.contains(&tool.spec().name));
        let own: ToolSet =
            self.tools.iter().cloned().chain(self.tools_for.iter().flat_map(|make| make(request))).collect();
        let of_host = |tool: &Arc<dyn Tool>| own.get(&tool.spec().name).cloned();
        let kept = builtin.iter().map(|tool| of_host(tool).unwrap_or_else(|| Arc::clone(tool)));
        let added = own.iter().filter(|tool| builtin.get(&tool.spec().name).is_none()).cloned();
        let all: ToolSet = kept.chain(added).collect();
        all.filter(|tool| {
            let name = &tool.spec().name;
            policy.allows(name) && !(request.disable_message_tool && name == MESSAGE_TOOL)
        })
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Toolbox").field("builtin", &self.builtin).field("tools", &names).finish_non_exhaustive()
    }
}

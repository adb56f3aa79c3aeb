//! Tools that an engine offers: built-in ones enabled by the host, and the host's own.

use std::fmt;
use std::sync::Arc;

use pinch_agent_core::tool::{Tool, ToolSet};
use pinch_coding_agent::tools::{ALL, ToolParts, all_tools};
use pinch_tools::pipeline::{PluginTools, ToolLayers};
use pinch_tools::policy::canonical_name;

use super::commands;
use crate::config::exec::ExecConfig;
use crate::run::RunRequest;
use crate::run::tools::APPLY_PATCH;

/// Creates tools for one run, depending on its caller.
pub(crate) type ToolsFor = Arc<dyn Fn(&RunRequest) -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// Name of the tool that sends messages, which a request can disable.
const MESSAGE_TOOL: &str = "message";

/// Name of the coding tool that runs any command.
const BASH: &str = "bash";
/// Name of the tool that replaces it.
const EXEC: &str = "exec";

/// Names of the tools for sub-agents.
pub(crate) const SESSIONS_SPAWN: &str = "sessions_spawn";
pub(crate) const SUBAGENTS: &str = "subagents";
const SUBAGENT_TOOLS: [&str; 2] = [SESSIONS_SPAWN, SUBAGENTS];

/// The tools of an engine. Empty unless the host adds some: nothing on the host is reachable by default.
#[derive(Clone, Default)]
pub(crate) struct Toolbox {
    builtin: Vec<String>,
    tools: Vec<Arc<dyn Tool>>,
    tools_for: Vec<ToolsFor>,
    services: Vec<ToolsFor>,
    owner_only: Vec<String>,
    channels: Vec<Arc<dyn Tool>>,
    plugins: Vec<PluginTools>,
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

    /// Adds built-in tools that need the engine, and depend on the run.
    pub(crate) fn add_services(&mut self, make: ToolsFor) {
        self.services.push(make);
    }

    /// Returns whether a built-in tool is enabled.
    pub(crate) fn is_enabled(&self, name: &str) -> bool {
        self.builtin.iter().any(|enabled| enabled == name)
    }

    /// Adds a tool of a channel.
    pub(crate) fn add_for_channel(&mut self, tool: Arc<dyn Tool>) {
        self.channels.push(tool);
    }

    /// Adds the tools of a plugin.
    pub(crate) fn add_plugin(&mut self, plugin: PluginTools) {
        self.plugins.push(plugin);
    }

    /// Reserves tools for the owner of the agent.
    pub(crate) fn reserve<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        self.owner_only.extend(names.into_iter().map(str::to_owned));
    }

    /// Returns the names of tools reserved for the owner of the agent.
    pub(crate) fn owner_only(&self) -> &[String] {
        &self.owner_only
    }

    /// Returns enabled names that are not built-in tools.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &str> {
        let is_known =
            |name: &&str| ALL.contains(name) || commands::NAMES.contains(name) || SUBAGENT_TOOLS.contains(name);
        self.builtin.iter().map(String::as_str).filter(move |name| !is_known(name))
    }

    /// Returns which of `exec`, `process` and `apply_patch` are enabled. If command rules are configured, `exec` and `process` replace
    /// `bash`, which ignores them.
    pub(crate) fn command_tools(&self, has_rules: bool) -> Vec<&'static str> {
        let stands_in = has_rules && self.is_enabled(BASH);
        commands::NAMES
            .into_iter()
            .filter(|name| self.is_enabled(name) || (stands_in && *name != APPLY_PATCH))
            .collect()
    }

    /// Returns the keys of `tools.exec` that have no effect because `bash` runs the commands.
    pub(crate) fn idle_exec_keys(&self, exec: &ExecConfig) -> impl Iterator<Item = &'static str> {
        let is_idle = self.is_enabled(BASH) && !self.command_tools(exec.has_rules()).contains(&EXEC);
        exec.keys_of_exec().filter(move |_| is_idle)
    }

    /// Returns the tools of a run before policies apply. A tool of the host replaces a built-in one of the same name. `commands`: the tools
    /// that [`Toolbox::command_tools`] names.
    pub(crate) fn of_run(&self, request: &RunRequest, parts: &ToolParts, commands: Vec<Arc<dyn Tool>>) -> ToolLayers {
        if request.disable_tools {
            return ToolLayers::default();
        }
        let builtin = all_tools(parts).filter(|tool| self.builtin.contains(&tool.spec().name));
        let own: ToolSet =
            self.tools.iter().cloned().chain(self.tools_for.iter().flat_map(|make| make(request))).collect();
        let is_disabled = |tool: &dyn Tool| request.disable_message_tool && tool.spec().name == MESSAGE_TOOL;
        let own = own.filter(|tool| !is_disabled(tool));
        let channels = self.channels.iter().filter(|tool| !is_disabled(&***tool)).cloned().collect();
        let name = |tool: &Arc<dyn Tool>| canonical_name(&tool.spec().name);
        let takes_place = |tool: &Arc<dyn Tool>| builtin.iter().chain(&commands).any(|other| name(other) == name(tool));
        let (mut replacements, host): (Vec<_>, Vec<_>) = own.iter().cloned().partition(takes_place);
        let of_commands = commands.iter().filter(|tool| own.iter().all(|other| name(other) != name(tool)));
        replacements.extend(of_commands.cloned());
        let plugins = self.plugins.clone();
        let services = self.services.iter().flat_map(|make| make(request)).collect();
        ToolLayers { base: builtin, replacements, services, channels, plugins, host, ..ToolLayers::default() }
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("Toolbox").field("builtin", &self.builtin).field("tools", &names).finish_non_exhaustive()
    }
}

//! Resolving a configuration into the policy of one run.

use pinch_ports::Caller;
use serde_json::Value;

use super::config::{ANY, ChannelGroups, LevelConfig, PolicyProblem, Reader, ToolsSection, joined};
use super::decide::{OfferedTool, PolicyDecision, PolicySender, PolicyStep, UnknownEntries};
use super::group::{channel_rules, group_rules, sender_rules};
use super::levels::{nesting_depth, sandbox_rules, subagent_rules};
use super::mode::PermissionMode;
use super::names;
use super::rules::ToolRules;

/// Default and maximum nesting depth of sub-agents.
const SPAWN_DEPTH: u32 = 1;
const MAX_SPAWN_DEPTH: u32 = 5;

/// The agent of sessions that name none.
const DEFAULT_AGENT: &str = "main";

/// All tool policies in a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPolicies {
    tools: ToolsSection,
    agents: Vec<(String, ToolsSection)>,
    channels: Vec<ChannelGroups>,
    max_spawn_depth: Option<u32>,
}

/// The inputs of a policy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PolicyRequest<'a> {
    /// Who talks to the agent.
    pub caller: &'a Caller,
    /// The provider of the model.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// The rules of an active sandbox, usually [`ToolPolicies::sandbox`].
    pub sandbox: Option<ToolRules>,
    /// The permission mode of the session.
    pub mode: Option<PermissionMode>,
    /// Tools that settings other than tool lists disable, each with the path of the setting.
    pub disabled: Vec<(String, String)>,
    /// Tools that only the owner of the agent has, besides those that always are.
    pub owner_only: Vec<String>,
    /// The stored nesting depth of the session; derived from its key if `None`.
    pub depth: Option<u32>,
}

impl<'a> PolicyRequest<'a> {
    /// Creates a request without a sandbox.
    pub fn new(caller: &'a Caller, provider: &'a str, model: &'a str) -> Self {
        Self {
            caller,
            provider,
            model,
            sandbox: None,
            mode: None,
            disabled: Vec::new(),
            owner_only: Vec::new(),
            depth: None,
        }
    }

    /// Adds the rules of a sandbox.
    #[must_use]
    pub fn sandbox(mut self, rules: ToolRules) -> Self {
        self.sandbox = Some(rules);
        self
    }

    /// Sets the permission mode.
    #[must_use]
    pub fn mode(mut self, mode: PermissionMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Denies a tool that the setting with this path disables.
    #[must_use]
    pub fn disabling(mut self, tool: impl Into<String>, setting: impl Into<String>) -> Self {
        self.disabled.push((tool.into(), setting.into()));
        self
    }

    /// Reserves tools for the owner of the agent.
    #[must_use]
    pub fn owner_only(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.owner_only.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Sets the stored depth of the session.
    #[must_use]
    pub fn depth(mut self, depth: u32) -> Self {
        self.depth = Some(depth);
        self
    }
}

/// The policy of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPolicy {
    sender: PolicySender,
    steps: Vec<PolicyStep>,
}

impl RunPolicy {
    /// Decides which of these tools remain.
    pub fn decide(&self, tools: &[OfferedTool]) -> PolicyDecision {
        PolicyDecision::new(&self.sender, &self.steps, tools)
    }

    /// Returns whether an allow list contains one of these entries literally.
    pub fn names_explicitly(&self, entries: &[&str]) -> bool {
        let entries: Vec<String> = entries.iter().map(|entry| names::canonical_name(entry)).collect();
        let lists = self.steps.iter().filter_map(|step| step.rules.allow.as_ref());
        lists.flatten().any(|entry| entries.contains(&names::canonical_name(entry)))
    }
}

impl ToolPolicies {
    /// Reads `tools`, `agents` and `channels` of a configuration, and returns the problems found.
    pub fn read(config: &Value) -> (Self, Vec<PolicyProblem>) {
        let mut reader = Reader::default();
        let defaults = config.pointer("/agents/defaults/subagents/maxSpawnDepth");
        let depth = defaults.and_then(Value::as_f64).map(|depth| depth.clamp(1.0, f64::from(MAX_SPAWN_DEPTH)));
        let policies = Self {
            tools: reader.tools(config.get("tools"), "tools"),
            agents: reader.agents(config.get("agents")),
            channels: reader.channels(config.get("channels")),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 5")]
            max_spawn_depth: depth.map(|depth| depth as u32),
        };
        (policies, reader.problems)
    }

    /// Returns the rules for tools in an agent's sandbox.
    pub fn sandbox(&self, agent: &str) -> ToolRules {
        sandbox_rules(self.agent(agent).map(|(_, tools)| &tools.sandbox), &self.tools.sandbox)
    }

    /// Returns the rules of sub-agents at this depth, by default 1.
    pub fn subagent(&self, depth: Option<u32>) -> ToolRules {
        subagent_rules(depth.unwrap_or(1), self.max_spawn_depth(), &self.tools.subagents)
    }

    /// Returns how deeply sub-agents may be nested: `agents.defaults.subagents.maxSpawnDepth`, from 1 to 5, by default 1.
    pub fn max_spawn_depth(&self) -> u32 {
        self.max_spawn_depth.unwrap_or(SPAWN_DEPTH)
    }

    fn agent(&self, id: &str) -> Option<&(String, ToolsSection)> {
        let id = id.trim().to_lowercase();
        let find = |id: &str| self.agents.iter().find(|(known, _)| known == id);
        find(&id).or_else(|| find(ANY))
    }

    /// Returns the policy for one caller and model.
    pub fn resolve(&self, request: &PolicyRequest<'_>) -> RunPolicy {
        let caller = request.caller;
        let key = caller.session_key.as_deref().unwrap_or_default();
        let agent_id = agent_of(caller);
        let agent = self.agent(&agent_id).map(|(_, tools)| tools);
        let provider = |tools: &'_ ToolsSection| tools.provider(request.provider, request.model).cloned();
        let (global_provider, agent_provider) = (provider(&self.tools), agent.and_then(provider));
        let unknown = match self.tools.strict_allow {
            Some(false) => UnknownEntries::Dropped,
            None | Some(true) => UnknownEntries::Closed,
        };
        let mut steps = Vec::new();
        let also = |agent: Option<&LevelConfig>, global: Option<&LevelConfig>| {
            let list = |level: Option<&LevelConfig>| level.and_then(|level| level.also_allow.clone());
            list(agent).or_else(|| list(global)).unwrap_or_default()
        };
        let pick = |agent: Option<&LevelConfig>, global: Option<&LevelConfig>| {
            let profile = |level: Option<&LevelConfig>| level.and_then(|level| level.profile.clone());
            profile(agent).or_else(|| profile(global))
        };
        let (own, all) = (agent.map(|tools| &tools.level), Some(&self.tools.level));
        if let Some(profile) = pick(own, all) {
            steps.extend(profile_step("tools.profile", &profile, &also(own, all), unknown));
        }
        let (own, all) = (agent_provider.as_ref(), global_provider.as_ref());
        if let Some(profile) = pick(own, all) {
            steps.extend(profile_step("tools.byProvider.profile", &profile, &also(own, all), unknown));
        }
        let mut add = |label: String, rules: Option<ToolRules>, unknown| {
            steps.extend(rules.map(|rules| PolicyStep { label, rules, n_built_in: 0, unknown }));
        };
        let rules = |level: Option<&LevelConfig>| level.and_then(LevelConfig::rules);
        add("tools.allow".to_owned(), self.tools.level.rules(), unknown);
        add("tools.byProvider.allow".to_owned(), rules(global_provider.as_ref()), unknown);
        add(format!("agents.{agent_id}.tools.allow"), rules(agent.map(|tools| &tools.level)), unknown);
        add(format!("agents.{agent_id}.tools.byProvider.allow"), rules(agent_provider.as_ref()), unknown);
        if let Some((channel, level)) = channel_rules(caller, &self.channels) {
            add(format!("channels.{channel}.tools.allow"), level.rules(), unknown);
        }
        add("group tools.allow".to_owned(), rules(group_rules(caller, &self.channels)), unknown);
        add("tools.toolsBySender.allow".to_owned(), rules(sender_rules(&self.tools.senders, caller)), unknown);
        let senders = agent.and_then(|tools| sender_rules(&tools.senders, caller));
        add(format!("agents.{agent_id}.tools.toolsBySender.allow"), rules(senders), unknown);
        let mode = request.mode.map(|mode| (format!("the session mode {}", mode.name()), mode.rules()));
        if let Some((label, rules)) = mode {
            add(label, Some(rules), UnknownEntries::Unchecked);
        }
        for (tool, setting) in &request.disabled {
            let rules = ToolRules { allow: None, deny: vec![tool.clone()] };
            add(setting.clone(), Some(rules), UnknownEntries::Unchecked);
        }
        let lists = [agent.map(|tools| &tools.sandbox), Some(&self.tools.sandbox)];
        let unknown = match lists.into_iter().flatten().any(|list| list.allow.is_some()) {
            true => UnknownEntries::Written,
            false => UnknownEntries::Unchecked,
        };
        add("sandbox tools.allow".to_owned(), request.sandbox.clone(), unknown);
        let parent = caller.spawned_by.as_deref().filter(|parent| !parent.trim().is_empty());
        let stored = nesting_depth(key, parent, &|of| request.depth.filter(|_| of == key));
        let derived = nesting_depth(key, parent, &|_| None);
        // A spawned session is a sub-agent, even if its key does not look like one, or if no depth is stored.
        if stored > 0 || derived > 0 {
            let rules = self.subagent(Some(stored));
            add("subagent tools.allow".to_owned(), Some(rules), UnknownEntries::Unchecked);
        }
        let reserved = request.owner_only.iter().map(|name| names::canonical_name(name)).collect();
        RunPolicy { sender: PolicySender { is_owner: caller.is_owner, reserved }, steps }
    }
}

/// Returns the agent that a caller talks to, as set by the host, or else by the session key.
fn agent_of(caller: &Caller) -> String {
    let named = caller.agent.as_deref().map(str::trim).filter(|agent| !agent.is_empty());
    let in_key = || {
        let mut parts = caller.session_key.as_deref()?.split(':').filter(|part| !part.is_empty());
        let is_agent = parts.next()?.trim().eq_ignore_ascii_case("agent");
        parts.next().filter(|_| is_agent)
    };
    named.or_else(in_key).unwrap_or(DEFAULT_AGENT).trim().to_lowercase()
}

/// Returns the step of a profile, extended by `alsoAllow`. A profile that restricts nothing has no step.
fn profile_step(label: &str, profile: &str, also: &[String], unknown: UnknownEntries) -> Option<PolicyStep> {
    let entries: Vec<String> = names::profile(profile)?.iter().map(|entry| (*entry).to_owned()).collect();
    let n_built_in = entries.len();
    let rules = ToolRules { allow: Some(joined(&entries, also)), deny: Vec::new() };
    Some(PolicyStep { label: format!("{label} ({profile})"), rules, n_built_in, unknown })
}

#[cfg(test)]
mod tests;

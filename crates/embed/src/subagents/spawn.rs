//! Decides whether a session may start a sub-agent, and with which agent, model and thinking level.

use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Value, json};

use crate::config::Config;
use crate::config::agents::Agents;
use crate::config::thinking::{LEVELS, parse_level};
use crate::key::{self, AgentId};

/// A model, with its provider if the name does not include it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnModel {
    /// The provider.
    pub provider: Option<String>,
    /// The model: its id, `provider/id`, or an alias.
    pub model: String,
}

impl SpawnModel {
    /// Creates a model from a reference or an alias.
    pub fn named(name: &str) -> Self {
        Self { provider: None, model: name.trim().to_owned() }
    }
}

/// The session that wants to start a sub-agent.
#[derive(Clone, Debug, Default)]
pub struct SpawnRequester {
    /// Its key.
    pub key: String,
    /// The session that started it, if it is a sub-agent itself.
    pub spawned_by: Option<String>,
    /// How deeply it is nested in sub-agents, as stored.
    pub depth: Option<u32>,
    /// Number of its sub-agents that have not ended.
    pub n_active: usize,
    /// Model of its run, if it is not the configured one.
    pub model: Option<SpawnModel>,
    /// Thinking level of its run.
    pub thinking: Option<ThinkingLevel>,
}

impl SpawnRequester {
    /// Returns how deeply the session is nested in sub-agents: whatever says the most, so that a session cannot lose a level.
    fn depth(&self) -> u32 {
        let of_key = |key: &str| u32::try_from(key::subagent_depth(key)).unwrap_or(u32::MAX);
        let parent = self.spawned_by.as_deref().map_or(0, |parent| of_key(parent).saturating_add(1));
        self.depth.unwrap_or(0).max(of_key(&self.key)).max(parent)
    }
}

/// What a call asks for.
#[derive(Clone, Debug, Default)]
pub struct SpawnOptions {
    /// The agent; `None`: that of the requester.
    pub agent: Option<String>,
    /// The model; `None`: as configured, else that of the requester.
    pub model: Option<String>,
    /// The thinking level; `None`: as configured, else that of the requester.
    pub thinking: Option<String>,
}

/// A sub-agent that may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnPlan {
    /// Its agent.
    pub agent: AgentId,
    /// Its nesting depth.
    pub depth: u32,
    /// Its model; `None`: that of its agent.
    pub model: Option<SpawnModel>,
    /// Whether that is the requested or configured one; `None` if there is none.
    pub is_model_applied: Option<bool>,
    /// Its thinking level; `None`: that of its agent.
    pub thinking: Option<ThinkingLevel>,
    /// Why the requested or configured model is not used.
    pub warning: Option<String>,
}

/// Why no sub-agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnRefusal {
    /// Whether the configuration forbids it; otherwise the call is wrong.
    pub is_forbidden: bool,
    /// The reason.
    pub text: String,
}

impl SpawnRefusal {
    /// Creates the refusal of a call that cannot be carried out.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { is_forbidden: false, text: text.into() }
    }

    fn forbidden(text: String) -> Self {
        Self { is_forbidden: true, text }
    }

    /// Returns the result of the tool.
    pub fn to_json(&self) -> Value {
        let status = if self.is_forbidden { "forbidden" } else { "error" };
        json!({"status": status, "error": self.text})
    }
}

impl SpawnPlan {
    /// Returns the session key of the sub-agent. `id`: its unique part.
    pub fn child_key(&self, id: &str) -> String {
        format!("agent:{}:subagent:{id}", self.agent)
    }

    /// Returns the result of the tool.
    pub fn to_json(&self, child_key: &str, run_id: &str) -> Value {
        let mut result = json!({"status": "accepted", "childSessionKey": child_key, "runId": run_id});
        if let Some(is_applied) = self.is_model_applied {
            result["modelApplied"] = is_applied.into();
        }
        if let Some(warning) = &self.warning {
            result["warning"] = warning.as_str().into();
        }
        result
    }
}

/// Decides about a sub-agent. `check_model` says why an agent cannot use a model.
///
/// # Errors
/// [`SpawnRefusal`].
pub fn decide(
    config: &Config,
    requester: &SpawnRequester,
    options: &SpawnOptions,
    check_model: impl Fn(&AgentId, &SpawnModel) -> Result<(), String>,
) -> Result<SpawnPlan, SpawnRefusal> {
    let (depth, max_depth) = (requester.depth(), config.tools.max_spawn_depth());
    if depth >= max_depth {
        return Err(SpawnRefusal::forbidden(format!(
            "sessions_spawn is not allowed at this depth (current depth: {depth}, maximum: {max_depth}; agents.defaults.subagents.maxSpawnDepth)"
        )));
    }
    let (n_active, max) = (requester.n_active, config.agents.defaults.subagent_limits.max_children);
    if n_active >= max {
        return Err(SpawnRefusal::forbidden(format!(
            "this session already has {n_active} active sub-agents of {max} (agents.defaults.subagents.maxChildrenPerAgent). Wait for one to \
             report, or stop one"
        )));
    }
    let own = key::agent(&requester.key);
    let agent = target(&config.agents, &own, options.agent.as_deref())?;
    let is_same = agent == own;
    let of_agent = config.agents.get(&agent).map(|agent| &agent.subagents);
    let of_all = &config.agents.defaults.subagents;
    let thinking = match options.thinking.as_deref().map(str::trim).filter(|word| !word.is_empty()) {
        Some(word) => Some(parse_level(&word.to_lowercase()).ok_or_else(|| {
            SpawnRefusal::error(format!("invalid thinking level {word:?}. Use one of {}", LEVELS.join(", ")))
        })?),
        // Another agent thinks as much as it usually does.
        None => {
            of_agent.and_then(|agent| agent.thinking).or(of_all.thinking).or(requester.thinking.filter(|_| is_same))
        }
    };
    let requested = options.model.as_deref().filter(|name| !name.trim().is_empty());
    let configured = || of_agent.and_then(|agent| agent.model.as_deref()).or(of_all.model.as_deref());
    let chosen = requested.or_else(configured).map(SpawnModel::named);
    let inherited = requester.model.clone().filter(|_| is_same);
    let (model, is_model_applied, warning) = match chosen {
        None => (inherited, None, None),
        Some(chosen) => match check_model(&agent, &chosen) {
            Ok(()) => (Some(chosen), Some(true), None),
            Err(why) => (inherited, Some(false), Some(format!("the model {} is not used: {why}", chosen.model))),
        },
    };
    Ok(SpawnPlan { agent, depth: depth.saturating_add(1), model, is_model_applied, thinking, warning })
}

/// Returns the agent of the sub-agent, if the requester may start it.
fn target(agents: &Agents, own: &AgentId, named: Option<&str>) -> Result<AgentId, SpawnRefusal> {
    let Some(named) = named.map(str::trim).filter(|name| !name.is_empty()) else { return Ok(own.clone()) };
    let target = AgentId::normalise(named);
    if target == *own {
        return Ok(target);
    }
    let of_agent = agents.get(own).and_then(|agent| agent.subagents.allow_agents.as_ref());
    let allowed = of_agent.or(agents.defaults.subagents.allow_agents.as_ref()).map_or(&[][..], Vec::as_slice);
    if allowed.iter().any(|entry| entry.trim() == "*" || AgentId::normalise(entry) == target) {
        return Ok(target);
    }
    let list = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    Err(SpawnRefusal::forbidden(format!(
        "the agent {own} may not start the agent {target} (allowed: {list}; agents.list[].subagents.allowAgents)"
    )))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(document: &Value) -> Config {
        let (config, problems) = Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
        assert!(problems.is_empty(), "{problems:?}");
        config
    }

    fn requester(key: &str) -> SpawnRequester {
        let model = Some(SpawnModel::named("a/own"));
        SpawnRequester { key: key.to_owned(), model, thinking: Some(ThinkingLevel::High), ..SpawnRequester::default() }
    }

    fn any(_: &AgentId, _: &SpawnModel) -> Result<(), String> {
        Ok(())
    }

    #[test]
    fn depth_and_number_of_children_are_limited() {
        let config =
            config(&json!({"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2, "maxChildrenPerAgent": 3}}}}));
        let refused = |requester: &SpawnRequester| {
            decide(&config, requester, &SpawnOptions::default(), any).map(|plan| plan.depth).map_err(|refusal| {
                assert!(refusal.is_forbidden);
                refusal.text
            })
        };
        let child = requester("agent:main:subagent:a");
        assert_eq!((refused(&requester("agent:main:main")), refused(&child)), (Ok(1), Ok(2)));
        // Neither a stored depth nor the parent can take a level away.
        let stored = SpawnRequester { depth: Some(2), ..child.clone() };
        let spawned = SpawnRequester { spawned_by: Some("agent:main:subagent:b".into()), depth: Some(0), ..child };
        for deep in [stored, spawned] {
            let text = refused(&deep).unwrap_err();
            assert!(text.contains("current depth: 2, maximum: 2"), "{text}");
        }
        let busy = SpawnRequester { n_active: 3, ..requester("agent:main:main") };
        assert!(refused(&busy).unwrap_err().contains("3 active sub-agents of 3"));
    }

    #[test]
    fn model_and_thinking_come_from_the_call_then_the_agent_then_the_defaults_then_the_requester() {
        let own = requester("agent:main:main");
        let check = |document: Value, options: &SpawnOptions, expect: (&str, Option<ThinkingLevel>)| {
            let plan = decide(&config(&document), &own, options, any).unwrap();
            let model = plan.model.map(|model| model.model);
            assert_eq!((model.as_deref().unwrap_or("none"), plan.thinking), expect, "{document}");
        };
        let none = SpawnOptions::default();
        let defaults = json!({"model": {"primary": "d/m"}, "thinking": "low", "allowAgents": ["*"]});
        let both = json!({"agents": {"defaults": {"subagents": defaults}, "list": [{"id": "main", "subagents": {"model": "m/m", "thinking": "minimal"}}]}});
        check(json!({}), &none, ("a/own", Some(ThinkingLevel::High)));
        check(json!({"agents": {"defaults": {"subagents": defaults}}}), &none, ("d/m", Some(ThinkingLevel::Low)));
        check(both.clone(), &none, ("m/m", Some(ThinkingLevel::Minimal)));
        let asked = SpawnOptions { model: Some(" c/m ".into()), thinking: Some("XHIGH".into()), agent: None };
        check(both, &asked, ("c/m", Some(ThinkingLevel::XHigh)));
        // Another agent has its own model.
        let other = SpawnOptions { agent: Some("ops".into()), ..SpawnOptions::default() };
        check(json!({"agents": {"defaults": {"subagents": {"allowAgents": ["OPS"]}}}}), &other, ("none", None));
    }

    #[test]
    fn a_model_that_cannot_be_used_is_replaced_by_that_of_the_requester() {
        let asked = SpawnOptions { model: Some("x/y".into()), ..SpawnOptions::default() };
        let no = |_: &AgentId, _: &SpawnModel| Err("it is not on the list".to_owned());
        let plan = decide(&Config::default(), &requester("agent:main:main"), &asked, no).unwrap();
        assert_eq!(plan.model, Some(SpawnModel::named("a/own")));
        let result = plan.to_json(&plan.child_key("1"), "r1");
        let warning = "the model x/y is not used: it is not on the list";
        let expect = json!({"status": "accepted", "childSessionKey": "agent:main:subagent:1", "runId": "r1", "modelApplied": false, "warning": warning});
        assert_eq!(result, expect);
    }
}

//! The sections of a configuration that define policies.
//!
//! An unreadable section denies everything at its level, because its intended denials are unknown.

use serde_json::{Map, Value};

use super::names;
use super::rules::ToolRules;

/// An invalid part of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyProblem {
    /// Path in the configuration, e.g. `agents.list[0].tools.deny`.
    pub path: String,
    /// What is wrong, and its consequence.
    pub text: String,
}

/// The members `profile`, `allow`, `alsoAllow` and `deny` of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelConfig {
    pub(super) profile: Option<String>,
    pub(super) allow: Option<Vec<String>>,
    pub(super) also_allow: Option<Vec<String>>,
    pub(super) deny: Option<Vec<String>>,
}

impl LevelConfig {
    /// Returns the rules of the level: `alsoAllow` extends `allow`, or everything if there is no `allow`. Returns `None` if nothing is
    /// configured.
    pub(super) fn rules(&self) -> Option<ToolRules> {
        let allow = match (&self.allow, &self.also_allow) {
            (Some(allow), also) => Some(joined(allow, also.as_deref().unwrap_or_default())),
            (None, Some(also)) if !also.is_empty() => Some(joined(&["*".to_owned()], also)),
            (None, _) => None,
        };
        if allow.is_none() && self.deny.is_none() {
            return None;
        }
        Some(ToolRules { allow, deny: self.deny.clone().unwrap_or_default() })
    }
}

/// Joins two lists without duplicates.
pub(super) fn joined(first: &[String], second: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(first.len() + second.len());
    for entry in first.iter().chain(second) {
        if !all.contains(entry) {
            all.push(entry.clone());
        }
    }
    all
}

/// `tools` of all agents or of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ToolsSection {
    pub(super) level: LevelConfig,
    /// Levels by provider or `provider/model`, both in lower case.
    pub(super) by_provider: Vec<(String, LevelConfig)>,
    pub(super) sandbox: LevelConfig,
    pub(super) subagents: LevelConfig,
    /// Rules by sender.
    pub(super) senders: Vec<(String, LevelConfig)>,
    pub(super) strict_allow: Option<bool>,
}

impl ToolsSection {
    /// Returns the level of a model, or else of its provider, or else of all.
    pub(super) fn provider(&self, provider: &str, model: &str) -> Option<&LevelConfig> {
        let (provider, model) = (provider.trim().to_lowercase(), model.trim().to_lowercase());
        let full = if model.contains('/') { model } else { format!("{provider}/{model}") };
        [full, provider, ANY.to_owned()]
            .iter()
            .find_map(|key| self.by_provider.iter().find(|(known, _)| known == key))
            .map(|(_, level)| level)
    }
}

/// Key of rules for all that have none of their own.
pub(super) const ANY: &str = "*";

/// `groups` of a channel or an account: rules by group id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupRules {
    pub(super) id: String,
    pub(super) tools: Option<LevelConfig>,
    pub(super) senders: Vec<(String, LevelConfig)>,
}

/// One channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChannelGroups {
    pub(super) id: String,
    /// Rules for the whole channel.
    pub(super) tools: Option<LevelConfig>,
    /// Rules for the whole channel by sender.
    pub(super) senders: Vec<(String, LevelConfig)>,
    pub(super) groups: Option<Vec<GroupRules>>,
    /// Groups by account.
    pub(super) accounts: Vec<(String, Vec<GroupRules>)>,
}

/// Reads values and collects problems.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<PolicyProblem>,
}

impl Reader {
    fn problem(&mut self, path: &str, text: &str) {
        self.problems.push(PolicyProblem { path: path.to_owned(), text: text.to_owned() });
    }

    fn deny_all() -> LevelConfig {
        LevelConfig { deny: Some(vec![ANY.to_owned()]), ..LevelConfig::default() }
    }

    /// Returns the members of an object, or `None` if there is none. The second value is true if the value is unreadable.
    fn object<'a>(&mut self, value: Option<&'a Value>, path: &str) -> (Option<&'a Map<String, Value>>, bool) {
        match value {
            None | Some(Value::Null) => (None, false),
            Some(Value::Object(members)) => (Some(members), false),
            Some(_) => {
                self.problem(path, "expected an object; everything is denied here");
                (None, true)
            }
        }
    }

    /// Reads a list of strings. Unreadable lists are reported; the second value is true for them.
    fn list(&mut self, members: &Map<String, Value>, key: &str, path: &str) -> (Option<Vec<String>>, bool) {
        let entries = match members.get(key) {
            None | Some(Value::Null) => return (None, false),
            Some(Value::Array(entries)) => entries,
            Some(_) => {
                self.problem(&format!("{path}.{key}"), "expected a list of tool names; everything is denied here");
                return (None, true);
            }
        };
        if !entries.iter().all(Value::is_string) {
            self.problem(&format!("{path}.{key}"), "tool names must be strings; everything is denied here");
            return (None, true);
        }
        let texts = entries.iter().filter_map(Value::as_str).map(|entry| entry.trim().to_owned());
        (Some(texts.filter(|entry| !entry.is_empty()).collect()), false)
    }

    /// Reads one level. Anything unreadable denies everything.
    fn level(&mut self, value: Option<&Value>, path: &str) -> Option<LevelConfig> {
        let deny_all = Self::deny_all();
        let (members, is_broken) = self.object(value, path);
        let Some(members) = members else { return is_broken.then_some(deny_all) };
        let (allow, no_allow) = self.list(members, "allow", path);
        let (also_allow, no_also) = self.list(members, "alsoAllow", path);
        let (deny, no_deny) = self.list(members, "deny", path);
        let profile = match members.get("profile") {
            None | Some(Value::Null) => None,
            Some(Value::String(profile)) => Some(profile.trim().to_owned()).filter(|profile| !profile.is_empty()),
            Some(_) => {
                self.problem(&format!("{path}.profile"), "expected the name of a profile; everything is denied here");
                return Some(deny_all);
            }
        };
        if let Some(name) = profile.as_deref().filter(|name| *name != "full" && names::profile(name).is_none()) {
            self.problem(&format!("{path}.profile"), &format!("unknown profile {name:?}; it restricts nothing"));
        }
        if allow.is_some() && also_allow.is_some() {
            self.problem(&format!("{path}.alsoAllow"), "set either allow or alsoAllow; both lists are used");
        }
        let is_unknown_group =
            |entry: &&String| entry.to_lowercase().strip_prefix("group:").is_some_and(|name| !names::is_group(name));
        if let Some(unknown) = deny.iter().flatten().find(is_unknown_group) {
            self.problem(&format!("{path}.deny"), &format!("unknown group {unknown:?}; everything is denied here"));
            return Some(deny_all);
        }
        if no_allow || no_also || no_deny {
            return Some(deny_all);
        }
        Some(LevelConfig { profile, allow, also_allow, deny })
    }

    /// Reads levels by key.
    fn levels(&mut self, value: Option<&Value>, path: &str) -> Vec<(String, LevelConfig)> {
        let (members, is_broken) = self.object(value, path);
        if is_broken {
            return vec![(ANY.to_owned(), Self::deny_all())];
        }
        let entries = members.into_iter().flatten();
        entries
            .filter_map(|(key, value)| Some((key.clone(), self.level(Some(value), &format!("{path}.{key}"))?)))
            .collect()
    }

    /// Reads `tools` of all agents or of one.
    pub(super) fn tools(&mut self, value: Option<&Value>, path: &str) -> ToolsSection {
        let level = self.level(value, path).unwrap_or_default();
        let Some(members) = value.and_then(Value::as_object) else {
            return ToolsSection { level, ..ToolsSection::default() };
        };
        let by_provider = self.levels(members.get("byProvider"), &format!("{path}.byProvider"));
        let mut nested = |key: &str| {
            let path = format!("{path}.{key}");
            let (inner, is_broken) = self.object(members.get(key), &path);
            let lists = match is_broken {
                true => members.get(key),
                false => inner.and_then(|inner| inner.get("tools")),
            };
            self.level(lists, &format!("{path}.tools")).unwrap_or_default()
        };
        let (sandbox, subagents) = (nested("sandbox"), nested("subagents"));
        let senders = self.levels(members.get("toolsBySender"), &format!("{path}.toolsBySender"));
        let strict_allow = match members.get("strictAllow") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(strict)) => Some(*strict),
            Some(_) => {
                self.problem(&format!("{path}.strictAllow"), "expected true or false; true is used");
                None
            }
        };
        let by_provider = by_provider.into_iter().map(|(key, level)| (key.trim().to_lowercase(), level)).collect();
        ToolsSection { level, by_provider, sandbox, subagents, senders, strict_allow }
    }

    /// Reads `agents.list` and `agents.entries`, by lower-case id. If it is unknown whom rules are for, everything is denied to agents without
    /// rules of their own.
    pub(super) fn agents(&mut self, agents: Option<&Value>) -> Vec<(String, ToolsSection)> {
        let (agents, mut is_broken) = self.object(agents, "agents");
        let mut all = Vec::new();
        let list = agents.and_then(|agents| agents.get("list")).filter(|list| !list.is_null());
        if list.is_some_and(|list| !list.is_array()) {
            self.problem("agents.list", "expected a list of agents; everything is denied to those without rules");
            is_broken = true;
        }
        for (at, agent) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let path = format!("agents.list[{at}]");
            let tools = self.tools(agent.get("tools"), &format!("{path}.tools"));
            if let Some(id) = agent.get("id").and_then(Value::as_str) {
                all.push((id.trim().to_lowercase(), tools));
            } else if tools != ToolsSection::default() {
                self.problem(&path, "rules of an agent without an id; everything is denied to agents without rules");
                is_broken = true;
            }
        }
        let (entries, no_entries) = self.object(agents.and_then(|agents| agents.get("entries")), "agents.entries");
        if is_broken || no_entries {
            all.push((ANY.to_owned(), ToolsSection { level: Self::deny_all(), ..ToolsSection::default() }));
        }
        for (id, agent) in entries.into_iter().flatten() {
            let tools = self.tools(agent.get("tools"), &format!("agents.entries.{id}.tools"));
            all.push((id.trim().to_lowercase(), tools));
        }
        all
    }

    fn groups(&mut self, value: Option<&Value>, path: &str) -> Option<Vec<GroupRules>> {
        let (members, is_broken) = self.object(value, path);
        if is_broken {
            return Some(no_groups());
        }
        let mut groups = Vec::new();
        for (id, group) in members? {
            let path = format!("{path}.{id}");
            let (_, is_broken) = self.object(Some(group), &path);
            let tools = match is_broken {
                true => Some(Self::deny_all()),
                false => self.level(group.get("tools"), &format!("{path}.tools")),
            };
            let senders = self.levels(group.get("toolsBySender"), &format!("{path}.toolsBySender"));
            groups.push(GroupRules { id: id.trim().to_owned(), tools, senders });
        }
        Some(groups)
    }

    /// Reads `channels`.
    pub(super) fn channels(&mut self, channels: Option<&Value>) -> Vec<ChannelGroups> {
        let mut all = Vec::new();
        let (channels, is_broken) = self.object(channels, "channels");
        if is_broken {
            let groups = Some(no_groups());
            all.push(ChannelGroups { id: ANY.to_owned(), groups, ..ChannelGroups::default() });
        }
        for (id, channel) in channels.into_iter().flatten() {
            let path = format!("channels.{id}");
            let (_, is_broken) = self.object(Some(channel), &path);
            let groups = match is_broken {
                true => Some(no_groups()),
                false => self.groups(channel.get("groups"), &format!("{path}.groups")),
            };
            let tools = self.level(channel.get("tools"), &format!("{path}.tools"));
            let senders = self.levels(channel.get("toolsBySender"), &format!("{path}.toolsBySender"));
            let mut accounts = Vec::new();
            let (known, no_accounts) = self.object(channel.get("accounts"), &format!("{path}.accounts"));
            let groups = if no_accounts { Some(no_groups()) } else { groups };
            for (account, value) in known.into_iter().flatten() {
                if self.object(Some(value), &format!("{path}.accounts.{account}")).1 {
                    accounts.push((account.trim().to_lowercase(), no_groups()));
                } else if let Some(groups) =
                    self.groups(value.get("groups"), &format!("{path}.accounts.{account}.groups"))
                {
                    accounts.push((account.trim().to_lowercase(), groups));
                }
            }
            all.push(ChannelGroups { id: id.trim().to_lowercase(), tools, senders, groups, accounts });
        }
        all
    }
}

/// Returns groups in which everything is denied.
fn no_groups() -> Vec<GroupRules> {
    vec![GroupRules { id: ANY.to_owned(), tools: Some(Reader::deny_all()), senders: Vec::new() }]
}

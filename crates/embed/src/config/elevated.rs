//! `tools.elevated`: who may run commands outside the sandbox.

use pinch_coding_agent::document::Problem;
use pinch_ports::Caller;
use pinch_tools::policy::nesting_depth;
use pinch_tools::process::{ElevatedLevel, ElevatedRules};
use serde_json::Value;

use super::node::Node;

/// Who may run commands outside the sandbox, for all agents or for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElevatedConfig {
    /// Whether anybody may (`enabled`).
    pub enabled: Option<bool>,
    /// Allowed senders, by channel (`allowFrom`).
    pub allow_from: Vec<(String, Vec<String>)>,
}

impl ElevatedConfig {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let entry = |value: &Value| match value {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let list =
            |node: &Node<'_>| node.value().and_then(Value::as_array).into_iter().flatten().filter_map(entry).collect();
        let allow_from = node.get("allowFrom");
        let channels = allow_from.members(problems).into_iter();
        Self {
            enabled: node.get("enabled").flag(problems),
            allow_from: channels.map(|(channel, node)| (channel.trim().to_lowercase(), list(&node))).collect(),
        }
    }

    /// Returns whether the sender is on the channel's list; `None` if there is no list.
    fn allows(&self, caller: &Caller) -> Option<bool> {
        let channel = caller.channel.as_deref()?.trim().to_lowercase();
        let (_, list) = self.allow_from.iter().find(|(listed, _)| *listed == channel)?;
        let sender = &caller.sender;
        // Display names do not count, since anybody can choose one.
        let known = [&sender.id, &sender.phone, &sender.user_name];
        let known: Vec<String> = known.into_iter().flatten().map(|name| plain(name, &channel)).collect();
        Some(list.iter().any(|entry| entry == "*" || known.contains(&plain(entry, &channel))))
    }

    /// Returns the rules for a caller. An agent can only narrow the rules for all agents.
    pub(crate) fn rules(&self, of_agent: Option<&Self>, caller: &Caller, level: ElevatedLevel) -> ElevatedRules {
        let is_on = |config: &Self| config.enabled != Some(false);
        let is_subagent = nesting_depth(caller.session_key.as_deref().unwrap_or_default(), None, &|_| None) > 0;
        let mut rules = ElevatedRules::default();
        rules.is_enabled = is_on(self) && of_agent.is_none_or(is_on);
        rules.is_allowed = !is_subagent
            && self.allows(caller) == Some(true)
            && of_agent.and_then(|agent| agent.allows(caller)).unwrap_or(true);
        rules.level = level;
        rules.provider.clone_from(&caller.channel);
        rules
    }
}

/// Strips the optional prefixes of an entry: the channel and `@`.
fn plain(entry: &str, channel: &str) -> String {
    let entry = entry.trim().to_lowercase();
    let entry = entry.strip_prefix(channel).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&entry);
    entry.trim_start_matches('@').to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pinch_ports::Sender;
    use serde_json::json;

    use super::super::node::UsedKeys;
    use super::*;

    #[test]
    fn only_senders_on_the_list_of_their_channel_may_leave_the_sandbox() {
        let read = |value: Value| {
            let (used, mut problems) = (UsedKeys::default(), Vec::new());
            let config = ElevatedConfig::read(&Node::root(&value, Path::new("pinch.json"), &used), &mut problems);
            assert_eq!(problems, []);
            config
        };
        let all = read(json!({"allowFrom": {"telegram": [7, "@Anna", "telegram:9"], "cli": ["*"]}}));
        let check = |config: &ElevatedConfig, own: Option<&ElevatedConfig>, channel: &str, id: &str, name: &str| {
            let mut sender = Sender::default();
            (sender.id, sender.user_name) = (Some(id.to_owned()), Some(name.to_owned()));
            sender.name = Some("anna".to_owned());
            let rules = config.rules(own, &Caller::new().channel(channel).sender(sender), ElevatedLevel::Off);
            rules.is_enabled && rules.is_allowed
        };
        assert!(check(&all, None, "telegram", "7", "x") && check(&all, None, "telegram", "9", "x"));
        assert!(check(&all, None, "Telegram", "8", "anna") && check(&all, None, "cli", "8", "x"));
        assert!(!check(&all, None, "telegram", "8", "x") && !check(&all, None, "discord", "7", "anna"));
        assert!(!check(&read(json!({})), None, "telegram", "7", "x"));
        let own = read(json!({"allowFrom": {"telegram": [9], "discord": ["*"]}}));
        assert!(check(&all, Some(&own), "telegram", "9", "x") && !check(&all, Some(&own), "telegram", "7", "x"));
        assert!(!check(&all, Some(&own), "discord", "7", "x"), "an agent cannot add senders");
        assert!(!check(&all, Some(&read(json!({"enabled": false}))), "telegram", "7", "x"));
        let mut caller = Caller::new().channel("cli");
        caller.session_key = Some("agent:main:subagent:1".into());
        assert!(!all.rules(None, &caller, ElevatedLevel::Full).is_allowed);
    }
}

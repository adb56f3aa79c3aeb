//! `channels`: settings of chat channels and their accounts, such as history limits and reply delivery.

use std::collections::BTreeMap;

use pinch_coding_agent::document::Problem;

use super::node::Node;
use super::streaming::ChannelDelivery;

/// All channels, by lower-case name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelsConfig(BTreeMap<String, ChannelConfig>);

/// One channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelConfig {
    /// How much history is sent to the model.
    pub history: HistoryLimits,
    /// How often agents react to messages (`reactionLevel`): `off`, `ack`, `minimal` or `extensive`.
    pub reaction_level: Option<String>,
    /// Capabilities of the channel and of individual accounts (`capabilities`).
    pub capabilities: ChannelCapabilities,
    /// Paths of keys that restrict agents in individual chats; they are not enforced.
    pub unenforced: Vec<String>,
    /// How replies are delivered.
    pub delivery: ChannelDelivery,
    /// Settings of individual accounts, by id.
    pub accounts: BTreeMap<String, AccountConfig>,
}

/// Settings of one account of a channel. Unset values are the channel's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountConfig {
    /// How much history is sent to the model.
    pub history: HistoryLimits,
    /// How replies are delivered.
    pub delivery: ChannelDelivery,
}

/// Numbers of user turns that are sent to the model; 0: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Of a group or channel (`historyLimit`).
    pub of_groups: Option<u64>,
    /// Of a direct chat (`dmHistoryLimit`).
    pub of_direct_chats: Option<u64>,
    /// Of individual direct chats, by lower-case peer id (`dms.<id>.historyLimit`).
    pub of_peers: BTreeMap<String, u64>,
}

impl AccountConfig {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        Self { history: HistoryLimits::read(node, problems), delivery: ChannelDelivery::read(node, problems) }
    }
}

impl HistoryLimits {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let dms = node.get("dms").members(problems).into_iter();
        let of_peers =
            dms.filter_map(|(id, peer)| Some((id.to_lowercase(), peer.get("historyLimit").count(problems)?)));
        let of_peers = of_peers.collect();
        Self {
            of_groups: node.get("historyLimit").count(problems),
            of_direct_chats: node.get("dmHistoryLimit").count(problems),
            of_peers,
        }
    }
}

impl ChannelConfig {
    /// Returns the settings of an account. Its id matches in any case if none matches exactly.
    pub fn account(&self, id: Option<&str>) -> Option<&AccountConfig> {
        let id = id?.trim();
        let same = || self.accounts.iter().find(|(name, _)| name.eq_ignore_ascii_case(id)).map(|(_, own)| own);
        self.accounts.get(id).or_else(same)
    }
}

/// Capabilities of a channel, if configured as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelCapabilities {
    /// Capabilities of the channel.
    pub channel: Vec<String>,
    /// Capabilities of individual accounts, by id; they replace those of the channel.
    pub accounts: BTreeMap<String, Vec<String>>,
}

impl ChannelCapabilities {
    /// Returns the capabilities of an account.
    pub fn of(&self, account: Option<&str>) -> &[String] {
        let named = |id: &str| self.accounts.iter().find(|(name, _)| name.eq_ignore_ascii_case(id));
        account.map(str::trim).and_then(named).map_or(&self.channel, |(_, own)| own)
    }

    fn read(name: &str, channel: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        // Other channels have no inline buttons that such an object could switch on.
        let has_scopes = name.eq_ignore_ascii_case("telegram");
        let accounts = channel.get("accounts");
        let accounts = match accounts.is_object() {
            true => accounts.members(problems),
            false => Vec::new(),
        };
        let mut own = BTreeMap::new();
        for (id, account) in accounts {
            own.extend(listed(&account, has_scopes, problems).map(|capabilities| (id.to_owned(), capabilities)));
        }
        Self { accounts: own, channel: listed(channel, has_scopes, problems).unwrap_or_default() }
    }
}

/// Returns the capabilities in a list, or the one that an object such as `{inlineButtons: "dm"}` switches on in some
/// chats of Telegram.
fn listed(node: &Node<'_>, has_scopes: bool, problems: &mut Vec<Problem>) -> Option<Vec<String>> {
    let capabilities = node.get("capabilities");
    if capabilities.is_object() {
        const SCOPES: [&str; 5] = ["off", "dm", "group", "all", "allowlist"];
        let buttons = capabilities.get("inlineButtons");
        let scope = buttons.word(problems, &SCOPES, |word| SCOPES.into_iter().find(|scope| *scope == word))?;
        return Some(if scope == "off" || !has_scopes { Vec::new() } else { vec!["inlineButtons".to_owned()] });
    }
    let list = capabilities.value()?.as_array()?;
    let texts = list.iter().filter_map(serde_json::Value::as_str).map(str::trim);
    Some(texts.filter(|text| !text.is_empty()).map(str::to_owned).collect())
}

impl ChannelsConfig {
    /// Returns keys that restrict agents but are not enforced.
    pub(crate) fn unenforced(&self) -> impl Iterator<Item = &String> {
        self.0.values().flat_map(|channel| &channel.unenforced)
    }

    /// Returns how replies are delivered to an account of a channel: the account's settings, else the channel's.
    pub fn delivery(&self, channel: Option<&str>, account: Option<&str>) -> ChannelDelivery {
        let Some(config) = channel.and_then(|channel| self.get(&channel.trim().to_lowercase())) else {
            return ChannelDelivery::default();
        };
        config.account(account).map_or_else(|| config.delivery.clone(), |own| own.delivery.or(&config.delivery))
    }

    /// Returns the settings of a channel. `channel` must be in lower case.
    pub fn get(&self, channel: &str) -> Option<&ChannelConfig> {
        self.0.get(channel)
    }

    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut channels = BTreeMap::new();
        for (name, channel) in node.members(problems) {
            // Other members of a channel are for the programs that connect it.
            if !channel.is_object() {
                continue;
            }
            let accounts = channel.get("accounts").members(problems).into_iter();
            let accounts = accounts.filter(|(_, account)| account.is_object());
            let accounts = accounts.map(|(id, account)| (id.to_owned(), AccountConfig::read(&account, problems)));
            let accounts = accounts.collect();
            let config = ChannelConfig {
                unenforced: restrictions(&channel, problems),
                reaction_level: channel.get("reactionLevel").text(problems),
                capabilities: ChannelCapabilities::read(name, &channel, problems),
                history: HistoryLimits::read(&channel, problems),
                delivery: ChannelDelivery::read(&channel, problems),
                accounts,
            };
            channels.insert(name.to_lowercase(), config);
        }
        Self(channels)
    }
}

/// Returns the tool policies of a channel's accounts, guilds, teams and rooms, which are not enforced. Those of the channel and of groups are.
fn restrictions(channel: &Node<'_>, problems: &mut Vec<Problem>) -> Vec<String> {
    let accounts = channel.get("accounts");
    let accounts: Vec<Node<'_>> = match accounts.is_object() {
        true => accounts.members(problems).into_iter().map(|(_, account)| account).collect(),
        false => Vec::new(),
    };
    // Policies of the channel and of groups are read together with all tool policies.
    channel.get("tools").value();
    channel.get("toolsBySender").value();
    let own = accounts.iter().filter(|account| account.is_object());
    let mut chats: Vec<Node<'_>> = own.cloned().collect();
    for part in std::iter::once(channel).chain(&accounts).filter(|part| part.is_object()) {
        if part.get("groups").is_object() {
            for (_, group) in part.get("groups").members(problems) {
                group.get("tools").value();
                group.get("toolsBySender").value();
            }
        }
        for name in ["guilds", "channels", "teams", "rooms"] {
            let all = part.get(name);
            if all.is_object() {
                chats.extend(all.members(problems).into_iter().map(|(_, chat)| chat).filter(Node::is_object));
            }
        }
    }
    let policies = chats.iter().flat_map(|chat| [chat.get("tools"), chat.get("toolsBySender")]);
    policies.filter(|policy| policy.value().is_some()).map(|policy| policy.path().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::node::UsedKeys;
    use super::*;

    #[test]
    fn inline_buttons_are_switched_on_by_a_list_or_by_a_scope() {
        let used = UsedKeys::default();
        for (capabilities, expect, n_problems) in [
            (json!(["polls", " inlineButtons "]), vec!["polls", "inlineButtons"], 0),
            (json!({"inlineButtons": "group"}), vec!["inlineButtons"], 0),
            (json!({"inlineButtons": "off"}), vec![], 0),
            (json!({"inlineButtons": "some"}), vec![], 1),
            (json!({}), vec![], 0),
        ] {
            let of = |name: &str, node: &Node<'_>, problems: &mut Vec<Problem>| {
                ChannelCapabilities::read(name, node, problems).of(None).to_vec()
            };
            let (channel, mut problems) = (json!({"capabilities": capabilities}), Vec::new());
            let node = Node::root(&channel, Path::new("pinch.json"), &used);
            assert_eq!(of("Telegram", &node, &mut problems), expect, "{capabilities}");
            assert_eq!(problems.len(), n_problems, "{problems:?}");
            let elsewhere = if capabilities.is_array() { expect } else { Vec::new() };
            assert_eq!(of("whatsapp", &node, &mut problems), elsewhere, "{capabilities}");
        }
    }
}

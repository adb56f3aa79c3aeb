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
    /// Number of user turns of a group or channel sent to the model; 0: all.
    pub history_limit: Option<u64>,
    /// Number of user turns of a direct chat sent to the model; 0: all.
    pub dm_history_limit: Option<u64>,
    /// The same for individual direct chats, by lower-case peer id.
    pub dms: BTreeMap<String, Option<u64>>,
    /// How often agents react to messages (`reactionLevel`): `off`, `ack`, `minimal` or `extensive`.
    pub reaction_level: Option<String>,
    /// Capabilities of the channel and of individual accounts (`capabilities`).
    pub capabilities: ChannelCapabilities,
    /// Paths of keys that restrict agents in individual chats; they are not enforced.
    pub unenforced: Vec<String>,
    /// How replies are delivered.
    pub delivery: ChannelDelivery,
    /// Delivery settings of individual accounts, by id.
    pub accounts: BTreeMap<String, ChannelDelivery>,
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

    fn read(channel: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let accounts = channel.get("accounts");
        let accounts = match accounts.is_object() {
            true => accounts.members(problems),
            false => Vec::new(),
        };
        let own = accounts.into_iter().filter_map(|(id, account)| Some((id.to_owned(), listed(&account)?)));
        Self { accounts: own.collect(), channel: listed(channel).unwrap_or_default() }
    }
}

/// Returns the capabilities in a list. An object, which switches parts of a channel on and off, yields `None`.
fn listed(node: &Node<'_>) -> Option<Vec<String>> {
    let list = node.get("capabilities").value()?.as_array()?;
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
        let named = |id: &str| {
            let same = || config.accounts.iter().find(|(name, _)| name.eq_ignore_ascii_case(id)).map(|(_, own)| own);
            config.accounts.get(id).or_else(same)
        };
        account.map(str::trim).and_then(named).map_or_else(|| config.delivery.clone(), |own| own.or(&config.delivery))
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
            let dms = channel.get("dms");
            let dms = dms.members(problems).into_iter().map(|(id, peer)| {
                let limit = peer.get("historyLimit").count(problems);
                (id.to_lowercase(), limit)
            });
            let dms = dms.collect();
            let accounts = channel.get("accounts").members(problems).into_iter();
            let accounts = accounts.filter(|(_, account)| account.is_object());
            let accounts =
                accounts.map(|(id, account)| (id.to_owned(), ChannelDelivery::read(&account, problems))).collect();
            let config = ChannelConfig {
                unenforced: restrictions(&channel, problems),
                reaction_level: channel.get("reactionLevel").text(problems),
                capabilities: ChannelCapabilities::read(&channel, problems),
                history_limit: channel.get("historyLimit").count(problems),
                dm_history_limit: channel.get("dmHistoryLimit").count(problems),
                dms,
                delivery: ChannelDelivery::read(&channel, problems),
                accounts,
            };
            channels.insert(name.to_lowercase(), config);
        }
        Self(channels)
    }
}

/// Returns the tool policies of a channel, its accounts, guilds, teams and rooms, which are not enforced. Those of groups are enforced.
fn restrictions(channel: &Node<'_>, problems: &mut Vec<Problem>) -> Vec<String> {
    let accounts = channel.get("accounts");
    let accounts: Vec<Node<'_>> = match accounts.is_object() {
        true => accounts.members(problems).into_iter().map(|(_, account)| account).collect(),
        false => Vec::new(),
    };
    let mut found = Vec::new();
    for part in std::iter::once(channel).chain(&accounts).filter(|part| part.is_object()) {
        let mut chats = vec![part.clone()];
        // Group policies are read together with all tool policies.
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
        let policies = chats.iter().flat_map(|chat| [chat.get("tools"), chat.get("toolsBySender")]);
        found.extend(policies.filter(|policy| policy.value().is_some()).map(|policy| policy.path().to_owned()));
    }
    found
}

//! `channels`: what is set for single chat channels and their accounts: limits of the history, and how replies are delivered.

use std::collections::BTreeMap;

use pinch_coding_agent::document::Problem;

use super::node::Node;
use super::streaming::ChannelDelivery;

/// All channels, by name in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelsConfig(BTreeMap<String, ChannelConfig>);

/// One channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelConfig {
    /// User turns that a model is given of a group or channel; 0: all.
    pub history_limit: Option<u64>,
    /// User turns that a model is given of a direct chat; 0: all.
    pub dm_history_limit: Option<u64>,
    /// The same for single direct chats, by the id of the peer in lower case.
    pub dms: BTreeMap<String, Option<u64>>,
    /// How often agents react to messages (`reactionLevel`): `off`, `ack`, `minimal` or `extensive`.
    pub reaction_level: Option<String>,
    /// What the channel can do, and what single accounts can (`capabilities`).
    pub capabilities: ChannelCapabilities,
    /// Keys that restrict what agents may do in single chats, with their paths: they are not enforced.
    pub unenforced: Vec<String>,
    /// How replies are delivered.
    pub delivery: ChannelDelivery,
    /// The same for single accounts, by id.
    pub accounts: BTreeMap<String, ChannelDelivery>,
}

/// What a channel can do, as far as it is configured as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelCapabilities {
    /// The channel.
    pub channel: Vec<String>,
    /// Single accounts, by id, instead of what holds for the channel.
    pub accounts: BTreeMap<String, Vec<String>>,
}

impl ChannelCapabilities {
    /// What an account can do.
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

/// The capabilities in a list; an object switches parts of a channel, and is not one.
fn listed(node: &Node<'_>) -> Option<Vec<String>> {
    let list = node.get("capabilities").value()?.as_array()?;
    let texts = list.iter().filter_map(serde_json::Value::as_str).map(str::trim);
    Some(texts.filter(|text| !text.is_empty()).map(str::to_owned).collect())
}

impl ChannelsConfig {
    /// Keys that restrict what agents may do, and are not enforced.
    pub(crate) fn unenforced(&self) -> impl Iterator<Item = &String> {
        self.0.values().flat_map(|channel| &channel.unenforced)
    }

    /// How replies are delivered to an account of a channel: as set for the account, else for the channel.
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

    /// The settings of a channel, whose name is given in lower case.
    pub fn get(&self, channel: &str) -> Option<&ChannelConfig> {
        self.0.get(channel)
    }

    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut channels = BTreeMap::new();
        for (name, channel) in node.members(problems) {
            // Other members of a channel belong to the programs that connect it.
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

/// Tool policies of a channel, of its accounts, and of its guilds, teams and rooms, which are not enforced; those of groups are.
fn restrictions(channel: &Node<'_>, problems: &mut Vec<Problem>) -> Vec<String> {
    let accounts = channel.get("accounts");
    let accounts: Vec<Node<'_>> = match accounts.is_object() {
        true => accounts.members(problems).into_iter().map(|(_, account)| account).collect(),
        false => Vec::new(),
    };
    let mut found = Vec::new();
    for part in std::iter::once(channel).chain(&accounts).filter(|part| part.is_object()) {
        let mut chats = vec![part.clone()];
        // The policies of groups are read elsewhere, with those of all tools.
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

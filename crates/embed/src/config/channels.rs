//! `channels`: what is set for single chat channels. Only limits of the history are read so far.

use std::collections::BTreeMap;

use pinch_coding_agent::document::Problem;

use super::node::Node;

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
    /// Keys that restrict what agents may do in single chats, with their paths: they are not enforced.
    pub unenforced: Vec<String>,
}

impl ChannelsConfig {
    /// Keys that restrict what agents may do, and are not enforced.
    pub(crate) fn unenforced(&self) -> impl Iterator<Item = &String> {
        self.0.values().flat_map(|channel| &channel.unenforced)
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
            let config = ChannelConfig {
                unenforced: restrictions(&channel, problems),
                history_limit: channel.get("historyLimit").count(problems),
                dm_history_limit: channel.get("dmHistoryLimit").count(problems),
                dms,
            };
            channels.insert(name.to_lowercase(), config);
        }
        Self(channels)
    }
}

/// Tool policies of a channel, of its accounts, and of its groups and their senders.
fn restrictions(channel: &Node<'_>, problems: &mut Vec<Problem>) -> Vec<String> {
    let accounts = channel.get("accounts");
    let accounts: Vec<Node<'_>> = match accounts.is_object() {
        true => accounts.members(problems).into_iter().map(|(_, account)| account).collect(),
        false => Vec::new(),
    };
    let mut found = Vec::new();
    for part in std::iter::once(channel).chain(&accounts).filter(|part| part.is_object()) {
        let mut chats = vec![part.clone()];
        for name in ["groups", "guilds", "channels", "teams", "rooms"] {
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

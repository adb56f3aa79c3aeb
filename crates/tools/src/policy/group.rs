//! Rules for the group that a message was sent in, and for its sender.

use pinch_ports::{Caller, ChatAddress, PeerKind, Sender};

use super::config::{ANY, ChannelGroups, GroupRules, LevelConfig};

/// The channel and id of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupAddress {
    channel: String,
    id: String,
}

/// Returns the group in a session key, without a thread or topic.
fn group_of_key(key: &str) -> Option<GroupAddress> {
    let chat = ChatAddress::of(key).filter(|chat| matches!(chat.kind, PeerKind::Group | PeerKind::Channel))?;
    Some(GroupAddress { id: without_topic(&chat.id).to_owned(), channel: chat.channel })
}

/// Strips a trailing thread or topic from a group id.
fn without_topic(id: &str) -> &str {
    let lower = id.to_ascii_lowercase();
    let at = [":thread:", ":topic:"].iter().filter_map(|marker| lower.rfind(marker)).max();
    at.filter(|at| *at > 0).map_or(id, |at| &id[..at])
}

/// Returns the rules for the caller's channel, with its name: those for the sender, or else for all.
pub(super) fn channel_rules<'a>(caller: &Caller, channels: &'a [ChannelGroups]) -> Option<(&'a str, &'a LevelConfig)> {
    let name = caller.channel.as_deref()?.trim().to_lowercase();
    let channel = channels.iter().find(|known| known.id == name)?;
    let rules = sender_rules(&channel.senders, caller).or(channel.tools.as_ref())?;
    Some((&channel.id, rules))
}

/// Returns the rules for the caller's group: those for its sender, then its own, then those of `*` in the same order. A sub-agent has the
/// group of the session that spawned it.
pub(super) fn group_rules<'a>(caller: &Caller, channels: &'a [ChannelGroups]) -> Option<&'a LevelConfig> {
    let own = caller.session_key.as_deref().and_then(group_of_key);
    let parent = caller.spawned_by.as_deref().and_then(group_of_key);
    let known =
        |value: &Option<String>| value.as_deref().map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
    let from_keys =
        |part: fn(&GroupAddress) -> &String| own.as_ref().or(parent.as_ref()).map(|group| part(group).clone());
    let id = known(&caller.group).or_else(|| from_keys(|group| &group.id))?;
    let channel = known(&caller.channel).or_else(|| from_keys(|group| &group.channel))?.to_lowercase();
    let channel =
        channels.iter().find(|known| known.id == channel).or_else(|| channels.iter().find(|c| c.id == ANY))?;
    let account = known(&caller.account).map(|account| account.to_lowercase());
    let groups = account
        .and_then(|account| channel.accounts.iter().find(|(known, _)| *known == account))
        .map(|(_, groups)| groups)
        .or(channel.groups.as_ref())?;
    let find = |id: &str| {
        groups
            .iter()
            .find(|group| group.id == id)
            .or_else(|| groups.iter().find(|group| group.id.to_lowercase() == id.to_lowercase()))
    };
    let own = find(&id).or_else(|| find(without_topic(&id)));
    let rules = |group: Option<&'a GroupRules>| {
        let group = group?;
        sender_rules(&group.senders, caller).or(group.tools.as_ref())
    };
    rules(own).or_else(|| rules(find("*")))
}

/// Returns the rules for the sender of a message, or else those for `*`.
///
/// Keys are typed (`id:`, `e164:`, `username:`, `name:`, `channel:<channel>:<id>`) or bare. A bare key is an id, a phone number or a user
/// name, but never a display name, since senders choose those.
pub(super) fn sender_rules<'a>(rules: &'a [(String, LevelConfig)], caller: &Caller) -> Option<&'a LevelConfig> {
    let find = |test: &dyn Fn(&str) -> bool| {
        rules.iter().find(|(key, _)| test(key.trim().to_lowercase().as_str())).map(|(_, level)| level)
    };
    let Sender { id, name, user_name, phone, .. } = &caller.sender;
    let channel = caller.channel.as_deref().map(|channel| channel.trim().to_lowercase());
    let candidates = [("id", id), ("e164", phone), ("username", user_name), ("name", name)];
    let known = candidates
        .iter()
        .filter_map(|(kind, value)| Some((*kind, normal(value.as_deref()?))))
        .filter(|(_, value)| !value.is_empty());
    for (kind, value) in known {
        let is_typed = |key: &str| {
            key.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')).is_some_and(|rest| normal(rest) == value)
        };
        let is_bare = |key: &str| kind != "name" && normal(key) == value;
        let is_in_channel = |key: &str| {
            let rest = key.strip_prefix("channel:").and_then(|rest| rest.split_once(':'));
            kind == "id" && rest.is_some_and(|(c, id)| Some(c) == channel.as_deref() && normal(id) == value)
        };
        if let Some(level) = find(&|key| is_in_channel(key) || is_typed(key) || is_bare(key)) {
            return Some(level);
        }
    }
    find(&|key| key == "*")
}

fn normal(value: &str) -> String {
    value.trim().trim_start_matches('@').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(deny: &str) -> LevelConfig {
        LevelConfig { deny: Some(vec![deny.to_owned()]), ..LevelConfig::default() }
    }

    #[test]
    fn session_keys_name_groups() {
        let check = |key: &str, expect: Option<(&str, &str)>| {
            let found = group_of_key(key);
            assert_eq!(found.as_ref().map(|group| (group.channel.as_str(), group.id.as_str())), expect, "{key}");
        };
        check("agent:main:whatsapp:group:trusted", Some(("whatsapp", "trusted")));
        check("agent:main:telegram:group:-100:topic:7", Some(("telegram", "-100")));
        check("agent:main:slack:channel:C1:thread:9", Some(("slack", "C1")));
        check("agent:main:subagent:discord:channel:5", Some(("discord", "5")));
        check("agent:main:telegram:work:group:-100", Some(("telegram", "-100")));
        check("agent:main:main", None);
        check("agent:main:telegram:direct:7", None);
        check("", None);
    }

    #[test]
    fn a_display_name_matches_only_a_name_key() {
        let named = |name: &str| Caller::new().sender(Sender::new("7").name(name));
        let bare = [("ada".to_owned(), level("bare")), ("*".to_owned(), level("others"))];
        assert_eq!(sender_rules(&bare, &named("Ada")), Some(&level("others")));
        let typed = [("name:ada".to_owned(), level("typed"))];
        assert_eq!(sender_rules(&typed, &named("Ada")), Some(&level("typed")));
        let by_id = [("@7".to_owned(), level("id"))];
        assert_eq!(sender_rules(&by_id, &named("Ada")), Some(&level("id")));
        let elsewhere = [("channel:slack:7".to_owned(), level("slack"))];
        assert_eq!(sender_rules(&elsewhere, &named("Ada").channel("telegram")), None);
        assert_eq!(sender_rules(&elsewhere, &named("Ada").channel("Slack")), Some(&level("slack")));
    }
}

//! Routing keys of sessions.

use pinch_stdx::string_id;

string_id! {
    /// Routing key of a session, such as `agent:main:telegram:direct:42`. It names the conversation; the session id names its current
    /// transcript, which changes with every reset.
    SessionKey
}

/// The chat that a session key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatAddress {
    /// The channel, in lower case.
    pub channel: String,
    /// Our account on the channel, as written, if the key names one.
    pub account: Option<String>,
    /// What kind of chat it is.
    pub kind: PeerKind,
    /// Id of the person, group, channel or room, as written. It includes a thread or topic.
    pub id: String,
    /// Whether the session is a sub-agent's, spawned from the chat.
    pub is_subagent: bool,
}

/// A kind of chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    /// With one person.
    Direct,
    /// A group.
    Group,
    /// A channel of a server or workspace.
    Channel,
    /// A room.
    Room,
}

impl ChatAddress {
    /// Parses a session key: `[agent:<id>:][subagent:]<channel>:[<account>:]<kind>:<id>`. Returns `None` if it names no chat of a channel.
    pub fn of(key: &str) -> Option<Self> {
        let parts: Vec<&str> = key.trim().split(':').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            [agent, _, rest @ ..] if agent.eq_ignore_ascii_case("agent") => rest,
            all => all,
        };
        let (is_subagent, rest) = match rest {
            [first, rest @ ..] if first.eq_ignore_ascii_case("subagent") => (true, rest),
            all => (false, all),
        };
        let [channel, rest @ ..] = rest else { return None };
        let (account, kind, id) = match rest {
            [kind, id @ ..] if PeerKind::parse(kind).is_some() => (None, kind, id),
            [account, kind, id @ ..] => (Some((*account).to_owned()), kind, id),
            _ => return None,
        };
        let (channel, kind, id) = (channel.trim().to_lowercase(), PeerKind::parse(kind)?, id.join(":"));
        (!id.trim().is_empty()).then_some(Self { channel, account, kind, id, is_subagent })
    }
}

impl PeerKind {
    fn parse(word: &str) -> Option<Self> {
        Some(match word.trim().to_ascii_lowercase().as_str() {
            "direct" | "dm" => Self::Direct,
            "group" => Self::Group,
            "channel" => Self::Channel,
            "room" => Self::Room,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_chats_with_and_without_account() {
        let check = |key: &str, expect: &str| {
            let found = ChatAddress::of(key).map_or("none".to_owned(), |chat| {
                let ChatAddress { channel, account, kind, id, is_subagent } = chat;
                let spawned = if is_subagent { " spawned" } else { "" };
                format!("{channel} {} {kind:?} {id}{spawned}", account.as_deref().unwrap_or("-"))
            });
            assert_eq!(found, expect, "{key}");
        };
        check("agent:main:Telegram:direct:42", "telegram - Direct 42");
        check("agent:main:telegram:work:direct:42", "telegram work Direct 42");
        check("telegram:dm:A:b", "telegram - Direct A:b");
        check("agent:main:slack:channel:C1:thread:9", "slack - Channel C1:thread:9");
        check("agent:main:subagent:discord:channel:5", "discord - Channel 5 spawned");
        check("agent:main:telegram:group:direct:7", "telegram - Group direct:7");
        for none in [
            "",
            "main",
            "agent:main:main",
            "agent:main:direct:42",
            "agent:main:cron:job:run:1",
            "telegram:dm:",
            "a:b:c",
        ] {
            check(none, "none");
        }
    }
}

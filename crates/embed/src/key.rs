//! Session keys: names that route conversations, and the lanes of their runs.
//!
//! A key is `agent:<id>:<rest>` or an alias. Keys are for routing, session ids for storage; the two are never mixed.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

pub mod agent_id;
pub mod profile_id;
pub mod run_id;

pub use agent_id::{AgentId, DEFAULT_AGENT_ID};
pub use pinch_llm::ids::SessionId;
pub use pinch_ports::{ChatAddress, PeerKind, SessionKey};
pub use profile_id::ProfileId;
pub use run_id::RunId;

/// A parsed key in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentKey<'a> {
    /// The agent, as written.
    pub agent_id: &'a str,
    /// Everything after the agent id.
    pub rest: String,
}

/// Parses a key; `None` unless it has the form `agent:<id>:<rest>`.
pub fn parse(key: &str) -> Option<AgentKey<'_>> {
    let mut parts = key.trim().split(':').filter(|part| !part.is_empty());
    if parts.next() != Some("agent") {
        return None;
    }
    let agent_id = parts.next().map(str::trim).filter(|id| !id.is_empty())?;
    let rest = parts.collect::<Vec<_>>().join(":");
    (!rest.trim().is_empty()).then_some(AgentKey { agent_id, rest })
}

/// Returns the agent that a key names. Keys of another form belong to the default agent.
pub fn agent(key: &str) -> AgentId {
    parse(key).map_or_else(AgentId::default, |parsed| AgentId::normalise(parsed.agent_id))
}

/// Returns a key of the old form `<agent>:<channel>:<peer>` in today's form, for lookups of rules; any other key unchanged. The name of its
/// lane and its entry in the index keep the form that it has.
pub fn modern<'a>(
    key: &'a str,
    is_agent: &dyn Fn(&AgentId) -> bool,
    is_channel: &dyn Fn(&str) -> bool,
) -> Cow<'a, str> {
    let parsed = parse(key);
    let rest = parsed.as_ref().map_or(key.trim(), |parsed| parsed.rest.as_str());
    let parts: Vec<&str> = rest.split(':').filter(|part| !part.is_empty()).collect();
    let [agent, channel, peer @ ..] = parts.as_slice() else { return key.into() };
    let agent = AgentId::normalise(agent);
    // A key that was completed has the old one after the same agent.
    let is_same = parsed.as_ref().is_none_or(|parsed| AgentId::normalise(parsed.agent_id) == agent);
    if peer.is_empty() || !is_same || !is_agent(&agent) || !is_channel(channel) {
        return key.into();
    }
    let names_chat = ChatAddress::of(&parts[1..].join(":")).is_some();
    let kind = if names_chat { "" } else { "direct:" };
    format!("agent:{agent}:{channel}:{kind}{}", peer.join(":")).into()
}

/// Returns whether a key starts with `agent:` but is malformed.
pub fn is_malformed(key: &str) -> bool {
    key.trim().get(..6).is_some_and(|start| start.eq_ignore_ascii_case("agent:")) && parse(key).is_none()
}

/// Returns whether a conversation belongs to a sub-agent.
pub fn is_subagent(key: &str) -> bool {
    let starts = |text: &str| text.trim().get(..9).is_some_and(|start| start.eq_ignore_ascii_case("subagent:"));
    starts(key) || parse(key).is_some_and(|parsed| starts(&parsed.rest))
}

/// Returns how deeply a conversation is nested in sub-agents, including itself.
pub fn subagent_depth(key: &str) -> usize {
    let lower = key.trim().to_lowercase();
    format!(":{}", lower.trim_start_matches(':')).matches(":subagent:").count()
}

/// Returns the conversation that a thread belongs to.
pub fn thread_parent(key: &str) -> Option<&str> {
    let lower = key.to_ascii_lowercase();
    let at = [":thread:", ":topic:"].into_iter().filter_map(|marker| lower.rfind(marker)).max()?;
    Some(key[..at].trim()).filter(|parent| !parent.is_empty())
}

/// Returns the name of the lane that serialises the runs of a conversation.
pub fn session_lane(session_key: Option<&str>, session_id: &str) -> String {
    let key = session_key.map(str::trim).filter(|key| !key.is_empty()).unwrap_or(session_id.trim());
    match key {
        "" => "session:main".into(),
        key if key.starts_with("session:") => key.into(),
        key => format!("session:{key}"),
    }
}

/// Returns the name of the global lane. A run in `cron` uses `nested`, because the job that started it already holds `cron`.
pub fn global_lane(lane: Option<&str>) -> &str {
    match lane.map(str::trim).filter(|lane| !lane.is_empty()) {
        None => "main",
        Some("cron") => "nested",
        Some(lane) => lane,
    }
}

/// Which direct chats share one conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DmScope {
    /// All of them.
    #[default]
    Main,
    /// Those with the same peer, across channels.
    PerPeer,
    /// Those with the same peer in the same channel.
    PerChannelPeer,
    /// Those with the same peer in the same channel and account.
    PerAccountChannelPeer,
}

impl DmScope {
    /// Parses the name used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "main" => Self::Main,
            "per-peer" => Self::PerPeer,
            "per-channel-peer" => Self::PerChannelPeer,
            "per-account-channel-peer" => Self::PerAccountChannelPeer,
            _ => return None,
        })
    }
}

/// The other party of a conversation and its channel.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// The channel, e.g. `telegram`.
    pub channel: &'a str,
    /// Our account that receives the messages.
    pub account_id: Option<&'a str>,
    /// `direct`, `group`, `channel` or `room`.
    pub kind: &'a str,
    /// Id of the person, group, channel or room.
    pub id: &'a str,
}

/// Builds the key of a conversation. `links` maps a canonical name to its peers, each written `peer` or `channel:peer`.
pub fn peer_key(
    agent: &AgentId,
    peer: &Peer<'_>,
    scope: DmScope,
    main_key: &str,
    links: &[(String, Vec<String>)],
) -> String {
    let channel = Some(peer.channel.trim().to_lowercase()).filter(|c| !c.is_empty()).unwrap_or("unknown".into());
    let mut id = peer.id.trim().to_lowercase();
    if peer.kind != "direct" && peer.kind != "dm" {
        let id = if id.is_empty() { "unknown" } else { &id };
        return format!("agent:{agent}:{channel}:{}:{id}", peer.kind.to_lowercase());
    }
    if scope != DmScope::Main
        && let Some((name, _)) = links.iter().find(|(_, peers)| {
            let scoped = format!("{channel}:{id}");
            peers.iter().map(|p| p.trim().to_lowercase()).any(|p| !id.is_empty() && (p == id || p == scoped))
        })
    {
        id = name.trim().to_lowercase();
    }
    let account = peer.account_id.map(|account| account.trim().to_lowercase()).filter(|a| !a.is_empty());
    match scope {
        _ if id.is_empty() => main(agent, main_key),
        DmScope::Main => main(agent, main_key),
        DmScope::PerPeer => format!("agent:{agent}:direct:{id}"),
        DmScope::PerChannelPeer => format!("agent:{agent}:{channel}:direct:{id}"),
        DmScope::PerAccountChannelPeer => {
            format!("agent:{agent}:{channel}:{}:direct:{id}", account.as_deref().unwrap_or("default"))
        }
    }
}

/// Returns the canonical form of a key, in lower case: names without an agent belong to `default_agent`, and an empty name or `main` is its
/// main session. `None` if the key starts with `agent:` but is malformed.
pub fn canonical(key: &str, default_agent: &AgentId, main_key: &str) -> Option<String> {
    let key = key.trim().to_lowercase();
    if is_malformed(&key) {
        return None;
    }
    Some(match parse(&key) {
        Some(parsed) => format!("agent:{}:{}", AgentId::normalise(parsed.agent_id), parsed.rest),
        None if key.is_empty() || key == "main" => main(default_agent, main_key),
        None if key == "global" || key == "unknown" => key,
        None => format!("agent:{default_agent}:{key}"),
    })
}

/// Returns the topic of a key, if it has one.
pub fn topic(key: &str) -> Option<&str> {
    let (_, topic) = key.rsplit_once(":topic:")?;
    Some(topic).filter(|topic| !topic.is_empty())
}

/// Returns a short hash of a session key or id, or of a profile, for use where the name itself is too long or must not be seen. Eight
/// hexadecimal digits.
pub(crate) fn short_hash(name: &str) -> String {
    Sha256::digest(name.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn main(agent: &AgentId, main_key: &str) -> String {
    let key = main_key.trim().to_lowercase();
    format!("agent:{agent}:{}", if key.is_empty() { "main" } else { &key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_keys_are_parsed() {
        let ok = |key: &str| parse(key).map(|k| format!("{} {}", k.agent_id, k.rest));
        assert_eq!(ok(" agent:x:y:z "), Some("x y:z".into()));
        for bad in ["", "main", "agent:", "agent::x", "agent:x", "Agent:x:y"] {
            assert_eq!(ok(bad), None, "{bad}");
        }
        assert!(is_malformed("AGENT:x") && !is_malformed("agent:x:y") && !is_malformed("main"));
    }

    #[test]
    fn keys_of_the_old_form_are_read_as_direct_chats() {
        let check = |key: &str, expect: &str| {
            let found = modern(key, &|agent| agent.as_str() != "nobody", &|channel| channel != "pigeon");
            assert_eq!(found, expect, "{key}");
        };
        check("main:whatsapp:+49", "agent:main:whatsapp:direct:+49");
        check("Ops:signal:a:b", "agent:ops:signal:direct:a:b");
        check("main:telegram:group:-100", "agent:main:telegram:group:-100");
        check("agent:main:main:whatsapp:+49", "agent:main:whatsapp:direct:+49");
        let kept = ["nobody:whatsapp:+49", "main:pigeon:+49", "main:whatsapp", "main", "agent:a:b:whatsapp:+49"];
        for key in kept {
            check(key, key);
        }
    }

    #[test]
    fn lanes_follow_the_key_and_cron_runs_nested() {
        assert_eq!(session_lane(Some(" k "), "s"), "session:k");
        assert_eq!(session_lane(None, "s"), "session:s");
        assert_eq!(session_lane(Some("session:k"), "s"), "session:k");
        assert_eq!(session_lane(None, " "), "session:main");
        assert_eq!((global_lane(None), global_lane(Some(" cron ")), global_lane(Some("x"))), ("main", "nested", "x"));
    }

    #[test]
    fn subagents_and_threads_are_recognised() {
        assert_eq!(subagent_depth("agent:main:subagent:a:subagent:b"), 2);
        assert_eq!(subagent_depth("subagent:a"), 1);
        assert_eq!(thread_parent("agent:m:slack:channel:c:thread:7"), Some("agent:m:slack:channel:c"));
        assert_eq!(thread_parent(":thread:7"), None);
    }
}

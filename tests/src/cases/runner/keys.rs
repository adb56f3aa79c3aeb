//! Session keys, agents, lane names.

use pinch_embed::key::{self, AgentId, DmScope, Peer};
use pinch_embed::workspace::agent_of;
use serde_json::{Value, json};

use super::{check, config};

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    let key = given["key"].as_str().unwrap_or("");
    let actual = match area {
        "lane-names" => json!({
            "session": key::session_lane(given["sessionKey"].as_str(), given["sessionId"].as_str().unwrap_or("")),
            "global": key::global_lane(given["lane"].as_str()),
        }),
        "session-key-parse" => key::parse(key).map_or(Value::Null, |k| json!({"agentId": k.agent_id, "rest": k.rest})),
        "session-key-classes" => classes(given, key)?,
        "session-agent-ids" => {
            let agents = config(given["config"].clone()).agents;
            json!({
                "defaultAgentId": agents.default_id().as_str(),
                "sessionAgentId": agent_of(&agents, None, given["sessionKey"].as_str()).0.as_str(),
            })
        }
        _ => return None,
    };
    Some(check(expect, &actual))
}

fn classes(given: &Value, key: &str) -> Option<Value> {
    let text = |name: &str| given[name].as_str().unwrap_or("");
    Some(match text("fn") {
        "is_subagent" => key::is_subagent(key).into(),
        "subagent_depth" => key::subagent_depth(key).into(),
        "thread_parent" => json!(key::thread_parent(key)),
        "normalize_agent_id" => json!(AgentId::normalise(text("value")).as_str()),
        "peer_key" => {
            let links: Vec<(String, Vec<String>)> = (given["identityLinks"].as_object().into_iter().flatten())
                .map(|(name, peers)| {
                    let peers = peers.as_array().into_iter().flatten().filter_map(Value::as_str);
                    (name.clone(), peers.map(str::to_owned).collect())
                })
                .collect();
            let peer = Peer {
                channel: text("channel"),
                account_id: given["accountId"].as_str(),
                kind: text("peerKind"),
                id: text("peerId"),
            };
            let scope = DmScope::parse(text("dmScope")).unwrap_or_default();
            json!(key::peer_key(&AgentId::normalise(text("agentId")), &peer, scope, "main", &links))
        }
        _ => return None,
    })
}

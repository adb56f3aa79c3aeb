//! The shared state directory, and the model server that both programs use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use pinch_testing::server::{Recorded, Server, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::program::{self, PeerProgram, Programs};

/// The arguments for the main session of the main agent.
pub(super) const MAIN: [&str; 2] = ["--agent", "main"];

/// A key whose requests always exceed the rate limit.
pub(super) const LIMITED_KEY: &str = "limited";

/// A key that the server rejects.
pub(super) const REFUSED_KEY: &str = "refused";

/// The state and the server.
pub(super) struct SharedState<'p> {
    programs: &'p Programs,
    folder: TempDir,
    server: Server,
    // Drives the server.
    _runtime: Runtime,
}

/// One answered message.
pub(super) struct AnsweredTurn {
    pub(super) text: String,
    pub(super) session_id: String,
    /// The bodies of the requests.
    pub(super) requests: Vec<Value>,
    /// Their keys.
    pub(super) keys: Vec<String>,
}

impl<'p> SharedState<'p> {
    pub(super) fn new(programs: &'p Programs) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let server = runtime.block_on(Server::start())?;
        server.answer_with(|request| Some(answer(request)));
        let folder = tempfile::tempdir()?;
        let state = Self { programs, folder, server, _runtime: runtime };
        state.configure(Some("good"))?;
        let workspace = state.folder().join("workspace");
        std::fs::create_dir_all(&workspace)?;
        std::fs::write(workspace.join("note.txt"), "seven apples\n")?;
        Ok(state)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn configure(&self, key: Option<&str>) -> anyhow::Result<()> {
        let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0});
        let mut provider = json!({
            "baseUrl": self.server.url(),
            "api": "anthropic-messages",
            "models": [{
                "id": "m1", "name": "m1", "contextWindow": 200_000, "maxTokens": 8192,
                "reasoning": false, "input": ["text"], "cost": cost,
            }],
        });
        if let Some(key) = key {
            provider["apiKey"] = key.into();
        }
        let config = json!({
            "agents": {"defaults": {"model": {"primary": "bench/m1"}, "workspace": self.folder().join("workspace")}},
            "models": {"providers": {"bench": provider}},
        });
        Ok(std::fs::write(self.folder().join("openclaw.json"), config.to_string())?)
    }

    /// Moves the provider's credentials into auth profiles, which are tried in this order.
    pub(super) fn use_profiles(&self, profiles: &[(&str, &str)]) -> anyhow::Result<()> {
        self.configure(None)?;
        let all: BTreeMap<&str, Value> = profiles
            .iter()
            .map(|(id, key)| (*id, json!({"type": "api_key", "provider": "bench", "key": key})))
            .collect();
        let order: Vec<&str> = profiles.iter().map(|(id, _)| *id).collect();
        let agent = self.folder().join("agents/main/agent");
        std::fs::create_dir_all(&agent)?;
        let store = json!({"version": 1, "profiles": all, "order": {"bench": order}});
        Ok(std::fs::write(agent.join("auth-profiles.json"), store.to_string())?)
    }

    /// Runs one message through a program.
    pub(super) fn turn(&self, program: PeerProgram, session: &[&str], message: &str) -> anyhow::Result<AnsweredTurn> {
        let before = self.server.requests().len();
        let printed = program::run(program, &mut self.programs.agent(program, self.folder(), session, message))?;
        let asked = self.server.requests().split_off(before);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(AnsweredTurn {
            text: word(&printed["payloads"][0]["text"]),
            session_id: word(&printed["meta"]["agentMeta"]["sessionId"]),
            requests: asked.iter().map(Recorded::json).collect(),
            keys: asked.iter().map(|request| request.header("x-api-key").unwrap_or_default().to_owned()).collect(),
        })
    }

    fn sessions(&self) -> PathBuf {
        self.folder().join("agents/main/sessions")
    }

    /// The transcripts of the main agent.
    pub(super) fn transcripts(&self) -> anyhow::Result<Vec<PathBuf>> {
        let files = std::fs::read_dir(self.sessions())?.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect())
    }

    fn index(&self) -> anyhow::Result<Value> {
        let text = std::fs::read(self.sessions().join("sessions.json")).context("no sessions.json")?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// The index's entry of a key.
    pub(super) fn entry(&self, key: &str) -> anyhow::Result<Value> {
        self.index()?.get(key).cloned().with_context(|| format!("sessions.json has no {key}"))
    }

    /// Changes the index's entry of the main session.
    pub(super) fn change_index(&self, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
        let mut index = self.index()?;
        change(&mut index["agent:main:main"]);
        Ok(std::fs::write(self.sessions().join("sessions.json"), index.to_string())?)
    }

    /// Checks that each entry of a transcript follows an earlier one. Returns the texts of the current branch.
    pub(super) fn check_chain(&self, transcript: &Path) -> anyhow::Result<Vec<String>> {
        let text = std::fs::read_to_string(transcript)?;
        let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let (header, entries) = lines.split_first().context("an empty transcript")?;
        ensure!(header["type"] == "session", "the first line is {header}");
        let mut known: BTreeMap<&str, &Value> = BTreeMap::new();
        for entry in entries {
            let id = entry["id"].as_str().with_context(|| format!("no id: {entry}"))?;
            let parent = entry["parentId"].as_str();
            ensure!(parent.is_none_or(|parent| known.contains_key(parent)), "an unknown parent: {entry}");
            ensure!(known.insert(id, entry).is_none(), "the id {id} stands there twice");
        }
        let mut branch = Vec::new();
        let mut at = entries.last();
        while let Some(entry) = at {
            if entry["type"] == "message" && entry["message"]["role"] != "system" {
                branch.push(text_of(&entry["message"]));
            }
            at = entry["parentId"].as_str().and_then(|parent| known.get(parent).copied());
        }
        branch.reverse();
        Ok(branch)
    }
}

/// The texts of a request's messages.
pub(super) fn texts(request: &Value) -> Vec<String> {
    request["messages"].as_array().into_iter().flatten().map(text_of).collect()
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect()
        }
    }
}

/// Returns the reply of the server to a request.
fn answer(request: &Recorded) -> ServerReply {
    let refusal = |status: u16, kind: &str, message: &str| {
        ServerReply::json(status, &json!({"type": "error", "error": {"type": kind, "message": message}}))
    };
    match request.header("x-api-key") {
        Some(LIMITED_KEY) => return refusal(429, "rate_limit_error", "Number of requests exceeds the rate limit"),
        Some(REFUSED_KEY) => return refusal(401, "authentication_error", "invalid x-api-key"),
        _ => {}
    }
    let body = request.json();
    let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let said = text_of(&last);
    let response = AnthropicResponse::new("msg_1");
    if said.contains("read the file") {
        return ServerReply::sse(
            response.tool_call("toolu_1", "read", r#"{"path":"note.txt"}"#).stop("tool_use").concat(),
        );
    }
    let events = response.text(&format!("Answer to {said}.")).stop("end_turn").concat();
    let reply = ServerReply::events();
    if said.contains("slow") { reply.pause(Duration::from_secs(2)).send(events) } else { reply.send(events) }
}

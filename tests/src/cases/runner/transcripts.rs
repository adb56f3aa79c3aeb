//! Transcripts: what the log writes when messages are appended, what it keeps of malformed calls, and which parts of a history a request
//! contains.

use std::sync::Arc;

use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use pinch_embed::runtime::native::history::take_prompt;
use pinch_embed::runtime::native::images::references;
use pinch_llm::ids::ApiId;
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResult};
use pinch_llm::model::Model;
use pinch_llm::model::transcript::TranscriptRules;
use pinch_llm::normalise::history::{RequestFacts, prepare};
use pinch_llm::normalise::transform;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::world::block_on;
use super::{CaseOutcome, NOW, check};

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    Some(CaseOutcome::from(match area {
        "transcript-pairing" => pairing(given).and_then(|made| check(expect, &made)),
        "write-guard" => block_on(appended(given)).and_then(|made| check(expect, &json!({"persisted": made}))),
        "image-refs" => check(expect, &references(given["prompt"].as_str().unwrap_or("")).into()),
        "turn-merging" => merged(given).and_then(|turns| check(expect, &turns)),
        "orphan-user" => block_on(prompted(given)).and_then(|branch| check(expect, &branch)),
        "tool-call-input" => block_on(loaded(given)).and_then(|content| check(expect, &content)),
        _ => return None,
    }))
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "read", Default::default())
}

/// Parses a message in compact notation.
fn message(text: &str) -> Result<Message, String> {
    let (head, ids) = text.split_once(':').unwrap_or((text, ""));
    let answer = |stop_reason, ids: &str| {
        let mut answer = AssistantMessage::pending("openai-completions".into(), "mock".into(), "mock-1".into(), NOW);
        answer.stop_reason = stop_reason;
        let ids = ids.split(',').filter(|id| !id.is_empty());
        answer.content = ids.map(|id| Arc::new(Block::ToolCall(call(id)))).collect();
        if answer.content.is_empty() {
            answer.content = vec![Arc::new(Block::text("a"))];
        }
        Message::Assistant(Arc::new(answer))
    };
    Ok(match head {
        "u" => Message::user("u", NOW),
        "a" if ids.is_empty() => answer(StopReason::Stop, ""),
        "a" => answer(StopReason::ToolUse, ids),
        "a!" => answer(StopReason::Error, ids),
        "r" => Message::ToolResult(ToolResult::text(&call(ids), "r", false, NOW)),
        _ => return Err(format!("{text:?} is not a compact message")),
    })
}

/// Formats a message in compact notation.
fn compact(message: &Message) -> String {
    match message {
        Message::User(_) => "u".to_owned(),
        Message::Assistant(answer) => {
            let ids: Vec<&str> = answer.tool_calls().map(|call| call.id.as_str()).collect();
            let failed = if answer.stop_reason == StopReason::Error { "!" } else { "" };
            let ids = if ids.is_empty() { String::new() } else { format!(":{}", ids.join(",")) };
            format!("a{failed}{ids}")
        }
        Message::ToolResult(result) => {
            let is_ours = result.content == [Block::text("r")];
            format!("r{}:{}", if is_ours { "" } else { "?" }, result.tool_call_id)
        }
        other => other.role().to_owned(),
    }
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The parts of a history in a request: every wire format sends what `transform` returns.
fn pairing(given: &Value) -> Result<Value, String> {
    let given = texts(&given["in"]);
    let messages: Vec<Arc<Message>> = given.iter().map(|text| message(text).map(Arc::new)).collect::<Result<_, _>>()?;
    let model = json!({"id": "mock-1", "provider": "mock", "api": "openai-completions", "baseUrl": "http://localhost"});
    let model = Model::from_record(&model).map_err(|error| error.to_string())?;
    let out: Vec<String> = transform(&messages, &model, None).iter().map(|message| compact(message)).collect();
    let added: Vec<&str> = out.iter().filter_map(|text| text.strip_prefix("r?:")).collect();
    // A dropped result is an orphan unless it duplicates one of the same answer.
    let mut orphans = 0;
    let mut open: Vec<&str> = Vec::new();
    for text in &given {
        match text.split_once(':') {
            Some(("a" | "a!", ids)) => open = ids.split(',').collect(),
            Some(("r", id)) => orphans += usize::from(!open.contains(&id)),
            _ => {}
        }
    }
    Ok(json!({"out": out, "changed": out != given, "added": added, "orphans": orphans}))
}

/// The content of a session file after appends; incomplete turns at the end are repaired when the session is reopened.
async fn appended(given: &Value) -> Result<Vec<String>, String> {
    let text = |error: pinch_coding_agent::store::StoreError| error.to_string();
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let host = Host::builder().clock(NOW, 1).build();
    let store = Arc::new(JsonlStore::flat(dir.path()));
    let mut log = SessionLog::create(&host, store.clone(), NewSession::in_directory("/work")).await.map_err(text)?;
    for step in texts(&given["append"]) {
        if step == "flush" {
            let path = log.path().ok_or("the session has no file")?.to_owned();
            drop(log);
            log = SessionLog::open(&host, store.clone(), &SessionRef::Path(path), "/work").await.map_err(text)?;
            log.heal().await.map_err(text)?;
            continue;
        }
        log.append_message(message(step)?).await.map_err(text)?;
    }
    Ok(log.context().messages.iter().map(|message| compact(message)).collect())
}

/// The parts of a stored answer in a request; `null` if nothing of it is left.
async fn loaded(given: &Value) -> Result<Value, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let answer = json!({
        "role": "assistant", "api": "openai-completions", "provider": "mock", "model": "mock-1", "stopReason": "toolUse",
        "timestamp": NOW, "usage": {}, "content": given["assistant"],
    });
    let lines = [
        json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/work"}),
        json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z", "message": answer}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = dir.path().join("s1.jsonl");
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    let host = Host::builder().clock(NOW, 1).build();
    let store = Arc::new(JsonlStore::flat(dir.path()));
    let log =
        SessionLog::open(&host, store, &SessionRef::Path(path), "/work").await.map_err(|error| error.to_string())?;
    let model = json!({"id": "mock-1", "provider": "mock", "api": "openai-completions", "baseUrl": "http://localhost"});
    let model = Model::from_record(&model).map_err(|error| error.to_string())?;
    let sent = transform(&log.context().messages, &model, None);
    let answer = sent.iter().find_map(|message| message.as_assistant());
    // Blocks of unknown types are kept in the file but never sent.
    let blocks: Vec<&Arc<Block>> = answer
        .map_or(&[][..], |answer| &answer.content)
        .iter()
        .filter(|block| !matches!(***block, Block::Other(_)))
        .collect();
    if blocks.is_empty() {
        return Ok(Value::Null);
    }
    let block = |block: &Arc<Block>| match &**block {
        Block::Text(text) => json!({"type": "text", "text": text.text}),
        Block::ToolCall(call) => {
            json!({"type": "toolCall", "id": call.id.as_str(), "name": call.name, "arguments": call.arguments})
        }
        _ => Value::Null,
    };
    Ok(blocks.into_iter().map(block).collect())
}

/// The turns of a request, as roles and texts.
fn merged(given: &Value) -> Result<Value, String> {
    let api = match given["policy"].as_str() {
        Some("google") => ApiId::GOOGLE_GENERATIVE_AI,
        Some("anthropic") => ApiId::ANTHROPIC_MESSAGES,
        other => return Err(format!("{other:?} is not a policy")),
    };
    let message = |turn: &Value| {
        let texts = turn.as_array().into_iter().flatten().skip(1).filter_map(Value::as_str);
        let content: Vec<Value> = texts.map(|text| json!({"type": "text", "text": text})).collect();
        let raw = json!({"role": turn[0], "content": content, "stopReason": "stop", "timestamp": NOW});
        Message::from_value(&raw).map(Arc::new).map_err(|error| error.to_string())
    };
    let turns = given["in"].as_array().ok_or("no turns")?;
    let messages: Vec<Arc<Message>> = turns.iter().map(message).collect::<Result<_, _>>()?;
    let rules = TranscriptRules::detect(api, "", "m");
    let turn = |message: &Arc<Message>| {
        let raw = message.to_value();
        let texts: Vec<Value> = match &raw["content"] {
            Value::String(text) => vec![text.as_str().into()],
            blocks => blocks.as_array().into_iter().flatten().map(|block| block["text"].clone()).collect(),
        };
        std::iter::once(raw["role"].clone()).chain(texts).collect::<Value>()
    };
    Ok(prepare(&messages, &rules, RequestFacts::default()).iter().map(turn).collect())
}

/// A session after a prompt: the texts of its branch, those of other branches, and the text of the prompt.
async fn prompted(given: &Value) -> Result<Value, String> {
    let text = |error: pinch_coding_agent::store::StoreError| error.to_string();
    let host = Host::builder().clock(NOW, 1).build();
    let mut log = SessionLog::in_memory(&host, NewSession::in_directory("/work"));
    let answer = |said: &str| {
        let mut answer = AssistantMessage::pending("openai-completions".into(), "mock".into(), "mock-1".into(), NOW);
        (answer.stop_reason, answer.content) = (StopReason::Stop, vec![Arc::new(Block::text(said))]);
        Message::Assistant(Arc::new(answer))
    };
    let branch = texts(&given["branch"]);
    for said in &branch {
        let message = if said.starts_with('a') { answer(said) } else { Message::user(*said, NOW) };
        log.append_message(message).await.map_err(text)?;
    }
    let (prompt, _) = take_prompt(&mut log, given["prompt"].as_str().unwrap_or(""), &[]).map_err(text)?;
    let kept: Vec<String> = log.context().messages.iter().map(|message| said(message)).collect();
    log.append_message(Message::user(prompt.as_str(), NOW)).await.map_err(text)?;
    let off: Vec<&&str> = branch.iter().filter(|text| !kept.iter().any(|kept| kept == *text)).collect();
    let now = log.context().messages.len();
    let branch: Vec<&str> = kept.iter().map(String::as_str).chain((now > kept.len()).then_some("prompt")).collect();
    Ok(json!({"branch": branch, "offBranch": off, "promptText": prompt}))
}

fn said(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.text(""),
        Message::Assistant(answer) => answer.text(""),
        _ => String::new(),
    }
}

//! Converts the data of a case into models, requests and replies.

use std::sync::Arc;

use pinch_llm::catalog::Catalog;
use pinch_llm::message::{Message, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, Request, SystemPrompt};
use pinch_llm::stdx::host::Host;
use pinch_testing::server::ServerReply;
use pinch_testing::wires::bedrock;
use serde_json::{Map, Value, json};

use crate::cases::Case;
use crate::cases::llm::setup::{call_options, env};
use crate::cases::llm::stream::at_server;

/// The time of all calls in cases, in Unix milliseconds.
const NOW: i64 = 1_700_000_000_000;

/// Default provider and model by area.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("bedrock", "amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("bedrock-auth", "amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("mistral", "mistral", "mistral-small-2603"),
    ("google-vertex", "google-vertex", "gemini-3-flash-preview"),
    ("openai-codex", "openai-codex", "gpt-5.5"),
];

/// Whether a case of the codex area is about its WebSocket.
pub(super) fn is_about_sockets(given: &Value) -> bool {
    let names = ["transport", "websocket", "turns", "messages", "close", "websocketReply", "sessionId"];
    names.iter().any(|name| given.get(*name).is_some())
}

/// The model of a case. Its URL points to the server, if there is one.
pub(super) fn model(case: &Case<'_>, given: &Value, server: Option<&str>) -> Result<Model, String> {
    let default = DEFAULTS.iter().find(|(area, ..)| *area == case.kind);
    let provider = given["provider"].as_str().or(default.map(|d| d.1)).ok_or("the case names no provider")?;
    let id = given["model"].as_str().or(default.map(|d| d.2)).ok_or("the case names no model")?;
    let mut model = match Catalog::built_in().find(provider, id) {
        Some(model) => (**model).clone(),
        None => {
            let record = &case.file["records"][format!("{provider}/{id}")];
            Model::from_record(record).map_err(|why| format!("model {provider}/{id}: {why}"))?
        }
    };
    let base = given["baseUrl"].as_str();
    model.base_url = match (base, server) {
        (Some(base), Some(server)) => {
            let host = server.trim_start_matches("http://");
            base.replace("{{server}}", server).replace("HOST", host)
        }
        (None, Some(server)) => at_server(&model.base_url, server),
        (Some(base), None) => base.to_owned(),
        (None, None) => model.base_url,
    };
    Ok(model)
}

/// The request of a case.
pub(super) fn request(case: &Case<'_>, given: &Value, model: Model) -> Result<Request, String> {
    let simple = given["simpleOptions"].as_object();
    let options = simple.or_else(|| given["options"].as_object()).cloned().unwrap_or_default();
    let key = match options.get("apiKey").or_else(|| given.get("apiKey")) {
        None => Some(default_key(case)),
        Some(key) => key.as_str().map(str::to_owned),
    };
    let context = context(case.kind, given);
    let messages = context["messages"].as_array().into_iter().flatten().map(message);
    let tools = context["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| serde_json::from_value::<ToolDecl>(tool.clone()).map_err(|why| format!("tool {tool}: {why}")));
    Ok(Request::new(model, messages.collect::<Result<_, _>>()?)
        .with_system(context["systemPrompt"].as_str().map(SystemPrompt::text).unwrap_or_default())
        .with_tools(tools.collect::<Result<Vec<_>, _>>()?)
        .with_options(call_options(&options, simple.is_some()))
        .with_auth(key.map(Auth::key).unwrap_or_default())
        .with_host(Host::builder().clock(NOW, 0).env(env(&given["env"])).build()))
}

/// The default key of a case; codex needs a token that contains an account, which is taken from another case.
fn default_key(case: &Case<'_>) -> String {
    let token = || {
        let mut cases = case.file["cases"].as_array()?.iter();
        cases.find_map(|other| other["given"]["options"]["apiKey"].as_str().filter(|key| key.contains(".ey")))
    };
    match case.kind {
        "openai-codex" => token().unwrap_or(CODEX_TOKEN).to_owned(),
        _ => "k".to_owned(),
    }
}

/// A token for the account `acc-1`.
const CODEX_TOKEN: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEifX0=.s";

fn context(kind: &str, given: &Value) -> Value {
    if given.get("context").is_some() {
        return given["context"].clone();
    }
    let text = match kind {
        "google-vertex" => "hey",
        "openai-codex" => return json!({"systemPrompt": "S", "messages": [{"role": "user", "content": "q1"}]}),
        _ => "x",
    };
    json!({"messages": [{"role": "user", "content": text}]})
}

/// A message; omitted fields default to zero usage and timestamp 1.
pub(super) fn message(given: &Value) -> Result<Arc<Message>, String> {
    let mut whole = json!({"timestamp": 1});
    if given["role"] == "assistant" {
        whole["usage"] = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    }
    let given = given.as_object().cloned().unwrap_or_else(Map::new);
    if let Some(map) = whole.as_object_mut() {
        map.extend(given);
    }
    Message::from_value(&whole).map(Arc::new).map_err(|why| format!("message {whole}: {why}"))
}

/// The server's answer.
pub(super) fn reply(given: &Value) -> Result<ServerReply, String> {
    if let Some(lines) = given["sse"].as_array() {
        let body: String = lines
            .iter()
            .map(|line| format!("data: {}\n\n", line.as_str().map_or_else(|| line.to_string(), str::to_owned)))
            .collect();
        return Ok(ServerReply::sse(body));
    }
    if let Some(frames) = given["frames"].as_array() {
        let mut reply = ServerReply::status(200).header("content-type", "application/vnd.amazon.eventstream");
        for one in frames {
            let headers: Vec<(&str, &str)> = one["headers"]
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
                .collect();
            let payload = one["payload"].as_str().map_or_else(|| one["payload"].to_string(), str::to_owned);
            reply = reply.send(bedrock::frame(&headers, payload.as_bytes()));
        }
        return Ok(reply);
    }
    let Some(http) = given["http"].as_object() else {
        return Ok(ServerReply::sse(""));
    };
    let status = http.get("status").and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok()).unwrap_or(200);
    let mut reply = ServerReply::status(status);
    for (name, value) in http.get("headers").and_then(Value::as_object).into_iter().flatten() {
        reply = reply.header(name.as_str(), value.as_str().unwrap_or_default());
    }
    Ok(match http.get("body") {
        Some(Value::String(text)) => reply.send(text.clone()),
        Some(body) => reply.header("content-type", "application/json").send(at_this_time(body).to_string()),
        None => reply,
    })
}

/// Replaces `now+600s` with Unix seconds.
fn at_this_time(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let seconds = text.strip_prefix("now+").and_then(|rest| rest.strip_suffix('s')?.parse::<i64>().ok());
            seconds.map_or_else(|| value.clone(), |ahead| (NOW / 1_000 + ahead).into())
        }
        Value::Array(list) => list.iter().map(at_this_time).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), at_this_time(value))).collect(),
        other => other.clone(),
    }
}

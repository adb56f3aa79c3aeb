//! Compares pinch's requests with those of the official clients: for the same conversation, npm's `@anthropic-ai/sdk`, `openai` and
//! `@google/genai` must send what pinch sends. They also read an answer from our test server, which checks the server as well.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, bail};
use pinch_llm::message::{Message, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::request::{
    Auth, CacheRetention, CallOptions, Request, SystemPrompt, ThinkingBudgets, ThinkingChoice, ToolChoice,
};
use pinch_llm::stdx::host::Host;
use pinch_llm::thinking::ThinkingLevel;
use pinch_llm::wire::{self, WireCall};
use pinch_testing::cases::compare::same;
use pinch_testing::server::{Recorded, Server, ServerReply};
use pinch_testing::wires::anthropic::AnthropicServer;
use pinch_testing::wires::completions::CompletionsServer;
use pinch_testing::wires::google::GoogleServer;
use pinch_testing::wires::responses::ResponsesServer;
use pinch_testing::wires::{Answer, AnswerPart, Wire};
use serde_json::{Value, json};

use super::table::ResultTable;

/// The last Anthropic client that uses version `2023-06-01` of the API, as pinch and pi do; clients from 1.0 on use a later one.
const PACKAGES: [&str; 3] = ["@anthropic-ai/sdk@0.137.0", "openai@6.49.0", "@google/genai@2.32.0"];
const CONVERSATIONS: [&str; 4] = ["text", "image", "tools", "thinking"];
/// The server's answer to every request.
const ANSWER: &str = "grüße 😀";
/// Headers that matter. The clients send more headers about themselves.
const HEADERS: [&str; 6] =
    ["content-type", "authorization", "x-api-key", "x-goog-api-key", "anthropic-version", "anthropic-beta"];
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The formats that have an official client, the provider whose variant is used, and what follows the call's path.
fn formats() -> [(Box<dyn Wire>, &'static str, &'static str); 4] {
    [
        (Box::new(AnthropicServer), "anthropic", ""),
        (Box::new(CompletionsServer), "openai", ""),
        (Box::new(ResponsesServer::OpenAi), "openai", ""),
        (Box::new(GoogleServer::Generative), "google", "/v1beta"),
    ]
}

/// Runs the check.
pub(super) fn run() -> anyhow::Result<bool> {
    let folder = super::folder("sdk")?;
    install(&folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(compare(&folder))
}

fn install(folder: &Path) -> anyhow::Result<()> {
    let ready = folder.join("ready");
    if !ready.exists() {
        std::fs::write(folder.join("package.json"), r#"{"private":true,"type":"module"}"#)?;
        let mut npm = std::process::Command::new("npm");
        super::must(npm.args(["install", "--no-audit", "--no-fund", "--silent"]).args(PACKAGES).current_dir(folder))?;
        std::fs::write(&ready, "").with_context(|| format!("cannot write {}", ready.display()))?;
    }
    std::fs::write(folder.join("sdk.mjs"), include_str!("sdk.mjs")).context("cannot write the script")
}

async fn compare(folder: &Path) -> anyhow::Result<bool> {
    let server = Server::start().await?;
    server.answer_with(|request| {
        let formats = formats();
        let (wire, ..) = formats.iter().find(|(wire, ..)| request.path[1..].starts_with(wire.api()))?;
        Some(ServerReply::sse(wire.frames(&Answer::of([AnswerPart::text(ANSWER)])).concat()))
    });
    let mut node = tokio::process::Command::new("node");
    node.arg("sdk.mjs").arg(server.url()).current_dir(folder).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = node.output().await.context("cannot start node")?;
    let read = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("the official clients failed after:\n{read}");
    }
    let read: BTreeMap<String, String> = read
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|told| {
            Some((
                format!("{}/{}", told["api"].as_str()?, told["conversation"].as_str()?),
                told["text"].as_str()?.to_owned(),
            ))
        })
        .collect();
    let recorded = server.requests();
    let mut table = ResultTable::default();
    for (wire, provider, version) in formats() {
        for conversation in CONVERSATIONS {
            let path = format!("/{}/{conversation}", wire.api());
            let base_url = format!("{}{path}{version}", server.url());
            let theirs = recorded.iter().find(|request| request.path.starts_with(&format!("{path}/")));
            let result = request(wire.api(), provider, &base_url, conversation).and_then(|request| {
                let theirs = theirs.ok_or("the client sent nothing")?;
                compare_one(&request, theirs)?;
                same(&ANSWER.into(), &read.get(&path[1..]).cloned().into())
                    .map_err(|why| format!("what it read{why}"))?;
                Ok(format!("{} bytes", theirs.body.len()))
            });
            table.row(wire.api(), conversation, result);
        }
    }
    Ok(table.finish())
}

fn request(api: &str, provider: &str, base_url: &str, conversation: &str) -> Result<Request, String> {
    let thinks = conversation == "thinking";
    let model = json!({
        "id": "m", "api": api, "provider": provider, "baseUrl": base_url, "reasoning": thinks, "input": ["text", "image"],
        "maxTokens": 8_000,
    });
    let model = Model::from_record(&model).map_err(|why| why.to_string())?;
    let message = |value: Value| Message::from_value(&value).map(Arc::new).map_err(|why| why.to_string());
    let answer = |content: Value| {
        message(
            json!({"role": "assistant", "content": content, "api": "x", "provider": "x", "model": "x", "stopReason": "stop", "timestamp": 2}),
        )
    };
    let messages = match conversation {
        "image" => vec![message(json!({"role": "user", "timestamp": 1, "content": [
            {"type": "text", "text": "look"}, {"type": "image", "mimeType": "image/png", "data": IMAGE}]}))?],
        "tools" => vec![
            Arc::new(Message::user("read a.txt", 1)),
            answer(json!([{"type": "text", "text": "ok"},
                {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "a.txt"}}]))?,
            message(
                json!({"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "isError": false, "timestamp": 3,
                "content": [{"type": "text", "text": "one two"}]}),
            )?,
            answer(json!([{"type": "text", "text": "done"}]))?,
            Arc::new(Message::user("again", 4)),
        ],
        _ => vec![Arc::new(Message::user("hi", 1))],
    };
    let tool = ToolDecl::new(
        "read",
        "Reads a file.",
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    );
    let has_tools = conversation == "tools";
    let must = if matches!(api, "anthropic-messages" | "google-generative-ai") { "any" } else { "required" };
    Ok(Request::new(model, messages)
        .with_system(SystemPrompt::text("Be brief."))
        .with_tools(if has_tools { vec![tool] } else { Vec::new() })
        .with_options({
            let mut options = CallOptions::default();
            options.temperature = (conversation == "text").then_some(0.5);
            options.max_tokens = Some(if thinks { 8_000 } else { 100 });
            options.thinking = if thinks { ThinkingChoice::Level(ThinkingLevel::Low) } else { ThinkingChoice::Unset };
            options.thinking_budgets = ThinkingBudgets { low: Some(2_048), ..ThinkingBudgets::default() };
            options.cache_retention = Some(CacheRetention::None);
            options.tool_choice = has_tools.then(|| ToolChoice::Native(must.into()));
            options
        })
        .with_auth(Auth::key("key"))
        .with_host(Host::builder().clock(1, 0).build()))
}

fn compare_one(request: &Request, theirs: &Recorded) -> Result<(), String> {
    let formats = wire::builtin();
    let format = formats.iter().find(|format| request.model.api == *format.api()).ok_or("not built in")?;
    let call = WireCall::new(request, 1);
    let ours = format.encode(&call).map_err(|error| error.text)?;
    let path = ours.url.splitn(4, '/').nth(3).map(|path| format!("/{path}"));
    same(&theirs.path.as_str().into(), &path.into()).map_err(|why| format!("path{why}"))?;
    let our = |name: &str| ours.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    for name in HEADERS {
        same(&theirs.header(name).into(), &our(name).into()).map_err(|why| format!("header {name}{why}"))?;
    }
    same(&theirs.json(), &ours.body).map_err(|why| format!("body{why}"))
}

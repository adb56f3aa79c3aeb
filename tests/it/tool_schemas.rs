//! The tools of embedded runs, as every provider receives them.

use std::fmt::Write as _;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_embed::Engine;
use pinch_embed::config::Config;
use pinch_embed::stdx::host::Host;
use pinch_llm::schema::Schema;
use pinch_ports::{QuestionBroker, QuestionReply, QuestionRequest};
use pinch_testing::rules::tools::{ToolServer, tool};
use pinch_testing::server::{Server, ServerReply};
use pinch_tools::tool_search::SEARCH_TOOLS;
use serde_json::{Value, json};

/// All built-in tools; commands under rules, and without.
const TOOLS: [[&str; 8]; 2] = [
    ["read", "edit", "write", "ls", "grep", "find", "apply_patch", "bash"],
    ["read", "edit", "write", "ls", "apply_patch", "exec", "process", "grep"],
];

/// Tools that are declared only if tools are not searched for.
const DEFERRED: [&str; 3] = ["read", "sessions_spawn", "subagents"];

/// Providers with the formats they speak, a model of each, and how they validate tools.
const PROVIDERS: [(&str, &str, &str, ToolServer); 7] = [
    ("anthropic", "anthropic-messages", "claude-sonnet-4-5", ToolServer::Anthropic),
    ("openai", "openai-responses", "gpt-5", ToolServer::OpenAi),
    ("groq", "openai-completions", "llama-4", ToolServer::OpenAi),
    ("mistral", "mistral-conversations", "mistral-large-latest", ToolServer::OpenAi),
    ("google", "google-generative-ai", "gemini-2.5-pro", ToolServer::Google),
    ("xai", "openai-completions", "grok-4", ToolServer::Xai),
    ("moonshot", "openai-completions", "kimi-k2", ToolServer::Kimi),
];

struct Nobody;

impl QuestionBroker for Nobody {
    fn ask<'a>(&'a self, _: &'a QuestionRequest) -> BoxFuture<'a, Option<Vec<QuestionReply>>> {
        Box::pin(async { None })
    }
}

/// A tool that is searched for.
fn deferred() -> FnTool {
    let spec = ToolSpec::new("deferred", "Does nothing", Schema::new(json!({"type": "object", "properties": {}})));
    FnTool::new(spec, |_: JsonObject, _| async { Ok(ToolOutput::text("")) })
}

/// A tool in a request: name, description, and schema.
struct SentTool {
    name: String,
    description: String,
    schema: Value,
}

/// Returns the tools in the body of a request.
fn tools_in(body: &Value) -> Vec<SentTool> {
    let tools = body["tools"].as_array().unwrap_or_else(|| panic!("no tools: {body}"));
    let google = tools.iter().flat_map(|entry| entry["functionDeclarations"].as_array().into_iter().flatten());
    let declared: Vec<&Value> = google.collect();
    let all = if declared.is_empty() { tools.iter().collect() } else { declared };
    let sent = |entry: &Value| {
        let entry = if entry["function"].is_object() { &entry["function"] } else { entry };
        let schemas = ["input_schema", "parameters", "parametersJsonSchema"];
        let schema = schemas.iter().find_map(|name| entry.get(name)).unwrap_or_else(|| panic!("no schema: {entry}"));
        let word = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        SentTool { name: word("name"), description: word("description"), schema: schema.clone() }
    };
    all.into_iter().map(sent).collect()
}

/// Returns the tools of a run, as a provider receives them.
async fn sent_to(
    (provider, api, model, _): (&str, &str, &str, ToolServer),
    tools: &[&str],
    is_searched: bool,
) -> Vec<SentTool> {
    let (dir, server) = (tempfile::tempdir().unwrap(), Server::start().await.unwrap());
    let refusal = json!({"error": {"type": "invalid_request_error", "message": "seen enough"}});
    server.answer_with(move |_| Some(ServerReply::json(400, &refusal)));
    let document = json!({
        "agents": {"defaults": {"model": format!("{provider}/{model}"), "workspace": dir.path().join("workspace")}},
        "models": {"providers": {provider: {
            "baseUrl": server.url(), "api": api, "apiKey": "none",
            "models": [{"id": model, "contextWindow": 200_000, "maxTokens": 8192}],
        }}},
        "tools": {"toolSearch": is_searched},
    });
    let (config, problems) =
        Config::from_document(document.as_object().unwrap().clone(), &dir.path().join("pinch.json"));
    assert!(problems.is_empty(), "{problems:?}");
    let host = Host::builder().home(dir.path()).temp(dir.path()).build();
    let engine = Engine::builder(dir.path().join("state")).host(host).config(config);
    let engine = engine.builtin_tools(tools.iter().copied()).tool(deferred()).questions(Arc::new(Nobody)).build();
    assert!(engine.problems().is_empty(), "{:?}", engine.problems());
    let failed = engine.run(engine.request("s1", Some("agent:main:main"), None, "Hello")).finish().await;
    let requests = server.requests();
    let request = requests.first().unwrap_or_else(|| panic!("{provider}: no request: {failed:?}"));
    tools_in(&request.json())
}

#[tokio::test]
async fn every_tool_passes_the_validation_of_every_provider() {
    for provider in PROVIDERS {
        let [plain, with_rules] = &TOOLS;
        let lists: [(&[&str], &[&str]); 3] = [(plain, &SEARCH_TOOLS), (with_rules, &SEARCH_TOOLS), (&DEFERRED, &[])];
        for (names, search_tools) in lists {
            let tools = sent_to(provider, names, !search_tools.is_empty()).await;
            let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            assert!(
                names.iter().chain(&["ask_user"]).chain(search_tools).all(|name| known.contains(name)),
                "{known:?}"
            );
            for sent in &tools {
                if let Err(broken) = tool(provider.3, &sent.name, &sent.description, &sent.schema) {
                    panic!("{}: {}: {broken}", provider.0, sent.name);
                }
            }
        }
    }
}

/// `cargo xtask tidy` adds the table up and compares it with the budget.
#[tokio::test]
async fn the_table_of_tool_sizes_is_up_to_date() {
    let [plain, with_rules] = TOOLS;
    let mut tools = sent_to(PROVIDERS[0], &plain, true).await;
    tools.extend(sent_to(PROVIDERS[0], &with_rules, true).await);
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools.dedup_by(|a, b| a.name == b.name);
    let mut table = String::new();
    for tool in &tools {
        let (n_about, n_schema) = (tool.description.chars().count(), tool.schema.to_string().chars().count());
        writeln!(table, "{} {n_about} {n_schema}", tool.name).unwrap();
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tool-sizes.txt");
    if std::env::var_os("PINCH_UPDATE_TOOL_SIZES").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(table, kept, "update tests/tool-sizes.txt with PINCH_UPDATE_TOOL_SIZES=1");
}

//! Converts the data of a case into models and requests.

use std::sync::Arc;
use std::time::Duration;

use pinch_llm::message::{Message, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::request::{
    Auth, CacheRetention, CallOptions, NativeThinking, Request, SystemPrompt, ThinkingBudgets, ThinkingChoice,
    ToolChoice,
};
use pinch_llm::stdx::host::{Env, Host};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Map, Value};

use super::Case;

/// The time at which all calls of cases are made.
const NOW: i64 = 1_700_000_000_000;

/// The model of a case: a key of the file's `models`, or a record.
pub(super) fn model(case: &Case<'_>) -> Result<Model, String> {
    let given = &case.case["model"];
    let record = match given.as_str() {
        Some(key) => &case.file["models"][key],
        None => given,
    };
    let mut record = record.clone();
    if let (Some(api), Some(map)) = (case.case["api"].as_str(), record.as_object_mut()) {
        map.insert("api".into(), api.into());
    }
    Model::from_record(&record).map_err(|why| format!("model {given}: {why}"))
}

/// The request of a case to a model.
pub(super) fn request(case: &Case<'_>, model: Model) -> Result<Request, String> {
    let context = &case.case["context"];
    let options = case.case["options"].as_object().cloned().unwrap_or_default();
    let messages =
        context["messages"].as_array().into_iter().flatten().map(|message| {
            Message::from_value(message).map(Arc::new).map_err(|why| format!("message {message}: {why}"))
        });
    let tools = context["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| serde_json::from_value::<ToolDecl>(tool.clone()).map_err(|why| format!("tool {tool}: {why}")));
    let key = match options.get("apiKey") {
        None => Some("test-key"),
        Some(key) => key.as_str(),
    };
    Ok(Request::new(model, messages.collect::<Result<_, _>>()?)
        .with_system(context["systemPrompt"].as_str().map(SystemPrompt::text).unwrap_or_default())
        .with_tools(tools.collect::<Result<Vec<_>, _>>()?)
        .with_options(call_options(&options, case.case["mode"] == "simple"))
        .with_auth(key.map(Auth::key).unwrap_or_default())
        .with_host(Host::builder().clock(NOW, 0).env(env(&case.case["env"])).build()))
}

pub(in crate::cases) fn env(given: &Value) -> Env {
    given.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name.clone(), value.as_str()?))).collect()
}

/// The options of a case; `simple`: only those that all formats share.
pub(in crate::cases) fn call_options(given: &Map<String, Value>, simple: bool) -> CallOptions {
    let count = |name: &str| given.get(name).and_then(Value::as_u64);
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let object = |name: &str| given.get(name).and_then(Value::as_object).cloned();
    let mut options = CallOptions::default();
    options.temperature = given.get("temperature").and_then(Value::as_f64);
    options.max_tokens = count("maxTokens");
    options.omit_output_limit = !simple;
    options.thinking = match (simple, text("reasoning")) {
        (true, word) => level(word.as_deref()),
        // A raw option that names a level is equivalent to the shared one.
        (false, Some(word)) if ThinkingLevel::parse(&word).is_some() => level(Some(&word)),
        (false, _) => native(given),
    };
    options.thinking_budgets = budgets(given.get("thinkingBudgets"));
    options.cache_retention = text("cacheRetention").map(|word| match word.as_str() {
        "none" => CacheRetention::None,
        "long" => CacheRetention::Long,
        _ => CacheRetention::Short,
    });
    options.session_id = text("sessionId").map(Into::into);
    options.tool_choice = given.get("toolChoice").cloned().map(ToolChoice::Native);
    options.headers = object("headers")
        .into_iter()
        .flatten()
        .map(|(name, value)| (name, value.as_str().map(str::to_owned)))
        .collect();
    options.metadata = object("metadata");
    options.sampling_params = object("samplingParams");
    options.native = given.clone();
    if let Some(ms) = count("timeoutMs") {
        options.timeouts.headers = Some(Duration::from_millis(ms));
    }
    options.timeouts.idle = count("streamIdleTimeoutMs").map(Duration::from_millis);
    options.timeouts.first_content = options.timeouts.idle;
    options
}

/// The unified option: without a level, thinking is off.
fn level(word: Option<&str>) -> ThinkingChoice {
    ThinkingChoice::Level(word.and_then(ThinkingLevel::parse).unwrap_or_default())
}

/// The format-specific options.
fn native(given: &Map<String, Value>) -> ThinkingChoice {
    let text = |names: [&str; 2]| names.into_iter().find_map(|name| given.get(name)?.as_str().map(str::to_owned));
    let nested = given.get("thinking");
    let thinking = NativeThinking {
        enabled: given.get("thinkingEnabled").or_else(|| nested?.get("enabled")).and_then(Value::as_bool),
        budget: given.get("thinkingBudgetTokens").or_else(|| nested?.get("budgetTokens")).and_then(Value::as_u64),
        effort: text(["effort", "reasoningEffort"])
            .or_else(|| nested?.get("level").and_then(Value::as_str).map(str::to_owned)),
        display: text(["thinkingDisplay", "reasoningSummary"]),
    };
    if thinking == NativeThinking::default() { ThinkingChoice::Unset } else { ThinkingChoice::Native(thinking) }
}

fn budgets(given: Option<&Value>) -> ThinkingBudgets {
    let of = |name: &str| given.and_then(|budgets| budgets[name].as_u64());
    ThinkingBudgets { minimal: of("minimal"), low: of("low"), medium: of("medium"), high: of("high") }
}

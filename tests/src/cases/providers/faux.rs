//! Cases of the areas `faux` and `registry`: the scripted provider and provider lookup.

use std::sync::Arc;

use pinch_llm::ids::ApiId;
use pinch_llm::message::{Block, Message, StopReason};
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::{CallOptions, Request, SystemPrompt};
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::stdx::host::Host;
use pinch_testing::cases::compare::same;
use serde_json::{Value, json};

use super::wire::{check, events_of};
use super::{setup, wanted};
use crate::cases::{Case, CaseOutcome};

/// Runs a case about a wire format that is not registered.
pub(super) fn run_registry(case: &Case<'_>) -> CaseOutcome {
    let (given, expect) = (&case.case["given"], wanted(&case.case["expect"]));
    let adapter = ["adapter", "adapterApi", "api"].into_iter().find_map(|name| given[name].as_str());
    let (Some(api), Some(_)) = (adapter, expect.get("thrown")) else { return CaseOutcome::NotImplemented };
    let model = &given["model"];
    let other = given["modelApi"].as_str().or_else(|| model["api"].as_str()).or_else(|| model.as_str());
    match ProviderRegistry::builtin().get(&ApiId::from(api)) {
        Ok(provider) if other.is_some_and(|other| other != api) => {
            run_mismatched(&*provider, other.unwrap_or(api), expect)
        }
        Ok(_) => CaseOutcome::Failed(format!("{api} is registered")),
        Err(unknown) => same(&expect["thrown"], &unknown.to_string().into()).into(),
    }
}

/// Calls an adapter with a model of another wire format.
fn run_mismatched(provider: &dyn Provider, api: &str, expect: &Value) -> CaseOutcome {
    let record = json!({"id": "m", "name": "m", "api": api, "provider": "p", "baseUrl": "http://127.0.0.1:1",
        "reasoning": false, "input": ["text"], "contextWindow": 1000, "maxTokens": 100,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}});
    let asked = Model::from_record(&record).map_err(|why| why.to_string()).and_then(|model| {
        let request = request(api, &Value::Null)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
        let mut request = request;
        request.model = Arc::new(model);
        runtime.block_on(events_of(provider.stream(request, Cancel::new())))
    });
    match asked {
        Ok(seen) => same(&expect["thrown"], &seen.message["errorMessage"]).into(),
        Err(why) => CaseOutcome::Failed(why),
    }
}

/// Runs a case of the scripted provider, after the case that it continues.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let mut chain = vec![case.case];
    while let Some(before) = chain.last().and_then(|last| last["given"]["after"].as_str()) {
        let cases = case.file["cases"].as_array();
        match cases.and_then(|cases| cases.iter().find(|other| other["id"] == before)) {
            Some(found) if chain.len() < 16 => chain.push(found),
            _ => return CaseOutcome::Failed(format!("the file has no case {before}")),
        }
    }
    chain.reverse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return CaseOutcome::Failed(why.to_string()),
    };
    runtime.block_on(async {
        let size = |name: &str, or: u64| chain[0]["given"]["tokenSize"][name].as_u64().unwrap_or(or) as usize;
        let mut provider = ScriptedProvider::default().pieces(size("min", 3)..=size("max", 5), 0).estimating_usage();
        if let Some(pace) = chain[0]["given"]["tokensPerSecond"].as_f64() {
            provider = provider.tokens_per_second(pace);
        }
        let api = chain[0]["given"]["api"].as_str().unwrap_or("faux-t");
        let mut last = None;
        for step in &chain {
            let given = &step["given"];
            let replies = match &given["responses"] {
                Value::Array(list) => list.iter().map(reply).collect(),
                _ => reply(&given["response"]).map(|reply| vec![reply]),
            };
            match replies {
                Ok(replies) => replies.into_iter().for_each(|reply| provider.push(reply)),
                Err(why) => return CaseOutcome::Failed(why),
            }
            let request = match request(api, given) {
                Ok(request) => request,
                Err(why) => return CaseOutcome::Failed(why),
            };
            last = Some(events_of(provider.stream(request, Cancel::new())).await);
        }
        match last {
            Some(Ok(seen)) => match check(wanted(&case.case["expect"]), seen) {
                Ok(result) => result.into(),
                Err(_unknown_member) => CaseOutcome::NotImplemented,
            },
            Some(Err(why)) => CaseOutcome::Failed(why),
            None => CaseOutcome::Failed("no call was made".into()),
        }
    })
}

fn request(api: &str, given: &Value) -> Result<Request, String> {
    let context = &given["context"];
    let messages = context["messages"].as_array().into_iter().flatten().map(setup::message);
    let mut options = CallOptions::default();
    options.session_id = given["sessionId"].as_str().map(Into::into);
    Ok(Request::new(ScriptedProvider::model(api), messages.collect::<Result<_, _>>()?)
        .with_system(context["systemPrompt"].as_str().map(SystemPrompt::text).unwrap_or_default())
        .with_tools(serde_json::from_value::<Vec<_>>(context["tools"].clone()).unwrap_or_default())
        .with_options(options)
        .with_host(Host::builder().clock(1, 0).build()))
}

/// A message, a text, or a block.
fn reply(given: &Value) -> Result<ScriptedReply, String> {
    let content = match given {
        Value::String(text) => json!([{"type": "text", "text": text}]),
        Value::Array(blocks) => json!(blocks),
        message if message.get("content").is_some() => match &message["content"] {
            Value::String(text) => json!([{"type": "text", "text": text}]),
            content => content.clone(),
        },
        block => json!([block]),
    };
    let message = json!({"role": "assistant", "content": content, "timestamp": 1});
    let message = Message::from_value(&message).map_err(|why| format!("response {given}: {why}"))?;
    let answer = message.as_assistant().ok_or("no assistant message")?;
    let blocks: Vec<Block> = answer.content.iter().map(|block| (**block).clone()).collect();
    let word = given["stopReason"].as_str();
    let reasons = [StopReason::Stop, StopReason::Length, StopReason::ToolUse, StopReason::Error, StopReason::Aborted];
    Ok(ScriptedReply {
        // Upstream's messages have the stop reason `stop` unless specified.
        stop: Some(reasons.into_iter().find(|reason| Some(reason.as_str()) == word).unwrap_or(StopReason::Stop)),
        error_message: given["errorMessage"].as_str().map(str::to_owned),
        response_id: given["responseId"].as_str().map(str::to_owned),
        ..ScriptedReply::blocks(blocks)
    })
}

//! Hooks: real runs over the loopback interface, with plugins that answer as a case says.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinch_agent_core::tool::{FnTool, JsonObject, ToolEffect, ToolOutput, ToolSpec};
use pinch_coding_agent::extension::{Extension, ExtensionError, HandlerFuture, Points};
use pinch_embed::plugin::{
    AgentEnd, AgentStartChanges, BeforeAgentRun, BeforeModelResolve, BeforePromptBuild, BeforeToolCall, FirstAnswer,
    HookContext, HookPoint, HookRules, JoinedText, LastAnswer, ModelOverride, Plugin, PromptChanges, RunVerdict,
    ToolCallChanges, ToolResultPersist,
};
use pinch_llm::message::{Block, ToolResult, block};
use pinch_llm::schema::Schema;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Map, Value, json};

use super::world;
use super::{CaseOutcome, check};

/// The hooks for which a case can define answers.
const HOOKS: [&str; 7] = [
    "before_model_resolve",
    "before_agent_start",
    "before_agent_run",
    "before_prompt_build",
    "agent_end",
    "tool_result_persist",
    "before_tool_call",
];
/// The other fields of a case.
const SUBJECTS: [&str; 6] = ["hook", "handlers", "prompt", "text", "params", "outcome"];

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    (area == "hooks").then(|| CaseOutcome::from(hooks(given, expect)))
}

/// Answers hooks as a case says.
struct CasePlugin {
    priority: i32,
    answers: Map<String, Value>,
    ends: Arc<Mutex<Vec<AgentEnd>>>,
}

impl CasePlugin {
    /// The answer of a hook; an error if the hook should fail.
    fn answer(&self, hook: &str) -> Result<Value, ExtensionError> {
        match self.answers.get(hook) {
            Some(Value::String(word)) if word == "throw" => Err(ExtensionError::new("thrown by the case")),
            Some(answer) => Ok(answer.clone()),
            None => Ok(Value::Null),
        }
    }
}

fn text(answer: &Value, name: &str) -> Option<String> {
    answer[name].as_str().map(str::to_owned)
}

fn choice(answer: &Value) -> ModelOverride {
    ModelOverride {
        provider: FirstAnswer(text(answer, "providerOverride")),
        model: FirstAnswer(text(answer, "modelOverride")),
    }
}

fn joined(answer: &Value, name: &str) -> JoinedText {
    text(answer, name).map(JoinedText::from).unwrap_or_default()
}

impl Extension for CasePlugin {
    fn name(&self) -> &str {
        "case"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

impl Plugin for CasePlugin {
    fn rules(&self, hook: HookPoint) -> HookRules {
        HookRules { priority: self.priority, ..HookRules::of(hook) }
    }

    fn before_model_resolve<'a>(
        &'a self,
        _: &'a BeforeModelResolve,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, ModelOverride> {
        Box::pin(async { self.answer("before_model_resolve").map(|answer| choice(&answer)) })
    }

    fn on_agent_start<'a>(
        &'a self,
        _: &'a BeforeModelResolve,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, AgentStartChanges> {
        Box::pin(async {
            let answer = self.answer("before_agent_start")?;
            Ok(AgentStartChanges {
                model: choice(&answer),
                system_prompt: LastAnswer(text(&answer, "systemPrompt")),
                prepend_context: joined(&answer, "prependContext"),
            })
        })
    }

    fn before_agent_run<'a>(&'a self, _: &'a BeforeAgentRun, _: &'a HookContext) -> HandlerFuture<'a, RunVerdict> {
        Box::pin(async {
            let answer = self.answer("before_agent_run")?;
            Ok(match answer["reject"] == true {
                true => RunVerdict::Reject {
                    reason: text(&answer, "rejectReason"),
                    user_message: text(&answer, "rejectUserMessage"),
                },
                false => RunVerdict::Proceed,
            })
        })
    }

    fn before_prompt_build<'a>(
        &'a self,
        _: &'a BeforePromptBuild,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, PromptChanges> {
        Box::pin(async {
            let answer = self.answer("before_prompt_build")?;
            Ok(PromptChanges {
                system_prompt: LastAnswer(text(&answer, "systemPrompt")),
                prepend_context: joined(&answer, "prependContext"),
                prepend_system_context: joined(&answer, "prependSystemContext"),
                append_system_context: joined(&answer, "appendSystemContext"),
            })
        })
    }

    fn on_agent_end<'a>(&'a self, event: &'a AgentEnd, _: &'a HookContext) -> HandlerFuture<'a, ()> {
        Box::pin(async {
            self.ends.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
            self.answer("agent_end").map(drop)
        })
    }

    fn before_tool_call<'a>(&'a self, _: &'a BeforeToolCall, _: &'a HookContext) -> HandlerFuture<'a, ToolCallChanges> {
        Box::pin(async {
            let answer = self.answer("before_tool_call")?;
            let is_blocked = answer["block"] == true;
            Ok(ToolCallChanges {
                block: is_blocked.then(|| text(&answer, "blockReason").unwrap_or_default()),
                params: answer["params"].as_object().cloned().unwrap_or_default(),
                ..ToolCallChanges::default()
            })
        })
    }

    fn tool_result_persist<'a>(
        &'a self,
        event: &'a ToolResultPersist,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, Option<ToolResult>> {
        Box::pin(async {
            let answer = self.answer("tool_result_persist")?;
            let result = &event.result;
            let mut changed = result.clone();
            match (answer.as_str().and_then(|word| word.strip_prefix("append:")), answer["message"].as_str()) {
                (Some(suffix), _) => {
                    let text = block::join_text(&result.content, "");
                    changed.content = vec![Block::text(format!("{text}{suffix}"))];
                }
                (None, Some(text)) => changed.content = vec![Block::text(text)],
                (None, None) => return Ok(None),
            }
            Ok(Some(changed))
        })
    }
}

/// The plugins of a case.
fn plugins(given: &Value, ends: &Arc<Mutex<Vec<AgentEnd>>>) -> Result<Vec<CasePlugin>, String> {
    for (name, _) in given.as_object().into_iter().flatten() {
        if !HOOKS.contains(&name.as_str()) && !SUBJECTS.contains(&name.as_str()) {
            return Err(format!("the case gives {name}, which this executor does not know"));
        }
    }
    let plugin = |priority, answers| CasePlugin { priority, answers, ends: Arc::clone(ends) };
    let Some(hook) = given["hook"].as_str() else {
        let answers = given.as_object().into_iter().flatten().filter(|(name, _)| HOOKS.contains(&name.as_str()));
        return Ok(vec![plugin(0, answers.map(|(name, answer)| (name.clone(), answer.clone())).collect())]);
    };
    if !HOOKS.contains(&hook) {
        return Err(format!("the hook {hook} is not one that this executor knows"));
    }
    let mut all = vec![plugin(-1000, Map::new())];
    for handler in given["handlers"].as_array().into_iter().flatten() {
        if handler[1] == "async" {
            return Err("a hook that answers at once cannot answer later: its type forbids it".to_owned());
        }
        let priority = handler[0].as_i64().and_then(|priority| i32::try_from(priority).ok());
        let answers = Map::from_iter([(hook.to_owned(), handler[1].clone())]);
        all.push(plugin(priority.ok_or("a handler needs a priority")?, answers));
    }
    Ok(all)
}

/// All values of a field, anywhere in a case.
fn mentioned(given: &Value, name: &str, found: &mut Vec<String>) {
    match given {
        Value::Object(members) => {
            found.extend(members.get(name).and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| mentioned(value, name, found));
        }
        Value::Array(items) => items.iter().for_each(|item| mentioned(item, name, found)),
        _ => {}
    }
}

fn hooks(given: &Value, expect: &Value) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let server = Server::start().await.map_err(|error| error.to_string())?;
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let calls = ["tool_result_persist", "before_tool_call"].iter().any(|hook| given["hook"] == **hook || given.get(hook).is_some());
        if calls {
            let arguments = given.get("params").cloned().unwrap_or_else(|| json!({})).to_string();
            let call = AnthropicResponse::new("m1").tool_call("call1", "probe", &arguments).stop("tool_use");
            server.reply(ServerReply::sse(call.concat()));
        }
        match given["outcome"].as_str() {
            None | Some("ok") => {
                server.reply(ServerReply::sse(AnthropicResponse::new("m2").text("ok").stop("end_turn").concat()));
            }
            Some("promptError") => {
                let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
                server.reply(ServerReply::json(400, &error));
            }
            Some(other) => return Err(format!("the outcome {other} is not one that this executor knows")),
        }
        let ends = Arc::default();
        let received: Arc<Mutex<Option<Value>>> = Arc::default();
        let mut builder = world::builder(dir.path(), document(given, &server)).tool(probe(given, &received));
        for plugin in plugins(given, &ends)? {
            builder = builder.hooks(Arc::new(plugin));
        }
        let engine = builder.build();
        let prompt = given["prompt"].as_str().unwrap_or("P");
        let done = engine.run(engine.request("s1", None, None, prompt)).finish().await;
        engine.drain(Duration::from_secs(10)).await;
        let requests: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
        let null = Value::Null;
        let first = requests.first().unwrap_or(&null);
        let system = first["system"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        let result = requests.last().and_then(|body| body["messages"].as_array()?.last()).unwrap_or(&null);
        let result = result["content"].as_array().into_iter().flatten().find(|block| block["type"] == "tool_result");
        let result = result.unwrap_or(&null);
        let failure = done.as_ref().map_or_else(|error| Some(error.to_string()), |done| done.failure().map(|failure| failure.message));
        let agent = done.as_ref().ok().map(|done| &done.meta.agent);
        let other = |name: Option<&String>, usual: &str| name.filter(|name| *name != usual).cloned();
        let ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
        let params = received.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answer = |name: &str| mention(given, name);
        let is_rejected = done.as_ref().is_ok_and(|done| done.meta.error.as_ref().is_some_and(|error| error.kind.as_str() == "hook_block"));
        let actual = json!({
            "modelOverride": other(agent.map(|agent| &agent.model), "mock-1"),
            "providerOverride": other(agent.map(|agent| &agent.provider), "mock"),
            "prompt": user_text(first),
            "systemPrompt": system.collect::<Vec<_>>().join("\n\n"),
            "text": block_text(&result["content"]),
            "toolError": (result["is_error"] == true).then(|| block_text(&result["content"])),
            "params": params,
            "runFails": failure.is_some(),
            "success": ends.iter().rev().find(|end| end.is_final).map(|end| end.success),
            "reject": is_rejected,
            "error": done.as_ref().ok().and_then(|done| done.meta.error.as_ref()).map(|error| error.kind.as_str()),
            "rejectReason": is_rejected.then(|| answer("rejectReason")),
            "rejectUserMessage": is_rejected.then(|| done.as_ref().ok().and_then(|done| Some(done.payloads.first()?.reply.text.clone()))),
        });
        if ends.iter().any(|end| end.success == failure.is_some()) {
            return Err(format!("the ends do not agree with the run: {ends:?}"));
        }
        check(expect, &actual).map_err(|error| format!("{error}\n  the run failed with {failure:?}"))
    })
}

fn mention(given: &Value, name: &str) -> Option<String> {
    let mut found = Vec::new();
    mentioned(given, name, &mut found);
    found.into_iter().next()
}

/// A configuration with the models and providers that a case names.
fn document(given: &Value, server: &Server) -> Value {
    let mut names = vec!["mock-1".to_owned()];
    mentioned(given, "modelOverride", &mut names);
    let models: Vec<Value> =
        names.iter().map(|id| json!({"id": id, "contextWindow": 200_000, "maxTokens": 4_096})).collect();
    let mut providers = vec!["mock".to_owned()];
    mentioned(given, "providerOverride", &mut providers);
    let provider = json!({"baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "k", "models": models});
    let providers: Map<String, Value> = providers.into_iter().map(|name| (name, provider.clone())).collect();
    json!({
        "agents": {"defaults": {"model": {"primary": "mock/mock-1"}, "workspace": "~/workspace"}},
        "models": {"providers": providers},
    })
}

/// A tool that returns the case's text and records its arguments.
fn probe(given: &Value, received: &Arc<Mutex<Option<Value>>>) -> FnTool {
    let text = given["text"].as_str().unwrap_or("ok").to_owned();
    let received = Arc::clone(received);
    let mut spec = ToolSpec::new("probe", "Returns a text", Schema::new(json!({"type": "object"})));
    spec.effect = ToolEffect::Reads;
    FnTool::new(spec, move |input: JsonObject, _| {
        *received.lock().unwrap_or_else(PoisonError::into_inner) = Some(Value::Object(input));
        let text = text.clone();
        async move { Ok(ToolOutput::text(text)) }
    })
}

/// The text of the last message of a request, if it is a user message.
fn user_text(body: &Value) -> Option<String> {
    let last = body["messages"].as_array()?.last()?;
    (last["role"] == "user").then(|| block_text(&last["content"]))
}

fn block_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    }
}

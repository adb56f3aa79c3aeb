//! `tool-params`, `tool-adapter`, `tool-split`.

use std::sync::Arc;

use pinch_agent_core::tool::{FnTool, JsonObject, Progress, Tool, ToolCx, ToolError, ToolOutput, ToolSet, ToolSpec};
use pinch_llm::message::Block;
use pinch_llm::schema::Schema;
use pinch_ports::Caller;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use pinch_tools::pipeline::{ToolLayers, reporting};
use pinch_tools::policy::{PolicyRequest, ToolPolicies};
use serde_json::{Value, json};

use super::super::Case;
use super::{block_on, check, only, texts};

/// An error may contain more than the case expects.
pub(super) fn file_arguments(input: &Value, expect: &Value) -> Result<(), String> {
    only(input, &["tool", "params"])?;
    let tool = input["tool"].as_str().ok_or("no tool is named")?;
    match (pinch_tools::arguments::file_arguments(tool, &input["params"]), expect["ok"].as_bool()) {
        (Ok(params), Some(true)) if expect["params"].is_object() => {
            // No arguments may be left over.
            let (params, wanted) = (Value::Object(params), &expect["params"]);
            if params == *wanted { Ok(()) } else { Err(format!("expected {wanted}, got {params}")) }
        }
        (Ok(_), Some(true)) => Ok(()),
        (Err(error), Some(false)) => {
            let start = expect["error"].as_str().unwrap_or_default();
            if error.text.starts_with(start) {
                Ok(())
            } else {
                Err(format!("expected {start:?}, got {:?}", error.text))
            }
        }
        (found, _) => check(expect, &json!({"ok": found.is_ok()})).and(Err(format!("got {found:?}"))),
    }
}

/// A tool that returns or fails as a case says.
fn scripted(name: &str, given: &Value, input: &Value) -> Arc<dyn Tool> {
    let schema = Schema::new(json!({"type": "object", "properties": {}}));
    let mut spec = ToolSpec::new(name, given["description"].as_str().unwrap_or_default(), schema);
    if let Some(label) = given["label"].as_str() {
        spec.label = label.to_owned();
    }
    let throws = input["throws"].as_object().cloned();
    let returns = input["returns"].clone();
    let run = move |_: JsonObject, _| {
        let (throws, returns) = (throws.clone(), returns.clone());
        async move {
            let Some(throws) = throws else { return Ok(output(&returns)) };
            let text = |key: &str| throws.get(key).and_then(Value::as_str).unwrap_or_default();
            Err(match (text("name"), text("message")) {
                ("AbortError", _) => ToolError::aborted(),
                // The way JavaScript formats an error without a message.
                (name, "") => ToolError::new(name),
                (_, message) => ToolError::new(message),
            })
        }
    };
    Arc::new(FnTool::new(spec, run))
}

fn output(returns: &Value) -> ToolOutput {
    let text = match &returns["text"] {
        Value::String(text) => Some(text.clone()),
        _ => returns.pointer("/content/0/text").and_then(Value::as_str).map(str::to_owned),
    };
    let content = text.into_iter().map(Block::text).collect();
    let details = Some(returns["details"].clone()).filter(|details| !details.is_null());
    ToolOutput { content, details, failed: returns["isError"] == true, ..ToolOutput::default() }
}

pub(super) fn reported(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["tool", "returns", "throws", "aborted"])?;
    let given = &input["tool"];
    only(given, &["name", "label", "description"])?;
    let name = given["name"].as_str().ok_or("the tool has no name")?;
    let tool = reporting(scripted(name, given, input));
    let (cancel, host, progress) = (Cancel::new(), Host::system(), Progress::ignored());
    if input["aborted"] == true {
        cancel.cancel(CancelReason::User);
    }
    let call = "call-1".into();
    let cx = ToolCx { call: &call, cancel: &cancel, progress: &progress, host: &host };
    let ran = block_on(tool.run(JsonObject::new(), &cx))?;
    let spec = tool.spec();
    let definition = json!({"name": spec.name, "label": spec.label, "description": spec.description});
    Ok(match ran {
        Err(_) => json!({"definition": definition, "propagates": true}),
        Ok(output) => json!({
            "definition": definition,
            "result": {
                "text": output.content.first().and_then(Block::as_text),
                "details": output.details,
                "isError": output.failed,
            },
            "propagates": false,
        }),
    })
}

/// There are no built-in tools: a session has the tools that it is given, whether they run in a sandbox or not.
pub(super) fn offered(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["tools", "sandboxEnabled"])?;
    let tools = texts(&input["tools"]);
    let base: ToolSet = tools.iter().map(|name| scripted(name, &Value::Null, &Value::Null)).collect();
    let (policies, _) = ToolPolicies::read(&json!({}));
    let caller = Caller::new().owner();
    let policy = policies.resolve(&PolicyRequest::new(&caller, "anthropic", "claude-opus-4-5"));
    let offered = ToolLayers { base, ..ToolLayers::default() }.offer(&policy);
    let custom: Vec<&str> = offered.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    Ok(json!({"builtIn": [], "custom": custom}))
}

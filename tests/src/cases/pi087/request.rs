//! Cases of kind `request`: the requests that the program sends to a model.

use pinch_testing::cases::compare::same;
use pinch_testing::cases::notation;
use pinch_testing::cases::program;
use serde_json::{Map, Value, json};

use crate::cases::{Case, CaseOutcome};

/// Fields of a declared tool that are compared; the others are wording.
const TOOL_FLAGS: [&str; 5] = ["type", "strict", "cache_control", "defer_loading", "eager_input_streaming"];

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let wanted = if case.case["ours"].is_object() { &case.case["ours"] } else { &case.case["expect"] };
    let value_is = case.case["valueIs"].as_str();
    let known = |name: &str| {
        matches!(name, "requests" | "requestCount" | "exitCode" | "stderr") || (name == "value" && value_is.is_some())
    };
    if wanted.as_object().is_none_or(|members| !members.keys().all(|name| known(name))) {
        return CaseOutcome::NotImplemented;
    }
    let ran = match program::run(case.file, &case.case["input"]) {
        Ok(ran) => ran,
        Err(why) => return CaseOutcome::Failed(why),
    };
    let hint = || if ran.stderr.is_empty() { String::new() } else { format!("\n  stderr: {}", ran.stderr.trim()) };
    if let Some(expected) = wanted["requests"].as_array() {
        let actual: Vec<Value> = ran
            .requests
            .iter()
            .enumerate()
            .map(|(at, request)| {
                shortened(&request.path, request.json(), &expected.get(at).unwrap_or(&Value::Null)["body"])
            })
            .collect();
        let mut expected: Value = expected.iter().map(without_rest).collect();
        ran.put_in(&mut expected);
        if let Err(why) = same(&expected, &actual.into()) {
            return CaseOutcome::Failed(format!("requests{why}{}", hint()));
        }
    }
    if let Some(count) = wanted.get("requestCount")
        && let Err(why) = same(count, &ran.requests.len().into())
    {
        return CaseOutcome::Failed(format!("requestCount{why}{}", hint()));
    }
    for (name, actual) in [("exitCode", Value::from(ran.exit_code)), ("stderr", ran.stderr.trim().into())] {
        if let Some(expected) = wanted.get(name)
            && let Err(why) = notation::matches(&filled(expected, &ran), &actual, "")
        {
            return CaseOutcome::Failed(format!("{name}{why}{}", hint()));
        }
    }
    match (wanted.get("value"), value_is) {
        (Some(expected), Some(what)) => match value(what, &filled(expected, &ran), &ran, &case.case["input"]) {
            Some(actual) => {
                let compared = notation::matches(&filled(expected, &ran), &actual, "");
                compared.map_err(|why| format!("value{why}{}", hint())).into()
            }
            None => CaseOutcome::NotImplemented,
        },
        _ => CaseOutcome::Passed,
    }
}

/// The value that a case describes in words; `None` for unknown words.
fn value(what: &str, expected: &Value, ran: &program::ProgramOutput, input: &Value) -> Option<Value> {
    let request = |n: usize| ran.requests.get(n).map(|request| request.json()).unwrap_or_default();
    if what.contains("last message of the second request") {
        return Some(
            request(1)["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default(),
        );
    }
    let first = ran.requests.first();
    if what.contains("user-agent") {
        return Some(first.and_then(|request| request.header("user-agent")).into());
    }
    if what.contains("request headers") {
        // The case names its own headers without their `x-`.
        let header = |name: &str| {
            let value = first.and_then(|request| request.header(name).or_else(|| request.header(&format!("x-{name}"))));
            (name.to_owned(), Value::from(value))
        };
        return Some(Value::Object(expected.as_object()?.keys().map(|name| header(name)).collect()));
    }
    if what.contains("input_schema") && what.contains("without descriptions") {
        let tools = request(0)["tools"].as_array().cloned().unwrap_or_default();
        let tool = |tool: &Value| {
            let names: Vec<&str> =
                ["name", "strict", "input_schema"].into_iter().filter(|name| what.contains(name)).collect();
            let members = names.into_iter().filter_map(|name| Some((name.to_owned(), undescribed(tool.get(name)?))));
            Value::Object(members.collect())
        };
        return Some(tools.iter().map(tool).collect());
    }
    super::output::value(what, expected, ran, input)
}

/// The expected value, with the run's directories filled in.
fn filled(expected: &Value, ran: &program::ProgramOutput) -> Value {
    let mut expected = expected.clone();
    ran.put_in(&mut expected);
    expected
}

fn undescribed(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| *name != "description" || !value.is_string());
            Value::Object(kept.map(|(name, value)| (name.clone(), undescribed(value))).collect())
        }
        Value::Array(list) => list.iter().map(undescribed).collect(),
        other => other.clone(),
    }
}

/// A request in the form that cases use: the system text as `$system`, a tool as its name and flags.
fn shortened(path: &str, mut body: Value, expected: &Value) -> Value {
    for text in body["system"].as_array_mut().into_iter().flatten().map(|block| &mut block["text"]) {
        *text = "$system".into();
    }
    if let Some(text) = body.get_mut("system").filter(|system| system.is_string()) {
        *text = "$system".into();
    }
    let first = body["messages"].as_array_mut().and_then(|messages| messages.first_mut());
    if let Some(first) = first.filter(|first| first["role"] == "system" || first["role"] == "developer") {
        first["content"] = "$system".into();
    }
    if expected["tools"].is_array()
        && let Some(tools) = body["tools"].as_array_mut()
    {
        for tool in tools {
            *tool = short_tool(tool);
        }
    }
    // There is no value if nothing was sent.
    if let Some(map) = body.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    json!({"url": path, "body": body})
}

fn short_tool(tool: &Value) -> Value {
    let function = &tool["function"];
    let name = if function.is_object() { &function["name"] } else { &tool["name"] };
    let mut short = Map::from_iter([("name".to_owned(), name.clone())]);
    for flag in TOOL_FLAGS {
        if let Some(value) = tool.get(flag).or_else(|| function.get(flag)) {
            short.insert(flag.to_owned(), value.clone());
        }
    }
    Value::Object(short)
}

/// Removes the marker that allows additional fields in a tool.
fn without_rest(request: &Value) -> Value {
    let mut request = request.clone();
    for tool in request["body"]["tools"].as_array_mut().into_iter().flatten() {
        if let Some(map) = tool.as_object_mut() {
            map.remove("...");
        }
    }
    request
}

//! Executors for the kinds of the llm suite that need no server: rules for messages, texts and numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use pinch_llm::error::is_context_overflow;
use pinch_llm::error::retry::text_is_retryable;
use pinch_llm::message::{AssistantMessage, Message};
use pinch_llm::model::thinking::{clamp_word, supported};
use pinch_llm::model::{Model, Rates};
use pinch_llm::normalise::{ids, transform};
use pinch_llm::schema::clean::SchemaDialect;
use pinch_llm::schema::{Schema, validate_tool_arguments};
use pinch_llm::stdx::json::repair::parse_streaming;
use pinch_llm::stdx::text::from_utf16_dropping;
use pinch_testing::cases::compare::same;
use serde_json::{Map, Value, json};

use super::{Case, CaseOutcome};

/// Runs a case of one of these kinds.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    let given = case.case;
    let actual = match case.kind {
        "transform" => transformed(case.file, given),
        "overflow" => overflow(given),
        "validate" => return validated(given).into(),
        "partialJson" => text_of(&given["input"]).map(|text| Value::Object(parse_streaming(text))),
        "sanitize" => sanitized(given),
        "hash" => text_of(&given["input"]).map(|text| json!(ids::short_hash(text))),
        "cost" => cost(given),
        "thinkingLevels" => thinking_levels(given),
        _ => return CaseOutcome::NotImplemented,
    };
    actual.and_then(|actual| same(expected(given), &actual)).into()
}

/// The expected result: in these kinds `prefer` replaces `expect` entirely.
fn expected(case: &Value) -> &Value {
    case.get("prefer").unwrap_or(&case["expect"])
}

fn text_of(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("the case should have a text here: {value}"))
}

fn words<E: std::fmt::Display>(error: E) -> String {
    error.to_string()
}

fn transformed(file: &Value, case: &Value) -> Result<Value, String> {
    let model = Model::from_record(&file["models"][text_of(&case["model"])?]).map_err(words)?;
    let given = case["messages"].as_array().ok_or("no messages")?;
    let messages: Vec<Arc<Message>> =
        given.iter().map(|m| Message::from_value(m).map(Arc::new)).collect::<Result<_, _>>().map_err(words)?;
    let rule = |id: &str, _: &Model, _: &AssistantMessage| ids::anthropic_id(id);
    let out = match case.get("normalizer").and_then(Value::as_str) {
        None => transform(&messages, &model, None),
        Some("anthropic") => transform(&messages, &model, Some(&rule)),
        Some(other) => return Err(format!("unknown normalizer {other}")),
    };
    Ok(out.iter().map(|message| message.to_value()).collect())
}

fn overflow(case: &Value) -> Result<Value, String> {
    let mut message = json!({"role": "assistant", "provider": "openai", "api": "", "model": "", "stopReason": "error",
        "content": [], "timestamp": 0});
    merge(&mut message, &case["message"]);
    let message = Message::from_value(&message).map_err(words)?;
    let message = message.as_assistant().ok_or("no assistant message")?;
    Ok(is_context_overflow(message, case["contextWindow"].as_u64()).into())
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        into[key] = value.clone();
    }
}

fn validated(case: &Value) -> Result<(), String> {
    // Anything except an object is passed as a model would send it: as JSON text, parsed like the arguments of a stream.
    let arguments = match &case["arguments"] {
        Value::Object(arguments) => arguments.clone(),
        other => parse_streaming(&other.to_string()),
    };
    let tool = case["tool"].as_str().unwrap_or("t");
    let expect = expected(case);
    match (validate_tool_arguments(tool, &Schema::new(case["schema"].clone()), &arguments), expect["error"].as_str()) {
        (Ok(ok), _) => same(expect, &json!({"ok": ok})),
        (Err(error), None) => Err(format!("expected {expect}, got an error: {}", error.text)),
        (Err(error), Some(wanted)) => same_error(wanted, &error.text),
    }
}

/// Compares the frame, the received arguments and the set of places; the wording after a place may differ.
pub(super) fn same_error(wanted: &str, actual: &str) -> Result<(), String> {
    let first = |text: &str| text.lines().next().map(str::to_owned);
    let received = |text: &str| text.split_once("Received arguments:").map(|(_, rest)| rest.to_owned());
    let places = |text: &str| -> BTreeSet<String> {
        let head = text.split("\n\nReceived arguments:").next().unwrap_or("");
        let lines = head.lines().filter_map(|line| line.strip_prefix("  - "));
        lines.filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).filter(|place| place != "root").collect()
    };
    let is_same =
        first(wanted) == first(actual) && received(wanted) == received(actual) && places(wanted) == places(actual);
    if is_same { Ok(()) } else { Err(format!("the errors differ\n  expected {wanted}\n  actual   {actual}")) }
}

fn sanitized(case: &Value) -> Result<Value, String> {
    let units: Option<Vec<u16>> =
        case["utf16"].as_array().into_iter().flatten().map(|unit| u16::try_from(unit.as_u64()?).ok()).collect();
    Ok(from_utf16_dropping(&units.ok_or("no UTF-16 code units")?).into())
}

fn cost(case: &Value) -> Result<Value, String> {
    let message = json!({"role": "assistant", "content": [], "usage": case["usage"]});
    let message = Message::from_value(&message).map_err(words)?;
    let usage = message.as_assistant().ok_or("no assistant message")?.usage;
    let cost = Rates::from_record(&case["rates"]).cost(&usage);
    Ok(json!({"input": cost.input, "output": cost.output, "cacheRead": cost.cache_read, "cacheWrite": cost.cache_write,
        "total": cost.total}))
}

fn thinking_levels(case: &Value) -> Result<Value, String> {
    let mut record = json!({"id": "m", "api": "openai-completions", "provider": "p"});
    merge(&mut record, &case["model"]);
    let model = Model::from_record(&record).map_err(words)?;
    let supported: Vec<&str> = supported(&model).into_iter().map(|level| level.as_str()).collect();
    // Only the levels for which the case has an answer are checked.
    let asked = expected(case)["clamped"].as_object().into_iter().flatten();
    let clamped: Map<String, Value> =
        asked.map(|(word, _)| (word.clone(), json!(clamp_word(&model, word).as_str()))).collect();
    Ok(json!({"supported": supported, "clamped": clamped}))
}

/// Runs a case of area `schema` of the embed-tools suite.
pub(super) fn execute_schema(case: &Case<'_>) -> CaseOutcome {
    let (input, expect) = (&case.case["input"], &case.case["expect"]);
    let expect = case.case.get("better").unwrap_or(expect);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut actual = json!({});
    if let Some(pairs) = input["pairs"].as_array() {
        let is_xai = pairs.iter().map(|pair| SchemaDialect::of(&text(&pair[0]), &text(&pair[1])) == SchemaDialect::Xai);
        actual["isXai"] = is_xai.collect();
    }
    if let Some(parameters) = input.get("parameters") {
        let family = SchemaDialect::of(&text(&input["provider"]), &text(&input["model"]));
        actual["parameters"] = Schema::new(parameters.clone()).cleaned(family, false).clone();
    }
    let mut named = expect.as_object().into_iter().flatten();
    named.try_for_each(|(name, value)| same(value, &actual[name.as_str()])).into()
}

/// Runs a case of the sessions suite about errors or levels, which this crate implements.
pub(super) fn execute_sessions(case: &Case<'_>) -> CaseOutcome {
    let input = &case.case["input"];
    let expect = case.case.get("betterExpected").unwrap_or(&case.case["expected"]);
    let actual = match case.kind {
        "classify_error" => error_classes(input),
        "silent_overflow" => silent_overflow(input),
        "thinking_levels" => {
            let models = input["models"].as_object().into_iter().flatten();
            models
                .map(|(name, model)| {
                    // Its fields have other names than those of the llm suite.
                    let asked = json!({"model": model, "expect": {"clamped": expect[name]["clamp"]}});
                    let mut levels = thinking_levels(&asked)?;
                    levels["clamp"] = levels["clamped"].take();
                    levels.as_object_mut().map(|levels| levels.shift_remove("clamped"));
                    Ok((name.clone(), levels))
                })
                .collect::<Result<Map<_, _>, String>>()
                .map(Value::Object)
        }
        _ => return CaseOutcome::NotImplemented,
    };
    actual.and_then(|actual| same(expect, &actual)).into()
}

/// Overflow takes precedence over retry.
fn error_classes(input: &Value) -> Result<Value, String> {
    let one = |text: &Value| {
        let overflow = overflow(&json!({"message": {"errorMessage": text}}))?;
        let retryable = overflow == false && text_is_retryable(text_of(text)?);
        Ok(json!({"errorMessage": text, "overflow": overflow, "retryable": retryable}))
    };
    input["errorMessages"].as_array().into_iter().flatten().map(one).collect()
}

/// Rows of stop reason, input, cache reads, output.
fn silent_overflow(input: &Value) -> Result<Value, String> {
    let one = |row: &Value| {
        let usage = json!({"input": row[1], "cacheRead": row[2], "output": row[3], "cacheWrite": 0});
        let message = json!({"stopReason": row[0], "usage": usage});
        overflow(&json!({"message": message, "contextWindow": input["contextWindow"]}))
    };
    input["rows"].as_array().into_iter().flatten().map(one).collect()
}

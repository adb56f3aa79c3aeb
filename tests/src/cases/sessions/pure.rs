//! Kinds of the suite that need no session: prompt templates and tool arguments.

use std::path::Path;

use pinch_coding_agent::resources::templates::{self, Template, Templates};
use pinch_llm::schema::{Schema, validate_tool_arguments as validate};
use pinch_llm::stdx::json::repair::parse_streaming;
use pinch_testing::cases::compare::same;
use serde_json::{Value, json};

use super::SessionWorld;
use crate::cases::Case;
use crate::cases::llm_pure::same_error;
use crate::cases::scripted::expand;

/// A template expanded with its arguments: `content` with `args`, or a text that names one of `templates`.
pub(super) fn prompt_template(world: &SessionWorld) -> Result<Value, String> {
    let input = &world.input;
    if let Some(content) = ["content", "template"].into_iter().find_map(|name| input[name].as_str()) {
        let arguments = match &input["args"] {
            Value::String(text) => templates::arguments(text),
            list => list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        };
        return Ok(templates::substitute(content, &arguments).into());
    }
    let named = input["templates"].as_object().ok_or("neither content nor templates are given")?;
    let made =
        named.iter().map(|(name, text)| Template::parse(name, text.as_str().unwrap_or_default(), Path::new(name)));
    let templates: Templates = made.collect::<Result<_, _>>()?;
    match (input["texts"].as_array(), input["text"].as_str()) {
        (Some(texts), _) => {
            Ok(texts.iter().filter_map(Value::as_str).map(|text| json!(templates.expand(text))).collect())
        }
        (None, Some(text)) => Ok(json!(templates.expand(text))),
        (None, None) => world.text("text").map(Value::from),
    }
}

/// Validates arguments against a tool's schema.
pub(super) fn validate_tool_arguments(case: &Case<'_>) -> Result<(), String> {
    let input = expand(&case.case["input"]);
    let expected = expand(case.case.get("betterExpected").unwrap_or(&case.case["expected"]));
    let tool = input["tool"]["name"].as_str().or_else(|| input["tool"].as_str()).or_else(|| input["name"].as_str());
    let schema = [&input["schema"], &input["parameters"], &input["tool"]["parameters"]];
    let schema = schema.into_iter().find(|schema| !schema.is_null()).ok_or("the case has no schema")?;
    let arguments = match input.get("arguments").or_else(|| input.get("args")).unwrap_or(&Value::Null) {
        Value::Object(arguments) => arguments.clone(),
        other => parse_streaming(&other.to_string()),
    };
    match (validate(tool.unwrap_or("t"), &Schema::new(schema.clone()), &arguments), expected["error"].as_str()) {
        (Err(error), Some(wanted)) => same_error(wanted, &error.text),
        (Err(error), None) => Err(format!("expected {expected}, got an error: {}", error.text)),
        (Ok(made), _) => {
            let wrapped = ["ok", "result", "value", "arguments"].into_iter().find_map(|name| expected.get(name));
            same(wrapped.unwrap_or(&expected), &made.into())
        }
    }
}

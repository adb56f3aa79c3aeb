//! Kinds that test a single function: text in, value out.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::llm::message::Message;
use pinch_coding_agent::resources::templates::{self, Template, Templates};
use pinch_coding_agent::resources::{ResourceInputs, ResourceLoader, frontmatter};
use pinch_coding_agent::session_log::convert_to_llm;
use pinch_coding_agent::tools::truncate::{
    MAX_BYTES, MAX_LINES, Truncation, format_size, truncate_head, truncate_tail,
};
use pinch_stdx::text::{strip_ansi, strip_control};
use pinch_testing::cases::compare::same;
use serde_json::{Value, json};

use super::{args, files};
use crate::cases::{Case, CaseOutcome};

/// Runs a case; `None` if it is of another kind.
pub(super) fn run(case: &Case<'_>) -> Option<CaseOutcome> {
    let input = &case.case["input"];
    let ours = &case.case["ours"];
    let wanted = if ours.is_null() { &case.case["expect"] } else { ours };
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let value = match case.kind {
        "template_args" => Ok(json!(templates::arguments(text("args")))),
        "template_substitution" => Ok(json!(templates::substitute(text("content"), &texts(&input["args"])))),
        "template_expand" => expand(input),
        "template_load" => return Some(load(input).map_or_else(CaseOutcome::Failed, |got| same(wanted, &got).into())),
        "frontmatter" => frontmatter::parse(text("text"))
            .map(|document| json!({"frontmatter": document.head, "body": document.body})),
        "format_size" => Ok(json!(format_size(count(&input["bytes"]).unwrap_or_default()))),
        "truncate_head" => Ok(truncation(&limited(input, truncate_head))),
        "truncate_tail" => Ok(truncation(&limited(input, truncate_tail))),
        "bash_execution_text" => bash_text(input),
        "sanitize_output" => {
            let text =
                ["text", "output", "input"].into_iter().find_map(|name| input[name].as_str()).unwrap_or_default();
            Ok(json!(strip_control(&strip_ansi(text)).replace('\r', "")))
        }
        "cli_args" => Ok(args::read(input)),
        _ => return None,
    };
    let got = match value {
        Ok(value) => json!({"ok": true, "value": value}),
        Err(error) => json!({"ok": false, "error": error}),
    };
    Some(same(wanted, &got).into())
}

/// The texts in a list.
pub(super) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|n| usize::try_from(n).ok())
}

fn expand(input: &Value) -> Result<Value, String> {
    let named = input["templates"].as_object().into_iter().flatten();
    let made = named.map(|(name, text)| Template::parse(name, text.as_str().unwrap_or_default(), Path::new(name)));
    let templates: Templates = made.collect::<Result<_, _>>()?;
    Ok(json!(templates.expand(input["text"].as_str().unwrap_or_default())))
}

/// The templates in directories, as cases describe them.
fn load(input: &Value) -> Result<Value, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    files::write(folder.path(), &input["files"])?;
    let mut inputs = ResourceInputs::new(folder.path(), folder.path().join("agent"), None);
    inputs.command_line.prompts = texts(&input["promptPaths"]);
    let loader = ResourceLoader::load(inputs);
    let shown = loader.resources().commands.templates.iter().map(|template| {
        json!({
            "name": template.name, "description": template.description, "argumentHint": template.argument_hint,
            "content": template.content,
        })
    });
    Ok(shown.collect())
}

fn limited(input: &Value, cut: fn(&str, usize, usize) -> Truncation) -> Truncation {
    let limit = |name: &str, usual| count(&input[name]).unwrap_or(usual);
    cut(input["content"].as_str().unwrap_or_default(), limit("maxLines", MAX_LINES), limit("maxBytes", MAX_BYTES))
}

fn truncation(cut: &Truncation) -> Value {
    let mut shown = cut.to_details();
    shown["content"] = cut.content.as_str().into();
    shown
}

/// How a command run by the user is presented to a model.
fn bash_text(input: &Value) -> Result<Value, String> {
    let mut record = input.clone();
    record["role"] = "bashExecution".into();
    let message = Message::from_value(&record).map_err(|error| error.to_string())?;
    match convert_to_llm(&[Arc::new(message)]).first().map(|message| &**message) {
        Some(Message::User(user)) => Ok(json!(user.content.text(""))),
        other => Err(format!("{other:?}")),
    }
}

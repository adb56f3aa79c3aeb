//! Final payloads.

use pinch_embed::replies::ReasoningLevel;
use pinch_embed::replies::tool_notes::{LastToolError, ToolFormat, ToolMeta, Verbose};
use pinch_embed::run::payloads::{PayloadInput, build_payloads};
use serde_json::{Value, json};

use super::parts::payload_value;
use super::{assistant, strings, text};

/// The result of an operation; `None` for other operations.
pub(super) fn run(op: &str, input: &Value) -> Option<Result<Value, String>> {
    (op == "build_payloads").then(|| build(input))
}

fn build(input: &Value) -> Result<Value, String> {
    let texts = strings(&input["assistantTexts"]);
    let last = input["lastAssistant"].is_object().then(|| assistant(&input["lastAssistant"])).transpose()?;
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let error = input["lastToolError"].is_object().then(|| &input["lastToolError"]).map(|error| LastToolError {
        tool_name: text(&error["toolName"]).to_owned(),
        meta: word(&error["meta"]),
        error: word(&error["error"]),
        mutating: error["mutatingAction"].as_bool(),
        fingerprint: None,
    });
    let metas = input["toolMetas"].as_array().into_iter().flatten();
    let metas: Vec<ToolMeta> = metas
        .map(|meta| ToolMeta { tool_name: text(&meta["toolName"]).to_owned(), meta: word(&meta["meta"]) })
        .collect();
    let input = PayloadInput {
        tool_metas: &metas,
        last_assistant: last.as_deref(),
        last_tool_error: error.as_ref(),
        verbose: match text(&input["verboseLevel"]) {
            "full" => Verbose::Full,
            "on" => Verbose::On,
            _ => Verbose::Off,
        },
        reasoning: match text(&input["reasoningLevel"]) {
            "on" => ReasoningLevel::On,
            "stream" => ReasoningLevel::Stream,
            _ => ReasoningLevel::Off,
        },
        tool_format: if text(&input["toolResultFormat"]) == "plain" { ToolFormat::Plain } else { ToolFormat::Markdown },
        inline_tools: input["inlineToolResultsAllowed"] == true,
        suppress_tool_warnings: input["suppressToolErrorWarnings"] == true,
        suppress_tool_errors: input["config"]["messages"]["suppressToolErrors"] == true,
        ..PayloadInput::default()
    };
    let made = build_payloads(&input, texts.into_iter().map(|text| (text, None)).collect());
    let payload = |payload: &pinch_embed::run::payloads::Payload| {
        let mut value = payload_value(&payload.reply, &Value::Null);
        value["isError"] = payload.is_error.into();
        value["mediaUrl"] = json!(payload.reply.media_urls.first());
        value
    };
    Ok(made.iter().map(payload).collect())
}

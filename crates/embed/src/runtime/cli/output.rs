//! Parses the output of command-line agents.

use pinch_llm::error::LlmError;
use pinch_llm::ids::ProviderId;
use pinch_llm::message::Usage;
use serde_json::Value;

use crate::config::cli::{CliBackend, CliOutput};

/// The answer of a command-line agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CliReply {
    /// Its text.
    pub text: String,
    /// Its id of the conversation.
    pub session_id: Option<String>,
    /// Its token usage.
    pub usage: Option<Usage>,
}

/// Parses the output of a backend. Output in another format than announced is taken as the plain answer.
pub fn parse(backend: &CliBackend, form: CliOutput, stdout: &str) -> CliReply {
    let raw = || CliReply { text: stdout.trim().to_owned(), ..CliReply::default() };
    match form {
        CliOutput::Text => raw(),
        CliOutput::Json => match serde_json::from_str(stdout.trim()) {
            Ok(Value::Object(document)) => {
                let document = Value::Object(document);
                let text = ["message", "content", "result"].iter().map(|name| text_of(&document[*name]));
                let text = text.into_iter().find(|text| !text.trim().is_empty());
                CliReply {
                    text: text.unwrap_or_else(|| text_of(&document)).trim().to_owned(),
                    session_id: session_id(backend, &document),
                    usage: usage(&document["usage"]),
                }
            }
            _ => raw(),
        },
        CliOutput::JsonLines => {
            let mut reply = CliReply::default();
            let (mut texts, mut is_json) = (Vec::new(), false);
            for line in stdout.lines().filter_map(line_of) {
                is_json = true;
                reply.session_id = reply.session_id.or_else(|| session_id(backend, &line));
                reply.usage = usage(&line["usage"]).or(reply.usage);
                texts.extend(message_of(&line));
            }
            reply.text = texts.join("\n").trim().to_owned();
            if is_json { reply } else { raw() }
        }
    }
}

/// Parses a line that is a JSON object.
pub(super) fn line_of(line: &str) -> Option<Value> {
    serde_json::from_str(line.trim()).ok().filter(Value::is_object)
}

/// Returns the text of a line that contains a message.
pub(super) fn message_of(line: &Value) -> Option<String> {
    let item = &line["item"];
    let is_message = item["type"].as_str().is_some_and(|kind| kind.to_lowercase().contains("message"));
    item["text"].as_str().filter(|text| is_message && !text.is_empty()).map(str::to_owned)
}

/// Maximum depth searched for texts.
const MAX_DEPTH: usize = 16;

/// Returns the text of a value: the value itself, or the texts in its `text` and `content`.
fn text_of(value: &Value) -> String {
    fn within(value: &Value, depth: usize) -> String {
        match value {
            _ if depth == 0 => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(items) => items.iter().map(|item| within(item, depth - 1)).collect(),
            Value::Object(members) => ["text", "content"]
                .iter()
                .filter_map(|name| members.get(*name))
                .map(|member| within(member, depth - 1))
                .find(|text| !text.is_empty())
                .unwrap_or_default(),
            _ => String::new(),
        }
    }
    within(value, MAX_DEPTH)
}

fn session_id(backend: &CliBackend, document: &Value) -> Option<String> {
    let ids = backend.session_id_fields.iter().filter_map(|name| document[name.as_str()].as_str());
    ids.map(str::trim).find(|id| !id.is_empty()).map(str::to_owned)
}

fn usage(value: &Value) -> Option<Usage> {
    let count = |names: &[&str]| names.iter().find_map(|name| value[*name].as_u64()).filter(|n| *n > 0);
    let (input, output) = (count(&["input_tokens"]), count(&["output_tokens"]));
    let cache_read = count(&["cache_read_input_tokens", "cached_input_tokens"]);
    let (cache_write, total) = (count(&["cache_write_input_tokens"]), count(&["total_tokens"]));
    let is_some = [input, output, cache_read, cache_write, total].iter().any(Option::is_some);
    is_some.then(|| {
        let [input, output, cache_read, cache_write] =
            [input, output, cache_read, cache_write].map(Option::unwrap_or_default);
        let total_tokens = total.unwrap_or(input + output + cache_read + cache_write);
        Usage { input, output, cache_read, cache_write, total_tokens, ..Usage::default() }
    })
}

/// The longest failure message, in characters.
const MAX_FAILURE: usize = 2_000;

/// Returns the failure of a command that exited with a non-zero status, from its output.
pub fn failure(provider: &ProviderId, status: i32, stdout: &str, stderr: &str) -> LlmError {
    let message = [stderr, stdout].map(str::trim).into_iter().find(|text| !text.is_empty());
    let text = message.map_or_else(
        || format!("the command of {provider} exited with status {status}"),
        |text| text.chars().take(MAX_FAILURE).collect(),
    );
    LlmError::refused(provider.clone(), None, None, text)
}

/// Returns whether a failure means that the conversation no longer exists.
pub(super) fn has_lost_session(text: &str) -> bool {
    let text = text.to_lowercase();
    ["no conversation found", "session not found", "conversation not found", "no session found", "no rollout found"]
        .iter()
        .any(|phrase| text.contains(phrase))
}

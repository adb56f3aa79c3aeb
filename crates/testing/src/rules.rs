//! Strict models of server requirements: they check the body of a request and return the first violation.
//!
//! Servers differ in their tolerance. These models tolerate nothing: a conversation that they accept is accepted everywhere.

use std::collections::HashSet;

use serde_json::Value;

/// A violation of a rule.
pub type Broken = String;

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn check(holds: bool, rule: &str, at: &Value) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(format!("{rule}: {at}")) }
}

/// Returns the blocks of a message's content; a string is one text.
fn texts_of(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        blocks => list(blocks).iter().filter_map(|block| block["text"].as_str()).collect(),
    }
}

fn no_blank(content: &Value, at: &Value) -> Result<(), Broken> {
    check(texts_of(content).iter().all(|text| !text.trim().is_empty()), "a text is blank", at)
}

/// Checks Anthropic's Messages format: the user starts; each call is answered in the next message, before anything else; ids use the
/// allowed alphabet; thinking is signed; a thinking model gets no prefilled answer.
///
/// # Errors
/// Returns the violated rule and its cause.
pub fn anthropic(body: &Value) -> Result<(), Broken> {
    let messages = list(&body["messages"]);
    let begins = messages.first().is_some_and(|first| first["role"] == "user");
    check(begins, "the first message is not the user's", body)?;
    let thinks = body["thinking"]["type"].as_str().is_some_and(|kind| kind != "disabled");
    let ends_with_answer = messages.last().is_some_and(|last| last["role"] == "assistant");
    check(!(thinks && ends_with_answer), "the conversation ends with an answer", body)?;
    let mut open: Vec<&str> = Vec::new();
    let mut after_results = false;
    let mut before = "";
    for message in messages {
        let role = text(&message["role"]);
        let content = &message["content"];
        no_blank(content, message)?;
        check(!matches!(content, Value::Array(blocks) if blocks.is_empty()), "a message is empty", message)?;
        let results: Vec<&str> = list(content)
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| text(&block["tool_use_id"]))
            .collect();
        let n_results = list(content).iter().filter(|block| block["type"] == "tool_result").count();
        check(results.len() == n_results, "results do not stand first", message)?;
        let expected: HashSet<&str> = open.drain(..).collect();
        let distinct: HashSet<&str> = results.iter().copied().collect();
        check(distinct == expected && distinct.len() == results.len(), "results do not match the calls", message)?;
        if role == "user" {
            check(before != "user" || after_results, "two messages of the user", message)?;
        }
        after_results = n_results > 0;
        before = role;
        for block in list(content) {
            match text(&block["type"]) {
                "tool_use" => {
                    let id = text(&block["id"]);
                    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                    check(!id.is_empty() && id.len() <= 64 && id.chars().all(is_valid), "an id", block)?;
                    check(role == "assistant" && !open.contains(&id), "a call", block)?;
                    open.push(id);
                }
                "thinking" => check(!text(&block["signature"]).trim().is_empty(), "thinking without signature", block)?,
                _ => {}
            }
        }
    }
    check(open.is_empty(), "a call without result", body)
}

/// Checks Google's format: the user starts; answers never follow each other; the results of a message's calls are all in the next message,
/// with nothing else; signatures are base64.
///
/// # Errors
/// Returns the violated rule and its cause.
pub fn google(body: &Value) -> Result<(), Broken> {
    let contents = list(&body["contents"]);
    check(contents.first().is_some_and(|first| first["role"] == "user"), "the first content is not the user's", body)?;
    let mut open = 0;
    let mut before = "";
    for content in contents {
        let role = text(&content["role"]);
        let parts = list(&content["parts"]);
        check(!parts.is_empty(), "a content is empty", content)?;
        check(!(role == "model" && before == "model"), "two answers in a row", content)?;
        let n_results = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        check(n_results == open, "results do not match the calls", content)?;
        check(n_results == 0 || n_results == parts.len(), "something beside results", content)?;
        open = parts.iter().filter(|part| part.get("functionCall").is_some()).count();
        check(open == 0 || role == "model", "a call", content)?;
        for signature in parts.iter().filter_map(|part| part["thoughtSignature"].as_str()) {
            let digits = signature.trim_end_matches('=');
            let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
            let is_base64 = signature.len().is_multiple_of(4) && digits.bytes().all(is_digit);
            check(is_base64 || signature == "skip_thought_signature_validator", "a signature", content)?;
        }
        before = role;
    }
    check(open == 0, "a call without result", body)
}

/// Checks OpenAI's chat format on a strict server: after the prompt the user starts and never sends two consecutive messages; the results
/// of an answer's calls follow it directly, once each. `is_id` returns which call ids the server accepts.
///
/// # Errors
/// Returns the violated rule and its cause.
pub fn chat(body: &Value, is_id: impl Fn(&str) -> bool) -> Result<(), Broken> {
    let is_prompt = |message: &&Value| matches!(text(&message["role"]), "system" | "developer");
    let messages: Vec<&Value> = list(&body["messages"]).iter().skip_while(is_prompt).collect();
    check(messages.first().is_some_and(|first| first["role"] == "user"), "the first message is not the user's", body)?;
    let mut open: Vec<&str> = Vec::new();
    let mut before = "";
    for message in messages {
        let role = text(&message["role"]);
        if role == "tool" {
            let id = text(&message["tool_call_id"]);
            let at = open.iter().position(|call| *call == id);
            check(at.is_some(), "a result without call", message)?;
            at.map(|at| open.remove(at));
        } else {
            check(open.is_empty(), "a call without result", message)?;
            check(!(role == "user" && before == "user"), "two messages of the user", message)?;
            check(!is_prompt(&message), "a prompt within the conversation", message)?;
        }
        for call in list(&message["tool_calls"]) {
            let id = text(&call["id"]);
            check(is_id(id) && !open.contains(&id), "an id", call)?;
            open.push(id);
        }
        if role == "assistant" {
            let says = texts_of(&message["content"]).iter().any(|text| !text.is_empty());
            check(says || !open.is_empty() || !message["content"].is_string(), "an empty answer", message)?;
        }
        before = role;
    }
    check(open.is_empty(), "a call without result", body)
}

/// Returns whether an id has Mistral's form: nine letters and digits.
pub fn is_mistral_id(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Checks OpenAI's Responses format: every call is followed by one output, every output is preceded by its call, and reasoning is followed
/// by the item it led to.
///
/// # Errors
/// Returns the violated rule and its cause.
pub fn responses(body: &Value) -> Result<(), Broken> {
    let items = list(&body["input"]);
    let mut open: Vec<&str> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match text(&item["type"]) {
            "function_call" | "custom_tool_call" => {
                let id = text(&item["call_id"]);
                check(!id.is_empty() && !open.contains(&id), "an id", item)?;
                open.push(id);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let found = open.iter().position(|call| *call == text(&item["call_id"]));
                check(found.is_some(), "an output without call", item)?;
                found.map(|found| open.remove(found));
            }
            "reasoning" => {
                let next = items.get(at + 1);
                let leads = next.is_some_and(|next| next["role"] == "assistant" || next["type"] != Value::Null);
                check(leads, "reasoning without what it led to", item)?;
            }
            _ => check(item["role"] != "user" || open.is_empty(), "a call without output", item)?,
        }
    }
    check(open.is_empty(), "a call without output", body)
}

//! Strict models of server requirements: they check the body of a request and return the first violation.
//!
//! Servers differ in their tolerance. These models tolerate nothing: a conversation that they accept is accepted everywhere.

use std::collections::HashSet;

use serde_json::Value;

pub mod tools;

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

/// Returns whether an id or a name has 1 to `most` letters, digits, `_` and `-`.
fn is_word(word: &str, most: usize) -> bool {
    (1..=most).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
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
                    check(is_word(id, 64), "an id", block)?;
                    check(is_word(text(&block["name"]), 64), "a name", block)?;
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

/// Checks the Converse format of Bedrock: user and assistant alternate, starting with the user; each call is answered in the next message;
/// no text is blank; ids and names use the allowed alphabet; a conversation with calls declares tools; for Claude, thinking is signed and a
/// thinking model gets no prefilled answer.
///
/// # Errors
/// Returns the violated rule and its cause.
pub fn bedrock(body: &Value, is_claude: bool) -> Result<(), Broken> {
    let messages = list(&body["messages"]);
    check(messages.first().is_some_and(|first| first["role"] == "user"), "the first message is not the user's", body)?;
    let thinks = body["additionalModelRequestFields"].get("thinking").is_some();
    let ends_with_answer = messages.last().is_some_and(|last| last["role"] == "assistant");
    check(!(thinks && ends_with_answer), "the conversation ends with an answer", body)?;
    let mut open: Vec<&str> = Vec::new();
    let mut has_calls = false;
    let mut before = "";
    for message in messages {
        let role = text(&message["role"]);
        let blocks = list(&message["content"]);
        check(matches!(role, "user" | "assistant") && role != before, "roles do not alternate", message)?;
        check(!blocks.is_empty(), "a message is empty", message)?;
        no_blank(&message["content"], message)?;
        let results: Vec<&Value> = blocks.iter().filter_map(|block| block.get("toolResult")).collect();
        let distinct: HashSet<&str> = results.iter().map(|result| text(&result["toolUseId"])).collect();
        let expected: HashSet<&str> = open.drain(..).collect();
        check(distinct == expected && distinct.len() == results.len(), "results do not match the calls", message)?;
        for result in results {
            check(!list(&result["content"]).is_empty(), "a result is empty", result)?;
            no_blank(&result["content"], result)?;
        }
        for block in blocks {
            check(block.as_object().is_some_and(|members| members.len() == 1), "a block is not of one kind", block)?;
            if let Some(call) = block.get("toolUse") {
                let id = text(&call["toolUseId"]);
                check(is_word(id, 64), "an id", block)?;
                check(is_word(text(&call["name"]), 64), "a name", block)?;
                check(call["input"].is_object(), "arguments", block)?;
                check(role == "assistant" && !open.contains(&id), "a call", block)?;
                open.push(id);
                has_calls = true;
            }
            if let Some(reasoning) = block.get("reasoningContent") {
                let is_signed = !text(&reasoning["reasoningText"]["signature"]).trim().is_empty();
                let is_redacted = reasoning.get("redactedContent").is_some();
                check(
                    role == "assistant" && (!is_claude || is_signed || is_redacted),
                    "thinking without signature",
                    block,
                )?;
            }
        }
        before = role;
    }
    check(!has_calls || !list(&body["toolConfig"]["tools"]).is_empty(), "calls without tools", body)?;
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
            check(is_word(text(&call["function"]["name"]), 64), "a name", call)?;
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

/// Checks OpenAI's Responses format: every call is followed by one output, every output is preceded by its call, reasoning is followed by the
/// item it led to, and ids have the length and the prefix of their kind, once each.
///
/// # Errors
/// Returns the violated rule and its cause.
pub fn responses(body: &Value) -> Result<(), Broken> {
    let items = list(&body["input"]);
    let mut open: Vec<&str> = Vec::new();
    let mut item_ids: HashSet<&str> = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let kind = text(&item["type"]);
        if let Some(id) = item.get("id") {
            let prefix = match kind {
                "function_call" => "fc_",
                "custom_tool_call" => "ctc_",
                "reasoning" => "rs_",
                _ => "msg_",
            };
            let id = text(id);
            check(is_word(id, 64) && id.starts_with(prefix), "an item's id", item)?;
            check(item_ids.insert(id), "two items with one id", item)?;
        }
        match kind {
            "function_call" | "custom_tool_call" => {
                let id = text(&item["call_id"]);
                check((1..=64).contains(&id.len()) && !open.contains(&id), "an id", item)?;
                check(is_word(text(&item["name"]), 64), "a name", item)?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_violation_of_converse_is_found() {
        let result = |id: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": "r"}]}});
        let valid = json!({
            "messages": [
                {"role": "user", "content": [{"text": "hi"}]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}},
                    {"toolUse": {"toolUseId": "a", "name": "read", "input": {}}},
                ]},
                {"role": "user", "content": [result("a")]},
            ],
            "toolConfig": {"tools": [{"toolSpec": {"name": "read"}}]},
        });
        assert_eq!(bedrock(&valid, true), Ok(()));
        let found = |at: &str, value: Value| {
            let mut body = valid.clone();
            *body.pointer_mut(at).unwrap() = value;
            bedrock(&body, true).unwrap_err().split(": ").next().unwrap().to_owned()
        };
        assert_eq!(found("/messages/0/role", json!("assistant")), "the first message is not the user's");
        assert_eq!(found("/messages/2/role", json!("assistant")), "roles do not alternate");
        assert_eq!(found("/messages/0/content", json!([])), "a message is empty");
        assert_eq!(found("/messages/0/content/0/text", json!(" ")), "a text is blank");
        assert_eq!(found("/messages/2/content/0/toolResult/content/0/text", json!("")), "a text is blank");
        assert_eq!(found("/messages/2/content/0/toolResult/content", json!([])), "a result is empty");
        assert_eq!(found("/messages/2/content", json!([result("b")])), "results do not match the calls");
        assert_eq!(found("/messages/2/content", json!([result("a"), result("a")])), "results do not match the calls");
        assert_eq!(found("/messages/1/content/1/toolUse/toolUseId", json!("a|b")), "an id");
        assert_eq!(found("/messages/1/content/1/toolUse/name", json!("bad name")), "a name");
        assert_eq!(found("/messages/1/content/1/toolUse/input", json!("{}")), "arguments");
        let unsigned = json!({"text": "t"});
        assert_eq!(
            found("/messages/1/content/0/reasoningContent/reasoningText", unsigned),
            "thinking without signature"
        );
        assert_eq!(found("/toolConfig/tools", json!([])), "calls without tools");
        assert_eq!(found("/messages/2/content", json!([{"text": "no result"}])), "results do not match the calls");
    }

    #[test]
    fn items_of_responses_have_ids_of_their_kind_once_each() {
        let message = |id: &str| json!({"type": "message", "role": "assistant", "id": id, "content": []});
        let call = |id: &str| json!({"type": "function_call", "id": id, "call_id": "c", "name": "read"});
        let output = json!({"type": "function_call_output", "call_id": "c", "output": ""});
        let check = |items: Value| {
            responses(&json!({ "input": items })).map_err(|why| why.split(": ").next().unwrap().to_owned())
        };
        assert_eq!(check(json!([message("msg_1"), call("fc_1"), output])), Ok(()));
        assert_eq!(check(json!([message("msg_1"), message("msg_1")])), Err("two items with one id".to_owned()));
        assert_eq!(check(json!([call("b"), output])), Err("an item's id".to_owned()));
        assert_eq!(check(json!([message(&"m".repeat(65))])), Err("an item's id".to_owned()));
    }
}

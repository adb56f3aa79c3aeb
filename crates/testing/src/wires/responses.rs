//! Responses in OpenAI's Responses format.

use serde_json::{Value, json};

use super::{Answer, AnswerPart, End, Tokens, Wire, split};

/// Builds a response item by item. Texts are split on request.
#[derive(Clone, Debug)]
pub struct ResponsesResponse {
    id: String,
    events: Vec<Value>,
    n_items: usize,
    pieces: usize,
    usage: Value,
}

impl ResponsesResponse {
    /// Creates a response of a model, with 10 input and 5 output tokens.
    pub fn new(id: &str, model: &str) -> Self {
        let created =
            json!({"type": "response.created", "response": {"id": id, "model": model, "status": "in_progress"}});
        let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
        Self { id: id.to_owned(), events: vec![created], n_items: 0, pieces: 1, usage }
    }

    /// Splits subsequent items into `n` deltas each.
    #[must_use]
    pub fn with_chunks(mut self, n: usize) -> Self {
        self.pieces = n.max(1);
        self
    }

    /// Sets the usage in the final event.
    #[must_use]
    pub fn usage(mut self, usage: &Value) -> Self {
        self.usage = usage.clone();
        self
    }

    /// Adds reasoning: a summary of one part, and the encrypted reasoning itself. Its id is `rs_` and the index of the item.
    #[must_use]
    pub fn thinking(self, text: &str, encrypted: &str) -> Self {
        let id = format!("rs_{}", self.n_items);
        let part = json!({"type": "summary_text", "text": text});
        let start = json!({"type": "reasoning", "id": id, "summary": []});
        let whole = json!({"type": "reasoning", "id": id, "summary": [part], "encrypted_content": encrypted});
        let mut events = vec![
            json!({"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}}),
        ];
        events.extend(self.deltas("response.reasoning_summary_text.delta", text));
        events.push(json!({"type": "response.reasoning_summary_part.done", "part": part}));
        self.item(&start, events, &whole)
    }

    /// Adds a message of one text. Its id is `msg_` and the index of the item.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let id = format!("msg_{}", self.n_items);
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        let message = |status: &str, content: Value| json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": content});
        let (start, whole) = (message("in_progress", json!([])), message("completed", json!([part(text)])));
        let mut events = vec![json!({"type": "response.content_part.added", "part": part("")})];
        events.extend(self.deltas("response.output_text.delta", text));
        events.push(json!({"type": "response.content_part.done", "part": part(text)}));
        self.item(&start, events, &whole)
    }

    /// Adds a tool call; the arguments are JSON text and may be invalid. Its item id is `fc_` and the index of the item.
    #[must_use]
    pub fn tool_call(self, call_id: &str, name: &str, arguments: &str) -> Self {
        let id = format!("fc_{}", self.n_items);
        let call = |arguments: &str| json!({"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments});
        let (start, whole) = (call(""), call(arguments));
        let mut events = self.deltas("response.function_call_arguments.delta", arguments);
        events.push(json!({"type": "response.function_call_arguments.done", "arguments": arguments}));
        self.item(&start, events, &whole)
    }

    /// Adds an item of any kind: its start, its events, and its final form. Events get the item's index and id.
    #[must_use]
    pub fn item(mut self, start: &Value, events: Vec<Value>, whole: &Value) -> Self {
        let number = self.n_items;
        self.n_items += 1;
        self.events.push(json!({"type": "response.output_item.added", "output_index": number, "item": start}));
        for mut event in events {
            event["output_index"] = number.into();
            event["item_id"] = start["id"].clone();
            self.events.push(event);
        }
        self.events.push(json!({"type": "response.output_item.done", "output_index": number, "item": whole}));
        self
    }

    /// Adds any event.
    #[must_use]
    pub fn event(mut self, event: Value) -> Self {
        self.events.push(event);
        self
    }

    /// Ends the response successfully; returns the events as text, one frame each.
    pub fn completed(self) -> Vec<String> {
        self.end("completed", &Value::Null).frames()
    }

    /// Ends an answer that was truncated for a reason, e.g. `max_output_tokens`; returns the events as text, one frame each.
    pub fn incomplete(self, reason: &str) -> Vec<String> {
        self.end("incomplete", &json!({"reason": reason})).frames()
    }

    /// Returns the events so far as text, one frame each: a response that breaks off.
    pub fn frames(self) -> Vec<String> {
        self.events.iter().map(frame).collect()
    }

    /// Returns the events so far, for transports without frames.
    pub fn events(self) -> Vec<Value> {
        self.events
    }

    /// Adds the final event with that status.
    #[must_use]
    pub fn end(self, status: &str, details: &Value) -> Self {
        let response = json!({"id": self.id, "status": status, "incomplete_details": details, "usage": self.usage});
        let kind = format!("response.{status}");
        self.event(json!({"type": kind, "response": response}))
    }

    fn deltas(&self, kind: &str, text: &str) -> Vec<Value> {
        split(text, self.pieces).into_iter().map(|part| json!({"type": kind, "delta": part})).collect()
    }
}

/// Formats one event.
pub fn frame(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or(""))
}

/// The format and its variants, for tests that cover all of them.
#[derive(Clone, Copy, Debug)]
pub enum ResponsesServer {
    /// OpenAI's own.
    OpenAi,
    /// Azure's.
    Azure,
    /// That of ChatGPT subscriptions.
    Codex,
}

/// A token of the account `acc-1`, as in ChatGPT subscriptions.
const TOKEN: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEifX0=.s";

impl Wire for ResponsesServer {
    fn api(&self) -> &'static str {
        match self {
            Self::OpenAi => "openai-responses",
            Self::Azure => "azure-openai-responses",
            Self::Codex => "openai-codex-responses",
        }
    }

    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let Tokens { input, output, cached } = answer.tokens;
        let details = json!({"cached_tokens": cached});
        let usage = json!({"input_tokens": input + cached, "output_tokens": output,
            "total_tokens": input + cached + output, "input_tokens_details": details});
        let mut response = ResponsesResponse::new("resp_1", "m").with_chunks(answer.pieces).usage(&usage);
        for part in &answer.parts {
            response = match part {
                AnswerPart::Text(text) => response.text(text),
                AnswerPart::Thinking(text) => response.thinking(text, "c2ln"),
                AnswerPart::Call { id, name, arguments } => response.tool_call(id, name, arguments),
            };
        }
        super::bytes(match &answer.end {
            End::Stop | End::Calls => response.completed(),
            End::Length => response.incomplete("max_output_tokens"),
            End::Word(word) => {
                let told = json!({"id": "resp_1", "status": word, "usage": usage});
                response.event(json!({"type": "response.completed", "response": told})).frames()
            }
            End::Error(message) => {
                response.event(json!({"type": "error", "code": "server_error", "message": message})).frames()
            }
        })
    }

    fn unknown_event(&self) -> Vec<u8> {
        b"event: response.surprise\ndata: {\"type\":\"response.surprise\",\"output_index\":0}\n\n".to_vec()
    }

    fn is_reworded(&self, status: u16) -> bool {
        // Subscribers are told when the next window opens.
        matches!(self, Self::Codex) && status == 429
    }

    fn key(&self) -> String {
        match self {
            Self::OpenAi | Self::Azure => "secret-key".to_owned(),
            Self::Codex => TOKEN.to_owned(),
        }
    }
}

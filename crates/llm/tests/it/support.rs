//! Models, requests, and formatting of streams.

use std::sync::Arc;

use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::laws::Laws;
use pinch_llm::event::{BlockKind, Emit, EventStream, Finished, StreamEvent};
use pinch_llm::frame::Frames;
use pinch_llm::message::{Block, Message, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::request::{Auth, Request};
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::stdx::host::Host;
use pinch_llm::wire::{self, WireCall, WireFormat};
use serde_json::{Value, json};

pub(crate) const APIS: [&str; 2] = ["anthropic-messages", "openai-completions"];

pub(crate) fn model(api: &str, base_url: &str) -> Model {
    model_with(api, base_url, json!({}))
}

pub(crate) fn model_with(api: &str, base_url: &str, more: Value) -> Model {
    let mut record = json!({
        "id": "m", "api": api, "provider": "p", "baseUrl": base_url, "reasoning": true, "input": ["text", "image"],
        "contextWindow": 200_000, "maxTokens": 8_000,
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Model::from_record(&record).unwrap()
}

pub(crate) fn request(model: Model) -> Request {
    Request::new(model, vec![Arc::new(Message::user("hi", 1))])
        .with_auth(Auth::key("key"))
        .with_host(Host::builder().clock(1_000, 0).build())
}

pub(crate) fn tool(name: &str) -> ToolDecl {
    ToolDecl::new(name, format!("does {name}"), json!({"type": "object", "properties": {}, "required": []}))
}

pub(crate) fn messages(list: Value) -> Vec<Arc<Message>> {
    list.as_array().unwrap().iter().map(|message| Arc::new(Message::from_value(message).unwrap())).collect()
}

pub(crate) fn format_of(api: &str) -> Box<dyn WireFormat> {
    wire::builtin().into_iter().find(|format| format.api() == api).unwrap()
}

pub(crate) fn body(request: &Request) -> Value {
    encode(request).body
}

pub(crate) fn encode(request: &Request) -> wire::HttpRequest {
    let call = WireCall::new(request, 1_000);
    format_of(request.model.api.as_str()).encode(&call).unwrap()
}

pub(crate) fn stream(request: Request) -> EventStream {
    stream_until(request, Cancel::new())
}

pub(crate) fn stream_until(request: Request, cancel: Cancel) -> EventStream {
    ProviderRegistry::builtin().get(&request.model.api).unwrap().stream(request, cancel)
}

pub(crate) async fn end_of(request: Request) -> Finished {
    stream(request).collect_end().await
}

/// Decodes a response that arrives in these chunks, without a network, after checking the laws.
pub(crate) fn decode<'a>(api: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let request = request(model(api, "http://localhost"));
    let call = WireCall::new(&request, 1_000);
    let format = format_of(api);
    let mut decoder = format.decoder(&call);
    let (mut frames, mut emit, mut laws) = (Frames::new(format.framing()), Emit::default(), Laws::default());
    let mut words = Vec::new();
    let mut drain = |emit: &mut Emit| {
        while let Some(event) = emit.pop() {
            laws.check(&event).unwrap();
            words.push(in_words(&event));
        }
    };
    let no_frames =
        |error: &dyn std::fmt::Display| LlmError::new("p".into(), LlmErrorKind::Protocol, error.to_string());
    for chunk in chunks {
        frames.push(chunk);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => drop(decoder.push(frame, &mut emit)),
                Ok(None) => break,
                Err(error) => {
                    decoder.fail(no_frames(&error), &mut emit);
                    break;
                }
            }
            drain(&mut emit);
        }
        drain(&mut emit);
    }
    match frames.finish() {
        Ok(Some(frame)) => drop(decoder.push(frame, &mut emit)),
        Ok(None) => {}
        Err(error) => decoder.fail(no_frames(&error), &mut emit),
    }
    decoder.finish(&mut emit);
    drain(&mut emit);
    words
}

pub(crate) fn in_words(event: &StreamEvent) -> String {
    match event {
        StreamEvent::Start(_) => "start".into(),
        StreamEvent::BlockStart { index, kind } => match kind {
            BlockKind::Text => format!("{index} text"),
            BlockKind::Commentary => format!("{index} commentary"),
            BlockKind::Thinking { .. } => format!("{index} thinking"),
            BlockKind::ToolCall { id, name } => format!("{index} call {id} {name}"),
        },
        StreamEvent::Delta { index, text } => format!("{index} + {text}"),
        StreamEvent::BlockEnd { index, block } => format!("{index} = {}", block_in_words(block)),
        StreamEvent::Usage(usage) => format!("usage {}", usage.total_tokens),
        StreamEvent::End(finished) => {
            let blocks: Vec<String> = finished.message.content.iter().map(|block| block_in_words(block)).collect();
            let error = finished
                .error
                .as_ref()
                .map_or_else(String::new, |error| format!(" {:?} {:?} {}", error.kind, error.emitted, error.text));
            format!("end {} [{}]{error}", finished.message.stop_reason.as_str(), blocks.join(", "))
        }
    }
}

fn block_in_words(block: &Block) -> String {
    serde_json::to_string(block).unwrap()
}

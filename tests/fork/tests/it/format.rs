//! The wire format passes the suite and works with a client.

use std::sync::Arc;

use pinch_fork::format::{API, Acorn};
use pinch_llm::Client;
use pinch_llm::http::HttpClient;
use pinch_llm::provider::http::HttpProvider;
use pinch_llm::wire::WireFormat;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::{Answer, AnswerPart, End, Wire};
use serde_json::{Value, json};

/// The server side of the format.
struct AcornServer;

fn frame(event: &Value) -> Vec<u8> {
    format!("data: {event}\n\n").into_bytes()
}

fn pieces(text: &str, n: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(chars.len().div_ceil(n.max(1)).max(1)).map(|piece| piece.iter().collect()).collect()
}

impl Wire for AcornServer {
    fn api(&self) -> &'static str {
        API
    }

    fn format(&self) -> Option<Box<dyn WireFormat>> {
        Some(Box::new(Acorn))
    }

    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        let deltas = |kind: &str, text: &str, events: &mut Vec<Value>| {
            events.extend(pieces(text, answer.pieces).into_iter().map(|piece| json!({"kind": kind, "text": piece})));
        };
        for part in &answer.parts {
            match part {
                AnswerPart::Text(text) => deltas("text", text, &mut events),
                AnswerPart::Thinking(text) => deltas("thinking", text, &mut events),
                AnswerPart::Call { id, name, arguments } => {
                    events.push(json!({"kind": "call", "id": id, "name": name}));
                    deltas("arguments", arguments, &mut events);
                }
            }
        }
        let reason = match &answer.end {
            End::Stop => "done",
            End::Calls => "calls",
            End::Length => "length",
            End::Word(word) => word,
            End::Error(message) => {
                events.push(json!({"kind": "error", "text": message}));
                return events.iter().map(frame).collect();
            }
        };
        let tokens = answer.tokens;
        events.push(json!({"kind": "usage", "input": tokens.input, "output": tokens.output, "cached": tokens.cached}));
        events.push(json!({"kind": "end", "reason": reason}));
        events.iter().map(frame).collect()
    }

    fn unknown_event(&self) -> Vec<u8> {
        frame(&json!({"kind": "weather", "text": "sunny"}))
    }
}

pinch_testing::wire_suite! {
    acorn => AcornServer, gaps: [];
}

#[tokio::test]
async fn a_client_calls_models_of_the_format() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::sse(AcornServer.frames(&Answer::of([AnswerPart::text("hello")])).concat()));
    let provider = HttpProvider::new(Box::new(Acorn), Arc::new(HttpClient::new()));
    let client = Client::builder().provider(API, Arc::new(provider)).server("oak", server.url(), API).build();
    let reply = client.chat("oak/m").user("hi").send().await.unwrap();
    assert_eq!(reply.text(), "hello");
    assert_eq!(server.requests()[0].path, "/chat");
}

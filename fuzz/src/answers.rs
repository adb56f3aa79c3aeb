//! Answers of providers: whatever a server sends, the events obey the laws of the protocol, do not depend on how the bytes arrive, and end
//! once.
//!
//! Options: the wire format; the cuts. In formats with frames of AWS, each line of the content is the payload of an event: a name, a space,
//! and JSON.

use std::cell::LazyCell;
use std::sync::Arc;

use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::laws::Laws;
use pinch_llm::event::{Emit, Fold, StreamEvent};
use pinch_llm::frame::{Frames, Framing};
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, Request};
use pinch_llm::wire::{Decoder, WireCall, WireFormat, builtin};
use pinch_stdx::host::Host;
use serde_json::json;

use crate::input::{ALL_CUTS, options};

thread_local! {
    static FORMATS: LazyCell<Vec<(Box<dyn WireFormat>, Request)>> = LazyCell::new(|| {
        builtin().into_iter().map(|format| { let request = request(format.api()); (format, request) }).collect()
    });
}

fn request(api: &str) -> Request {
    let record = json!({
        "id": "m", "api": api, "provider": "p", "baseUrl": "http://localhost", "reasoning": true, "input": ["text"],
        "contextWindow": 200_000, "maxTokens": 8_000,
    });
    Request::new(Model::from_record(&record).expect("a model"), vec![Arc::new(Message::user("hi", 1))])
        .with_auth(Auth::key("key"))
}

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([format, cuts], content) = options(data);
    FORMATS.with(|formats| {
        let (format, request) = &formats[usize::from(format) % formats.len()];
        let content = match format.framing() {
            Framing::AwsEvents => aws_events(content),
            _ => content.to_vec(),
        };
        let [whole, single, random] = ALL_CUTS.map(|cut| decode(&**format, request, &cut(cuts).bytes(&content)));
        assert_eq!(whole, single, "single bytes give other events");
        assert_eq!(whole, random, "random chunks give other events");
    });
}

/// Decodes a response as production does and returns its events in words.
fn decode(format: &dyn WireFormat, request: &Request, chunks: &[&[u8]]) -> Vec<String> {
    // Calls without an id get a random one: the same one each time.
    let request = request.clone().with_host(Host::builder().clock(1_000, 0).seed(1).build());
    let call = WireCall::new(&request, 1_000);
    let (mut decoder, mut frames) = (format.decoder(&call), Frames::new(format.framing()));
    let mut answer = CheckedAnswer::default();
    for chunk in chunks {
        frames.push(chunk);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => _ = decoder.push(frame, &mut answer.emit),
                Ok(None) => break,
                Err(error) => return answer.failed(&mut *decoder, &error),
            }
            answer.take();
        }
    }
    match frames.finish() {
        Ok(Some(frame)) => _ = decoder.push(frame, &mut answer.emit),
        Ok(None) => {}
        Err(error) => return answer.failed(&mut *decoder, &error),
    }
    decoder.finish(&mut answer.emit);
    answer.ended()
}

#[derive(Default)]
struct CheckedAnswer {
    emit: Emit,
    laws: Laws,
    fold: Fold,
    words: Vec<String>,
    n_ends: usize,
}

impl CheckedAnswer {
    /// Takes what was emitted.
    fn take(&mut self) {
        while let Some(event) = self.emit.pop() {
            if let Err(law) = self.laws.check(&event) {
                panic!("{law}: {event:?} after {:#?}", self.words);
            }
            self.fold.push(&event);
            if let StreamEvent::End(finished) = &event {
                self.n_ends += 1;
                assert_eq!(self.fold.message().content.len(), finished.message.content.len(), "a block is missing");
                assert_eq!(finished.is_ok(), finished.error.is_none(), "{finished:?}");
                assert!(finished.is_ok() || finished.message.error_message.is_some(), "no reason: {finished:?}");
            }
            self.words.push(format!("{event:?}"));
        }
    }

    fn failed(mut self, decoder: &mut dyn Decoder, error: &dyn std::fmt::Display) -> Vec<String> {
        decoder.fail(LlmError::new("p".into(), LlmErrorKind::Protocol, error.to_string()), &mut self.emit);
        self.ended()
    }

    fn ended(mut self) -> Vec<String> {
        self.take();
        assert_eq!(self.n_ends, 1, "ends: {:#?}", self.words);
        self.words
    }
}

/// Frames lines as event-stream messages.
fn aws_events(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in content.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b' ');
        let (name, payload) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut headers = Vec::new();
        for (header, value) in [(":message-type", &b"event"[..]), (":event-type", name)] {
            let value = &value[..value.len().min(64)];
            headers.push(header.len() as u8);
            headers.extend_from_slice(header.as_bytes());
            headers.push(7);
            headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
            headers.extend_from_slice(value);
        }
        let start = out.len();
        out.extend_from_slice(&((16 + headers.len() + payload.len()) as u32).to_be_bytes());
        out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
        out.extend_from_slice(&crc32fast::hash(&out[start..]).to_be_bytes());
        out.extend_from_slice(&headers);
        out.extend_from_slice(payload);
        out.extend_from_slice(&crc32fast::hash(&out[start..]).to_be_bytes());
    }
    out
}

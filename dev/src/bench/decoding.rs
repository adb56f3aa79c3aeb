//! Decodes an in-memory response with the decoder of its format, as a provider would.

use std::sync::Arc;

use anyhow::Context;
use pinch_llm::event::{Emit, StreamEvent};
use pinch_llm::frame::Frames;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, Request};
use pinch_llm::wire::{self, WireCall, WireFormat};
use serde_json::json;

/// Bytes per network read.
pub(super) const CHUNK: usize = 16 * 1024;

/// Looks up a format by name.
pub(super) fn format_of(api: &str) -> anyhow::Result<Box<dyn WireFormat>> {
    wire::builtin().into_iter().find(|wire| wire.api() == api).context("no such wire format")
}

/// A model that uses a format.
pub(super) fn model_of(api: &str) -> anyhow::Result<Arc<Model>> {
    let record = json!({
        "id": "m1", "api": api, "provider": "bench", "baseUrl": "http://127.0.0.1:1",
        "contextWindow": 10_000_000, "maxTokens": 8192,
    });
    Ok(Arc::new(Model::from_record(&record)?))
}

/// Decodes a response; returns the number of deltas.
pub(super) fn decode(wire: &dyn WireFormat, body: &[u8]) -> anyhow::Result<usize> {
    let request =
        Request::new(model_of(wire.api())?, vec![Arc::new(Message::user("hello", 0))]).with_auth(Auth::key("none"));
    let mut decoder = wire.decoder(&WireCall::new(&request, 0));
    let (mut frames, mut emit, mut n_deltas) = (Frames::new(wire.framing()), Emit::default(), 0);
    for chunk in body.chunks(CHUNK) {
        frames.push(chunk);
        while let Some(frame) = frames.next_frame()? {
            decoder.push(frame, &mut emit);
            while let Some(event) = emit.pop() {
                n_deltas += usize::from(matches!(event, StreamEvent::Delta { .. }));
            }
        }
    }
    decoder.finish(&mut emit);
    Ok(n_deltas)
}

//! Responses of Cloud Code Assist: Google's chunks, each in an envelope.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{LlmError, LlmErrorKind};
use crate::event::Emit;
use crate::frame::Frame;
use crate::model::Model;
use crate::wire::google::stream::GoogleDecoder;
use crate::wire::{Decoder, FrameKind, WireCall};

/// Unwraps chunks.
#[derive(Debug)]
pub(super) struct CloudCodeDecoder {
    inner: GoogleDecoder,
    model: std::sync::Arc<Model>,
    /// Whether a chunk has arrived.
    has_begun: bool,
}

#[derive(Deserialize)]
struct CloudCodeChunk<'a> {
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl CloudCodeDecoder {
    pub(super) fn new(call: &WireCall<'_>) -> Self {
        let model = std::sync::Arc::clone(&call.request.model);
        Self { inner: GoogleDecoder::new(call), model, has_begun: false }
    }
}

impl Decoder for CloudCodeDecoder {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        // Unreadable lines are skipped, as in the service's own clients.
        let Ok(envelope) = serde_json::from_str::<CloudCodeChunk<'_>>(frame.data) else { return FrameKind::KeepAlive };
        match (envelope.response, envelope.error) {
            (Some(chunk), _) => {
                self.has_begun = true;
                self.inner.push(Frame { data: chunk.get(), ..frame }, emit)
            }
            (None, Some(_)) => {
                self.has_begun = true;
                self.inner.push(frame, emit)
            }
            (None, None) => FrameKind::KeepAlive,
        }
    }

    fn finish(&mut self, emit: &mut Emit) {
        if self.has_begun {
            return self.inner.finish(emit);
        }
        let text = "Cloud Code Assist API returned an empty response";
        self.inner.fail(LlmError::new(self.model.provider.clone(), LlmErrorKind::StreamCut, text), emit);
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        self.inner.fail(error, emit);
    }
}

//! Server-sent events and lines of JSON: events do not depend on how the bytes arrive, and none is longer than allowed.
//!
//! Options: the size limit in steps of 64 bytes (0: the default); the framing; the cuts.

use pinch_llm::frame::lines::LineDecoder;
use pinch_llm::frame::sse::SseDecoder;
use pinch_llm::frame::{FrameError, Frames, Framing};

use crate::input::{ALL_CUTS, options};

/// What a stream of bytes was decoded to.
#[derive(Debug, PartialEq)]
pub(crate) struct Decoded {
    /// Name, data and original bytes of each event.
    pub(crate) events: Vec<(String, String, Vec<u8>)>,
    /// Why decoding stopped.
    pub(crate) error: Option<FrameError>,
}

/// Decodes chunks as a response is decoded.
pub(crate) fn decode(mut frames: Frames, chunks: &[&[u8]]) -> Decoded {
    let mut events = Vec::new();
    for chunk in chunks {
        frames.push(chunk);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => events.push((frame.event.to_owned(), frame.data.to_owned(), frame.raw.to_vec())),
                Ok(None) => break,
                Err(error) => return Decoded { events, error: Some(error) },
            }
        }
    }
    let error = match frames.finish() {
        Ok(Some(frame)) => {
            events.push((frame.event.to_owned(), frame.data.to_owned(), frame.raw.to_vec()));
            None
        }
        Ok(None) => None,
        Err(error) => Some(error),
    };
    Decoded { events, error }
}

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([limit, framing, cuts], content) = options(data);
    let limit = usize::from(limit) * 64;
    let frames = || match (framing & 1, limit) {
        (0, 0) => Frames::new(Framing::Sse),
        (0, limit) => Frames::Sse(SseDecoder::new(limit)),
        (_, 0) => Frames::new(Framing::DataLines),
        (_, limit) => Frames::DataLines(LineDecoder::new(limit)),
    };
    let [whole, single, random] = ALL_CUTS.map(|cut| decode(frames(), &cut(cuts).bytes(content)));
    assert_eq!(whole, single, "single bytes give other events");
    assert_eq!(whole, random, "random chunks give other events");
    let mut rest = content;
    for (name, data, raw) in &whole.events {
        assert!(limit == 0 || raw.len() <= limit, "an event is longer than {limit} bytes");
        // Invalid bytes become characters of three bytes.
        assert!(name.len() + data.len() <= raw.len() * 3, "an event is longer than its bytes");
        let at = rest.windows(raw.len().max(1)).position(|window| window == raw);
        let at = at.unwrap_or_else(|| panic!("{raw:?} is not in the input, or not in this order"));
        rest = &rest[at + raw.len()..];
    }
}

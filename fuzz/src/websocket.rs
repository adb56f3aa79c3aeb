//! WebSocket frames: messages do not depend on how the bytes arrive, none is longer than allowed, and what is encoded is decoded again.
//!
//! Options: the size limit in steps of 16 bytes (0: the default); the mask of encoded frames; the cuts.

use pinch_http::websocket::ProtocolViolation;
use pinch_http::websocket::frame::{self, FrameDecoder, FrameMessage};

use crate::input::{ALL_CUTS, options, text};

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([limit, mask, cuts], content) = options(data);
    let limit = usize::from(limit) * 16;
    let decoder = || if limit == 0 { FrameDecoder::default() } else { FrameDecoder::new(limit) };
    let [whole, single, random] = ALL_CUTS.map(|cut| decode(decoder(), &cut(cuts).bytes(content)));
    assert_eq!(whole, single, "single bytes give other messages");
    assert_eq!(whole, random, "random chunks give other messages");
    for message in &whole.0 {
        match message {
            // Invalid bytes become characters of three bytes.
            FrameMessage::Text(text) => assert!(limit == 0 || text.len() <= limit * 3, "longer than {limit} bytes"),
            FrameMessage::Ping(payload) => assert!(payload.len() <= 125, "a ping of {} bytes", payload.len()),
            FrameMessage::Close { reason, .. } => assert!(reason.len() <= 123 * 3),
        }
    }
    let content = text(content);
    let mask = [mask, 1, 0xFF, mask.wrapping_mul(31)];
    let written = [
        frame::text(&content, mask),
        frame::pong(&[mask[0]; 3], mask),
        frame::text("", mask),
        frame::close(1000, &content, mask),
    ];
    let reason = content[..content.floor_char_boundary(123)].to_owned();
    let expected = vec![
        FrameMessage::Text(content.clone().into_owned()),
        FrameMessage::Text(String::new()),
        FrameMessage::Close { code: 1000, reason },
    ];
    assert_eq!(decode(FrameDecoder::default(), &Vec::from_iter(written.iter().map(Vec::as_slice))), (expected, None));
}

fn decode(mut decoder: FrameDecoder, chunks: &[&[u8]]) -> (Vec<FrameMessage>, Option<ProtocolViolation>) {
    let mut messages = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

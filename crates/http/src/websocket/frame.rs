//! Client-side WebSocket frames (RFC 6455). Bytes in, messages out; no extensions.
//!
//! ```
//! use pinch_http::websocket::frame::{FrameDecoder, FrameMessage};
//!
//! let mut frames = FrameDecoder::default();
//! frames.push(b"\x81\x05Hel");
//! assert_eq!(frames.next_message(), Ok(None));
//! frames.push(b"lo");
//! assert_eq!(frames.next_message(), Ok(Some(FrameMessage::Text("Hello".into()))));
//! ```

/// Default maximum size of a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum payload of a control frame, in bytes.
const MAX_CONTROL_BYTES: usize = 125;

/// A complete message or control frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameMessage {
    /// A text. Binary messages are treated as texts; invalid UTF-8 becomes U+FFFD.
    Text(String),
    /// A ping; answer with [`pong`].
    Ping(Vec<u8>),
    /// The other side closes the connection.
    Close {
        /// The close code; 1005 if there is none.
        code: u16,
        /// The close reason.
        reason: String,
    },
}

/// A violation of the protocol by the other side. The decoder yields nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolViolation {
    /// A message was longer than allowed.
    #[error("a message has more than {limit} bytes")]
    Oversized {
        /// The limit.
        limit: usize,
    },
    /// A frame is invalid.
    #[error("invalid frame: {what}")]
    Invalid {
        /// What is wrong with it.
        what: &'static str,
    },
}

/// Splits a stream of bytes into messages, however the bytes are chunked.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Position up to which the buffer has been read.
    read: usize,
    /// The fragments of an unfinished message.
    message: Option<Vec<u8>>,
    limit: usize,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::new(MAX_MESSAGE_BYTES)
    }
}

struct FrameHead {
    is_last: bool,
    opcode: u8,
    mask: Option<[u8; 4]>,
    /// The payload's range in the buffer.
    payload: std::ops::Range<usize>,
}

impl FrameDecoder {
    /// Creates a decoder that accepts messages of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), read: 0, message: None, limit }
    }

    /// Appends bytes to the buffer.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete message, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// Returns [`ProtocolViolation`] if the other side violates the protocol.
    pub fn next_message(&mut self) -> Result<Option<FrameMessage>, ProtocolViolation> {
        while let Some(head) = self.head()? {
            let Some(payload) = self.buffer.get(head.payload.clone()) else { return Ok(None) };
            let mut payload = payload.to_vec();
            if let Some(mask) = head.mask {
                apply(mask, &mut payload);
            }
            self.read = head.payload.end;
            match head.opcode {
                0x0..=0x2 => {
                    if (head.opcode == 0) != self.message.is_some() {
                        return Err(ProtocolViolation::Invalid { what: "a continuation without a message" });
                    }
                    let message = self.message.get_or_insert_default();
                    message.append(&mut payload);
                    if head.is_last {
                        let whole = self.message.take().unwrap_or_default();
                        let text = String::from_utf8(whole)
                            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                        return Ok(Some(FrameMessage::Text(text)));
                    }
                }
                0x8 => return Ok(Some(close_of(&payload))),
                0x9 => return Ok(Some(FrameMessage::Ping(payload))),
                // Ignore unsolicited pongs.
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the header of the next frame, or `None` if it is not complete yet.
    fn head(&self) -> Result<Option<FrameHead>, ProtocolViolation> {
        let bytes = &self.buffer[self.read..];
        let &[first, second, ..] = bytes else { return Ok(None) };
        let opcode = first & 0x0F;
        let is_last = first & 0x80 != 0;
        let (is_control, short) = (opcode & 0x08 != 0, usize::from(second & 0x7F));
        if first & 0x70 != 0 || matches!(opcode, 0x3..=0x7 | 0xB..=0xF) {
            return Err(ProtocolViolation::Invalid { what: "an extension that was not negotiated" });
        }
        if is_control && (!is_last || short > MAX_CONTROL_BYTES) {
            return Err(ProtocolViolation::Invalid { what: "a fragmented or oversized control frame" });
        }
        let (len, mut at) = match short {
            126 => match bytes.get(2..4) {
                Some(&[a, b]) => (u64::from(u16::from_be_bytes([a, b])), 4),
                _ => return Ok(None),
            },
            127 => match bytes.get(2..10).and_then(|bytes| bytes.try_into().ok()) {
                Some(bytes) => (u64::from_be_bytes(bytes), 10),
                None => return Ok(None),
            },
            short => (short as u64, 2),
        };
        let so_far = self.message.as_ref().map_or(0, Vec::len);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if !is_control && so_far.saturating_add(len) > self.limit {
            return Err(ProtocolViolation::Oversized { limit: self.limit });
        }
        let mut mask = None;
        if second & 0x80 != 0 {
            let Some(key) = bytes.get(at..at + 4).and_then(|key| key.try_into().ok()) else { return Ok(None) };
            mask = Some(key);
            at += 4;
        }
        let begin = self.read + at;
        Ok(Some(FrameHead { is_last, opcode, mask, payload: begin..begin + len }))
    }
}

fn close_of(payload: &[u8]) -> FrameMessage {
    match payload {
        [high, low, reason @ ..] => FrameMessage::Close {
            code: u16::from_be_bytes([*high, *low]),
            reason: String::from_utf8_lossy(reason).into_owned(),
        },
        _ => FrameMessage::Close { code: 1005, reason: String::new() },
    }
}

fn apply(mask: [u8; 4], payload: &mut [u8]) {
    for (byte, key) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

/// Encodes a text as one frame. `mask` must be unpredictable and new for each frame.
pub fn text(text: &str, mask: [u8; 4]) -> Vec<u8> {
    frame(0x1, text.as_bytes(), mask)
}

/// Encodes the answer to a ping.
pub fn pong(payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    frame(0xA, payload, mask)
}

/// Encodes a close frame. The reason is truncated to what a frame can hold.
pub fn close(code: u16, reason: &str, mask: [u8; 4]) -> Vec<u8> {
    let mut payload = code.to_be_bytes().to_vec();
    payload.extend_from_slice(&reason.as_bytes()[..reason.floor_char_boundary(MAX_CONTROL_BYTES - 2)]);
    frame(0x8, &payload, mask)
}

fn frame(opcode: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 14);
    frame.push(0x80 | opcode);
    match payload.len() {
        len @ 0..126 => frame.push(0x80 | u8::try_from(len).unwrap_or(0)),
        len => match u16::try_from(len) {
            Ok(len) => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&len.to_be_bytes());
            }
            Err(_) => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(len as u64).to_be_bytes());
            }
        },
    }
    frame.extend_from_slice(&mask);
    let begin = frame.len();
    frame.extend_from_slice(payload);
    apply(mask, &mut frame[begin..]);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], chunk: usize) -> Result<Vec<FrameMessage>, ProtocolViolation> {
        let mut decoder = FrameDecoder::new(100_000);
        let mut messages = Vec::new();
        for chunk in bytes.chunks(chunk.max(1)) {
            decoder.push(chunk);
            while let Some(message) = decoder.next_message()? {
                messages.push(message);
            }
        }
        Ok(messages)
    }

    #[test]
    fn a_ping_between_fragments_does_not_break_the_message() {
        let bytes =
            [b"\x01\x02He\x89\x01p\x00\x01l".as_slice(), b"\x80\x02lo\x8a\x00\x88\x05\x03\xf1big\x88\x00"].concat();
        let messages = all(&bytes, 1).unwrap();
        let close = |code: u16, reason: &str| FrameMessage::Close { code, reason: reason.into() };
        assert_eq!(
            messages,
            [FrameMessage::Ping(b"p".into()), FrameMessage::Text("Hello".into()), close(1009, "big"), close(1005, "")]
        );
    }

    #[test]
    fn protocol_violations_are_errors() {
        let check =
            |bytes: &[u8]| assert!(matches!(all(bytes, 3), Err(ProtocolViolation::Invalid { .. })), "{bytes:?}");
        check(b"\x00\x01a");
        check(b"\x01\x01a\x01\x01b");
        check(b"\x09\x00");
        check(b"\x89\x7e\x00\x7e");
        check(b"\xc1\x01a");
        check(b"\x83\x01a");
        assert_eq!(
            all(b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 1),
            Err(ProtocolViolation::Oversized { limit: 100_000 })
        );
        assert_eq!(
            all(b"\x01\x01a\x80\x7f\0\0\0\0\0\x01\x86\xa0", 1),
            Err(ProtocolViolation::Oversized { limit: 100_000 })
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn frames_round_trip(words in prop::collection::vec("[aé😀]{0,40000}", 0..4), mask in any::<[u8; 4]>(), chunk in 1usize..70_000) {
            let words: Vec<String> = words.into_iter().map(|word| word.chars().take(20_000).collect()).collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| text(word, mask)).collect();
            let expected: Vec<FrameMessage> = words.into_iter().map(FrameMessage::Text).collect();
            prop_assert_eq!(all(&bytes, chunk).unwrap(), expected);
        }

        #[test]
        fn chunking_does_not_change_the_messages(bytes in prop::collection::vec(any::<u8>(), 0..200), chunk in 1usize..50) {
            prop_assert_eq!(all(&bytes, chunk), all(&bytes, 200));
        }
    }
}

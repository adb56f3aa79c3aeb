//! Event-stream messages of AWS: messages do not depend on how the bytes arrive, and both readers agree about them.
//!
//! Options: flags (1: correct the lengths and checksums, so that most inputs pass them); the cuts.

use pinch_llm::frame::aws_event::{AwsEventDecoder, EventMessage, MAX_MESSAGE_BYTES};
use pinch_llm::frame::{Frames, Framing};

use crate::input::{ALL_CUTS, options};
use crate::sse::decode;

const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([flags, cuts], content) = options(data);
    let content = if flags & 1 == 1 { corrected(content) } else { content.to_vec() };
    let frames = || match flags & 2 {
        0 => Frames::new(Framing::AwsEvents),
        _ => Frames::AwsEvents(AwsEventDecoder::new(256)),
    };
    let [whole, single, random] = ALL_CUTS.map(|cut| decode(frames(), &cut(cuts).bytes(&content)));
    assert_eq!(whole, single, "single bytes give other messages");
    assert_eq!(whole, random, "random chunks give other messages");
    let mut rest = content.as_slice();
    for (name, data, raw) in &whole.events {
        let message = match EventMessage::read(rest, MAX_MESSAGE_BYTES) {
            Ok(Some(message)) => message,
            other => panic!("the decoder yields a message, and the reader {other:?}"),
        };
        assert_eq!(raw.len(), message.total_len);
        assert_eq!(raw.as_slice(), &rest[..message.total_len]);
        match message.text(":message-type") {
            Some("exception" | "error") => {}
            _ => {
                assert_eq!(Some(name.as_str()), message.text(":event-type").or(Some("")));
                assert_eq!(*data, String::from_utf8_lossy(message.payload));
            }
        }
        rest = &rest[message.total_len..];
    }
    assert!(whole.error.is_some() || rest.is_empty(), "{} bytes were ignored", rest.len());
}

/// Returns the messages with correct lengths and checksums.
fn corrected(content: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), content);
    while rest.len() > PRELUDE + CHECKSUM {
        // The last byte of either length is enough for short messages.
        let total = (PRELUDE + CHECKSUM + usize::from(rest[3])).min(rest.len());
        let n_headers = usize::from(rest[7]).min(total - PRELUDE - CHECKSUM);
        let mut message = rest[..total].to_vec();
        message[..4].copy_from_slice(&(total as u32).to_be_bytes());
        message[4..8].copy_from_slice(&(n_headers as u32).to_be_bytes());
        let prelude = crc32fast::hash(&message[..8]);
        message[8..PRELUDE].copy_from_slice(&prelude.to_be_bytes());
        let sum = crc32fast::hash(&message[..total - CHECKSUM]);
        message[total - CHECKSUM..].copy_from_slice(&sum.to_be_bytes());
        out.append(&mut message);
        rest = &rest[total..];
    }
    out.extend_from_slice(rest);
    out
}

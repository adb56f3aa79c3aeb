//! From bytes to frames: the pieces a streamed response is made of. No input or output here: bytes in, frames out.

pub mod sse;
#[cfg(feature = "codex-ws")]
pub mod websocket;

/// One piece of a streamed response, borrowed from the decoder that cut it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event's name; empty when it has none.
    pub event: &'a str,
    /// The payload.
    pub data: &'a str,
    /// The bytes of the frame as they came, for error texts.
    pub raw: &'a [u8],
}

/// How the frames of a response are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
}

//! Frames: the units of a streamed response. No I/O here: bytes in, frames out.

pub mod sse;

pub mod lines;

#[cfg(feature = "bedrock")]
pub mod aws_event;

use lines::LineDecoder;
use sse::{Oversized, SseDecoder};

/// One frame of a streamed response, borrowed from the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event's name; empty if it has none.
    pub event: &'a str,
    /// The payload.
    pub data: &'a str,
    /// The bytes of the frame as received, for error texts.
    pub raw: &'a [u8],
}

/// The framing of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// Lines that begin with `data: `.
    DataLines,
    /// Amazon's binary event stream.
    #[cfg(feature = "bedrock")]
    AwsEvents,
}

/// A response contains invalid frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// An event is longer than allowed.
    #[error(transparent)]
    Oversized(#[from] Oversized),
    /// Amazon's event stream is invalid.
    #[cfg(feature = "bedrock")]
    #[error(transparent)]
    AwsEvent(#[from] aws_event::AwsEventError),
}

impl FrameError {
    /// Returns whether the bytes merely ended too early.
    pub fn is_cut_off(&self) -> bool {
        match self {
            Self::Oversized(_) => false,
            #[cfg(feature = "bedrock")]
            Self::AwsEvent(error) => matches!(error, aws_event::AwsEventError::Truncated { .. }),
        }
    }
}

/// Divides a response into frames, of any framing.
#[derive(Debug)]
pub enum Frames {
    /// Server-sent events.
    Sse(SseDecoder),
    /// Lines that begin with `data: `.
    DataLines(LineDecoder),
    /// Amazon's binary event stream.
    #[cfg(feature = "bedrock")]
    AwsEvents(aws_event::AwsEventDecoder),
}

impl Frames {
    /// Creates a decoder for a framing.
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Sse => Self::Sse(SseDecoder::default()),
            Framing::DataLines => Self::DataLines(LineDecoder::default()),
            #[cfg(feature = "bedrock")]
            Framing::AwsEvents => Self::AwsEvents(aws_event::AwsEventDecoder::default()),
        }
    }

    /// Appends bytes. Take all frames before the next call.
    pub fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::Sse(frames) => frames.push(chunk),
            Self::DataLines(frames) => frames.push(chunk),
            #[cfg(feature = "bedrock")]
            Self::AwsEvents(frames) => frames.push(chunk),
        }
    }

    /// Returns the next complete frame, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// Returns [`FrameError`] for invalid bytes; no frame follows.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        match self {
            Self::Sse(frames) => Ok(frames.next_frame()?),
            Self::DataLines(frames) => Ok(frames.next_frame()?),
            #[cfg(feature = "bedrock")]
            Self::AwsEvents(frames) => Ok(frames.next_frame()?),
        }
    }

    /// Ends the input and returns the last frame, if its terminator is optional.
    ///
    /// # Errors
    /// Returns [`FrameError`] if a required terminator is missing.
    pub fn finish(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        match self {
            Self::Sse(frames) => Ok(frames.finish()?),
            Self::DataLines(frames) => Ok(frames.finish()?),
            #[cfg(feature = "bedrock")]
            Self::AwsEvents(frames) => {
                frames.finish()?;
                Ok(None)
            }
        }
    }
}

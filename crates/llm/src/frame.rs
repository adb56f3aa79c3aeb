//! Frames: the pieces of a streamed response. No I/O here: bytes in, frames out.

pub mod sse;

pub mod lines;

#[cfg(feature = "bedrock")]
pub mod aws_event;

use lines::LineDecoder;
use sse::{Oversized, SseDecoder};

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

/// How a response is divided into frames.
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

/// The bytes of a response are not valid frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// An event is longer than allowed.
    #[error(transparent)]
    Oversized(#[from] Oversized),
    /// Amazon's event stream is broken.
    #[cfg(feature = "bedrock")]
    #[error(transparent)]
    AwsEvent(#[from] aws_event::AwsEventError),
}

impl FrameError {
    /// Whether the bytes only ended too early.
    pub fn is_cut_off(&self) -> bool {
        match self {
            Self::Oversized(_) => false,
            #[cfg(feature = "bedrock")]
            Self::AwsEvent(error) => matches!(error, aws_event::AwsEventError::Truncated { .. }),
        }
    }
}

/// Divides a response into frames, of any kind.
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
    /// A decoder of a kind of frames.
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Sse => Self::Sse(SseDecoder::default()),
            Framing::DataLines => Self::DataLines(LineDecoder::default()),
            #[cfg(feature = "bedrock")]
            Framing::AwsEvents => Self::AwsEvents(aws_event::AwsEventDecoder::default()),
        }
    }

    /// Adds the next bytes. Take all frames before the next call.
    pub fn push(&mut self, chunk: &[u8]) {
        match self {
            Self::Sse(frames) => frames.push(chunk),
            Self::DataLines(frames) => frames.push(chunk),
            #[cfg(feature = "bedrock")]
            Self::AwsEvents(frames) => frames.push(chunk),
        }
    }

    /// The next whole frame; `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`FrameError`]; no frame follows.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        match self {
            Self::Sse(frames) => Ok(frames.next_frame()?),
            Self::DataLines(frames) => Ok(frames.next_frame()?),
            #[cfg(feature = "bedrock")]
            Self::AwsEvents(frames) => Ok(frames.next_frame()?),
        }
    }

    /// Ends the input and returns the last frame, if its end may be missing.
    ///
    /// # Errors
    /// [`FrameError`] when it may not.
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

//! Decoding of compressed response bodies, which some servers send unasked.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};

use super::HttpError;

/// Decodes a body chunk by chunk. Feed it every chunk, then call [`Self::finish`] at the end of the body.
pub(super) enum Coding {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Brotli(Box<DecompressorWriter<Bounded>>),
    /// Whether the data has a zlib header, as the standard says, is decided by its first byte.
    Deflate(Option<Deflate>),
    Zstd(Box<zstd::Stream>),
}

/// Bytes that the Brotli decoder outputs at a time.
const BUFFER: usize = 16 * 1024;
/// Maximum decoded size of one chunk: a few bytes of Brotli can expand to gigabytes.
const MAX_PIECE: usize = 16 * 1024 * 1024;

/// Decoded output of one chunk so far.
#[derive(Debug, Default)]
pub(super) struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_PIECE {
            return Err(io::Error::other("a chunk of the body decompresses to more than 16 MiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Deflate with a zlib header, as the standard says, or without, as some servers send it.
pub(super) enum Deflate {
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
}

impl std::fmt::Debug for Coding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gzip(_) => "gzip",
            Self::Brotli(_) => "br",
            Self::Deflate(_) => "deflate",
            Self::Zstd(_) => "zstd",
        })
    }
}

impl Coding {
    /// Returns the decoder for a response, or `None` if the body is not compressed.
    ///
    /// # Errors
    /// Returns an error if the encoding is not supported.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, HttpError> {
        let names = headers.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let mut names = names.flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
        let mut names = names.by_ref().filter(|name| !name.is_empty() && name != "identity");
        let Some(name) = names.next() else { return Ok(None) };
        let coding = match name.as_str() {
            "gzip" | "x-gzip" => Self::Gzip(MultiGzDecoder::new(Vec::new())),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(Bounded::default(), BUFFER))),
            "deflate" => Self::Deflate(None),
            "zstd" => Self::Zstd(Box::default()),
            _ => return Err(HttpError::Coding { name }),
        };
        match names.next() {
            Some(second) => Err(HttpError::Coding { name: format!("{name}, {second}") }),
            None => Ok(Some(coding)),
        }
    }

    /// Decodes a chunk. The result may be empty.
    pub(super) fn decode(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        if piece.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Self::Gzip(decoder) => {
                decoder.write_all(piece)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Brotli(decoder) => {
                decoder.write_all(piece)?;
                decoder.flush()?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Self::Deflate(form) => match form.get_or_insert_with(|| Deflate::of(piece)) {
                Deflate::Zlib(decoder) => {
                    decoder.write_all(piece)?;
                    decoder.flush()?;
                    Ok(std::mem::take(decoder.get_mut()))
                }
                Deflate::Raw(decoder) => {
                    decoder.write_all(piece)?;
                    decoder.flush()?;
                    Ok(std::mem::take(decoder.get_mut()))
                }
            },
            Self::Zstd(stream) => stream.decode(piece),
        }
    }

    /// Ends the body; fails if it is incomplete.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.close(),
            Self::Deflate(Some(Deflate::Zlib(decoder))) => decoder.try_finish(),
            Self::Deflate(Some(Deflate::Raw(decoder))) => decoder.try_finish(),
            Self::Deflate(None) => Ok(()),
            Self::Zstd(stream) => stream.finish(),
        }
    }
}

impl Deflate {
    fn of(piece: &[u8]) -> Self {
        // In zlib, the method is always 8, and the window is at most 32 KiB.
        match piece.first() {
            Some(first) if first & 0x0f == 8 && first >> 4 <= 7 => Self::Zlib(ZlibDecoder::new(Vec::new())),
            _ => Self::Raw(DeflateDecoder::new(Vec::new())),
        }
    }
}

mod zstd {
    use std::io;

    use ruzstd::decoding::FrameDecoder;

    /// The largest window that is decoded, as in browsers.
    const MAX_WINDOW: u64 = 8 * 1024 * 1024;
    /// Maximum length of a frame header.
    const MAX_HEADER: usize = 18;
    /// Length of a checksum.
    const CHECKSUM: usize = 4;

    /// A frame, whose blocks are decoded once they are complete.
    #[derive(Default)]
    pub(in super::super) struct Stream {
        decoder: FrameDecoder,
        input: Vec<u8>,
        is_begun: bool,
    }

    impl Stream {
        pub(super) fn decode(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
            self.input.extend_from_slice(piece);
            let mut output = Vec::new();
            if !self.is_begun {
                if self.input.len() < MAX_HEADER {
                    return Ok(output);
                }
                self.begin()?;
            }
            self.blocks(&mut output)?;
            Ok(output)
        }

        fn begin(&mut self) -> io::Result<()> {
            self.decoder.set_max_window_size(MAX_WINDOW);
            let mut rest = self.input.as_slice();
            self.decoder.init(&mut rest).map_err(io::Error::other)?;
            let n_read = self.input.len() - rest.len();
            self.input.drain(..n_read);
            self.is_begun = true;
            Ok(())
        }

        fn blocks(&mut self, output: &mut Vec<u8>) -> io::Result<()> {
            let mut buffer = vec![0; 64 * 1024];
            while !self.is_over() {
                let (n_read, n_written) =
                    self.decoder.decode_from_to(&self.input, &mut buffer).map_err(io::Error::other)?;
                self.input.drain(..n_read.min(self.input.len()));
                output.extend_from_slice(&buffer[..n_written]);
                if n_read == 0 && n_written == 0 {
                    break;
                }
            }
            Ok(())
        }

        fn is_over(&self) -> bool {
            self.decoder.is_finished() && self.decoder.can_collect() == 0
        }

        pub(super) fn finish(&mut self) -> io::Result<()> {
            if !self.is_begun && !self.input.is_empty() {
                self.begin()?;
            }
            let is_whole = !self.is_begun || self.is_over() && self.input.len() <= CHECKSUM;
            if is_whole { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_becomes_no_more_than_its_limit() {
        let mut piece = Bounded::default();
        piece.write_all(&vec![0; MAX_PIECE]).unwrap();
        assert!(piece.write_all(b"x").is_err());
        assert_eq!(piece.0.len(), MAX_PIECE);
    }
}

//! Frames that are single `data: ` lines, for simple servers that send no blank lines between events.
//!
//! All other lines are ignored. A line ends with a line feed, optionally preceded by a carriage return.

use std::ops::Range;

use memchr::memchr;

use super::Frame;
use super::sse::{MAX_EVENT_BYTES, Oversized};

const DATA: &[u8] = b"data: ";

/// Splits a stream of bytes into lines, however the bytes are chunked.
#[derive(Debug)]
pub struct LineDecoder {
    /// Bytes from the current line on.
    buffer: Vec<u8>,
    /// Start of the current line.
    start: usize,
    /// Position up to which the current line was searched for its end.
    searched: usize,
    limit: usize,
    /// Data of the returned frame, if its bytes were not valid UTF-8.
    lossy: String,
}

impl Default for LineDecoder {
    fn default() -> Self {
        Self::new(MAX_EVENT_BYTES)
    }
}

impl LineDecoder {
    /// Creates a decoder that accepts lines of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, limit, lossy: String::new() }
    }

    /// Appends bytes. Take all frames with [`LineDecoder::next_frame`] before the next call, or the buffer grows.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next frame, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// Returns [`Oversized`] if a line is longer than allowed.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Oversized> {
        while let Some(found) = memchr(b'\n', &self.buffer[self.searched..]) {
            let line = self.start..self.searched + found;
            self.check(line.len())?;
            self.start = line.end + 1;
            self.searched = self.start;
            if self.is_data(&line) {
                return Ok(Some(self.frame(line)));
            }
        }
        self.searched = self.buffer.len();
        self.check(self.buffer.len() - self.start)?;
        Ok(None)
    }

    /// Returns the last line, if the bytes ended without a line feed.
    ///
    /// # Errors
    /// Returns [`Oversized`] if it is longer than allowed.
    pub fn finish(&mut self) -> Result<Option<Frame<'_>>, Oversized> {
        let line = self.start..self.buffer.len();
        self.start = line.end;
        self.searched = line.end;
        self.check(line.len())?;
        Ok(if self.is_data(&line) { Some(self.frame(line)) } else { None })
    }

    fn check(&self, bytes: usize) -> Result<(), Oversized> {
        if bytes > self.limit { Err(Oversized { limit: self.limit }) } else { Ok(()) }
    }

    fn is_data(&self, line: &Range<usize>) -> bool {
        self.buffer[line.clone()].starts_with(DATA)
    }

    fn frame(&mut self, line: Range<usize>) -> Frame<'_> {
        let raw = &self.buffer[line];
        let data = &raw[DATA.len()..];
        let data = data.strip_suffix(b"\r").unwrap_or(data);
        let data = match std::str::from_utf8(data) {
            Ok(data) => data,
            Err(_) => {
                self.lossy = String::from_utf8_lossy(data).into_owned();
                &self.lossy
            }
        };
        Frame { event: "", data, raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = LineDecoder::default();
        let mut lines = Vec::new();
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(frame) = decoder.next_frame().unwrap() {
                lines.push(frame.data.to_owned());
            }
        }
        lines.extend(decoder.finish().unwrap().map(|frame| frame.data.to_owned()));
        lines
    }

    #[test]
    fn lines_without_data_are_ignored() {
        let stream = b": hi\n\ndata: 1\r\ndata:2\ndata: 3 \nevent: x\n data: 4\ndata: \ndata: \xFF\ndata: 5";
        assert_eq!(decode([&stream[..]]), ["1", "3 ", "", "\u{FFFD}", "5"]);
        assert_eq!(decode([&b"da"[..]]), [""; 0]);
    }

    #[test]
    fn lines_have_a_limit() {
        let mut decoder = LineDecoder::new(8);
        decoder.push(b"data: 12\ndata: 123");
        assert_eq!(decoder.next_frame().unwrap().unwrap().data, "12");
        assert_eq!(decoder.next_frame(), Err(Oversized { limit: 8 }));
        assert_eq!(decoder.finish(), Err(Oversized { limit: 8 }));
    }

    proptest! {
        #[test]
        fn chunks_do_not_change_frames(bytes in "(data: [ab]{0,3}|x|\r?\n|\u{e9}){0,20}", cuts in prop::collection::vec(0usize..80, 0..6)) {
            let bytes = bytes.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(decode(chunks), decode([bytes]));
        }
    }
}

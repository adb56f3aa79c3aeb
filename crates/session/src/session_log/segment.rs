//! Where the lines of a session are: in memory or in the store.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use memchr::memrchr;

use crate::entry::Entry;
use crate::store::StoredText;

/// Bytes read at once when many lines are needed: the lines of a branch are close to each other.
const WINDOW: u64 = 256 * 1024;

/// A section of a session's text.
#[derive(Clone, Debug)]
pub(super) enum Segment {
    /// Held in memory.
    Kept(Bytes),
    /// A message that this log has written. Its line is made again when it is needed, since the conversation keeps the message anyway.
    Written(Arc<Entry>),
    /// Left in the store.
    Stored {
        text: Arc<dyn StoredText>,
        /// The text after the last line break.
        torn: Vec<u8>,
    },
}

impl Segment {
    /// Returns `len` bytes from `start`.
    pub(super) fn read(&self, start: u32, len: u32) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Kept(text) => Ok(Cow::Borrowed(&text[start as usize..][..len as usize])),
            // Its line is the whole segment.
            Self::Written(entry) => Ok(Cow::Owned(entry.to_line().into_bytes())),
            Self::Stored { text, .. } => {
                let mut bytes = vec![0; len as usize];
                text.read_at(start.into(), &mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// Returns the text after the last line break.
    pub(super) fn torn(&self) -> &[u8] {
        match self {
            Self::Kept(text) => &text[memrchr(b'\n', text).map_or(0, |at| at + 1)..],
            Self::Written(_) => &[],
            Self::Stored { torn, .. } => torn,
        }
    }
}

/// Reads successive lines; for a stored text, many at once.
#[derive(Default)]
pub(super) struct LineWindow {
    at: u64,
    bytes: Vec<u8>,
}

impl LineWindow {
    /// Returns bytes of a segment. A session has at most one stored segment, its first.
    pub(super) fn read<'a>(&'a mut self, segment: &'a Segment, start: u32, len: u32) -> io::Result<&'a [u8]> {
        let text = match segment {
            Segment::Kept(text) => return Ok(&text[start as usize..][..len as usize]),
            Segment::Written(entry) => {
                // Not a part of the stored text, of which nothing is known now.
                (self.at, self.bytes) = (u64::MAX, entry.to_line().into_bytes());
                return Ok(&self.bytes);
            }
            Segment::Stored { text, .. } => text,
        };
        let (start, len) = (u64::from(start), u64::from(len));
        if start < self.at || start + len > self.at + self.bytes.len() as u64 {
            let n_bytes = len.max(WINDOW).min(text.len().saturating_sub(start).max(len));
            self.bytes.resize(usize::try_from(n_bytes).unwrap_or(usize::MAX), 0);
            self.at = start;
            if let Err(error) = text.read_at(start, &mut self.bytes) {
                self.bytes.clear();
                return Err(error);
            }
        }
        let from = usize::try_from(start - self.at).unwrap_or(usize::MAX);
        self.bytes
            .get(from..from + usize::try_from(len).unwrap_or(0))
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

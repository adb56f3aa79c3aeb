//! Possibly endless output, within bounds: its end in memory, all of it in a file.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::text::ansi::AnsiFilter;
use crate::text::{Utf8Decoder, strip_control, suffix};

/// How long output files are kept: they are removed when a later output creates one.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Limits of output in memory and in the file.
#[derive(Clone, Debug)]
pub struct TailLimits {
    /// Maximum bytes of output without a file. At least this much of the end of the text stays in memory, at most twice as much.
    pub max_bytes: usize,
    /// Maximum lines of output without a file.
    pub max_lines: usize,
    /// Maximum size of the file in bytes; further output is counted, but not kept.
    pub max_spill: u64,
    /// The directory of the file.
    pub spill_dir: PathBuf,
    /// Prefix of the file's name.
    pub spill_prefix: String,
}

/// What is removed from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// Nothing; the file gets the original bytes.
    None,
    /// Escape sequences, carriage returns and control characters; the file gets the cleaned text.
    Terminal,
}

/// Collects output. Characters and escape sequences split between two chunks are handled correctly.
#[derive(Debug)]
pub struct OutputTail {
    limits: TailLimits,
    cleaning: Cleaning,
    decoder: Utf8Decoder,
    filter: AnsiFilter,
    /// The end of the text.
    text: String,
    n_text_bytes: u64,
    n_newlines: u64,
    /// Bytes of the current line, and of the one before it.
    n_line_bytes: (u64, u64),
    /// The output so far in the form for the file, until there is one.
    unspilled: Vec<u8>,
    spill: Spill,
}

#[derive(Debug)]
enum Spill {
    /// Everything is in memory.
    Memory,
    File {
        file: File,
        path: PathBuf,
        n_bytes: u64,
        /// Whether there was more than fits.
        is_cut: bool,
    },
    /// The file could not be created or written: only the end of the output is available.
    Failed(io::Error),
}

impl OutputTail {
    /// Creates an empty tail.
    pub fn new(limits: TailLimits, cleaning: Cleaning) -> Self {
        Self {
            limits,
            cleaning,
            decoder: Utf8Decoder::default(),
            filter: AnsiFilter::default(),
            text: String::new(),
            n_text_bytes: 0,
            n_newlines: 0,
            n_line_bytes: (0, 0),
            unspilled: Vec::new(),
            spill: Spill::Memory,
        }
    }

    /// Adds a chunk of output. Returns the text that it completed.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut decoded = String::with_capacity(bytes.len());
        self.decoder.push(bytes, &mut decoded);
        self.add(bytes, decoded)
    }

    /// Ends the output: an incomplete character becomes U+FFFD, and the file is completed. Returns the last text.
    pub fn finish(&mut self) -> String {
        let mut decoded = String::new();
        self.decoder.finish(&mut decoded);
        let last = self.add(&[], decoded);
        if let Spill::File { file, .. } = &mut self.spill
            && let Err(error) = file.flush()
        {
            self.spill = Spill::Failed(error);
        }
        last
    }

    fn add(&mut self, bytes: &[u8], decoded: String) -> String {
        let text = match self.cleaning {
            Cleaning::None => decoded,
            Cleaning::Terminal => {
                let mut filtered = String::with_capacity(decoded.len());
                self.filter.push(&decoded, &mut filtered);
                filtered.retain(|c| c != '\r');
                strip_control(&filtered).into_owned()
            }
        };
        let kept = if self.cleaning == Cleaning::None { bytes } else { text.as_bytes() };
        self.keep(kept);
        self.n_text_bytes += text.len() as u64;
        self.n_newlines += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.n_line_bytes = (0, self.n_line_bytes.0);
            }
            self.n_line_bytes.0 += line.len() as u64;
        }
        self.text.push_str(&text);
        let max = self.limits.max_bytes;
        if self.text.len() > max.saturating_mul(2) {
            let n_gone = self.text.len() - suffix(&self.text, max).len();
            self.text.drain(..n_gone);
        }
        let is_large = self.n_text_bytes > max as u64 || self.n_lines() > self.limits.max_lines as u64;
        if matches!(self.spill, Spill::Memory) && (is_large || self.unspilled.len() > max) {
            self.spill();
        }
        text
    }

    /// Stores output in the file, or in memory until there is one.
    fn keep(&mut self, bytes: &[u8]) {
        match &mut self.spill {
            Spill::Memory => self.unspilled.extend_from_slice(bytes),
            Spill::Failed(_) => {}
            Spill::File { file, n_bytes, is_cut, .. } => {
                let room = usize::try_from(self.limits.max_spill.saturating_sub(*n_bytes)).unwrap_or(usize::MAX);
                *is_cut |= bytes.len() > room;
                let bytes = &bytes[..bytes.len().min(room)];
                *n_bytes += bytes.len() as u64;
                if let Err(error) = file.write_all(bytes) {
                    self.spill = Spill::Failed(error);
                }
            }
        }
    }

    /// Writes the whole output to a file, readable only by the user, unless that has happened. Later output is appended to it.
    pub fn spill(&mut self) -> Option<&Path> {
        if matches!(self.spill, Spill::Memory) {
            let made = tempfile::Builder::new()
                .prefix(&self.limits.spill_prefix)
                .suffix(".log")
                .rand_bytes(16)
                .tempfile_in(&self.limits.spill_dir)
                .and_then(|file| file.keep().map_err(|failed| failed.error));
            self.spill = match made {
                Ok((file, path)) => Spill::File { file, path, n_bytes: 0, is_cut: false },
                Err(error) => Spill::Failed(error),
            };
            if let Spill::File { file, .. } = &self.spill {
                remove_old(&self.limits, file);
            }
            let unspilled = std::mem::take(&mut self.unspilled);
            self.keep(&unspilled);
        }
        self.spill_path()
    }

    /// Returns the path of the file with the whole output, if any.
    pub fn spill_path(&self) -> Option<&Path> {
        match &self.spill {
            Spill::File { path, .. } => Some(path),
            Spill::Memory | Spill::Failed(_) => None,
        }
    }

    /// Returns why the output was not saved to a file although it is too large for memory.
    pub fn spill_error(&self) -> Option<&io::Error> {
        match &self.spill {
            Spill::Failed(error) => Some(error),
            Spill::Memory | Spill::File { .. } => None,
        }
    }

    /// Returns the end of the text, which is all of it while [`OutputTail::is_whole`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether [`OutputTail::text`] is everything.
    pub fn is_whole(&self) -> bool {
        self.text.len() as u64 == self.n_text_bytes
    }

    /// Returns the size of the whole text in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.n_text_bytes
    }

    /// Returns the size of the last line in bytes without its line feed, even if it is no longer in memory.
    pub fn n_bytes_of_last_line(&self) -> u64 {
        if self.text.ends_with('\n') { self.n_line_bytes.1 } else { self.n_line_bytes.0 }
    }

    /// Returns the bytes in the file when it became full; `None` while it has everything, and if there is none.
    pub fn n_bytes_before_cut(&self) -> Option<u64> {
        match &self.spill {
            Spill::File { n_bytes, is_cut: true, .. } => Some(*n_bytes),
            _ => None,
        }
    }

    /// Returns the number of lines of the whole text. A final line feed does not start another line.
    pub fn n_lines(&self) -> u64 {
        self.n_newlines + u64::from(!self.text.is_empty() && !self.text.ends_with('\n'))
    }
}

/// Removes files of earlier outputs that are older than [`KEPT_FOR`]. Errors are ignored, because the directory is shared.
fn remove_old(limits: &TailLimits, new: &File) {
    let Some(old) = modified(new.metadata()).and_then(|now| now.checked_sub(KEPT_FOR)) else { return };
    for entry in std::fs::read_dir(&limits.spill_dir).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let is_ours =
            name.to_str().is_some_and(|name| name.starts_with(&limits.spill_prefix) && name.ends_with(".log"));
        // For a link, this is the time of the link itself.
        if is_ours && modified(entry.metadata().and_then(regular)).is_some_and(|at| at < old) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

fn regular(meta: Metadata) -> io::Result<Metadata> {
    if meta.is_file() { Ok(meta) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn modified(meta: io::Result<Metadata>) -> Option<SystemTime> {
    meta.and_then(|meta| meta.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(dir: &Path) -> TailLimits {
        TailLimits {
            max_bytes: 10,
            max_lines: 3,
            max_spill: 40,
            spill_dir: dir.to_owned(),
            spill_prefix: "out-".into(),
        }
    }

    #[test]
    fn small_output_stays_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut tail = OutputTail::new(limits(dir.path()), Cleaning::None);
        tail.push(b"a\nb\n\xf0\x9f");
        tail.push(b"\x98\x80");
        tail.finish();
        assert_eq!((tail.text(), tail.n_lines(), tail.is_whole(), tail.spill_path()), ("a\nb\n😀", 3, true, None));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn large_output_keeps_its_end_and_goes_whole_to_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut tail = OutputTail::new(limits(dir.path()), Cleaning::None);
        for _ in 0..9 {
            tail.push("é123\n".as_bytes());
        }
        tail.finish();
        assert!(tail.text().len() <= 20 && tail.text().ends_with("123\né123\n"), "{:?}", tail.text());
        assert_eq!((tail.n_bytes(), tail.n_lines(), tail.is_whole()), (54, 9, false));
        let path = tail.spill_path().unwrap();
        let whole = "é123\n".repeat(9);
        assert_eq!(std::fs::read(path).unwrap(), &whole.as_bytes()[..40]);
        assert_eq!(tail.n_bytes_before_cut(), Some(40));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn the_length_of_the_last_line_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let mut tail = OutputTail::new(limits(dir.path()), Cleaning::None);
        for (piece, expected) in
            [("ab\n", 2), ("c", 1), ("\n\n", 0), ("0123456789", 10), ("0123456789", 20), ("é\n", 22)]
        {
            tail.push(piece.as_bytes());
            assert_eq!(tail.n_bytes_of_last_line(), expected, "{piece:?}");
        }
        assert_eq!(tail.n_bytes_before_cut(), None);
    }

    #[test]
    fn old_files_are_removed_when_a_new_one_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let age = |name: &str, days: u64| {
            let file = File::create(dir.path().join(name)).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
        };
        for (name, days) in [("out-old.log", 8), ("out-new.log", 6), ("out-old.txt", 8), ("other-old.log", 8)] {
            age(name, days);
        }
        std::fs::create_dir(dir.path().join("out-folder.log")).unwrap();
        let mut tail = OutputTail::new(limits(dir.path()), Cleaning::None);
        tail.push(&[b'x'; 100]);
        let exists = |name: &str| dir.path().join(name).exists();
        assert!(tail.spill_path().unwrap().exists());
        assert!(!exists("out-old.log"));
        assert!(["out-new.log", "out-old.txt", "other-old.log", "out-folder.log"].into_iter().all(exists));
    }

    #[test]
    fn many_lines_go_to_a_file_too() {
        let dir = tempfile::tempdir().unwrap();
        let mut tail = OutputTail::new(limits(dir.path()), Cleaning::None);
        tail.push(b"\n\n\n");
        assert_eq!(tail.spill_path(), None);
        tail.push(b"a");
        assert_eq!(std::fs::read(tail.spill_path().unwrap()).unwrap(), b"\n\n\na");
    }

    #[test]
    fn cleaning_removes_split_escape_sequences() {
        let dir = tempfile::tempdir().unwrap();
        let mut tail = OutputTail::new(limits(dir.path()), Cleaning::Terminal);
        for piece in [&b"\x1b[3"[..], b"1mr", b"ed\r\n\x07"] {
            tail.push(piece);
        }
        assert_eq!(tail.text(), "red\n");
        assert_eq!(std::fs::read(tail.spill().unwrap()).unwrap(), b"red\n");
    }

    #[test]
    fn a_file_that_cannot_be_created_is_reported() {
        let mut tail = OutputTail::new(limits(Path::new("/no/such/folder")), Cleaning::None);
        tail.push(&[b'x'; 100]);
        assert!(tail.spill_error().is_some());
        assert_eq!(tail.text().len(), 10);
    }
}

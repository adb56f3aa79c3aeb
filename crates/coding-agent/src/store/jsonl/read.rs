//! Reading a whole session file; a long one by several threads, because most of the time goes into pages the system hands out one by one.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::super::Stored;

/// Bytes that are worth a thread of their own.
const PART: usize = 8 << 20;
/// Threads that read one file at most.
const MAX_THREADS: usize = 4;

/// A file that is left on the disk.
#[derive(Debug)]
pub(super) struct LongFile {
    file: File,
    n_bytes: u64,
}

impl LongFile {
    /// Files below this length are kept in memory.
    const MIN: u64 = 4 << 20;

    /// Opens a file if it is long, and if the system can read at places without moving a position.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let is_long = |meta: &fs::Metadata| cfg!(unix) && meta.is_file() && meta.len() >= Self::MIN;
        fs::metadata(path).ok().filter(is_long)?;
        let file = File::open(path).ok()?;
        let n_bytes = file.metadata().ok().filter(is_long)?.len();
        Some(Self { file, n_bytes })
    }
}

impl Stored for LongFile {
    fn len(&self) -> u64 {
        self.n_bytes
    }

    #[cfg(unix)]
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, into, at)
    }

    #[cfg(not(unix))]
    fn read_at(&self, _at: u64, _into: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// All bytes of a file, as long as it was when the reading began.
pub(super) fn whole(path: &Path) -> io::Result<Vec<u8>> {
    let n_bytes = usize::try_from(fs::metadata(path)?.len()).unwrap_or(usize::MAX);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let n_parts = (n_bytes / PART).min(cores).min(MAX_THREADS);
    if n_parts < 2 { fs::read(path) } else { in_parts(path, n_bytes, n_parts) }
}

fn in_parts(path: &Path, n_bytes: usize, n_parts: usize) -> io::Result<Vec<u8>> {
    let mut text = vec![0; n_bytes];
    let part = n_bytes.div_ceil(n_parts);
    let read = std::thread::scope(|threads| {
        let parts: Vec<_> = (text.chunks_mut(part).enumerate())
            .map(|(n, bytes)| threads.spawn(move || read_at(path, n * part, bytes)))
            .collect();
        parts.into_iter().try_for_each(|part| part.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    });
    match read {
        Ok(()) => Ok(text),
        // The file became shorter meanwhile: what is there now counts.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => fs::read(path),
        Err(error) => Err(error),
    }
}

fn read_at(path: &Path, at: usize, bytes: &mut [u8]) -> io::Result<()> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at as u64))?;
    file.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let text: Vec<u8> = (0..1003_u32).map(|n| (n % 251) as u8).collect();
        fs::write(&path, &text).unwrap();
        for n_parts in 1..5 {
            assert_eq!(in_parts(&path, text.len(), n_parts).unwrap(), text);
        }
        assert_eq!(in_parts(&path, text.len() + 10, 3).unwrap(), text, "the file became shorter");
        assert_eq!(in_parts(&dir.path().join("none"), 10, 2).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

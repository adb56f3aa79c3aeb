//! Long session files, which stay on disk and are read on demand.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::super::StoredText;

/// A file that is left on disk.
#[derive(Debug)]
pub(super) struct LongFile {
    file: File,
    n_bytes: u64,
}

impl LongFile {
    /// Shorter files are kept in memory.
    const MIN: u64 = 4 << 20;

    /// Opens a file if it is long and the system supports positioned reads.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let is_long = |meta: &fs::Metadata| cfg!(unix) && meta.is_file() && meta.len() >= Self::MIN;
        fs::metadata(path).ok().filter(is_long)?;
        let file = File::open(path).ok()?;
        let n_bytes = file.metadata().ok().filter(is_long)?.len();
        Some(Self { file, n_bytes })
    }
}

impl StoredText for LongFile {
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

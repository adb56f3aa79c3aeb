//! Reading long files that are kept in memory.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use bytes::Bytes;
use memmap2::MmapMut;

use super::special::{open_with_len, read_whole};

/// Minimum size of a long file, in bytes.
const LONG: u64 = 1 << 20;

/// Like [`read_regular`](super::read_regular), for a file that may be long and is kept: its memory uses large pages if possible, which
/// takes a fraction of the time.
///
/// # Errors
/// Returns the errors of [`read_regular`](super::read_regular); [`io::ErrorKind::UnexpectedEof`] if the file is truncated meanwhile.
pub fn read_long(path: &Path, max: u64) -> io::Result<Bytes> {
    let (mut file, len) = open_with_len(path)?;
    if len < LONG || len > max {
        return read_whole((file, len), max).map(Bytes::from);
    }
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    fill(&mut file, len).map(|memory| Bytes::from_owner(memory).slice(..len))
}

/// Returns memory that starts with this many bytes of a file.
fn fill(file: &mut File, len: usize) -> io::Result<MmapMut> {
    // Whole large pages, or the last one would consist of small ones.
    let mut memory = MmapMut::map_anon(len.next_multiple_of(2 << 20))?;
    #[cfg(target_os = "linux")]
    // Fall back to small pages if there are none.
    let _has_large = memory.advise(memmap2::Advice::HugePage).is_ok();
    file.read_exact(&mut memory[..len])?;
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_length_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for len in [0, 1, LONG as usize - 1, LONG as usize, (2 << 20) + 1] {
            let content: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
            std::fs::write(&path, &content).unwrap();
            assert_eq!(read_long(&path, 3 << 20).unwrap(), content, "{len}");
        }
        assert_eq!(read_long(&path, 2 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_long(dir.path(), 1).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read_long(&dir.path().join("none"), 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

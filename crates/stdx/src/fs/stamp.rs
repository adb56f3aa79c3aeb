//! Detects changes to a file without reading it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The state of a file when it was inspected. Two stamps differ if the file was changed or replaced in between, as far as its length,
/// modification time and identity show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    len: u64,
    modified: Option<SystemTime>,
    identity: Option<(u64, u64)>,
}

impl FileStamp {
    /// Returns the stamp of a file, or `None` if it cannot be inspected.
    pub fn of(path: &Path) -> Option<Self> {
        let meta = fs::metadata(path).ok()?;
        Some(Self { len: meta.len(), modified: meta.modified().ok(), identity: identity(&meta) })
    }

    /// Returns the length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.len
    }
}

#[cfg(unix)]
fn identity(meta: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    Some((meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_content_and_identity() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(FileStamp::of(&path), None);
        fs::write(&path, "one").unwrap();
        let first = FileStamp::of(&path);
        assert_eq!(FileStamp::of(&path), first);
        fs::write(&path, "four").unwrap();
        assert_ne!(FileStamp::of(&path), first);
        let other = dir.path().join("b");
        fs::write(&other, "one").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_ne!(FileStamp::of(&path), first);
    }
}

//! Writing a file that a user named: it may be a device or a pipe.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::atomic::{replace_with, write_atomic_with};
use super::in_place::scratch;
use super::private::Access;
use super::special::copy_special;

/// How long a device or a pipe may accept no data.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes `content` to a path that a user named, see [`write_named_with`].
///
/// # Errors
/// Returns the errors of [`write_named_with`].
pub fn write_named(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    write_named_with(path, access, |file| file.write_all(content))
}

/// Writes to a path that a user named. A regular file is replaced like by [`write_atomic_with`]; a character device or a pipe is written
/// to, and never replaced. Blocks; gives up after five seconds if the reader accepts nothing.
///
/// # Errors
/// Returns the system's error, or that of `write`. Directories, sockets and block devices are rejected.
pub fn write_named_with(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => write_into(path, &meta, write),
        _ => write_atomic_with(path, access, write),
    }
}

/// Like [`write_named`], but never follows a link. `name` is a path whose last component is the name of the file, in a directory that does
/// not change meanwhile, such as one below `/proc/self/fd`; `existing` is another path of the file that has this name already, if there is
/// one. If another file has taken the name since, the new content replaces that file, or is written to the old one.
///
/// # Errors
/// Returns the errors of [`write_named_with`].
pub fn write_pinned(name: &Path, existing: Option<&Path>, content: &[u8], access: Access) -> io::Result<()> {
    let write = |file: &mut File| file.write_all(content);
    let old = existing.map(std::fs::metadata).transpose()?;
    match (existing, old) {
        (Some(existing), Some(old)) if !old.is_file() => write_into(existing, &old, write),
        (existing, old) => replace_with(existing.unwrap_or(name), name, old, access, write),
    }
}

/// Writes to a device or a pipe.
fn write_into(
    path: &Path,
    meta: &std::fs::Metadata,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if is_block_device(meta) {
        return Err(io::Error::other("refusing to write to a block device"));
    }
    let mut content = scratch()?;
    write(&mut content)?;
    content.rewind()?;
    copy_special(path, &mut content, PATIENCE)
}

#[cfg(unix)]
fn is_block_device(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&meta.file_type())
}

#[cfg(not(unix))]
fn is_block_device(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};

    #[test]
    fn devices_and_pipes_are_written_into() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/dev/null", dir.path().join("null")).unwrap();
        write_named(&dir.path().join("null"), b"x", Access::NewPrivate).unwrap();
        write_named(Path::new("/dev/null"), b"x", Access::NewPrivate).unwrap();
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        write_named(&pipe, b"page", Access::NewPrivate).unwrap();
        let mut read = [0; 4];
        io::Read::read_exact(&mut reader, &mut read).unwrap();
        assert_eq!(&read, b"page");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        write_named(&socket, b"x", Access::Keep).unwrap_err();
        assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
        assert_eq!(write_named(dir.path(), b"", Access::Keep).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_failed_writer_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page");
        write_named(&path, b"old", Access::NewPrivate).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        write_named_with(&path, Access::NewPrivate, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no more"))
        })
        .unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }
    #[test]
    fn pinned_names_are_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("outside"), "old").unwrap();
        std::fs::write(path("inside"), "old").unwrap();
        symlink(path("outside"), path("name")).unwrap();
        // The name has become a link since `inside` was found under it.
        write_pinned(&path("name"), Some(&path("inside")), b"new", Access::Keep).unwrap();
        assert_eq!(std::fs::read(path("outside")).unwrap(), b"old");
        assert_eq!(std::fs::read(path("inside")).unwrap(), b"new");
        write_pinned(&path("name"), None, b"new", Access::Keep).unwrap();
        assert!(path("name").symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read(path("outside")).unwrap(), b"old");
    }
}

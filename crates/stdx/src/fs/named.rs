//! Writing a file that a user named: it may be a device or a pipe.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use super::atomic::write_atomic_with;
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
        Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(meta) if is_block_device(&meta) => Err(io::Error::other("refusing to write to a block device")),
        Ok(meta) if !meta.is_file() => {
            let mut content = scratch()?;
            write(&mut content)?;
            content.rewind()?;
            copy_special(path, &mut content, PATIENCE)
        }
        _ => write_atomic_with(path, access, write),
    }
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
}

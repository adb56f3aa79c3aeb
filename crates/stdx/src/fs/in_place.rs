//! Overwriting a file that cannot be replaced.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::keep;
use super::private::Access;

/// Overwrites an existing file and syncs it. Parts that need new space are written first, so that a full disk leaves the old content
/// intact.
///
/// # Errors
/// Returns the system's error. If it occurs after the first byte was overwritten, the content is mixed.
pub(super) fn overwrite(path: &Path, content: &mut File, access: Access) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let meta = file.metadata()?;
    // Access to another user's file cannot be restricted, but it is written all the same.
    let _not_ours = keep::restrict(&file, &meta, access);
    let (old_len, new_len) = (meta.len(), content.metadata()?.len());
    if old_len > 0 && new_len > old_len {
        let grown = copy(content, &mut file, old_len, new_len - old_len).and_then(|()| file.sync_data());
        if let Err(error) = grown {
            drop(file.set_len(old_len));
            return Err(error);
        }
        copy(content, &mut file, 0, old_len)?;
    } else {
        copy(content, &mut file, 0, new_len)?;
    }
    if new_len < old_len {
        file.set_len(new_len)?;
    }
    match file.sync_all() {
        // Files in virtual file systems are not on a disk.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

fn copy(from: &mut File, to: &mut File, at: u64, length: u64) -> io::Result<()> {
    from.seek(SeekFrom::Start(at))?;
    to.seek(SeekFrom::Start(at))?;
    match io::copy(&mut from.take(length), to)? == length {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Creates a file without a name.
#[cfg(target_os = "linux")]
pub(super) fn scratch() -> io::Result<File> {
    // In memory, because no directory may accept a new file here.
    let file = rustix::fs::memfd_create("pinch", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(file.into())
}

/// Creates a file without a name.
#[cfg(not(target_os = "linux"))]
pub(super) fn scratch() -> io::Result<File> {
    tempfile::tempfile()
}

//! Writing over a file that nothing can take the place of.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::keep;
use super::private::Access;

/// Writes content over a file that is there, and waits until the disk has it. What needs new space is written first: on a full disk the
/// old content stays.
///
/// # Errors
/// The system's error. When it comes after the first byte was overwritten, the file is in between.
pub(super) fn overwrite(path: &Path, content: &mut File, access: Access) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let meta = file.metadata()?;
    // A file of another user cannot be restricted, and is written all the same.
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
        // Files that the system makes up are on no disk.
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

/// A file without a name.
#[cfg(target_os = "linux")]
pub(super) fn scratch() -> io::Result<File> {
    // In memory: no directory may take a new file here.
    let file = rustix::fs::memfd_create("pinch", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(file.into())
}

/// A file without a name.
#[cfg(not(target_os = "linux"))]
pub(super) fn scratch() -> io::Result<File> {
    tempfile::tempfile()
}

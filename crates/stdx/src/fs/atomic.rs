//! Replacing a file as a whole: readers see the old content or the new one, also after a crash.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::in_place::{self, scratch};
use super::keep;
use super::private::Access;

/// Replaces the content of `path`, or creates it. Its directory must exist. A symbolic link is followed: its target is replaced.
///
/// The content goes to a temporary file in the same directory, reaches the disk, and is then renamed; on failure the old file is untouched
/// and the temporary one is gone. The new file has the owner, access list and extended attributes of the old one.
///
/// Where that is impossible the file that is there is overwritten and synced: it has other names (hard links), it is a mount point, its directory
/// takes no new file, or what it has cannot be given to another file. Callers that need others kept out hold a lock.
///
/// # Errors
/// The system's error. Directories, devices, pipes and sockets are refused: see [`write_named`](super::write_named).
pub fn write_atomic(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    write_atomic_with(path, access, |file| file.write_all(content))
}

/// Like [`write_atomic`], for content that is never in memory as a whole. A `write` that fails leaves the old file unchanged.
///
/// # Errors
/// The system's error, or that of `write`.
pub fn write_atomic_with(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let target = follow_link(path)?;
    let old = match std::fs::metadata(path) {
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(old) = &old {
        if old.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !old.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if keep::has_other_names(old, &target) {
            return overwrite_in_place(path, access, write);
        }
    }
    let folder = folder_of(&target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tmp-");
    #[cfg(unix)]
    if access == Access::Keep && old.is_none() {
        // The temporary file is private by default; a new file is what the user's mask makes of 0666.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut temp = match builder.tempfile_in(folder) {
        Err(error) if old.is_some() && forbids_replacing(&error) => return overwrite_in_place(path, access, write),
        made => made?,
    };
    write(temp.as_file_mut())?;
    if let Some(old) = &old
        && !keep::give(&target, old, temp.as_file())
    {
        match in_place::overwrite(&target, temp.as_file_mut(), access) {
            // A file that may be replaced but not written: its new one has what could be kept.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            done => return done,
        }
    }
    if let Some(old) = &old {
        keep::restrict(temp.as_file(), old, access)?;
    }
    temp.as_file().sync_data()?;
    match temp.persist(&target) {
        Ok(_) => sync_folder(folder),
        Err(mut failed) if old.is_some() && forbids_replacing(&failed.error) => {
            in_place::overwrite(&target, failed.file.as_file_mut(), access)?;
        }
        Err(failed) => return Err(failed.error),
    }
    Ok(())
}

/// Writes over the file that is there; the content is complete before its first byte is touched.
fn overwrite_in_place(path: &Path, access: Access, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut content = scratch()?;
    write(&mut content)?;
    in_place::overwrite(path, &mut content, access)
}

/// Whether an error says that no file can take this one's place, while it may well be written itself: a mount point, a directory without write
/// permission or on a read-only file system, a directory in which only owners may replace.
fn forbids_replacing(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), CrossesDevices | PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
}

/// The one name of a file, whichever links lead to it: also of one that is not there yet. Programs that mean the same file lock this one.
pub fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    let Ok(target) = follow_link(path) else { return path.to_owned() };
    match (std::fs::canonicalize(folder_of(&target)), target.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => target,
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where a chain of symbolic links ends, also when nothing is there yet.
fn follow_link(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    // As many as Linux follows.
    for _ in 0..40 {
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(too_many_links())
}

/// What the system says of links that lead in a circle.
#[cfg(unix)]
fn too_many_links() -> io::Error {
    rustix::io::Errno::LOOP.into()
}

#[cfg(not(unix))]
fn too_many_links() -> io::Error {
    io::Error::other("too many symbolic links")
}

/// Makes a rename last. Some file systems cannot sync directories; the file itself is safe then.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        drop(folder.sync_all());
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

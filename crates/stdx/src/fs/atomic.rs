//! Atomic replacement of files: readers see the old content or the new, even after a crash.

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::in_place::{self, scratch};
use super::keep;
use super::private::Access;

/// Replaces the content of `path`, or creates it. Its directory must exist. A symbolic link is followed: its target is replaced.
///
/// The content is written to a temporary file in the same directory, synced, and then renamed; on failure the old file is untouched and the
/// temporary one is removed. The new file keeps the owner, access list and extended attributes of the old one.
///
/// If that is impossible, the existing file is overwritten and synced: if it has other names (hard links) or is a mount point, if its
/// directory accepts no new file, or if its attributes cannot be copied to another file. Callers that need to exclude others hold a lock.
///
/// # Errors
/// Returns the system's error. Directories, devices, pipes and sockets are rejected: see [`write_named`](super::write_named).
pub fn write_atomic(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    write_atomic_with(path, access, |file| file.write_all(content))
}

/// Like [`write_atomic`], for content that is never completely in memory. If `write` fails, the old file is unchanged.
///
/// # Errors
/// Returns the system's error, or that of `write`.
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
    replace_with(path, &target, old, access, write)
}

/// Replaces the file `target`, which does not follow a link, or creates it. `path` leads to the existing file, whose metadata is `old`.
pub(super) fn replace_with(
    path: &Path,
    target: &Path,
    old: Option<Metadata>,
    access: Access,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(old) = &old {
        if old.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !old.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if keep::has_other_names(old, target) {
            return overwrite_in_place(path, access, write);
        }
    }
    let folder = folder_of(target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tmp-");
    #[cfg(unix)]
    if access == Access::Keep && old.is_none() {
        // The temporary file is private by default; a new file gets mode 0666 minus the user's mask.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut temp = match builder.tempfile_in(folder) {
        Err(error) if old.is_some() && forbids_replacing(&error) => return overwrite_in_place(path, access, write),
        made => made?,
    };
    write(temp.as_file_mut())?;
    if let Some(old) = &old
        && !keep::give(path, old, temp.as_file())
    {
        match in_place::overwrite(path, temp.as_file_mut(), access) {
            // A file that may be replaced but not written: its replacement has everything that could be kept.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            done => return done,
        }
    }
    if let Some(old) = &old {
        keep::restrict(temp.as_file(), old, access)?;
    }
    temp.as_file().sync_data()?;
    match temp.persist(target) {
        Ok(_) => sync_folder(folder),
        Err(mut failed) if old.is_some() && forbids_replacing(&failed.error) => {
            in_place::overwrite(path, failed.file.as_file_mut(), access)?;
        }
        Err(failed) => return Err(failed.error),
    }
    Ok(())
}

/// Overwrites the existing file; the content is complete before the first byte is changed.
fn overwrite_in_place(path: &Path, access: Access, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut content = scratch()?;
    write(&mut content)?;
    in_place::overwrite(path, &mut content, access)
}

/// Returns whether an error means that the file cannot be replaced, although it may be writable: a mount point, a directory without write
/// permission or on a read-only file system, or one in which only owners may replace files.
fn forbids_replacing(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), CrossesDevices | PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
}

/// Returns the canonical name of a file, whichever links lead to it, even if it does not exist yet. Programs lock the same file by this
/// name.
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

/// Resolves a chain of symbolic links, even if its end does not exist yet.
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

/// Returns the system's error for a cycle of links.
#[cfg(unix)]
fn too_many_links() -> io::Error {
    rustix::io::Errno::LOOP.into()
}

#[cfg(not(unix))]
fn too_many_links() -> io::Error {
    io::Error::other("too many symbolic links")
}

/// Makes a rename durable. Some file systems cannot sync directories; the file itself is safe then.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        drop(folder.sync_all());
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

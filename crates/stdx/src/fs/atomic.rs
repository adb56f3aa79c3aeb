//! Replacing a file as a whole: readers see the old content or the new one, also after a crash.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As before; a new file gets the system's default.
    Keep,
    /// The user alone (0600), whatever it was before.
    Private,
}

/// Replaces the content of `path`, or creates it. Its folder must exist. A symbolic link is followed: its target is replaced.
///
/// The content goes to a temporary file in the same folder, reaches the disk, and is then renamed; on failure the old file is untouched
/// and the temporary one is gone.
///
/// # Errors
/// The system's error.
pub fn write_atomic(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let target = follow_link(path)?;
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tmp-");
    let old = std::fs::metadata(&target).ok().map(|old| old.permissions());
    #[cfg(unix)]
    if access == Access::Keep && old.is_none() {
        // The temporary file is private by default; a new file is what the user's mask makes of 0666.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut temp = builder.tempfile_in(folder)?;
    temp.write_all(content)?;
    if let (Access::Keep, Some(old)) = (access, old) {
        temp.as_file().set_permissions(old)?;
    }
    temp.as_file().sync_data()?;
    temp.persist(&target).map_err(|failed| failed.error)?;
    sync_folder(folder);
    Ok(())
}

/// Creates a folder with its parents, for the user alone (0700). A folder that is there stays as it is.
///
/// # Errors
/// The system's error.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
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
    Err(io::Error::other(format!("too many symbolic links at {}", path.display())))
}

/// Makes a rename last. Some file systems cannot sync folders; the file itself is safe then.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        drop(folder.sync_all());
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn modes_are_kept_or_private_and_no_temporary_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        write_atomic(&path, b"1", Access::Private).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_atomic(&path, b"22", Access::Keep).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"22".to_vec(), 0o640));
        write_atomic(&path, b"3", Access::Private).unwrap();
        assert_eq!(mode(&path), 0o600);
        let fresh = dir.path().join("settings.json");
        write_atomic(&fresh, b"", Access::Keep).unwrap();
        fs::write(dir.path().join("plain"), "").unwrap();
        assert_eq!(mode(&fresh), mode(&dir.path().join("plain")));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn links_stay_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        let link = dir.path().join("link");
        symlink("real/file", &link).unwrap();
        write_atomic(&link, b"new", Access::Keep).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(dir.path().join("real/file")).unwrap(), b"new");
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = write_atomic(&dir.path().join("no/file"), b"", Access::Keep).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn private_folders() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        create_private_dir(&path).unwrap();
        create_private_dir(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }
}

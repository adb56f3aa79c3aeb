//! Replacing a file as a whole: readers see the old content or the new one, also after a crash.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As before; a new file gets the system's default.
    Keep,
    /// As before; a new file is for the user alone (0600).
    Secret,
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
    write_atomic_with(path, access, |file| file.write_all(content))
}

/// Like [`write_atomic`], for content that is never in memory as a whole. A `write` that fails leaves the old file as it was.
///
/// # Errors
/// The system's error, or that of `write`.
pub fn write_atomic_with(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let target = follow_link(path)?;
    let folder = folder_of(&target);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tmp-");
    let old = std::fs::metadata(&target).ok();
    #[cfg(unix)]
    if access == Access::Keep && old.is_none() {
        // The temporary file is private by default; a new file is what the user's mask makes of 0666.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut temp = builder.tempfile_in(folder)?;
    write(temp.as_file_mut())?;
    if let (Access::Keep | Access::Secret, Some(old)) = (access, old) {
        keep_owner(temp.as_file(), &old);
        temp.as_file().set_permissions(old.permissions())?;
        keep_list(&target, temp.as_file());
    }
    temp.as_file().sync_data()?;
    temp.persist(&target).map_err(|failed| failed.error)?;
    sync_folder(folder);
    Ok(())
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

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Gives a new file the owner and group of the old one, as far as the system lets us: a file of another user that we may replace stays readable
/// for that user.
#[cfg(unix)]
fn keep_owner(file: &File, old: &std::fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let is_same = file.metadata().is_ok_and(|new| (new.uid(), new.gid()) == (old.uid(), old.gid()));
    if !is_same && fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        // The group alone may be allowed.
        drop(fchown(file, None, Some(old.gid())));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &std::fs::Metadata) {}

/// Gives a new file the access control list of the old one, where there is one.
#[cfg(target_os = "linux")]
fn keep_list(old: &Path, file: &File) {
    const NAME: &str = "system.posix_acl_access";
    let mut list = vec![0; 64 * 1024];
    if let Ok(length) = rustix::fs::getxattr(old, NAME, &mut list[..]) {
        // A file system that gave the list out takes it.
        let _refused = rustix::fs::fsetxattr(file, NAME, &list[..length], rustix::fs::XattrFlags::empty());
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_list(_: &Path, _: &File) {}

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
    fn a_secret_file_keeps_what_others_decided() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        write_atomic(&path, b"1", Access::Secret).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_atomic(&path, b"2", Access::Secret).unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"2".to_vec(), 0o640));
    }

    #[test]
    fn owners_and_lists_are_kept() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        write_atomic(&path, b"1", Access::Secret).unwrap();
        // Only root may give files away.
        if std::os::unix::fs::chown(&path, Some(1234), Some(5678)).is_ok() {
            write_atomic(&path, b"2", Access::Secret).unwrap();
            let meta = fs::metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.gid(), mode(&path)), (1234, 5678, 0o600));
        }
        // Read for one more user: version 2; then user, that user, group, mask, others.
        #[cfg(target_os = "linux")]
        {
            let name = "system.posix_acl_access";
            let entry = |tag: u16, rights: u16, id: u32| {
                [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
            };
            let none = u32::MAX;
            let entries = [(1, 6, none), (2, 4, 4321), (4, 0, none), (0x10, 4, none), (0x20, 0, none)];
            let list = entries.map(|(tag, rights, id)| entry(tag, rights, id)).concat();
            let list = [&2_u32.to_le_bytes()[..], &list].concat();
            // Not every file system has such lists.
            if rustix::fs::setxattr(&path, name, &list, rustix::fs::XattrFlags::empty()).is_ok() {
                write_atomic(&path, b"3", Access::Secret).unwrap();
                let mut kept = vec![0; 1024];
                let length = rustix::fs::getxattr(&path, name, &mut kept[..]).unwrap();
                assert_eq!(kept[..length], list);
            }
        }
    }

    #[test]
    fn one_file_has_one_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink(root.join("real"), root.join("folder")).unwrap();
        symlink("folder/file", root.join("link")).unwrap();
        for _ in 0..2 {
            for name in ["link", "folder/file", "real/file"] {
                assert_eq!(real_path(&root.join(name)), root.join("real/file"));
            }
            fs::write(root.join("real/file"), "").unwrap();
        }
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

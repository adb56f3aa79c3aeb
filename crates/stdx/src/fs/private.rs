//! Access to written files and directories: readable only by the user.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Access to a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Unchanged; a new file gets the system's default.
    Keep,
    /// Unchanged; a new file is readable only by the user (0600).
    NewPrivate,
    /// Unchanged, except that a file that others may read becomes 0600, as does a new one.
    Secret,
    /// Readable only by the user (0600), whatever it was before.
    Private,
}

/// Creates a directory with its parents, accessible only to the user (0700). An existing directory is not changed.
///
/// # Errors
/// Returns the system's error, or [`io::ErrorKind::NotADirectory`] if the path is a file.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| match error.kind() {
        // "File exists" would not say what is wrong with it.
        io::ErrorKind::AlreadyExists => {
            io::Error::new(io::ErrorKind::NotADirectory, format!("{} exists and is not a directory", path.display()))
        }
        _ => error,
    })
}

/// Makes files created with these options readable only by the user (0600).
pub fn creating_private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Removes access of group and others from an open file. A file with its own access list keeps it; a file of another user is not changed.
pub fn make_private(file: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let Ok(mode) = file.metadata().map(|meta| meta.permissions().mode() & 0o7777) else { return };
        // With an access list, the group bits are the maximum that the list can allow.
        let wanted = if has_access_list(file) { mode & !0o007 } else { mode & !0o077 };
        if wanted != mode && file.set_permissions(std::fs::Permissions::from_mode(wanted)).is_err() {
            // Only the owner may do this.
        }
    }
    #[cfg(not(unix))]
    let _ = file;
}

#[cfg(target_os = "linux")]
fn has_access_list(file: &File) -> bool {
    let mut list = vec![0; 64 << 10];
    rustix::fs::fgetxattr(file, "system.posix_acl_access", &mut list[..]).is_ok()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn has_access_list(_: &File) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directories_and_files_are_private_to_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        create_private_dir(&folder).unwrap();
        create_private_dir(&folder).unwrap();
        assert_eq!((mode(&folder), mode(&dir.path().join("a"))), (0o700, 0o700));
        let path = folder.join("f");
        let mut options = OpenOptions::new();
        let file = creating_private(options.write(true).create_new(true)).open(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        file.set_permissions(std::fs::Permissions::from_mode(0o644)).unwrap();
        make_private(&file);
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_file_in_place_of_a_directory_is_named_as_such() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = create_private_dir(file.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        assert_eq!(error.to_string(), format!("{} exists and is not a directory", file.path().display()));
    }
}

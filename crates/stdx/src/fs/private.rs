//! Who may read what is written: files and directories for the user alone.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As before; a new file gets the system's default.
    Keep,
    /// As before; a new file is for the user alone (0600).
    NewPrivate,
    /// As before, but never for everybody: a file that others may read becomes 0600, and so is a new one.
    Secret,
    /// The user alone (0600), whatever it was before.
    Private,
}

/// Creates a directory with its parents, for the user alone (0700). A directory that is there stays as it is.
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

/// Files that these options create are for the user alone (0600).
pub fn creating_private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Takes from group and others what they may do with an open file. One that has an access list of its own keeps it; one of another user
/// stays as it is.
pub fn make_private(file: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let Ok(mode) = file.metadata().map(|meta| meta.permissions().mode() & 0o7777) else { return };
        // With an access list the bits of the group are the most that the list can allow.
        let wanted = if has_access_list(file) { mode & !0o007 } else { mode & !0o077 };
        if wanted != mode && file.set_permissions(std::fs::Permissions::from_mode(wanted)).is_err() {
            // Only its owner may do that.
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
}

//! Copies a file's attributes to its replacement.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use super::private::Access;

/// Returns whether the file has other names than this one: hard links, or a path through a system link that does not name it.
#[cfg(unix)]
pub(super) fn has_other_names(meta: &Metadata, target: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let is_same = |there: Metadata| (there.dev(), there.ino()) == (meta.dev(), meta.ino());
    meta.nlink() > 1 || !std::fs::symlink_metadata(target).is_ok_and(is_same)
}

#[cfg(not(unix))]
pub(super) fn has_other_names(_: &Metadata, _: &Path) -> bool {
    false
}

/// Copies owner, mode, access list and extended attributes of the old file to the new one. Returns false if the system did not allow all of
/// them.
#[cfg(unix)]
pub(super) fn give(path: &Path, old: &Metadata, new: &File) -> bool {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let has_owner = || new.metadata().is_ok_and(|new| (new.uid(), new.gid()) == (old.uid(), old.gid()));
    let mut is_kept = has_owner();
    if !is_kept {
        if fchown(new, Some(old.uid()), Some(old.gid())).is_err() {
            // Setting only the group may be allowed.
            drop(fchown(new, None, Some(old.gid())));
        }
        is_kept = has_owner();
    }
    // Set the mode before the access list: setting a mode changes an access list, and changing the owner changes the mode.
    let has_mode = new.set_permissions(old.permissions()).is_ok();
    give_attributes(path, new) && has_mode && is_kept
}

#[cfg(not(unix))]
pub(super) fn give(_: &Path, old: &Metadata, new: &File) -> bool {
    new.set_permissions(old.permissions()).is_ok()
}

/// Copies the extended attributes of the old file, including its access list; returns false if one could not be set.
#[cfg(target_os = "linux")]
fn give_attributes(path: &Path, new: &File) -> bool {
    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr, getxattr, listxattr};
    // Linux's maximum size, both of names and of values.
    const MAX: usize = 64 << 10;
    let mut names = vec![0; MAX];
    // The file system has none, or does not report them.
    let Ok(length) = listxattr(path, &mut names[..]) else { return true };
    let (mut value, mut there) = (vec![0; MAX], vec![0; MAX]);
    names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).all(|name| {
        let Ok(length) = getxattr(path, name, &mut value[..]) else { return false };
        let value = &value[..length];
        // The system gives some to every new file, and they cannot be set.
        let has = fgetxattr(new, name, &mut there[..]).is_ok_and(|length| there[..length] == *value);
        has || fsetxattr(new, name, value, XattrFlags::empty()).is_ok()
    })
}

#[cfg(all(unix, not(target_os = "linux")))]
fn give_attributes(_: &Path, _: &File) -> bool {
    true
}

/// Removes access that the rule does not allow others; stricter permissions are kept.
///
/// # Errors
/// Returns the system's error.
#[cfg(unix)]
pub(super) fn restrict(file: &File, old: &Metadata, access: Access) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = old.permissions().mode();
    let is_too_open = match access {
        Access::Keep | Access::NewPrivate => false,
        Access::Secret => mode & 0o007 != 0,
        Access::Private => mode & 0o777 != 0o600,
    };
    if is_too_open { file.set_permissions(std::fs::Permissions::from_mode(0o600)) } else { Ok(()) }
}

#[cfg(not(unix))]
pub(super) fn restrict(_: &File, _: &Metadata, _: Access) -> io::Result<()> {
    Ok(())
}

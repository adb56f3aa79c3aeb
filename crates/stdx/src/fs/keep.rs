//! What a file has besides its content, for the file that takes its place.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use super::private::Access;

/// Whether the file is known by other names than this one: hard links, or a path through a system link that does not name it.
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

/// Gives a new file owner, mode, access list and extended attributes of the old one. False when the system did not let us give all of them.
#[cfg(unix)]
pub(super) fn give(target: &Path, old: &Metadata, new: &File) -> bool {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let has_owner = || new.metadata().is_ok_and(|new| (new.uid(), new.gid()) == (old.uid(), old.gid()));
    let mut is_kept = has_owner();
    if !is_kept {
        if fchown(new, Some(old.uid()), Some(old.gid())).is_err() {
            // The group alone may be allowed.
            drop(fchown(new, None, Some(old.gid())));
        }
        is_kept = has_owner();
    }
    // The mode before the access list: setting a mode changes a list, and changing the owner a mode.
    let has_mode = new.set_permissions(old.permissions()).is_ok();
    give_attributes(target, new) && has_mode && is_kept
}

#[cfg(not(unix))]
pub(super) fn give(_: &Path, old: &Metadata, new: &File) -> bool {
    new.set_permissions(old.permissions()).is_ok()
}

/// Gives a new file the extended attributes of the old one, its access list among them; false when one could not be given.
#[cfg(target_os = "linux")]
fn give_attributes(target: &Path, new: &File) -> bool {
    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr, getxattr, listxattr};
    // The longest that Linux knows of, both of names and of values.
    const MAX: usize = 64 << 10;
    let mut names = vec![0; MAX];
    // A file system that has none, or does not tell.
    let Ok(length) = listxattr(target, &mut names[..]) else { return true };
    let (mut value, mut there) = (vec![0; MAX], vec![0; MAX]);
    names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()).all(|name| {
        let Ok(length) = getxattr(target, name, &mut value[..]) else { return false };
        let value = &value[..length];
        // Some are given to every new file by the system, and cannot be set.
        let has = fgetxattr(new, name, &mut there[..]).is_ok_and(|length| there[..length] == *value);
        has || fsetxattr(new, name, value, XattrFlags::empty()).is_ok()
    })
}

#[cfg(all(unix, not(target_os = "linux")))]
fn give_attributes(_: &Path, _: &File) -> bool {
    true
}

/// Takes access away that the rule does not leave to others; what is less than the rule allows stays.
///
/// # Errors
/// The system's error.
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

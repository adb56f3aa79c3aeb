//! Lookup of non-UTF-8 file names by their lossy form.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Returns the path that a possibly lossy path refers to. If no file has a literal U+FFFD in its name, this is the only file whose name is
/// shown that way; if several are, the path is returned unchanged.
pub(super) fn meant(path: &Path) -> Cow<'_, Path> {
    if !may_be_shown(path.as_os_str()) || path.symlink_metadata().is_ok() {
        return Cow::Borrowed(path);
    }
    let mut found = PathBuf::new();
    for part in path.components() {
        let literal = found.join(part);
        let is_literal = !may_be_shown(part.as_os_str()) || literal.symlink_metadata().is_ok();
        found = match is_literal {
            true => literal,
            false => only_one(&found, &part.as_os_str().to_string_lossy()).map_or(literal, |name| found.join(name)),
        };
    }
    Cow::Owned(found)
}

/// Returns whether a name contains replacement characters.
fn may_be_shown(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.contains(char::REPLACEMENT_CHARACTER))
}

/// Returns the only name in a directory that is shown as this text.
fn only_one(folder: &Path, shown: &str) -> Option<OsString> {
    let names = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut alike = names.filter(|name| name.to_string_lossy() == shown);
    let only = alike.next()?;
    alike.next().is_none().then_some(only)
}

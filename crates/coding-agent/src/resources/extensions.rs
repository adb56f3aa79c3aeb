//! Extensions as data: their location and their package's manifest.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::collect::{self, Enter, ListedFile, has_ending};
use super::info::SourceInfo;
use super::manifest::manifest;

/// An extension for the host to run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionEntry {
    /// Its entry file, or its directory if only a manifest determines how to start it.
    pub path: PathBuf,
    /// The `pi` member of the `package.json` next to it.
    pub manifest: Option<Value>,
    /// Where it comes from.
    pub info: SourceInfo,
}

/// Finds the extensions in a directory of extensions: single files, and directories with an entry.
pub(super) fn find(folder: &Path) -> Vec<ListedFile> {
    let mut found = Vec::new();
    collect::search(folder, &mut |_, _, listing| {
        found.extend(listing.files.iter().filter(|file| is_entry_file(&file.path)).cloned());
        found.extend(listing.folders.iter().flat_map(|folder| entries_of(folder).unwrap_or_default()));
        Enter::No
    });
    found
}

/// Finds the extensions at a path: a file, a directory that is an extension, or a directory of extensions.
pub(super) fn find_at(path: &Path) -> Vec<ListedFile> {
    if path.is_dir() { entries_of(path).unwrap_or_else(|| find(path)) } else { vec![ListedFile::named(path)] }
}

/// Returns the entries of a directory that is an extension: those in its manifest, or else `index.ts` or `index.js`.
fn entries_of(folder: &Path) -> Option<Vec<ListedFile>> {
    let listed = manifest(folder).and_then(|manifest| manifest.get("extensions").cloned());
    if let Some(listed) = listed.as_ref().and_then(Value::as_array).filter(|listed| !listed.is_empty()) {
        let paths = listed.iter().filter_map(|one| match one.as_str() {
            Some(path) => Some(folder.join(path.strip_prefix("./").unwrap_or(path))).filter(|path| path.exists()),
            // A command to start in the directory.
            None => one.is_object().then(|| folder.to_owned()),
        });
        let mut paths: Vec<PathBuf> = paths.collect();
        paths.dedup();
        return Some(paths.into_iter().map(ListedFile::named).collect());
    }
    ["index.ts", "index.js"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_file())
        .map(|path| vec![ListedFile::named(path)])
}

fn is_entry_file(path: &Path) -> bool {
    has_ending(path, "ts") && !path.to_string_lossy().ends_with(".d.ts") || has_ending(path, "js") || is_program(path)
}

/// Returns whether a file is executable by itself.
#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    has_ending(path, "exe")
}

impl ExtensionEntry {
    /// Finds the extensions at a path that a program's own configuration names: a file, a directory that is an extension, or a directory of
    /// extensions.
    pub fn find(path: &Path) -> Vec<Self> {
        find_at(path).into_iter().map(|found| Self::new(found.path, SourceInfo::default())).collect()
    }

    /// Creates an entry with the package's manifest.
    pub(super) fn new(path: PathBuf, info: SourceInfo) -> Self {
        let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
        Self { manifest: folder.and_then(manifest), path, info }
    }
}

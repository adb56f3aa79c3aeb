//! The files in a package: as listed in its manifest, or else by directory names, filtered by settings.

use std::path::Path;

use serde_json::Value;

use super::collect::{self, Enter, ListedFile, Patterns, has_ending, last_word};
use super::info::ResourceKind;
use super::{extensions, skills};
use crate::packages::PackageFilter;

/// A file of a package, and whether settings enable it.
pub(super) struct PackageFile {
    pub(super) file: ListedFile,
    pub(super) is_enabled: bool,
}

/// Returns the files of one type in a package.
pub(super) fn files(
    folder: &Path,
    manifest: Option<&Value>,
    filter: Option<&PackageFilter>,
    kind: ResourceKind,
) -> Vec<PackageFile> {
    let chosen = filter.and_then(|filter| match kind {
        ResourceKind::Extension => filter.extensions.as_deref(),
        ResourceKind::Skill => filter.skills.as_deref(),
        ResourceKind::Prompt => filter.prompts.as_deref(),
        ResourceKind::Theme => filter.themes.as_deref(),
    });
    let is_delta = filter.is_some_and(|filter| filter.is_delta);
    if is_delta && chosen.is_none_or(<[String]>::is_empty) {
        return Vec::new();
    }
    let files = provided(folder, manifest, kind).into_iter();
    let Some(chosen) = chosen else { return files.map(|file| PackageFile { file, is_enabled: true }).collect() };
    if is_delta {
        let of = |file: ListedFile| {
            let is_enabled = last_word(chosen, &file.path, folder)?;
            Some(PackageFile { file, is_enabled })
        };
        return files.filter_map(of).collect();
    }
    let patterns = Patterns::new(chosen.iter().map(String::as_str));
    let is_enabled = |file: &ListedFile| !chosen.is_empty() && patterns.allow(&file.path, folder);
    files.map(|file| PackageFile { is_enabled: is_enabled(&file), file }).collect()
}

/// Returns the files of one type that a package provides.
fn provided(folder: &Path, manifest: Option<&Value>, kind: ResourceKind) -> Vec<ListedFile> {
    let listed = manifest.and_then(|manifest| manifest.get(kind.folder())).and_then(Value::as_array);
    match listed {
        Some(listed) if kind == ResourceKind::Extension && listed.iter().any(Value::is_object) => {
            extensions::find_at(folder)
        }
        Some(listed) => of_list(folder, &listed.iter().filter_map(Value::as_str).collect::<Vec<_>>(), kind),
        None if manifest.is_some_and(has_any_list) => Vec::new(),
        None if kind == ResourceKind::Extension && !folder.join(kind.folder()).is_dir() => ["index.ts", "index.js"]
            .map(|name| folder.join(name))
            .into_iter()
            .filter(|path| path.is_file())
            .take(1)
            .map(ListedFile::named)
            .collect(),
        None => of_kind(&folder.join(kind.folder()), kind),
    }
}

/// Returns whether a manifest lists anything; directory names are ignored then.
fn has_any_list(manifest: &Value) -> bool {
    ResourceKind::ALL.iter().any(|kind| manifest.get(kind.folder()).is_some_and(Value::is_array))
}

/// Returns the files that a manifest list selects: paths of files and directories, globs, and overrides.
fn of_list(folder: &Path, list: &[&str], kind: ResourceKind) -> Vec<ListedFile> {
    let (overrides, chosen): (Vec<&str>, Vec<&str>) =
        list.iter().copied().partition(|text| Patterns::is_override(text));
    let (globs, paths): (Vec<&str>, Vec<&str>) = chosen.into_iter().partition(|text| Patterns::is_glob(text));
    let mut files = Vec::new();
    for path in paths {
        // A package may only provide files inside it.
        if Path::new(path).components().all(|part| !matches!(part, std::path::Component::ParentDir)) {
            files.extend(at(&folder.join(path.trim_start_matches("./").trim_start_matches('/')), kind));
        }
    }
    if !globs.is_empty() {
        let patterns = Patterns::new(globs);
        collect::search(folder, &mut |_, _, listing| {
            let counts = |file: &&ListedFile| is_of(&file.path, kind) && patterns.allow(&file.path, folder);
            files.extend(listing.files.iter().filter(counts).cloned());
            Enter::Yes
        });
    }
    let overrides = Patterns::new(overrides);
    files.retain(|file| overrides.allow(&file.path, folder));
    files
}

/// Returns the files at a path: itself, or those of a directory. A missing path has no files.
pub(super) fn at(path: &Path, kind: ResourceKind) -> Vec<ListedFile> {
    if path.is_dir() {
        return match kind {
            ResourceKind::Extension => extensions::find_at(path),
            _ => of_kind(path, kind),
        };
    }
    if path.is_file() { vec![ListedFile::named(path)] } else { Vec::new() }
}

/// Returns the files in a directory with resources of one type.
pub(super) fn of_kind(folder: &Path, kind: ResourceKind) -> Vec<ListedFile> {
    let ending = match kind {
        ResourceKind::Extension => return extensions::find(folder),
        ResourceKind::Skill => return skills::find(folder, skills::SkillFolder::WithLooseFiles),
        ResourceKind::Prompt => "md",
        ResourceKind::Theme => "json",
    };
    let mut found = Vec::new();
    collect::search(folder, &mut |_, _, listing| {
        found.extend(listing.files.iter().filter(|file| has_ending(&file.path, ending)).cloned());
        Enter::No
    });
    found
}

fn is_of(path: &Path, kind: ResourceKind) -> bool {
    match kind {
        ResourceKind::Extension => has_ending(path, "ts") || has_ending(path, "js"),
        ResourceKind::Skill => path.file_name().is_some_and(|name| name == "SKILL.md"),
        ResourceKind::Prompt => has_ending(path, "md"),
        ResourceKind::Theme => has_ending(path, "json"),
    }
}

//! Walks a folder the way ripgrep and fd do.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::overrides::Override;
use ignore::{DirEntry, Walk, WalkBuilder};

/// How a folder is walked.
#[derive(Clone)]
pub(super) struct Rules {
    /// Files with rules besides `.gitignore` and `.ignore`.
    pub(super) ignore_file: &'static str,
    /// Globs that files have to fit.
    pub(super) globs: Override,
}

/// The entries below a folder, in the order of their paths; the folder itself is none of them.
///
/// Rules of `.gitignore` files hold outside of repositories too, but never inside a repository below: that is walked by itself.
pub(super) struct Entries {
    rules: Rules,
    /// The folder and, above it, repositories that were come upon and not yet walked to their end.
    levels: Vec<Level>,
}

struct Level {
    walk: Walk,
    /// Repositories that the walk came upon and left out.
    repositories: Arc<Mutex<Vec<DirEntry>>>,
    /// An entry that comes behind those.
    pending: Option<Result<DirEntry, ignore::Error>>,
}

impl Entries {
    pub(super) fn new(root: &Path, rules: Rules) -> Self {
        let level = Level::new(root, &rules, root.ancestors().any(is_repository));
        Self { rules, levels: vec![level] }
    }
}

impl Iterator for Entries {
    type Item = Result<DirEntry, ignore::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(entry) = level.pending.take().or_else(|| level.walk.next()) else {
                // What the walk came upon last of all stands here still.
                match level.next_repository() {
                    Some(entry) => return Some(self.enter(entry)),
                    None => drop(self.levels.pop()),
                }
                continue;
            };
            if let Some(repository) = level.next_repository() {
                level.pending = Some(entry);
                return Some(self.enter(repository));
            }
            match entry {
                // The root of a walk. Its error is all there is to tell.
                Ok(entry) if entry.depth() == 0 => {}
                other => return Some(other),
            }
        }
    }
}

impl Entries {
    fn enter(&mut self, repository: DirEntry) -> Result<DirEntry, ignore::Error> {
        self.levels.push(Level::new(repository.path(), &self.rules, true));
        Ok(repository)
    }
}

impl Level {
    fn new(root: &Path, rules: &Rules, in_repository: bool) -> Self {
        let repositories = Arc::new(Mutex::new(Vec::new()));
        let mut builder = WalkBuilder::new(root);
        builder
            .hidden(false)
            .follow_links(false)
            // The user's own settings of git are no business of a search.
            .git_global(false)
            // Inside of a repository the walk sees by itself where another one begins, but only when it looks for repositories at all.
            .require_git(in_repository)
            .overrides(rules.globs.clone())
            .sort_by_file_name(std::ffi::OsStr::cmp);
        builder.add_custom_ignore_filename(rules.ignore_file);
        let found = Arc::clone(&repositories);
        builder.filter_entry(move |entry| {
            if entry.depth() == 0 {
                return true;
            }
            if entry.file_name() == ".git" {
                return false;
            }
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if in_repository || !is_folder || !is_repository(entry.path()) {
                return true;
            }
            found.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
            false
        });
        Self { walk: builder.build(), repositories, pending: None }
    }

    /// The next of the repositories that were come upon, in the order of their paths.
    fn next_repository(&self) -> Option<DirEntry> {
        let mut repositories = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
        (!repositories.is_empty()).then(|| repositories.remove(0))
    }
}

fn is_repository(folder: &Path) -> bool {
    [".git", ".jj"].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

/// A path below `root` with `/` between its names.
pub(super) fn relative(root: &Path, path: &Path) -> String {
    let rest = path.strip_prefix(root).unwrap_or(path);
    let names: Vec<_> = rest.components().map(|name| name.as_os_str().to_string_lossy()).collect();
    names.join("/")
}

/// The path that an error of the walk is about.
pub(super) fn path_of(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

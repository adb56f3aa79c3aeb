//! Walks a directory the way ripgrep and fd do.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::overrides::Override;
use ignore::{DirEntry, Walk, WalkBuilder};

/// How a directory is walked.
#[derive(Clone)]
pub(super) struct Rules {
    /// Files with rules besides `.gitignore` and `.ignore`.
    pub(super) ignore_file: &'static str,
    /// Globs that files have to fit.
    pub(super) globs: Override,
}

/// The entries below a directory, in the order of their paths; the directory itself is none of them.
///
/// Rules of `.gitignore` files hold outside of repositories too, but never inside a repository below: that is walked by itself.
pub(super) struct WalkEntries {
    rules: Rules,
    /// The directory and, above it, repositories that were come upon and not yet walked to their end.
    levels: Vec<Level>,
    /// A directory whose rules cannot be read, so that nothing is walked.
    refused: Option<PathBuf>,
}

/// Directories whose rules cannot be read.
type Refused = Arc<Mutex<Vec<PathBuf>>>;

struct Level {
    walk: Walk,
    /// Directories that the walk came upon and left out because their rules cannot be read.
    refused: Refused,
    /// Repositories that the walk came upon and left out.
    repositories: Arc<Mutex<Vec<DirEntry>>>,
    /// An entry that comes behind those.
    pending: Option<Result<DirEntry, ignore::Error>>,
}

impl WalkEntries {
    pub(super) fn new(root: &Path, rules: Rules) -> Self {
        let level = Level::new(root, &rules, root.ancestors().any(is_repository));
        // Rules of the directories above hold as well.
        let endless = root.ancestors().find(|folder| has_endless_rules(folder, rules.ignore_file));
        let refused = endless.map(Path::to_owned);
        Self { levels: if refused.is_some() { Vec::new() } else { vec![level] }, refused, rules }
    }
}

impl Iterator for WalkEntries {
    type Item = Result<DirEntry, ignore::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(folder) = self.refused.take() {
            return Some(Err(endless_rules(folder)));
        }
        loop {
            let level = self.levels.last_mut()?;
            if let Some(folder) = level.next_refused() {
                return Some(Err(endless_rules(folder)));
            }
            let Some(entry) = level.pending.take().or_else(|| level.walk.next()) else {
                // The last entry of the walk is still here.
                if let Some(folder) = level.next_refused() {
                    return Some(Err(endless_rules(folder)));
                }
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

impl WalkEntries {
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
            // A search ignores the user's git settings.
            .git_global(false)
            // Inside of a repository the walk sees by itself where another one begins, but only when it looks for repositories at all.
            .require_git(in_repository)
            .overrides(rules.globs.clone())
            .sort_by_file_name(std::ffi::OsStr::cmp);
        builder.add_custom_ignore_filename(rules.ignore_file);
        let refused = Refused::default();
        let (found, left_out, ignore_file) = (Arc::clone(&repositories), Arc::clone(&refused), rules.ignore_file);
        builder.filter_entry(move |entry| {
            if entry.depth() == 0 {
                return true;
            }
            if entry.file_name() == ".git" {
                return false;
            }
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            if is_dir && has_endless_rules(entry.path(), ignore_file) {
                left_out.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_owned());
                return false;
            }
            if in_repository || !is_dir || !is_repository(entry.path()) {
                return true;
            }
            found.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
            false
        });
        Self { walk: builder.build(), refused, repositories, pending: None }
    }

    /// The next of the directories whose rules cannot be read.
    fn next_refused(&self) -> Option<PathBuf> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).pop()
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

/// Bytes of a file with rules at most.
const MAX_RULES: u64 = 16 * 1024 * 1024;

/// Whether one of the files that a walk reads by itself in a directory is none, or far too long: it would be read forever.
fn has_endless_rules(folder: &Path, ignore_file: &str) -> bool {
    [".gitignore", ".ignore", ignore_file, ".git", ".git/info/exclude"].iter().any(|name| {
        let meta = folder.join(name).metadata();
        meta.is_ok_and(|meta| !meta.is_dir() && (!meta.is_file() || meta.len() > MAX_RULES))
    })
}

fn endless_rules(folder: PathBuf) -> ignore::Error {
    let why = std::io::Error::other("its ignore file is not a regular file, or too long");
    ignore::Error::WithPath { path: folder, err: Box::new(ignore::Error::Io(why)) }
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

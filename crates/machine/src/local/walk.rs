//! Walks a directory like ripgrep and fd.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::overrides::Override;
use ignore::{DirEntry, Walk, WalkBuilder};

/// Rules for walking a directory.
#[derive(Clone)]
pub(super) struct Rules {
    /// Name of the ignore file besides `.gitignore` and `.ignore`.
    pub(super) ignore_file: &'static str,
    /// Globs that files must match.
    pub(super) globs: Override,
}

/// Iterates over the entries below a directory, sorted by path, without the directory itself.
///
/// `.gitignore` rules apply outside repositories too, but never inside a nested repository, which is walked separately.
pub(super) struct WalkEntries {
    rules: Rules,
    /// The directory and, above it, repositories that were found but not yet completely walked.
    levels: Vec<Level>,
    /// A directory with unreadable rules; nothing is walked then.
    refused: Option<PathBuf>,
}

/// Directories with unreadable rules.
type Refused = Arc<Mutex<Vec<PathBuf>>>;

struct Level {
    walk: Walk,
    /// Directories that were skipped because their rules are unreadable.
    refused: Refused,
    /// Nested repositories that were skipped.
    repositories: Arc<Mutex<Vec<DirEntry>>>,
    /// An entry that is sorted after those.
    pending: Option<Result<DirEntry, ignore::Error>>,
}

impl WalkEntries {
    pub(super) fn new(root: &Path, rules: Rules) -> Self {
        let level = Level::new(root, &rules, root.ancestors().any(is_repository));
        // Rules of parent directories apply as well.
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
                // The last entry of the walk is still pending.
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
                // The root of a walk, of which only an error matters.
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
            // Searches ignore the user's git settings.
            .git_global(false)
            // Inside a repository the walker detects nested ones itself, but only if it looks for repositories at all.
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

    /// Returns the next directory with unreadable rules.
    fn next_refused(&self) -> Option<PathBuf> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Returns the next nested repository, sorted by path.
    fn next_repository(&self) -> Option<DirEntry> {
        let mut repositories = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
        (!repositories.is_empty()).then(|| repositories.remove(0))
    }
}

fn is_repository(folder: &Path) -> bool {
    [".git", ".jj"].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Maximum bytes of an ignore file.
const MAX_RULES: u64 = 16 * 1024 * 1024;

/// Returns whether an ignore file that a walk reads in a directory is not a regular file or far too long: reading it might never end.
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

/// Returns a path relative to `root`, with `/` as the separator.
pub(super) fn relative(root: &Path, path: &Path) -> String {
    let rest = path.strip_prefix(root).unwrap_or(path);
    let names: Vec<_> = rest.components().map(|name| name.as_os_str().to_string_lossy()).collect();
    names.join("/")
}

/// Returns the path that an error of the walk is about.
pub(super) fn path_of(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

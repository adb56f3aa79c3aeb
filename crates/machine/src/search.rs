//! Searches in the files of a machine, by name and by content.

use std::path::PathBuf;

use pinch_stdx::text::shortened;

use super::MachineError;

/// Which paths are looked for.
///
/// The directory is walked without following links. What `.gitignore`, `.ignore` and `.fdignore` files leave out is left out, inside and outside
/// of repositories; a repository inside the directory is ruled by its own files. `.git` is never entered, other hidden names are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindQuery {
    /// The directory, absolute.
    pub root: PathBuf,
    /// A glob. It is matched against names; when it has a `/`, against the end of absolute paths, or the whole of them when it starts with
    /// one. Without capital letters it takes capital letters for small ones.
    pub pattern: String,
}

impl FindQuery {
    /// A search for names below a directory.
    pub fn new(root: PathBuf, pattern: impl Into<String>) -> Self {
        Self { root, pattern: pattern.into() }
    }
}

/// A path that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPath {
    /// Relative to the directory, with `/` between names.
    pub path: String,
    /// Whether it is a directory, and no link to one.
    pub is_dir: bool,
}

/// Which lines are looked for. Directories are walked as for [`FindQuery`], with `.rgignore` files in place of `.fdignore`; binary files in them
/// are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepQuery {
    /// A directory or a file, absolute.
    pub root: PathBuf,
    /// A regular expression, or a text.
    pub pattern: String,
    /// Whether the pattern is a text.
    pub is_literal: bool,
    /// Whether capital and small letters are the same.
    pub ignore_case: bool,
    /// Which files below a directory are looked into, in the words of a `.gitignore` file; `!` in front leaves files out.
    pub glob: Option<String>,
    /// Lines shown around each match.
    pub context: usize,
    /// Characters of a line at most.
    pub max_line_chars: usize,
}

impl GrepQuery {
    /// A case-sensitive search for a regular expression, without context, in files of any name and lines of any length.
    pub fn new(root: PathBuf, pattern: impl Into<String>) -> Self {
        Self {
            root,
            pattern: pattern.into(),
            is_literal: false,
            ignore_case: false,
            glob: None,
            context: 0,
            max_line_chars: usize::MAX,
        }
    }
}

/// A line that matches, or one beside it. Lines of a file come once each and in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// The file, relative to the directory and with `/` between names; the name of a file that was searched by itself.
    pub path: String,
    /// Counted from 1.
    pub number: u64,
    /// Whether it matches.
    pub is_match: bool,
    /// The line without its end.
    pub text: String,
    /// Whether more of it was cut off.
    pub is_cut: bool,
}

/// An item of a search.
#[derive(Debug)]
pub enum SearchItem<T> {
    /// A match.
    Hit(T),
    /// A file or directory that could not be read. The search continues.
    Unreadable(MachineError),
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The pattern or the glob is invalid.
    #[error("{0}")]
    Pattern(String),
    /// The machine reported an error.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Bytes of what is said of a pattern at most: some say the whole pattern, and it may be very long.
const MAX_WORDS: usize = 2000;

impl SearchError {
    /// An invalid pattern, and why.
    pub fn pattern(why: &dyn std::fmt::Display) -> Self {
        Self::Pattern(shortened(&why.to_string(), MAX_WORDS).into_owned())
    }
}

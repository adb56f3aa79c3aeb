//! Searches in the files of a machine, by name and by content.

use std::path::PathBuf;

use pinch_stdx::text::shortened;

use super::MachineError;

/// A search for paths.
///
/// The directory is walked without following links. Entries ignored by `.gitignore`, `.ignore` and `.fdignore` files are skipped, inside
/// and outside repositories; a nested repository uses only its own files. `.git` is never entered; other hidden names are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FindQuery {
    /// The directory, as an absolute path.
    pub root: PathBuf,
    /// A glob. It is matched against names; if it contains a `/`, against the end of absolute paths, or all of them if it starts with one.
    /// It ignores case unless it contains capital letters.
    pub pattern: String,
}

impl FindQuery {
    /// Creates a search for names below a directory.
    pub fn new(root: PathBuf, pattern: impl Into<String>) -> Self {
        Self { root, pattern: pattern.into() }
    }
}

/// A path that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPath {
    /// The path relative to the directory, with `/` as the separator.
    pub path: String,
    /// Whether it is a directory; false for links to one.
    pub is_dir: bool,
}

/// A search for lines. Directories are walked as for [`FindQuery`], with `.rgignore` files instead of `.fdignore`; binary files in them are
/// skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepQuery {
    /// A directory or a file, as an absolute path.
    pub root: PathBuf,
    /// A regular expression or a literal text.
    pub pattern: String,
    /// Whether the pattern is a literal text.
    pub is_literal: bool,
    /// Whether to ignore case.
    pub ignore_case: bool,
    /// Which files below a directory are searched, in `.gitignore` syntax; a leading `!` excludes files.
    pub glob: Option<String>,
    /// Number of context lines around each match.
    pub context: usize,
    /// Maximum characters per line.
    pub max_line_chars: usize,
}

impl GrepQuery {
    /// Creates a case-sensitive search for a regular expression, without context, in files of any name and lines of any length.
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

/// A matching line, or a context line. Each line of a file is reported once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// The file, relative to the directory with `/` as the separator; the file name if a single file was searched.
    pub path: String,
    /// Line number, starting at 1.
    pub number: u64,
    /// Whether it matches.
    pub is_match: bool,
    /// The line without its terminator.
    pub text: String,
    /// Whether the line was truncated.
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

/// Reasons why a search failed.
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

/// Maximum bytes of a pattern error; some quote the whole pattern, which may be very long.
const MAX_WORDS: usize = 2000;

impl SearchError {
    /// Creates an error for an invalid pattern.
    pub fn pattern(why: &dyn std::fmt::Display) -> Self {
        Self::Pattern(shortened(&why.to_string(), MAX_WORDS).into_owned())
    }
}

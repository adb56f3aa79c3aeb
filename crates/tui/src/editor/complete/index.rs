//! An index of all paths below a directory, for fuzzy search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use pinch_coding_agent::machine::local::paths_below;
use pinch_coding_agent::stdx::cancel::{Cancel, Cancelled};

use super::listing::is_printable;

/// Maximum number of paths; further ones are not found.
const MAX_PATHS: usize = 200_000;
/// Number of paths between checks for cancellation.
const CHECK_EVERY: usize = 1024;
/// Score bonus of directories over files.
const FOLDER_BONUS: u32 = 10;
/// Score per tier of a name match: more than any fuzzy score.
const TIER: u32 = 10_000;

/// The paths below a directory, except for ignored ones and `.git`.
///
/// Building and searching an index of a large directory takes time, and belongs on a thread that may block.
#[derive(Clone, Debug, Default)]
pub struct PathIndex {
    root: PathBuf,
    /// All paths concatenated, relative and with `/` as separator.
    text: String,
    paths: Vec<IndexedPath>,
    /// Modification times of directories and ignore files.
    stamps: Vec<(PathBuf, Option<SystemTime>)>,
}

#[derive(Clone, Copy, Debug)]
struct IndexedPath {
    end: usize,
    is_dir: bool,
}

impl PathIndex {
    /// Reads the directory, up to 200 000 paths.
    ///
    /// # Errors
    /// [`Cancelled`] if `cancel` is cancelled.
    pub fn build(root: &Path, cancel: &Cancel) -> Result<Self, Cancelled> {
        let mut index = Self { root: root.to_owned(), ..Self::default() };
        index.stamp(PathBuf::new());
        for found in paths_below(root).filter(|found| is_printable(&found.path)).take(MAX_PATHS) {
            cancel.check()?;
            let name = found.path.rsplit('/').next().unwrap_or_default();
            if found.is_dir || [".gitignore", ".ignore", ".fdignore"].contains(&name) {
                index.stamp(PathBuf::from(&found.path));
            }
            index.text.push_str(&found.path);
            index.paths.push(IndexedPath { end: index.text.len(), is_dir: found.is_dir });
        }
        Ok(index)
    }

    fn stamp(&mut self, path: PathBuf) {
        let modified = modified(&self.root.join(&path));
        self.stamps.push((path, modified));
    }

    /// Returns whether nothing was added or removed since the index was built. Checks every directory.
    pub fn is_current(&self) -> bool {
        self.stamps.iter().all(|(path, stamp)| modified(&self.root.join(path)) == *stamp)
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    fn path(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.paths[before].end);
        &self.text[start..self.paths[at].end]
    }

    /// Returns whether a directory is among the paths.
    pub fn has_directory(&self, path: &str) -> bool {
        (0..self.paths.len()).any(|at| self.paths[at].is_dir && self.path(at) == path)
    }

    /// Returns the best matches below a directory (`""` for all), and whether each is a directory. Without `letters`, returns the direct
    /// contents of the directory, directories first.
    ///
    /// Names equal to the letters come first, then names that begin with them, names that contain them, paths that contain them, and
    /// finally paths that contain them as a subsequence. Letters with a `/` are compared with the whole path below the directory. If
    /// cancelled, returns the matches found so far.
    pub fn search(&self, folder: &str, letters: &str, limit: usize, cancel: &Cancel) -> Vec<(&str, bool)> {
        let pattern = Pattern::new(letters, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let mut buffer = Vec::new();
        let wanted = letters.to_lowercase();
        // The worst match is on top.
        let mut best = BinaryHeap::with_capacity(limit + 1);
        for at in 0..self.paths.len() {
            if at % CHECK_EVERY == 0 && cancel.is_cancelled() {
                break;
            }
            let Some(path) = self.path(at).strip_prefix(folder).filter(|path| !path.is_empty()) else { continue };
            let is_dir = self.paths[at].is_dir;
            let bonus = if is_dir { FOLDER_BONUS } else { 0 };
            let rank = if letters.is_empty() {
                if path.contains('/') {
                    continue;
                }
                bonus
            } else {
                let Some(score) = pattern.score(Utf32Str::new(path, &mut buffer), &mut matcher) else { continue };
                tier(&wanted, path) * TIER + score.min(TIER - FOLDER_BONUS - 1) + bonus
            };
            best.push(Reverse((rank, Reverse(if letters.is_empty() { 0 } else { path.len() }), Reverse(at))));
            if best.len() > limit {
                best.pop();
            }
        }
        let best = best.into_sorted_vec().into_iter();
        best.map(|Reverse((_, _, Reverse(at)))| (self.path(at), self.paths[at].is_dir)).collect()
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|meta| meta.modified()).ok()
}

/// Returns how well a name matches as a whole, or a path if the letters contain a slash.
fn tier(wanted: &str, path: &str) -> u32 {
    let path = path.to_lowercase();
    let name = if wanted.contains('/') { &path } else { path.rsplit('/').next().unwrap_or(&path) };
    match name.find(wanted) {
        Some(0) if name.len() == wanted.len() => 4,
        Some(0) => 3,
        Some(_) => 2,
        None if path.contains(wanted) => 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use pinch_coding_agent::stdx::cancel::CancelReason;

    use super::*;

    fn tree(paths: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for path in paths {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut file = std::fs::File::create(&path).unwrap();
            if path.ends_with(".gitignore") {
                std::io::Write::write_all(&mut file, b"target/\n").unwrap();
            }
        }
        dir
    }

    fn search(index: &PathIndex, folder: &str, letters: &str) -> Vec<String> {
        index.search(folder, letters, 20, &Cancel::new()).into_iter().map(|(path, _)| path.to_owned()).collect()
    }

    #[test]
    fn ignored_paths_are_excluded_and_hidden_ones_included() {
        let dir = tree(&[".gitignore", ".github/ci.yml", ".git/config", "target/x", "src/lib.rs"]);
        let index = PathIndex::build(dir.path(), &Cancel::new()).unwrap();
        let paths: Vec<&str> = (0..index.len()).map(|at| index.path(at)).collect();
        assert_eq!(paths, [".github", ".github/ci.yml", ".gitignore", "src", "src/lib.rs"]);
        assert!(index.has_directory("src") && !index.has_directory("src/lib.rs") && !index.has_directory("target"));
    }

    #[test]
    fn the_better_a_name_matches_the_higher_it_ranks() {
        let dir =
            tree(&["src/main.rs", "src/main/x", "a/domain.rs", "main", "m/a/i/n/y", "docs/maintenance.md", "other"]);
        let index = PathIndex::build(dir.path(), &Cancel::new()).unwrap();
        assert_eq!(
            search(&index, "", "main"),
            [
                "src/main",
                "main",
                "src/main.rs",
                "docs/maintenance.md",
                "a/domain.rs",
                "src/main/x",
                "m/a/i/n",
                "m/a/i/n/y"
            ]
        );
        assert_eq!(search(&index, "", "MAIN.RS")[0], "src/main.rs");
        assert_eq!(search(&index, "", "src/main")[0], "src/main");
        assert_eq!(search(&index, "", "src main")[0], "src/main");
        assert_eq!(search(&index, "src/", "x"), ["src/main/x"]);
        assert_eq!(search(&index, "", ""), ["a", "docs", "m", "src", "main", "other"]);
        assert_eq!(search(&index, "src/", ""), ["src/main", "src/main.rs"]);
        assert_eq!(search(&index, "", "zzz"), [""; 0]);
        assert_eq!(index.search("", "main", 2, &Cancel::new()).len(), 2);
    }

    #[test]
    fn an_index_is_current_until_something_is_added_or_removed() {
        let dir = tree(&["src/lib.rs"]);
        let index = PathIndex::build(dir.path(), &Cancel::new()).unwrap();
        assert!(index.is_current());
        // File timestamps may be coarse.
        let file = std::fs::File::open(dir.path().join("src")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(!index.is_current());
    }

    #[test]
    fn a_cancelled_build_yields_no_index() {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::Superseded);
        let dir = tree(&["a"]);
        assert!(PathIndex::build(dir.path(), &cancel).is_err());
    }
}

//! Finding files in directories, and the patterns with which settings and packages select them.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use pinch_stdx::fs::{open_listed, open_regular, read_listed, read_regular};

/// Maximum directory depth.
const MAX_DEPTH: usize = 24;
/// Maximum directory entries per search.
const MAX_ENTRIES: usize = 50_000;
/// Files with ignore rules.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// How to handle a directory found by a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    /// Search it.
    Yes,
    /// Skip it.
    No,
}

/// A file that was found in a directory or named explicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Number of trailing path components known not to be links, the last one a regular file, from directory listings. Nothing is known of
    /// the other components.
    pub n_plain: usize,
}

impl ListedFile {
    /// Creates a file of which nothing else is known.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), n_plain: 0 }
    }

    /// Opens it like [`open_regular`].
    pub(super) fn open(&self) -> io::Result<File> {
        if self.n_plain > 0 { open_listed(&self.path) } else { open_regular(&self.path) }
    }

    /// Reads it like [`read_regular`].
    pub(super) fn read(&self, max_bytes: u64) -> io::Result<Vec<u8>> {
        if self.n_plain > 0 { read_listed(&self.path, max_bytes) } else { read_regular(&self.path, max_bytes) }
    }
}

/// The sorted files and directories in a directory. Links count as their targets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DirectoryNames {
    /// The files.
    pub files: Vec<ListedFile>,
    /// The directories.
    pub folders: Vec<PathBuf>,
}

/// Walks a directory tree in the order of names. Skips hidden files, `node_modules`, and what ignore files exclude. Follows links, but
/// enters no directory twice. `see` is called with each directory and its depth to take what it needs; it returns whether to search below.
pub fn search(root: &Path, see: &mut dyn FnMut(&Path, usize, &DirectoryNames) -> Enter) {
    let mut search = ResourceSearch { rules: Vec::new(), entered: HashSet::new(), n_left: MAX_ENTRIES };
    search.enter(root, (0, 0), see);
}

/// A directory entry for sorting.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DirEntry {
    name: OsString,
    is_folder: bool,
    is_link: bool,
}

/// A running search.
struct ResourceSearch {
    /// Ignore rules from the root to the current directory.
    rules: Vec<Gitignore>,
    /// Directories behind links, and those that such a link may lead back to.
    entered: HashSet<PathBuf>,
    n_left: usize,
}

impl ResourceSearch {
    /// Searches a directory with a known depth and number of components that are not links.
    fn enter(
        &mut self,
        folder: &Path,
        (depth, n_plain): (usize, usize),
        see: &mut dyn FnMut(&Path, usize, &DirectoryNames) -> Enter,
    ) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let n_rules = self.rules.len();
        let mut builder = None;
        let mut found = Vec::new();
        for entry in entries.filter_map(Result::ok) {
            let Some(left) = self.n_left.checked_sub(1) else { break };
            self.n_left = left;
            let name = entry.file_name();
            if IGNORE_FILES.iter().any(|file| name == *file) {
                let builder = builder.get_or_insert_with(|| GitignoreBuilder::new(folder));
                if let Some(error) = builder.add(entry.path()) {
                    tracing::debug!(path = %entry.path().display(), %error, "ignored an invalid rule");
                }
            }
            if name.as_encoded_bytes().starts_with(b".") || name == "node_modules" {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let is_link = kind.is_symlink();
            let (is_folder, is_file) = match is_link.then(|| std::fs::metadata(entry.path())) {
                None => (kind.is_dir(), kind.is_file()),
                Some(Ok(meta)) => (meta.is_dir(), meta.is_file()),
                Some(Err(_)) => continue,
            };
            // Reading a pipe would block forever.
            if is_folder || is_file {
                found.push(DirEntry { name, is_folder, is_link });
            }
        }
        self.rules.extend(builder.and_then(|builder| builder.build().ok()));
        found.sort_unstable();
        let mut listing = DirectoryNames::default();
        let mut linked = Vec::new();
        for DirEntry { name, is_folder, is_link } in found {
            let path = folder.join(name);
            if self.is_ignored(&path, is_folder) {
                continue;
            }
            if is_folder {
                listing.folders.push(path);
                linked.push(is_link);
            } else {
                listing.files.push(ListedFile { path, n_plain: if is_link { 0 } else { n_plain + 1 } });
            }
        }
        if see(folder, depth, &listing) == Enter::Yes && depth < MAX_DEPTH {
            for (path, is_link) in listing.folders.iter().zip(linked) {
                if !is_link {
                    // Without links, no directory is reached twice.
                    self.enter(path, (depth + 1, n_plain + 1), see);
                } else if self.is_new(folder, path) {
                    self.enter(path, (depth + 1, 0), see);
                }
            }
        }
        self.rules.truncate(n_rules);
    }

    /// Returns whether a link leads to a directory that the search has neither visited nor started from.
    fn is_new(&mut self, folder: &Path, link: &Path) -> bool {
        std::fs::canonicalize(link).is_ok_and(|real| {
            !folder.ancestors().any(|above| std::fs::canonicalize(above).is_ok_and(|above| above == real))
                && self.entered.insert(real)
        })
    }

    fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let verdicts = self.rules.iter().rev().map(|rules| rules.matched(path, is_folder));
        verdicts.into_iter().find(|verdict| !verdict.is_none()).is_some_and(|verdict| verdict.is_ignore())
    }
}

/// Returns whether a file has this extension.
pub(super) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension() == Some(OsStr::new(ending))
}

/// A list of patterns: `!glob` excludes, `+path` includes again, `-path` always excludes; other patterns select.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    chosen: Vec<Glob>,
    left_out: Vec<Glob>,
    taken_in: Vec<PathBuf>,
    out_for_good: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
struct Glob(GlobMatcher);

impl Glob {
    fn new(text: &str) -> Option<Self> {
        let text = text.strip_prefix("./").unwrap_or(text);
        GlobBuilder::new(text).literal_separator(true).build().ok().map(|glob| Self(glob.compile_matcher()))
    }
}

impl Patterns {
    /// Parses a list of patterns. Invalid globs match nothing.
    pub fn new<'a>(list: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns = Self::default();
        for text in list {
            let exact = |path: &str| PathBuf::from(path.strip_prefix("./").unwrap_or(path));
            match (text.chars().next(), text.get(1..)) {
                (Some('!'), Some(glob)) => patterns.left_out.extend(Glob::new(glob)),
                (Some('+'), Some(path)) => patterns.taken_in.push(exact(path)),
                (Some('-'), Some(path)) => patterns.out_for_good.push(exact(path)),
                _ => patterns.chosen.extend(Glob::new(text)),
            }
        }
        patterns
    }

    fn is_empty(&self) -> bool {
        let Self { chosen, left_out, taken_in, out_for_good } = self;
        chosen.is_empty() && left_out.is_empty() && taken_in.is_empty() && out_for_good.is_empty()
    }

    /// Returns whether an item of a list modifies the selection of others.
    pub fn is_override(text: &str) -> bool {
        text.starts_with(['!', '+', '-'])
    }

    /// Returns whether an item of a list is a glob.
    pub fn is_glob(text: &str) -> bool {
        text.contains(['*', '?', '[', '{'])
    }

    /// Returns whether a file is selected. Patterns are matched against its path relative to `base`, its name and its absolute path; for a
    /// `SKILL.md` also against those of its directory.
    pub fn allow(&self, path: &Path, base: &Path) -> bool {
        if self.is_empty() {
            return true;
        }
        let names = names(path, base);
        let fits = |globs: &[Glob]| globs.iter().any(|glob| names.iter().any(|name| glob.0.is_match(name)));
        let is_one_of = |paths: &[PathBuf]| paths.iter().any(|path| names.contains(&path.as_path()));
        if is_one_of(&self.out_for_good) {
            return false;
        }
        is_one_of(&self.taken_in) || (self.chosen.is_empty() || fits(&self.chosen)) && !fits(&self.left_out)
    }
}

/// Returns what the last item that matches a file decides, or `None` if none matches. `+path` and `-path` name one file, the others are
/// globs.
pub(super) fn last_word(list: &[String], path: &Path, base: &Path) -> Option<bool> {
    let names = names(path, base);
    let has = |text: &str| {
        let rest = text.get(1..).unwrap_or_default();
        let is_exact = |path: &str| names.contains(&Path::new(path.strip_prefix("./").unwrap_or(path)));
        let matches = |glob: &str| Glob::new(glob).is_some_and(|glob| names.iter().any(|name| glob.0.is_match(name)));
        match text.chars().next() {
            Some('+') => is_exact(rest).then_some(true),
            Some('-') => is_exact(rest).then_some(false),
            Some('!') => matches(rest).then_some(false),
            _ => matches(text).then_some(true),
        }
    };
    list.iter().rev().find_map(|text| has(text))
}

/// Returns the names that patterns are matched against.
fn names<'a>(path: &'a Path, base: &Path) -> Vec<&'a Path> {
    let of = |path: &'a Path| {
        let relative = path.strip_prefix(base).ok().filter(|rest| !rest.as_os_str().is_empty());
        [relative, path.file_name().map(Path::new), Some(path)].into_iter().flatten()
    };
    let folder = path.parent().filter(|_| path.file_name() == Some(OsStr::new("SKILL.md")));
    of(path).chain(folder.into_iter().flat_map(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn all(root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        search(root, &mut |_, _, listing| {
            found.extend(listing.files.iter().map(|file| file.path.strip_prefix(root).unwrap().display().to_string()));
            Enter::Yes
        });
        found
    }

    #[test]
    fn ignored_hidden_and_foreign_files_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b/x", "a/keep.log", "a/y.log", "node_modules/m", ".dot/x", "a/deep/y.log", "a/c/z"] {
            write(dir.path(), name, "");
        }
        write(dir.path(), ".gitignore", "*.log\n/b\n");
        write(dir.path(), "a/.fdignore", "!keep.log\nc/\n");
        assert_eq!(all(dir.path()), ["a/keep.log"]);
        assert_eq!(all(&dir.path().join("none")), [""; 0]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_once() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "real/x", "");
        write(dir.path(), "in/y", "");
        for (to, at) in
            [(dir.path().join("in"), "in/loop"), (dir.path().join("real"), "in/l1"), (dir.path().join("real"), "in/l2")]
        {
            std::os::unix::fs::symlink(to, dir.path().join(at)).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", dir.path().join("in/broken")).unwrap();
        assert_eq!(all(&dir.path().join("in")), ["y", "l1/x"]);
    }

    #[test]
    fn patterns_select_files() {
        #[track_caller]
        fn check(patterns: &[&str], path: &str, expected: bool) {
            let got = Patterns::new(patterns.iter().copied()).allow(&Path::new("/b").join(path), Path::new("/b"));
            assert_eq!(got, expected, "{patterns:?} {path}");
        }
        check(&[], "a.md", true);
        check(&["*.md"], "a.md", true);
        check(&["x/*"], "a.md", false);
        check(&["!a*"], "s/a.md", false);
        check(&["!a*", "+s/a.md"], "s/a.md", true);
        check(&["+a.md", "-./a.md"], "a.md", false);
        check(&["!good"], "skills/good/SKILL.md", false);
        check(&["-skills/good"], "skills/good/SKILL.md", false);
        check(&["skills/*"], "skills/good/SKILL.md", true);
        check(&["!/b/s/*.md"], "s/a.md", false);
        check(&["!["], "a.md", true);
    }
}

//! Searches on the local computer, in process, with ripgrep's libraries.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use futures::stream::BoxStream;
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::overrides::{Override, OverrideBuilder};
use pinch_stdx::fs::skip_hole;
use pinch_stdx::pull::pulled;
use regex::bytes::Regex;
use tokio::sync::mpsc;

use super::walk::{Rules, WalkEntries, path_of, relative};
use super::{FileOpener, FindQuery, FoundPath, GrepLine, GrepQuery, MachineError, SearchError, SearchItem, meant};

/// Items per batch.
const BATCH: usize = 32;
/// Maximum number of waiting batches, so that the search is never far ahead of its reader.
const WAITING: usize = 4;
/// Maximum bytes of a line and its context. A file with longer ones cannot be searched.
const MAX_HEAP: usize = 64 * 1024 * 1024;
/// Maximum bytes of a pattern that is quoted in its error as it was written.
const MAX_QUOTED: usize = 4096;
/// Maximum bytes of a compiled pattern.
const MAX_PATTERN: usize = 16 * 1024 * 1024;

/// Collects the items of a search.
struct SearchSink<T> {
    tx: mpsc::Sender<Vec<SearchItem<T>>>,
    batch: Vec<SearchItem<T>>,
}

impl<T> SearchSink<T> {
    /// Queues an item. Returns false if the receiver is gone.
    fn push(&mut self, item: SearchItem<T>) -> bool {
        self.batch.push(item);
        if self.batch.len() >= BATCH { self.flush() } else { !self.tx.is_closed() }
    }

    fn flush(&mut self) -> bool {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() { !self.tx.is_closed() } else { self.tx.blocking_send(batch).is_ok() }
    }

    /// Reports something unreadable. Things that have disappeared meanwhile are ignored.
    fn unreadable(&mut self, error: io::Error, operation: &'static str, path: Option<&Path>) -> bool {
        if error.kind() == io::ErrorKind::NotFound {
            return !self.tx.is_closed();
        }
        self.push(SearchItem::Unreadable(MachineError::new(error, operation, path)))
    }
}

/// Runs a search on its own thread; it ends when the stream is dropped.
fn stream<T: Send + 'static>(
    search: impl FnOnce(&mut SearchSink<T>) -> Result<(), SearchError> + Send + 'static,
) -> BoxStream<'static, Result<SearchItem<T>, SearchError>> {
    Box::pin(pulled(move |emitter| async move {
        let (tx, mut rx) = mpsc::channel(WAITING);
        let worker = tokio::task::spawn_blocking(move || {
            let mut out = SearchSink { tx, batch: Vec::new() };
            let done = search(&mut out);
            out.flush();
            done
        });
        while let Some(batch) = rx.recv().await {
            for item in batch {
                emitter.emit(Ok(item)).await;
            }
        }
        let gone = |_| Err(MachineError::new(io::Error::other("the search failed"), "search", None).into());
        if let Err(error) = worker.await.unwrap_or_else(gone) {
            emitter.emit(Err(error)).await;
        }
    }))
}

/// Finds paths that `is_there` confirms.
pub(super) fn find(
    mut query: FindQuery,
    is_there: fn(&Path) -> bool,
) -> BoxStream<'static, Result<SearchItem<FoundPath>, SearchError>> {
    stream(move |out| {
        query.root = meant(&query.root).into_owned();
        let pattern = PathPattern::new(&query.pattern)?;
        let rules = Rules { ignore_file: ".fdignore", globs: Override::empty() };
        for entry in WalkEntries::new(&query.root, rules) {
            let continues = match entry {
                Ok(entry) if pattern.fits(&query.root, entry.path()) && is_there(entry.path()) => {
                    out.push(SearchItem::Hit(FoundPath {
                        path: relative(&query.root, entry.path()),
                        is_dir: entry.file_type().is_some_and(|kind| kind.is_dir()),
                    }))
                }
                Ok(_) => !out.tx.is_closed(),
                Err(error) => report(out, error),
            };
            if !continues {
                break;
            }
        }
        Ok(())
    })
}

/// Returns everything below a local directory, in the order and by the rules of [`Machine::find`](crate::Machine::find). Unreadable entries
/// are skipped. Each step blocks until the system has read a directory.
pub fn paths_below(root: &Path) -> impl Iterator<Item = FoundPath> {
    let root = meant(root).into_owned();
    let rules = Rules { ignore_file: ".fdignore", globs: Override::empty() };
    let entries = WalkEntries::new(&root, rules).filter_map(Result::ok);
    entries.map(move |entry| FoundPath {
        path: relative(&root, entry.path()),
        is_dir: entry.file_type().is_some_and(|kind| kind.is_dir()),
    })
}

/// Reports an error of the walk. Invalid lines in ignore files are skipped.
fn report<T>(out: &mut SearchSink<T>, error: ignore::Error) -> bool {
    let path = path_of(&error);
    match error.into_io_error() {
        Some(error) => out.unreadable(error, "scandir", path.as_deref()),
        None => !out.tx.is_closed(),
    }
}

/// A glob for names, or for paths below the searched directory.
struct PathPattern {
    glob: Option<GlobMatcher>,
    of: PatternOf,
}

/// What a pattern is matched against.
enum PatternOf {
    Name,
    /// The path relative to the searched directory, wherever that is.
    PathBelow,
    /// The absolute path.
    WholePath,
}

impl PathPattern {
    fn new(pattern: &str) -> Result<Self, SearchError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let of = match pattern {
            pattern if pattern.starts_with('/') => PatternOf::WholePath,
            pattern if pattern.contains('/') => PatternOf::PathBelow,
            _ => PatternOf::Name,
        };
        let is_anywhere = matches!(of, PatternOf::PathBelow) && !pattern.starts_with("**/");
        let full = if is_anywhere { format!("**/{pattern}") } else { pattern.to_owned() };
        let is_lower = !pattern.chars().any(char::is_uppercase);
        let glob = GlobBuilder::new(&full).literal_separator(true).case_insensitive(is_lower).build();
        let glob = glob.map_err(|error| SearchError::pattern(&error))?;
        // An empty pattern matches everything.
        Ok(Self { glob: (!pattern.is_empty()).then(|| glob.compile_matcher()), of })
    }

    fn fits(&self, root: &Path, path: &Path) -> bool {
        let Some(glob) = &self.glob else { return true };
        match self.of {
            PatternOf::Name => path.file_name().is_some_and(|name| glob.is_match(name)),
            PatternOf::PathBelow => glob.is_match(path.strip_prefix(root).unwrap_or(path)),
            PatternOf::WholePath => glob.is_match(path),
        }
    }
}

/// Finds lines in files opened by `open`.
pub(super) fn grep(
    mut query: GrepQuery,
    open: FileOpener,
) -> BoxStream<'static, Result<SearchItem<GrepLine>, SearchError>> {
    stream(move |out| {
        query.root = meant(&query.root).into_owned();
        let globs = globs(&query)?;
        let mut search =
            FileSearch { matcher: matcher(&query)?, searcher: searcher(&query), skips_holes: false, open, query };
        let root = search.query.root.clone();
        if !root.is_dir() {
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // A binary file that is named explicitly is searched, zero bytes being part of its lines.
            search.searcher.set_binary_detection(BinaryDetection::none());
            search.skips_holes = true;
            search.file(&root, name, out);
            return Ok(());
        }
        for entry in WalkEntries::new(&root, Rules { ignore_file: ".rgignore", globs }) {
            let continues = match entry {
                Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                    search.file(entry.path(), relative(&root, entry.path()), out)
                }
                Ok(_) => !out.tx.is_closed(),
                Err(error) => report(out, error),
            };
            if !continues {
                break;
            }
        }
        Ok(())
    })
}

/// Compiles the globs of a query, relative to the searched directory.
fn globs(query: &GrepQuery) -> Result<Override, SearchError> {
    let given = query.glob.as_deref().filter(|glob| !glob.is_empty());
    let Some(given) = given else { return Ok(Override::empty()) };
    let (not, glob) = given.strip_prefix('!').map_or(("", given), |rest| ("!", rest));
    let glob = format!("{not}{}", glob.strip_prefix("./").unwrap_or(glob));
    let mut builder = OverrideBuilder::new(&query.root);
    let built = builder.add(&glob).and_then(|builder| builder.build());
    built.map_err(|error| SearchError::pattern(&error))
}

fn matcher(query: &GrepQuery) -> Result<RegexMatcher, SearchError> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .fixed_strings(query.is_literal)
        .case_insensitive(query.ignore_case)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .build(&query.pattern)
        .map_err(|error| invalid_pattern(&query.pattern, &error))
}

/// Describes an invalid pattern. The matcher wraps the pattern in a group and quotes it like that, so the error of the pattern by itself is
/// preferred, unless finding it again takes long.
fn invalid_pattern(pattern: &str, error: &grep_regex::Error) -> SearchError {
    let alone = (pattern.len() <= MAX_QUOTED).then(|| Regex::new(pattern));
    match alone {
        Some(Err(plain @ regex::Error::Syntax(_))) => SearchError::pattern(&plain),
        _ => SearchError::pattern(error),
    }
}

fn searcher(query: &GrepQuery) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(query.context)
        .after_context(query.context)
        .heap_limit(Some(MAX_HEAP))
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

/// A search through many files.
struct FileSearch {
    matcher: RegexMatcher,
    searcher: Searcher,
    /// Whether holes in a file are skipped. They would end the search of a file that is not named explicitly.
    skips_holes: bool,
    open: FileOpener,
    query: GrepQuery,
}

impl FileSearch {
    /// Searches one file. Returns false if the receiver is gone.
    fn file(&mut self, path: &Path, shown: String, out: &mut SearchSink<GrepLine>) -> bool {
        let file = match (self.open)(path) {
            Ok(file) => file,
            Err(error) => return out.unreadable(error, "open", Some(path)),
        };
        let reader = WhileWanted { file, skips_holes: self.skips_holes, tx: out.tx.clone() };
        let lines = LineSink { path: shown, max_chars: self.query.max_line_chars, out };
        match self.searcher.search_reader(&self.matcher, reader, lines) {
            Ok(()) => out.flush(),
            Err(_) if out.tx.is_closed() => false,
            // An error that is not from the system is the searcher's own limit.
            Err(error) if error.raw_os_error().is_none() => {
                let error = io::Error::other("the file has a line that is too long to be searched");
                out.unreadable(error, "read", Some(path))
            }
            Err(error) => out.unreadable(error, "read", Some(path)),
        }
    }
}

/// A file that ends early once the receiver is gone.
struct WhileWanted {
    file: File,
    skips_holes: bool,
    tx: mpsc::Sender<Vec<SearchItem<GrepLine>>>,
}

impl Read for WhileWanted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.tx.is_closed() {
            return Err(io::Error::other("the search was cancelled"));
        }
        if self.skips_holes
            && skip_hole(&mut self.file)?
            && let Some(first) = buffer.first_mut()
        {
            // A hole counts as one zero byte.
            *first = 0;
            return Ok(1);
        }
        self.file.read(buffer)
    }
}

/// Receives the lines of one file.
struct LineSink<'a> {
    path: String,
    max_chars: usize,
    out: &'a mut SearchSink<GrepLine>,
}

impl LineSink<'_> {
    fn push(&mut self, number: Option<u64>, is_match: bool, line: &[u8]) -> bool {
        let (text, is_cut) = shorten(line, self.max_chars);
        let line = GrepLine { path: self.path.clone(), number: number.unwrap_or_default(), is_match, text, is_cut };
        self.out.push(SearchItem::Hit(line))
    }
}

impl Sink for LineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        Ok(self.push(found.line_number(), true, found.bytes()))
    }

    fn context(&mut self, _: &Searcher, beside: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.push(beside.line_number(), false, beside.bytes()))
    }
}

/// Returns the first characters of a line without its terminator, and whether there are more.
fn shorten(line: &[u8], max_chars: usize) -> (String, bool) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A character has at most four bytes, so this decodes slightly more than is kept.
    let start = &line[..line.len().min(max_chars.saturating_mul(4).saturating_add(4))];
    let mut text = String::from_utf8_lossy(start).into_owned();
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => {
            text.truncate(end);
            (text, true)
        }
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_truncated_at_character_boundaries() {
        assert_eq!(shorten("äöü\r\n".as_bytes(), 2), ("äö".to_owned(), true));
        assert_eq!(shorten("a\rb\n".as_bytes(), 3), ("a\rb".to_owned(), false));
        assert_eq!(shorten(b"\xff\xfe!", 5), ("\u{fffd}\u{fffd}!".to_owned(), false));
        assert_eq!(shorten(b"\xff\xfe!", 1), ("\u{fffd}".to_owned(), true));
    }

    #[test]
    fn invalid_patterns_are_quoted_as_they_were_written() {
        let invalid = |pattern: &str| matcher(&GrepQuery::new("/w".into(), pattern)).unwrap_err().to_string();
        assert_eq!(invalid("("), "regex parse error:\n    (\n    ^\nerror: unclosed group");
        assert_eq!(invalid("a\\nb"), "the literal \"\\n\" is not allowed in a regex");
    }

    #[track_caller]
    fn check(pattern: &str, fits: &[&str], fits_not: &[&str]) {
        let pattern = PathPattern::new(pattern).unwrap();
        fits.iter().for_each(|path| assert!(pattern.fits(Path::new("/w"), Path::new(path)), "{path}"));
        fits_not.iter().for_each(|path| assert!(!pattern.fits(Path::new("/w"), Path::new(path)), "{path}"));
    }

    #[test]
    fn patterns_match_names_or_paths() {
        check("*.rs", &["/w/a.rs", "/w/b/C.RS"], &["/w/a.rs/b"]);
        check("C*", &["/w/Cargo.toml"], &["/w/cargo.toml"]);
        check("src/*.rs", &["/w/src/a.rs", "/w/x/src/a.rs"], &["/w/src/x/a.rs", "/w/a.rs"]);
        check("./src/*.rs", &["/w/src/a.rs"], &["/w/a.rs"]);
        check("w/*.rs", &["/w/w/a.rs"], &["/w/a.rs"]);
        check("**/w/*.rs", &["/w/w/a.rs"], &["/w/a.rs"]);
        check("/w/**/*.rs", &["/w/a.rs", "/w/x/a.rs"], &["/v/w/a.rs"]);
        check("{a,b}.c", &["/a.c", "/b.c"], &["/c.c"]);
        check("", &["/anything"], &[]);
        assert!(matches!(PathPattern::new("a["), Err(SearchError::Pattern(_))));
    }
}

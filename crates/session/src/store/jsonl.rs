//! Sessions as JSONL files, in pi's directory layout.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures::future::{BoxFuture, ready};

use super::list::{self, ListCache, ListProgress, SessionFile, SessionSummary, Stamp};
use super::{Durability, Journal, ListScope, MAX_TEXT, SessionRef, SessionStore, StoreError, aside};
use crate::entry::{Header, names, scan};

mod long_file;

mod append;

mod import;

use append::JsonlJournal;
use pinch_stdx::fs::{create_private_dir, open_regular};

/// Keeps each session in a separate file. Clones share a cache of listed files.
#[derive(Clone, Debug)]
pub struct JsonlStore {
    layout: Layout,
    durability: Durability,
    cache: Arc<ListCache>,
}

#[derive(Clone, Debug)]
enum Layout {
    /// One directory per working directory below this one.
    ByCwd(PathBuf),
    /// All files in this directory.
    Flat(PathBuf),
}

impl JsonlStore {
    fn new(layout: Layout) -> Self {
        Self { layout, durability: Durability::default(), cache: Arc::default() }
    }

    /// Creates a store with one directory per working directory, below `sessions` in the agent's directory.
    pub fn by_cwd(sessions: impl Into<PathBuf>) -> Self {
        Self::new(Layout::ByCwd(sessions.into()))
    }

    /// Creates a store with all files in one directory.
    pub fn flat(folder: impl Into<PathBuf>) -> Self {
        Self::new(Layout::Flat(folder.into()))
    }

    /// Sets when lines are flushed to disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Returns the directory for new sessions of a working directory.
    pub fn dir_for(&self, cwd: &str) -> PathBuf {
        match &self.layout {
            Layout::ByCwd(root) => root.join(names::dir_name(cwd)),
            Layout::Flat(folder) => folder.clone(),
        }
    }

    /// Reads only headers, newest file first, until one matches.
    fn most_recent_now(&self, cwd: &str) -> Option<PathBuf> {
        let mut files = session_files(&self.dir_for(cwd));
        files.sort_by_key(|file| std::cmp::Reverse(file.stamp));
        let fits = |path: &PathBuf| read_header(path).is_some_and(|header| self.belongs(header.cwd.as_deref(), cwd));
        files.into_iter().map(|file| file.path).find(fits)
    }

    /// Returns whether a session belongs to a working directory. One in its directory does, unless the header says otherwise: different
    /// working directories can share a name.
    fn belongs(&self, own: Option<&str>, cwd: &str) -> bool {
        match (&self.layout, own) {
            (_, Some(own)) => own == cwd,
            (Layout::ByCwd(_), None) => true,
            (Layout::Flat(_), None) => false,
        }
    }

    fn folders(&self, scope: &ListScope) -> Vec<PathBuf> {
        match (&self.layout, scope) {
            (_, ListScope::Cwd(cwd)) => vec![self.dir_for(cwd)],
            (Layout::Flat(folder), ListScope::All) => vec![folder.clone()],
            (Layout::ByCwd(root), ListScope::All) => fs::read_dir(root)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok().map(|entry| entry.path()))
                // Includes links to directories.
                .filter(|path| path.is_dir())
                .collect(),
        }
    }

    fn list_now(&self, scope: &ListScope, progress: Option<&ListProgress>, stop: &AtomicBool) -> Vec<SessionSummary> {
        self.list_where(scope, |_| true, progress, stop)
    }

    /// Reads the headers of all files, and the rest of those that match.
    fn find_now(&self, beginning: &str, scope: &ListScope) -> Vec<SessionSummary> {
        let is_wanted =
            |file: &SessionFile| read_header(&file.path).is_some_and(|header| header.id.starts_with(beginning));
        let mut found = self.list_where(scope, is_wanted, None, &AtomicBool::new(false));
        found.sort_by_key(|summary| summary.id != beginning);
        found
    }

    fn list_where(
        &self,
        scope: &ListScope,
        is_wanted: impl Fn(&SessionFile) -> bool,
        progress: Option<&ListProgress>,
        stop: &AtomicBool,
    ) -> Vec<SessionSummary> {
        let mut files = Vec::new();
        for folder in self.folders(scope) {
            let there = session_files(&folder);
            self.cache.forget_removed(&folder, &there);
            files.extend(there.into_iter().filter(&is_wanted));
        }
        let mut found = list::summarise_files(&files, &self.cache, progress, stop);
        if let ListScope::Cwd(cwd) = scope {
            let own = |summary: &SessionSummary| (!summary.cwd.is_empty()).then(|| summary.cwd.clone());
            found.retain(|summary| self.belongs(own(summary).as_deref(), cwd));
        }
        list::sort(&mut found);
        found
    }

    /// Lists on another thread: thousands of files take a while, and some file systems are slow. Dropping the future stops it.
    async fn list_aside(&self, scope: ListScope, progress: Option<ListProgress>) -> Vec<SessionSummary> {
        let stop = StopOnDrop(Arc::default());
        let (store, flag) = (self.clone(), Arc::clone(&stop.0));
        let listed = tokio::task::spawn_blocking(move || store.list_now(&scope, progress.as_ref(), &flag)).await;
        listed.unwrap_or_default()
    }

    fn create_now(&self, header: &Header) -> Result<Box<dyn Journal>, StoreError> {
        if !names::is_session_id(&header.id) {
            return Err(StoreError::BadId { id: header.id.to_string() });
        }
        let folder = self.dir_for(header.cwd.as_deref().unwrap_or(""));
        create_private_dir(&folder).map_err(StoreError::io("create", &folder))?;
        let path = folder.join(names::file_name(&header.timestamp, &header.id));
        Ok(Box::new(JsonlJournal::new(path, self.durability)))
    }

    /// Like [`JsonlStore::find`] on another thread: looking up an id searches all directories, which takes a while.
    async fn find_aside(&self, at: SessionRef) -> Result<PathBuf, StoreError> {
        if let SessionRef::Path(path) = at {
            return Ok(path);
        }
        let store = self.clone();
        let found = aside(move || store.find(&at)).await;
        found.map_err(StoreError::io("list", &self.dir_for(""))).flatten()
    }

    fn find(&self, at: &SessionRef) -> Result<PathBuf, StoreError> {
        match at {
            SessionRef::Path(path) => Ok(path.clone()),
            SessionRef::Id(id) => {
                let folders = self.folders(&ListScope::All);
                let mut paths: Vec<PathBuf> =
                    folders.iter().flat_map(|folder| session_files(folder)).map(|file| file.path).collect();
                // Unless it was renamed, a file's name contains the id: read other files last.
                let ending = format!("{id}.jsonl");
                paths.sort_by_key(|path| {
                    !path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending))
                });
                let is_it = |path: &PathBuf| read_header(path).is_some_and(|header| header.id == *id);
                paths.into_iter().find(is_it).ok_or_else(|| StoreError::NotFound { name: id.to_string() })
            }
        }
    }
}

impl SessionStore for JsonlStore {
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move { Ok(self.list_aside(scope, None).await) })
    }

    fn list_with_progress(
        &self,
        scope: ListScope,
        progress: ListProgress,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move { Ok(self.list_aside(scope, Some(progress)).await) })
    }

    fn find_by_id<'a>(
        &'a self,
        beginning: &'a str,
        scope: ListScope,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move {
            let (store, beginning) = (self.clone(), beginning.to_owned());
            Ok(tokio::task::spawn_blocking(move || store.find_now(&beginning, &scope)).await.unwrap_or_default())
        })
    }

    fn most_recent<'a>(&'a self, cwd: &'a str) -> BoxFuture<'a, Result<Option<SessionRef>, StoreError>> {
        let (store, cwd) = (self.clone(), cwd.to_owned());
        Box::pin(async move {
            let found = aside(move || store.most_recent_now(&cwd)).await;
            Ok(found.map_err(StoreError::io("list", &self.dir_for("")))?.map(SessionRef::Path))
        })
    }

    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        Box::pin(ready(self.create_now(header)))
    }

    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        let at = at.clone();
        Box::pin(async move {
            let path = self.find_aside(at).await?;
            Ok(Box::new(JsonlJournal::new(path, self.durability)) as Box<dyn Journal>)
        })
    }

    fn file_of(&self, at: &SessionRef) -> Option<PathBuf> {
        self.find(at).ok()
    }

    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>> {
        let at = at.clone();
        Box::pin(async move {
            let path = self.find_aside(at).await?;
            match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Err(StoreError::NotFound { name: path.display().to_string() })
                }
                other => other.map_err(StoreError::io("remove", &path)),
            }
        })
    }
}

/// Stops a listing whose future was dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the `.jsonl` files of a directory by path; none if it cannot be read.
fn session_files(folder: &Path) -> Vec<SessionFile> {
    let mut files: Vec<SessionFile> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            if path.extension()? != "jsonl" {
                return None;
            }
            let meta = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
            let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            Some(SessionFile { path, stamp: Stamp { modified, n_bytes: meta.len() } })
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Reads the header of a file, which must be its first entry. Reads at most 1 MiB.
pub fn read_header(path: &Path) -> Option<Header> {
    use io::Read as _;
    const LIMIT: u64 = 1 << 20;
    let mut file = open_regular(path).ok()?;
    let mut text = Vec::with_capacity(4096);
    let mut step = 4096;
    loop {
        let read = (&mut file).take(step).read_to_end(&mut text).ok()?;
        let at_end = (read as u64) < step || text.len() as u64 >= LIMIT;
        // A line cut off by the end of the buffer is not complete yet.
        let whole = if at_end { text.len() } else { memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1) };
        if let Some(line) = scan::lines(&text[..whole]).map(|(_, line)| line).find(|line| scan::line(line).is_some()) {
            return Header::parse(line);
        }
        if at_end {
            return None;
        }
        step = (step * 4).min(LIMIT - text.len() as u64);
    }
}

/// Reads a whole file; errors include the path.
pub(super) fn read(path: &Path) -> Result<Bytes, StoreError> {
    let size = fs::metadata(path).and_then(|meta| match meta.is_file() {
        true => Ok(meta.len()),
        // A pipe would block, and a device has no end.
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    });
    let text = size.and_then(|size| if size > MAX_TEXT { Ok(None) } else { fs::read(path).map(Some) });
    match text {
        Ok(Some(text)) => Ok(Bytes::from(text)),
        Ok(None) => Err(StoreError::TooLarge { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(StoreError::NotFound { name: path.display().to_string() })
        }
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

//! Sessions as JSONL files, in the folders in which pi keeps them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures::future::{BoxFuture, ready};

use super::list::{self, SessionFile, SessionSummary};
use super::{Durability, Journal, ListScope, SessionRef, SessionStore, StoreError};
use crate::entry::{Header, names, scan};

mod read;

mod append;

use append::JsonlJournal;

/// Keeps each session in a file of its own.
#[derive(Clone, Debug)]
pub struct JsonlStore {
    layout: Layout,
    durability: Durability,
}

#[derive(Clone, Debug)]
enum Layout {
    /// One folder for each working directory below this one.
    ByCwd(PathBuf),
    /// All files in this folder.
    Flat(PathBuf),
}

impl JsonlStore {
    /// A store with one folder for each working directory, below `sessions` of the agent's folder.
    pub fn by_cwd(sessions: impl Into<PathBuf>) -> Self {
        Self { layout: Layout::ByCwd(sessions.into()), durability: Durability::Os }
    }

    /// A store with all files in one folder.
    pub fn flat(folder: impl Into<PathBuf>) -> Self {
        Self { layout: Layout::Flat(folder.into()), durability: Durability::Os }
    }

    /// Says when lines are forced to the disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The folder in which a new session of a working directory is kept.
    pub fn folder_for(&self, cwd: &str) -> PathBuf {
        match &self.layout {
            Layout::ByCwd(root) => root.join(names::folder_name(cwd)),
            Layout::Flat(folder) => folder.clone(),
        }
    }

    /// Reads headers only, newest file first.
    fn most_recent_now(&self, cwd: &str) -> Option<PathBuf> {
        let mut files = session_files(&self.folder_for(cwd));
        files.sort_by_key(|file| std::cmp::Reverse(file.modified));
        files.into_iter().map(|file| file.path).find(|path| self.belongs(read_header(path).as_ref(), cwd))
    }

    /// Whether a session is one of a working directory. In the folder of a directory it is unless its header says otherwise; folders of
    /// different directories can have the same name.
    fn belongs(&self, header: Option<&Header>, cwd: &str) -> bool {
        let Some(header) = header else { return false };
        match (&self.layout, header.cwd.as_deref()) {
            (_, Some(own)) => own == cwd,
            (Layout::ByCwd(_), None) => true,
            (Layout::Flat(_), None) => false,
        }
    }

    fn folders(&self, scope: &ListScope) -> Vec<PathBuf> {
        match (&self.layout, scope) {
            (_, ListScope::Cwd(cwd)) => vec![self.folder_for(cwd)],
            (Layout::Flat(folder), ListScope::All) => vec![folder.clone()],
            (Layout::ByCwd(root), ListScope::All) => fs::read_dir(root)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok().map(|entry| entry.path()))
                .filter(|path| path.is_dir())
                .collect(),
        }
    }

    fn list_now(&self, scope: &ListScope) -> Vec<SessionSummary> {
        self.list_where(scope, |_| true)
    }

    /// Reads the headers of all files, and more of those only that are wanted.
    fn find_now(&self, beginning: &str, scope: &ListScope) -> Vec<SessionSummary> {
        let is_wanted =
            |file: &SessionFile| read_header(&file.path).is_some_and(|header| header.id.starts_with(beginning));
        let mut found = self.list_where(scope, is_wanted);
        found.sort_by_key(|summary| summary.id != beginning);
        found
    }

    fn list_where(&self, scope: &ListScope, is_wanted: impl Fn(&SessionFile) -> bool) -> Vec<SessionSummary> {
        let files = self.folders(scope).iter().flat_map(|folder| session_files(folder)).filter(is_wanted).collect();
        let mut found = list::summarise_files(files);
        if let ListScope::Cwd(cwd) = scope {
            found.retain(|summary| {
                let header = Header {
                    version: 0,
                    id: String::new(),
                    timestamp: String::new(),
                    cwd: (!summary.cwd.is_empty()).then(|| summary.cwd.clone()),
                    parent_session: None,
                };
                self.belongs(Some(&header), cwd)
            });
        }
        list::sort(&mut found);
        found
    }

    fn create_now(&self, header: &Header) -> Result<Box<dyn Journal>, StoreError> {
        if !names::is_session_id(&header.id) {
            return Err(StoreError::BadId { id: header.id.clone() });
        }
        let folder = self.folder_for(header.cwd.as_deref().unwrap_or(""));
        fs::create_dir_all(&folder).map_err(StoreError::io("create", &folder))?;
        let path = folder.join(names::file_name(&header.timestamp, &header.id));
        Ok(Box::new(JsonlJournal::new(path, self.durability)))
    }

    fn find(&self, at: &SessionRef) -> Result<PathBuf, StoreError> {
        match at {
            SessionRef::Path(path) => Ok(path.clone()),
            SessionRef::Id(id) => self
                .folders(&ListScope::All)
                .iter()
                .flat_map(|folder| session_files(folder))
                .map(|file| file.path)
                .find(|path| read_header(path).is_some_and(|header| header.id == *id))
                .ok_or_else(|| StoreError::NotFound { name: id.clone() }),
        }
    }
}

impl SessionStore for JsonlStore {
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move {
            let store = self.clone();
            // Thousands of files take a while, and some file systems are slow.
            Ok(tokio::task::spawn_blocking(move || store.list_now(&scope)).await.unwrap_or_default())
        })
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
        Box::pin(ready(Ok(self.most_recent_now(cwd).map(SessionRef::Path))))
    }

    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        Box::pin(ready(self.create_now(header)))
    }

    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        let journal = self.find(at).map(|path| Box::new(JsonlJournal::new(path, self.durability)) as Box<dyn Journal>);
        Box::pin(ready(journal))
    }

    fn file_of(&self, at: &SessionRef) -> Option<PathBuf> {
        self.find(at).ok()
    }

    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>> {
        let removed = self.find(at).and_then(|path| match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::NotFound { name: path.display().to_string() })
            }
            other => other.map_err(StoreError::io("remove", &path)),
        });
        Box::pin(ready(removed))
    }
}

/// The `.jsonl` files of a folder; none when it cannot be read.
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
            let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            Some(SessionFile { path, modified: i64::try_from(modified).unwrap_or(i64::MAX) })
        })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The header of a file: its first line that is an entry must be one. Reads at most 1 MiB.
pub fn read_header(path: &Path) -> Option<Header> {
    use io::Read as _;
    const LIMIT: u64 = 1 << 20;
    let mut file = fs::File::open(path).ok()?;
    let mut text = Vec::with_capacity(4096);
    let mut step = 4096;
    loop {
        let read = (&mut file).take(step).read_to_end(&mut text).ok()?;
        let at_end = (read as u64) < step || text.len() as u64 >= LIMIT;
        // A line that is cut off by the end of what was read is no whole line yet.
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

/// All bytes of a file; the error says which file.
pub(super) fn read(path: &Path) -> Result<Bytes, StoreError> {
    match read::whole(path) {
        Ok(text) => Ok(Bytes::from(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(StoreError::NotFound { name: path.display().to_string() })
        }
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

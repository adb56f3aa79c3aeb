//! A machine with an in-memory file tree that cannot run commands.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::{BoxFuture, ready};
use futures::stream::{BoxStream, StreamExt, iter, once};
use pinch_machine::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use pinch_machine::{CommandSpec, FileKind, Machine, MachineError, Process, Stat};

/// The files. Directories exist implicitly as parents of files.
#[derive(Debug, Default)]
pub struct MemoryMachine(Mutex<BTreeMap<PathBuf, Bytes>>);

impl MemoryMachine {
    /// A machine with these files.
    pub fn with<P: Into<PathBuf>, C: Into<Bytes>>(files: impl IntoIterator<Item = (P, C)>) -> Self {
        Self(Mutex::new(files.into_iter().map(|(path, content)| (path.into(), content.into())).collect()))
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content(&self, path: &Path, operation: &'static str) -> Result<Bytes, MachineError> {
        self.files().get(path).cloned().ok_or_else(|| failed(io::ErrorKind::NotFound, operation, path))
    }
}

fn failed(kind: io::ErrorKind, operation: &'static str, path: &Path) -> MachineError {
    MachineError::new(kind.into(), operation, Some(path))
}

impl Machine for MemoryMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        let files = self.files();
        let stat = match files.get(path) {
            Some(content) => Ok((FileKind::File, content.len() as u64)),
            None if files.keys().any(|file| file.starts_with(path)) => Ok((FileKind::Directory, 0)),
            None => Err(failed(io::ErrorKind::NotFound, "stat", path)),
        };
        Box::pin(ready(stat.map(|(kind, len)| Stat::new(kind, len))))
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        let content = self.content(path, "open").and_then(|content| match content.len() as u64 > max {
            true => Err(failed(io::ErrorKind::FileTooLarge, "open", path)),
            false => Ok(content),
        });
        Box::pin(ready(content))
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        once(ready(self.content(path, "open"))).boxed()
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        self.files().insert(path.to_owned(), content);
        Box::pin(ready(Ok(())))
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        let files = self.files();
        let below = files.keys().filter_map(|file| file.strip_prefix(path).ok()?.iter().next());
        let mut names: Vec<String> = below.map(|name| name.to_string_lossy().into_owned()).collect();
        names.dedup();
        Box::pin(ready(Ok(names)))
    }

    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        let files = self.files();
        let found = files.keys().filter(|file| file.to_string_lossy().ends_with(query.pattern.trim_start_matches('*')));
        let found = found.filter_map(|file| Some(file.strip_prefix(&query.root).ok()?.to_string_lossy().into_owned()));
        let found: Vec<_> = found.map(|path| Ok(SearchItem::Hit(FoundPath { path, is_dir: false }))).collect();
        iter(found).boxed()
    }

    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        let mut found = Vec::new();
        for (file, content) in &*self.files() {
            let Ok(path) = file.strip_prefix(&query.root) else { continue };
            for (text, number) in String::from_utf8_lossy(content).lines().zip(1..) {
                if text.contains(&query.pattern) {
                    let (path, text) = (path.to_string_lossy().into_owned(), text.to_owned());
                    found.push(Ok(SearchItem::Hit(GrepLine { path, number, is_match: true, text, is_cut: false })));
                }
            }
        }
        iter(found).boxed()
    }

    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        Box::pin(ready(Ok(path.to_owned())))
    }

    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        Box::pin(ready(Err(failed(io::ErrorKind::PermissionDenied, "spawn", &command.program))))
    }
}

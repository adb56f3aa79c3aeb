//! Summaries of sessions for lists, read line by line and without building more than the displayed texts.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pinch_llm::ids::SessionId;
use pinch_llm::message::{Block, Content, Message};
use pinch_stdx::host::ms_from_iso;

use crate::entry::scan::{self, EntryType, MessageRole};
use crate::entry::{Entry, EntryBody, Header};

mod cache;

pub(super) use cache::ListCache;

/// Maximum bytes of text to search in; the rest is cut off.
const MAX_SEARCH_TEXT: usize = 1 << 20;

/// Maximum number of files read at the same time.
const MAX_READERS: usize = 16;

/// Longer lines are skipped.
const MAX_LINE: usize = 32 << 20;

/// Called with the number of files read and the total.
pub type ListProgress = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// The information about a session that lists show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Path of the file; for stores without files, the session's id.
    pub path: PathBuf,
    /// The session's id.
    pub id: SessionId,
    /// Its working directory; empty when its header has none.
    pub cwd: String,
    /// Its name.
    pub name: Option<String>,
    /// The session it was forked from.
    pub parent_session: Option<String>,
    /// Unix time in milliseconds at which it began, if its header says so.
    pub created: Option<i64>,
    /// Unix time in milliseconds of the newest message from the user or a model, or else of the session's start, or of the file.
    pub modified: i64,
    /// Unix time in milliseconds at which the file was last written.
    pub file_modified: i64,
    /// Number of messages of any role, on all branches.
    pub message_count: usize,
    /// The first text from the user; `(no messages)` if there is none.
    pub first_message: String,
    /// All texts from the user and models, joined by spaces; at most 1 MiB.
    pub search_text: Arc<str>,
}

/// A file that may be a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SessionFile {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// The properties that change with a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    /// Nanoseconds since 1970.
    pub(super) modified: u128,
    pub(super) n_bytes: u64,
}

impl Stamp {
    fn modified_ms(self) -> i64 {
        i64::try_from(self.modified / 1_000_000).unwrap_or(i64::MAX)
    }
}

/// Sorts summaries, most recently changed first, as stores list them.
pub fn sort(found: &mut [SessionSummary]) {
    found.sort_by_key(|summary| std::cmp::Reverse((summary.modified, summary.file_modified)));
}

/// Summarises files in parallel, at most [`MAX_READERS`] at a time, except for cached ones. Skips files that are not sessions, and stops
/// early when `stop` is set.
pub(super) fn summarise_files(
    files: &[SessionFile],
    cache: &ListCache,
    progress: Option<&ListProgress>,
    stop: &AtomicBool,
) -> Vec<SessionSummary> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let n_readers = (2 * cores).min(MAX_READERS).min(files.len());
    let (next, n_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(Vec::with_capacity(files.len()));
    std::thread::scope(|scope| {
        for _ in 0..n_readers {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let summary = cache.get(file).unwrap_or_else(|| {
                        let read = summarise_file(&file.path, file.stamp.modified_ms()).ok().flatten();
                        cache.put(file, read.clone());
                        read
                    });
                    found.lock().unwrap_or_else(PoisonError::into_inner).extend(summary);
                    if let Some(progress) = progress {
                        progress(n_done.fetch_add(1, Ordering::Relaxed) + 1, files.len());
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Summarises the text of one session. Returns `None` if it is not a session. `path` names a session without a file; `file_modified` is the
/// time of its last write in Unix milliseconds, if the store knows it.
pub fn summarise(text: &[u8], path: PathBuf, file_modified: i64) -> Option<SessionSummary> {
    let mut reader = SummaryReader::new(path, file_modified);
    for (_, line) in scan::lines(text) {
        if !reader.read(line) {
            return None;
        }
    }
    reader.finish()
}

/// Summarises a file with one line in memory at a time.
fn summarise_file(path: &Path, file_modified: i64) -> io::Result<Option<SessionSummary>> {
    let mut reader = SummaryReader::new(path.to_owned(), file_modified);
    let mut file = BufReader::with_capacity(64 << 10, File::open(path)?);
    let mut line = Vec::new();
    while next_line(&mut file, &mut line)? {
        // At most one: the text read ends with the line.
        for (_, line) in scan::lines(&line) {
            if !reader.read(line) {
                return Ok(None);
            }
        }
    }
    Ok(reader.finish())
}

/// Reads the next line, replacing one that is too long with an empty one. Returns false at the end.
fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    line.shrink_to(1 << 20);
    let mut is_too_long = false;
    loop {
        let chunk = match file.fill_buf() {
            Ok([]) => return Ok(!line.is_empty() || is_too_long),
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = memchr::memchr(b'\n', chunk);
        let n_bytes = end.map_or(chunk.len(), |end| end + 1);
        is_too_long |= line.len() + n_bytes > MAX_LINE;
        if is_too_long {
            line.clear();
        } else {
            line.extend_from_slice(&chunk[..n_bytes]);
        }
        file.consume(n_bytes);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Builds a summary line by line.
struct SummaryReader {
    summary: SessionSummary,
    search_text: String,
    has_header: bool,
    /// Time of the newest message from the user or a model.
    newest: Option<i64>,
}

impl SummaryReader {
    fn new(path: PathBuf, file_modified: i64) -> Self {
        let summary = SessionSummary {
            path,
            id: SessionId::default(),
            cwd: String::new(),
            name: None,
            parent_session: None,
            created: None,
            modified: 0,
            file_modified,
            message_count: 0,
            first_message: String::new(),
            search_text: Arc::from(""),
        };
        Self { summary, search_text: String::new(), has_header: false, newest: None }
    }

    /// Adds a line. Returns false if this is not a session.
    fn read(&mut self, line: &[u8]) -> bool {
        let Some(seen) = scan::line(line) else { return true };
        if !self.has_header {
            return self.header(line).is_some();
        }
        match (seen.kind, seen.role) {
            (EntryType::SessionInfo, _) => {
                if let Some(Entry { body: EntryBody::SessionInfo { name }, .. }) = Entry::parse(line) {
                    self.summary.name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
                }
            }
            (EntryType::Message, role) => {
                self.summary.message_count += 1;
                if matches!(role, MessageRole::User | MessageRole::Assistant) {
                    self.newest = self.newest.max(self.message(line, role));
                }
            }
            _ => {}
        }
        true
    }

    fn header(&mut self, line: &[u8]) -> Option<()> {
        let header = Header::parse(line)?;
        self.summary.created = ms_from_iso(&header.timestamp);
        self.summary.id = header.id;
        self.summary.cwd = header.cwd.unwrap_or_default();
        self.summary.parent_session = header.parent_session;
        self.has_header = true;
        Some(())
    }

    /// Adds a message from the user or a model and returns its time. Lines of version 1 have no ids, so only the message is read.
    fn message(&mut self, line: &[u8], role: MessageRole) -> Option<i64> {
        let (message, entry_time) = match Entry::parse(line) {
            Some(Entry { body: EntryBody::Message(message), timestamp, .. }) => (message, ms_from_iso(&timestamp)),
            _ => {
                let raw = crate::entry::text::parse_object(line)?;
                let time = raw.get("timestamp").and_then(serde_json::Value::as_str).and_then(ms_from_iso);
                (Message::from_value(raw.get("message")?).ok()?.into(), time)
            }
        };
        let text = text_of(&message);
        if !text.is_empty() {
            if role == MessageRole::User && self.summary.first_message.is_empty() {
                self.summary.first_message.clone_from(&text);
            }
            if self.search_text.len() < MAX_SEARCH_TEXT {
                if !self.search_text.is_empty() {
                    self.search_text.push(' ');
                }
                let room = MAX_SEARCH_TEXT.saturating_sub(self.search_text.len());
                self.search_text.push_str(&text[..text.floor_char_boundary(room)]);
            }
        }
        Some(message.timestamp()).filter(|time| *time != 0).or(entry_time)
    }

    fn finish(mut self) -> Option<SessionSummary> {
        let summary = &mut self.summary;
        summary.modified = self.newest.or(summary.created).unwrap_or(summary.file_modified);
        if summary.first_message.is_empty() {
            "(no messages)".clone_into(&mut summary.first_message);
        }
        summary.search_text = self.search_text.into();
        self.has_header.then_some(self.summary)
    }
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => match &user.content {
            Content::Text(text) => text.clone(),
            Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join(" "),
        },
        Message::Assistant(assistant) => assistant.text(" "),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;

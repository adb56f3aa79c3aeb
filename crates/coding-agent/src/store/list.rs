//! What lists of sessions show, read without building more than the texts that are shown.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pinch_llm::message::{Block, Content, Message};
use pinch_stdx::host::ms_from_iso;

use crate::entry::scan::{self, Kind, Role};
use crate::entry::{Entry, EntryBody, Header};

/// Text that a search looks at is cut here.
const MAX_SEARCH_TEXT: usize = 1 << 20;

/// Files read at the same time.
const MAX_READERS: usize = 16;

/// What a list of sessions shows of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// The file; for stores without files the session's id.
    pub path: PathBuf,
    /// The session's id.
    pub id: String,
    /// Its working directory; empty when its header has none.
    pub cwd: String,
    /// The name somebody gave it.
    pub name: Option<String>,
    /// The session it was forked from.
    pub parent_session: Option<String>,
    /// Unix milliseconds at which it began, when its header says so.
    pub created: Option<i64>,
    /// Unix milliseconds of the newest message of user or model, else of the beginning, else of the file.
    pub modified: i64,
    /// Unix milliseconds at which the file was written last.
    pub file_modified: i64,
    /// Messages of any role, on all branches.
    pub message_count: usize,
    /// The first text of the user; `(no messages)` when there is none.
    pub first_message: String,
    /// All texts of user and model, joined by spaces; at most 1 MiB.
    pub search_text: String,
}

/// A file that may be a session.
pub(super) struct SessionFile {
    pub(super) path: PathBuf,
    /// Unix milliseconds.
    pub(super) modified: i64,
}

/// Sorts the latest changed first.
pub(super) fn sort(found: &mut [SessionSummary]) {
    found.sort_by_key(|summary| std::cmp::Reverse((summary.modified, summary.file_modified)));
}

/// Reads the files side by side, at most [`MAX_READERS`] at a time. Files that are no sessions are left out.
pub(super) fn summarise_files(files: Vec<SessionFile>) -> Vec<SessionSummary> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let n_readers = (2 * cores).min(MAX_READERS).min(files.len());
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(files.len()));
    std::thread::scope(|scope| {
        for _ in 0..n_readers {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let summary = std::fs::read(&file.path)
                        .ok()
                        .and_then(|text| summarise(&text, file.path.clone(), file.modified));
                    found.lock().unwrap_or_else(PoisonError::into_inner).extend(summary);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Summarises the text of one session; `None` when it is none.
pub(super) fn summarise(text: &[u8], path: PathBuf, file_modified: i64) -> Option<SessionSummary> {
    let mut lines = scan::lines(text).filter_map(|(_, line)| Some((line, scan::line(line)?)));
    let header = Header::parse(lines.next()?.0)?;
    let created = ms_from_iso(&header.timestamp);
    let mut summary = SessionSummary {
        path,
        id: header.id,
        cwd: header.cwd.unwrap_or_default(),
        name: None,
        parent_session: header.parent_session,
        created,
        modified: 0,
        file_modified,
        message_count: 0,
        first_message: String::new(),
        search_text: String::new(),
    };
    let mut newest = None;
    for (line, seen) in lines {
        match (seen.kind, seen.role) {
            (Kind::SessionInfo, _) => {
                if let Some(Entry { body: EntryBody::SessionInfo { name }, .. }) = Entry::parse(line) {
                    summary.name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
                }
            }
            (Kind::Message, role) => {
                summary.message_count += 1;
                if matches!(role, Role::User | Role::Assistant) {
                    newest = newest.max(summary.add(line, role));
                }
            }
            _ => {}
        }
    }
    summary.modified = newest.or(created).unwrap_or(file_modified);
    if summary.first_message.is_empty() {
        summary.first_message = "(no messages)".to_owned();
    }
    Some(summary)
}

impl SessionSummary {
    /// Adds a message of user or model; returns its time. Lines of version 1 have no ids: the message alone is read.
    fn add(&mut self, line: &[u8], role: Role) -> Option<i64> {
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
            if role == Role::User && self.first_message.is_empty() {
                self.first_message.clone_from(&text);
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

//! Journal of messages that runs have read: JSON lines, appended under a file lock. Any number of processes share it.
//!
//! All functions block.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_stdx::fs::lock::is_still;
use pinch_stdx::fs::{Access, FileLock, create_private_dir, make_private, open_regular, write_atomic};
use serde::{Deserialize, Serialize};

use super::known::{KnownMessages, MAX_KNOWN, MessageHash, MessageId, MessageRefusal};
use crate::key::RunId;

/// Name of the journal in a state directory.
const FILE: &str = "seen-messages.jsonl";

/// How long to wait for another process that is appending.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of lines before the file is rewritten.
const MAX_LINES: usize = 2 * MAX_KNOWN;

/// Maximum number of bytes read from the end of a file.
const MAX_BYTES: u64 = 8 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JournalLine {
    key: String,
    content: String,
    run_id: RunId,
    /// Milliseconds since the Unix epoch.
    at: i64,
    /// The run was never handed out, so the message may be sent again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    withdrawn: bool,
}

impl JournalLine {
    fn new(id: &MessageId, run_id: &str, at: i64) -> Self {
        Self { key: to_hex(&id.key), content: to_hex(&id.content), run_id: run_id.into(), at, withdrawn: false }
    }

    fn to_json(&self) -> io::Result<Vec<u8>> {
        let mut json = serde_json::to_vec(self)?;
        json.push(b'\n');
        Ok(json)
    }

    fn id(&self) -> Option<MessageId> {
        Some(MessageId { key: from_hex(&self.key)?, content: from_hex(&self.content)? })
    }
}

fn to_hex(hash: &MessageHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<MessageHash> {
    let mut hash = MessageHash::default();
    if text.len() != 2 * hash.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

/// The messages of a state directory known to this process.
#[derive(Debug)]
pub(super) struct MessageJournal {
    path: PathBuf,
    known: Mutex<KnownMessages>,
    position: Mutex<JournalPosition>,
}

/// Read position in the file.
#[derive(Debug, Default)]
struct JournalPosition {
    file: Option<File>,
    /// The end of the last complete line read.
    offset: u64,
    lines: usize,
}

impl MessageJournal {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self { path: state_dir.join(FILE), known: Mutex::default(), position: Mutex::default() }
    }

    /// Returns the known messages without reading the file.
    pub(super) fn known(&self) -> MutexGuard<'_, KnownMessages> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn position(&self) -> MutexGuard<'_, JournalPosition> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads appended lines.
    pub(super) fn refresh(&self, now: i64) -> io::Result<()> {
        let mut position = self.position();
        self.catch_up(&mut position, now)
    }

    /// Records that a run reads a message, unless another run has.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn append(&self, id: &MessageId, run_id: &str, now: i64) -> io::Result<Result<(), MessageRefusal>> {
        let mut position = self.position();
        let lock = self.lock()?;
        self.catch_up(&mut position, now)?;
        if let Err(refusal) = self.known().check_unread(id) {
            return Ok(Err(refusal));
        }
        self.write(&mut position, lock.file(), &JournalLine::new(id, run_id, now))?;
        self.known().insert(id, Some(run_id.into()), now);
        if position.lines > MAX_LINES
            && let Err(error) = self.compact(&mut position)
        {
            tracing::warn!(path = %self.path.display(), %error, "could not shorten the message journal");
        }
        Ok(Ok(()))
    }

    /// Withdraws the record made by [`Self::append`].
    pub(super) fn withdraw(&self, id: &MessageId, run_id: &str, now: i64) -> io::Result<()> {
        let mut position = self.position();
        self.known().remove(&id.key, Some(run_id));
        let lock = self.lock()?;
        self.catch_up(&mut position, now)?;
        self.write(&mut position, lock.file(), &JournalLine { withdrawn: true, ..JournalLine::new(id, run_id, now) })
    }

    fn lock(&self) -> io::Result<FileLock> {
        if let Some(dir) = self.path.parent() {
            create_private_dir(dir)?;
        }
        let lock = FileLock::acquire(&self.path, PATIENCE).map_err(io::Error::other)?;
        if !lock.file().metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        make_private(lock.file());
        Ok(lock)
    }

    fn write(&self, position: &mut JournalPosition, file: &File, line: &JournalLine) -> io::Result<()> {
        let len = file.metadata()?.len();
        let mut text = line.to_json()?;
        let is_torn = len != position.offset;
        if is_torn {
            // Another process ended in the middle of a line.
            text.insert(0, b'\n');
        }
        append_whole(file, len, &text)?;
        position.offset = len + text.len() as u64;
        position.lines += 1 + usize::from(is_torn);
        Ok(())
    }

    /// Reads further lines. An incomplete line at the end is left for later.
    fn catch_up(&self, position: &mut JournalPosition, now: i64) -> io::Result<()> {
        let is_same = match &position.file {
            Some(file) => is_still(file, &self.path)? && file.metadata()?.len() >= position.offset,
            None => false,
        };
        if !is_same {
            *position = JournalPosition::default();
            position.file = match open_regular(&self.path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        let Some(mut file) = position.file.as_ref() else { return Ok(()) };
        let len = file.metadata()?.len();
        if len.saturating_sub(position.offset) > MAX_BYTES {
            position.offset = len - MAX_BYTES;
            position.lines = MAX_LINES;
        }
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(position.offset))?;
        file.take(len.saturating_sub(position.offset)).read_to_end(&mut text)?;
        text.truncate(memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1));
        position.offset += text.len() as u64;
        let mut lines = Vec::new();
        let mut n_lines = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            n_lines += 1;
            let line = serde_json::from_slice::<JournalLine>(line).ok();
            lines.extend(line.and_then(|line| Some((line.id()?, line))));
        }
        position.lines += n_lines;
        let n_damaged = n_lines - lines.len();
        let mut known = self.known();
        for (id, line) in lines {
            match line.withdrawn {
                true => known.remove(&id.key, Some(&line.run_id)),
                // A clock that was ahead must not make a message appear younger than later ones.
                false => known.insert(&id, Some(line.run_id), line.at.min(now)),
            }
        }
        known.expire(now);
        if n_damaged > 0 {
            tracing::warn!(path = %self.path.display(), n_damaged, "skipping damaged lines in the message journal");
        }
        Ok(())
    }

    /// Rewrites the file with only the known messages. The caller holds the lock.
    fn compact(&self, position: &mut JournalPosition) -> io::Result<()> {
        let lines: Vec<JournalLine> =
            self.known().read().map(|(id, run_id, at)| JournalLine::new(&id, run_id, at)).collect();
        let text = lines.iter().map(JournalLine::to_json).collect::<io::Result<Vec<_>>>()?.concat();
        write_atomic(&self.path, &text, Access::Private)?;
        let file = open_regular(&self.path)?;
        *position = JournalPosition { file: Some(file), offset: text.len() as u64, lines: lines.len() };
        Ok(())
    }
}

/// Appends a whole text, or nothing as far as the system allows.
fn append_whole(mut file: &File, len: u64, text: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(len))?;
    let written = file.write_all(text);
    if written.is_err() && file.set_len(len).is_err() {
        // Readers skip the partial line.
    }
    written
}

#[cfg(test)]
mod tests;

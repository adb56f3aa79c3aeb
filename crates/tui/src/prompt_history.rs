//! Submissions of a user in earlier sessions of a project: a private file that all sessions append to, at most a few at once.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_stdx::fs::lock::{FileLock, LockError};
use pinch_stdx::fs::{Access, create_private_dir, make_private, read_regular, write_atomic};
use serde_json::{Value, json};

/// Name of the file in the agent directory.
const FILE: &str = "prompt-history.jsonl";
/// Maximum size of a stored text, in bytes.
const MAX_TEXT: usize = 32 * 1024;
/// Maximum size of the file, in bytes; beyond it, the oldest entries are dropped.
const MAX_FILE: u64 = 1024 * 1024;
/// Number of entries, and their size in bytes, that are then kept.
const KEPT_ENTRIES: usize = 1_000;
const KEPT_BYTES: usize = 512 * 1024;
/// Time limit for waiting for another process to release the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// The history of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptHistory {
    file: PathBuf,
    cwd: String,
}

impl PromptHistory {
    /// Opens the history of a working directory, in an agent directory.
    pub(crate) fn new(agent_dir: &Path, cwd: &Path) -> Self {
        Self { file: agent_dir.join(FILE), cwd: cwd.to_string_lossy().into_owned() }
    }

    /// Appends a submission. Very long texts are skipped. Blocks while another process is writing.
    ///
    /// # Errors
    /// The file cannot be locked or written.
    pub(crate) fn append(&self, text: &str, now_ms: i64) -> io::Result<()> {
        if text.len() > MAX_TEXT {
            return Ok(());
        }
        let mut line = serde_json::to_vec(&json!({"cwd": self.cwd, "time": now_ms, "text": text}))?;
        line.push(b'\n');
        // A link would cause the text to be written elsewhere.
        if std::fs::symlink_metadata(&self.file).is_ok_and(|meta| !meta.is_file()) {
            return Err(io::Error::other(format!("{} is not a file", self.file.display())));
        }
        create_private_dir(self.file.parent().unwrap_or(Path::new(".")))?;
        let lock = FileLock::acquire(&self.file, PATIENCE).map_err(|error| match error {
            LockError::Io { source, .. } => source,
            other => io::Error::other(other),
        })?;
        let mut file = lock.file();
        make_private(file);
        let size = io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        if size + line.len() as u64 <= MAX_FILE {
            return file.write_all(&line);
        }
        let mut kept = newest(&self.read()?);
        kept.extend(line);
        write_atomic(&self.file, &kept, Access::Private)
    }

    /// Returns the newest submissions of the project, at most `n`, newest last and without duplicates. A missing file counts as empty.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn load(&self, n: usize) -> io::Result<Vec<String>> {
        let bytes = self.read()?;
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for line in bytes.rsplit(|byte| *byte == b'\n') {
            // Incomplete and foreign lines are skipped.
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            let member = |name: &str| line.get(name).and_then(Value::as_str);
            let Some(text) = member("text").filter(|_| member("cwd") == Some(&self.cwd)) else { continue };
            if seen.insert(text.to_owned()) {
                found.push(text.to_owned());
                if found.len() == n {
                    break;
                }
            }
        }
        found.reverse();
        Ok(found)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        match read_regular(&self.file, 2 * MAX_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }
}

/// Returns the newest lines, as many as are kept.
fn newest(bytes: &[u8]) -> Vec<u8> {
    let mut first = bytes.len();
    let ends = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    // The last line ends at the end; the line before it begins after the next line break found.
    for start in ends.chain([0]).skip(1).take(KEPT_ENTRIES) {
        if bytes.len() - start > KEPT_BYTES {
            break;
        }
        first = start;
    }
    bytes[first..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(dir: &tempfile::TempDir, cwd: &str) -> PromptHistory {
        PromptHistory::new(dir.path(), Path::new(cwd))
    }

    #[test]
    fn each_project_has_a_separate_history_without_duplicates() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (history(&dir, "/a"), history(&dir, "/b"));
        assert_eq!(a.load(10).unwrap(), [""; 0]);
        for (of, text) in [(&a, "one"), (&b, "other"), (&a, "two\nlines \u{1f600}"), (&a, "one")] {
            of.append(text, 1).unwrap();
        }
        assert_eq!(a.load(10).unwrap(), ["two\nlines \u{1f600}", "one"]);
        assert_eq!(a.load(1).unwrap(), ["one"]);
        assert_eq!(b.load(10).unwrap(), ["other"]);
        let mut file = std::fs::OpenOptions::new().append(true).open(dir.path().join(FILE)).unwrap();
        file.write_all(b"{\"cwd\": \"/a\", \"time\": 1, \"te\n\xff\n{\"cwd\":\"/a\"").unwrap();
        assert_eq!(a.load(10).unwrap().len(), 2, "what is damaged is passed over");
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_private_and_links_are_not_followed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let a = history(&dir, "/a");
        a.append("secret", 1).unwrap();
        let mode = std::fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join(FILE)).unwrap();
        assert!(a.append("secret", 1).is_err());
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn the_file_stays_small_and_keeps_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let a = history(&dir, "/a");
        let long = "x".repeat(20_000);
        for at in 0..120 {
            a.append(&format!("{at} {long}"), at).unwrap();
            assert!(std::fs::metadata(dir.path().join(FILE)).unwrap().len() <= MAX_FILE);
        }
        let kept = a.load(1_000).unwrap();
        assert!(kept.len() > 20 && kept.last().unwrap().starts_with("119 "), "{}", kept.len());
        a.append(&"y".repeat(MAX_TEXT + 1), 0).unwrap();
        assert!(a.load(1).unwrap()[0].starts_with("119 "), "a very long text is left out");
    }

    #[test]
    fn only_the_newest_thousand_entries_are_kept() {
        let line = |at: usize| format!("{{\"cwd\":\"/a\",\"time\":0,\"text\":\"{at}\"}}\n");
        let all: String = (0..3_000).map(line).collect();
        let kept = newest(all.as_bytes());
        assert_eq!(String::from_utf8(kept).unwrap(), (2_000..3_000).map(line).collect::<String>());
        assert_eq!(newest(b""), b"");
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|threads| {
            for writer in 0..4 {
                let a = history(&dir, "/a");
                threads.spawn(move || (0..100).for_each(|at| a.append(&format!("{writer} {at}"), 0).unwrap()));
            }
        });
        let kept = history(&dir, "/a").load(1_000).unwrap();
        assert_eq!(kept.len(), 400);
        for writer in 0..4 {
            let of: Vec<&String> = kept.iter().filter(|text| text.starts_with(&format!("{writer} "))).collect();
            assert!(of.iter().enumerate().all(|(at, text)| **text == format!("{writer} {at}")));
        }
    }
}

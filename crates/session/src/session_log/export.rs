//! Exporting the active branch as a separate session file, for sharing.

use std::io;
use std::path::Path;

use pinch_stdx::fs::{Access, real_path, write_named};
use serde_json::Value;

use super::{SessionLog, line};
use crate::entry::{EntryId, VERSION, text};
use crate::store::StoreError;

impl SessionLog {
    /// Returns the active branch as the text of a session: a new header with the session's id, then the entries as one chain. Lines stay as
    /// stored, except where the parent is not the previous line.
    ///
    /// # Errors
    /// Fails if a line cannot be read any more.
    pub fn export_jsonl(&self) -> Result<Vec<u8>, StoreError> {
        let mut header = self.header.clone();
        header.version = VERSION;
        header.timestamp = self.host.now_iso();
        header.cwd = Some(self.cwd.clone());
        header.parent_session = None;
        let mut text = line(&header.to_line());
        let mut before: Option<EntryId> = None;
        for at in self.index.path(self.leaf) {
            let entry = self.index.entry(at);
            let line = self.stored_line(at)?;
            match text::parse_object(&line) {
                Some(mut raw) if entry.parent_id != before => {
                    let parent = before.as_ref().map_or(Value::Null, |id| id.as_str().into());
                    raw.insert("parentId".into(), parent);
                    text.extend_from_slice(text::to_line(&raw).as_bytes());
                }
                _ => text.extend_from_slice(&line),
            }
            text.push(b'\n');
            before = Some(entry.id.clone());
        }
        Ok(text)
    }

    /// Checks that a path does not lead to the session's own file, which an export would destroy.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it does.
    pub fn check_target(&self, path: &Path) -> io::Result<()> {
        let own = self.path().filter(|own| own.exists() && real_path(own) == real_path(path));
        match own {
            Some(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "this is the session's own file")),
            None => Ok(()),
        }
    }

    /// Writes [`SessionLog::export_jsonl`] to a file, replacing it, and creates the directory if necessary. A new file is readable by the
    /// user only (0600); devices and pipes are written to directly. [`export_file_name`](crate::entry::names::export_file_name) gives the
    /// default name.
    ///
    /// # Errors
    /// Fails if a line cannot be read, the path is the session's own file, or the file cannot be written; existing content is left
    /// unchanged.
    pub fn export_to(&self, path: &Path) -> Result<(), StoreError> {
        self.check_target(path).map_err(StoreError::io("write", path))?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(StoreError::io("create", folder))?;
        }
        write_named(path, &self.export_jsonl()?, Access::NewPrivate).map_err(StoreError::io("write", path))
    }
}

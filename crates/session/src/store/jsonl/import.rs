//! Importing a session file from elsewhere into a store.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use pinch_stdx::fs::{create_private_dir, creating_private};

use super::super::StoreError;
use super::JsonlStore;
use crate::entry::Header;

/// Maximum names to try for a copy.
const MAX_NAMES: u32 = 1000;

impl JsonlStore {
    /// Copies a session file into the directory of a working directory and returns the path of the copy. An existing file with the same
    /// content is reused; one with different content is left unchanged, and the copy gets a number.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not a session, or cannot be copied; no partial copy is left behind.
    pub fn import(&self, source: &Path, cwd: &str) -> Result<PathBuf, StoreError> {
        let text = super::read(source).map_err(|error| match error {
            StoreError::NotFound { .. } => StoreError::NoFile { path: source.to_owned() },
            other => other,
        })?;
        Header::of_text(&text)
            .map_err(|problem| StoreError::NotASession { path: source.to_owned(), problem: Some(problem) })?;
        let folder = self.dir_for(cwd);
        create_private_dir(&folder).map_err(StoreError::io("create", &folder))?;
        let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for n in 0..MAX_NAMES {
            let name = if n == 0 { format!("{stem}.jsonl") } else { format!("{stem}-{n}.jsonl") };
            let copy = folder.join(name);
            match creating_private(OpenOptions::new().write(true).create_new(true)).open(&copy) {
                Ok(mut file) => {
                    let written = file.write_all(&text).and_then(|()| file.sync_all());
                    if let Err(error) = written {
                        // Do not leave a partial copy.
                        drop(fs::remove_file(&copy));
                        return Err(StoreError::io("write", &copy)(error));
                    }
                    return Ok(copy);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if super::read(&copy).is_ok_and(|there| there == text) {
                        return Ok(copy);
                    }
                }
                Err(error) => return Err(StoreError::io("create", &copy)(error)),
            }
        }
        Err(StoreError::Exists { path: folder.join(format!("{stem}.jsonl")) })
    }
}

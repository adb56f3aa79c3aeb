//! Changing a document that other programs write too.

use std::io;
use std::path::{Path, PathBuf};

use pinch_stdx::fs::atomic::{Access, create_private_dir, write_atomic};
use pinch_stdx::fs::dir_lock::{DirLock, DirLockError, Terms};
use pinch_stdx::host::Host;
use pinch_stdx::json;
use serde_json::{Map, Value};

use super::{Problem, read_object};

/// A document was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// It is damaged; writing would lose what is in it.
    #[error("{0}")]
    Damaged(Problem),
    /// Another program holds it.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The document.
        path: PathBuf,
        /// Why not.
        #[source]
        source: DirLockError,
    },
    /// The disk refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// The document.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Changes an object under the document's lock: it is read again, `change` does its work, and what it leaves is written as a whole, with two
/// blanks of indent. Members that `change` leaves alone stay. It answers with whether there is anything to write, and so does the function. A
/// document that is not there is created with its folder.
///
/// # Errors
/// [`ChangeError`]; the document is as it was then.
pub fn change_object(
    path: &Path,
    access: Access,
    host: &Host,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<bool, Problem>,
) -> Result<bool, ChangeError> {
    let failed = |source| ChangeError::Io { path: path.to_owned(), source };
    create_private_dir(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    // Programs that name the document by other ways lock the same one.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let _lock = DirLock::acquire(&path, &Terms::QUICK, host)
        .map_err(|source| ChangeError::Lock { path: path.clone(), source })?;
    let mut object = read_object(&path).map_err(ChangeError::Damaged)?;
    if !change(&mut object).map_err(ChangeError::Damaged)? {
        return Ok(false);
    }
    let text = json::write::to_pretty(&object).map_err(|error| failed(io::Error::other(error)))?;
    write_atomic(&path, text.as_bytes(), access).map_err(failed)?;
    Ok(true)
}

//! Writing health: read, change, write, under the lock the file's other users take.

use pinch_coding_agent::document;
use pinch_stdx::fs::atomic::{Access, create_private_dir, write_atomic};
use pinch_stdx::fs::dir_lock::{DirLock, Terms};
use pinch_stdx::json;

use super::Parts;
use super::file::ProfileFile;

pub use pinch_coding_agent::auth::storage::StoreAuthError as MarkError;

/// Changes the file: in memory at once, and on disk what others have written meanwhile with the same change. When the disk refuses, the
/// change in memory stays.
pub(super) async fn change(parts: &Parts, change: impl Fn(&mut ProfileFile) + Send) -> Result<(), MarkError> {
    change(&mut parts.file());
    let Some(path) = parts.path.clone() else { return Ok(()) };
    let io_error = |source| MarkError::Io { path: path.clone(), source };
    if let Some(folder) = path.parent() {
        create_private_dir(folder).map_err(io_error)?;
    }
    let lock_error = |source| MarkError::Lock { path: path.clone(), source };
    let lock = DirLock::acquire_async(&path, &Terms::PATIENT, &parts.host).await.map_err(lock_error)?;
    let mut file = ProfileFile::from_document(document::read_object(&path).map_err(MarkError::Damaged)?);
    change(&mut file);
    let text = json::to_pretty(file.document()).map_err(|error| io_error(error.into()))?;
    lock.check().map_err(lock_error)?;
    write_atomic(&path, text.as_bytes(), Access::Private).map_err(io_error)?;
    *parts.file() = file;
    Ok(())
}

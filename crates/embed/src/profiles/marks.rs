//! Writes health: reads, changes and writes the file under the lock that its other users take.

use pinch_coding_agent::document::{self, Folder};
use pinch_stdx::fs::Access;
use pinch_stdx::fs::dir_lock::DirLockOptions;

use super::Parts;
use super::file::ProfileFile;

pub use pinch_coding_agent::auth::storage::StoreAuthError as MarkError;

/// Applies a change in memory at once, and then to the file with what others have written meanwhile. If writing fails, the change in memory
/// stays.
pub(super) async fn change(parts: &Parts, change: impl Fn(&mut ProfileFile) + Send) -> Result<(), MarkError> {
    change(&mut parts.file());
    let Some(path) = parts.path.clone() else { return Ok(()) };
    let mut file = ProfileFile::default();
    let change_document = |root: &mut serde_json::Map<String, serde_json::Value>| {
        file = ProfileFile::from_document(std::mem::take(root));
        change(&mut file);
        *root = file.document().clone();
    };
    let terms = (Folder::Private, Access::Private);
    document::change(&path, terms, &DirLockOptions::PATIENT, &parts.host, change_document).await?;
    *parts.file() = file;
    Ok(())
}

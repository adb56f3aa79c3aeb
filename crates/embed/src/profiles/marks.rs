//! Writing health: read, change, write, under the lock the file's other users take.

use pinch_coding_agent::document::{self, Folder};
use pinch_stdx::fs::Access;
use pinch_stdx::fs::dir_lock::DirLockOptions;

use super::Parts;
use super::file::ProfileFile;

pub use pinch_coding_agent::auth::storage::StoreAuthError as MarkError;

/// Changes the file: in memory at once, and on disk what others have written meanwhile with the same change. When the disk refuses, the
/// change in memory stays.
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

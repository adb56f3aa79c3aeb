//! What a package says of itself.

use std::path::Path;

use serde_json::Value;

/// Bytes of a manifest at most.
const MAX_BYTES: u64 = 1024 * 1024;

/// The member `pi` of a folder's `package.json`.
pub(super) fn manifest(folder: &Path) -> Option<Value> {
    let path = folder.join("package.json");
    let meta = std::fs::metadata(&path).ok()?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return None;
    }
    let package: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
    package.get("pi").filter(|manifest| manifest.is_object()).cloned()
}

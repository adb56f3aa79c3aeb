//! What a package says of itself.

use std::path::Path;

use pinch_stdx::fs::read_regular;
use serde_json::Value;

/// Bytes of a manifest at most.
const MAX_BYTES: u64 = 1024 * 1024;

/// The member `pi` of a directory's `package.json`.
pub(super) fn manifest(folder: &Path) -> Option<Value> {
    let path = folder.join("package.json");
    let package: Value = serde_json::from_slice(&read_regular(&path, MAX_BYTES).ok()?).ok()?;
    package.get("pi").filter(|manifest| manifest.is_object()).cloned()
}

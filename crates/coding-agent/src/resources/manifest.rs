//! Package manifests.

use std::path::Path;

use pinch_stdx::fs::read_regular;
use serde_json::Value;

/// Maximum bytes of a manifest.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the `pi` member of a directory's `package.json`.
pub(super) fn manifest(folder: &Path) -> Option<Value> {
    let path = folder.join("package.json");
    let package: Value = serde_json::from_slice(&read_regular(&path, MAX_BYTES).ok()?).ok()?;
    package.get("pi").filter(|manifest| manifest.is_object()).cloned()
}

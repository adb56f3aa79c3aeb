//! Text files of users and projects: read whole, or not at all.

use std::io;
use std::path::Path;

use pinch_stdx::fs::read_regular;

/// Bytes of such a file at most.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;

/// The text of a file; what is no UTF-8 in it becomes U+FFFD.
///
/// # Errors
/// Why it cannot be used, in words.
pub(super) fn read(path: &Path) -> Result<String, String> {
    match read_regular(path, MAX_BYTES) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err("is larger than 1 MiB".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

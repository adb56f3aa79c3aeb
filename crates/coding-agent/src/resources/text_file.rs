//! Text files of users and projects, read completely or not at all.

use std::io;
use std::path::Path;

use pinch_stdx::text::bom_len;

use super::collect::ListedFile;

/// Maximum bytes of such a file.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;

/// Reads the text of a file; invalid UTF-8 becomes U+FFFD.
///
/// # Errors
/// Describes why it cannot be used.
pub(super) fn read(path: &Path) -> Result<String, String> {
    read_listed(&ListedFile::named(path))
}

/// Reads the text of a listed file.
///
/// # Errors
/// Describes why it cannot be used.
pub(super) fn read_listed(file: &ListedFile) -> Result<String, String> {
    match file.read(MAX_BYTES) {
        Ok(bytes) => Ok(text(bytes)),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err("is larger than 1 MiB".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Converts bytes to text, without copying valid UTF-8.
pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Strips a byte order mark.
pub(super) fn without_bom(mut text: String) -> String {
    text.drain(..bom_len(text.as_bytes()));
    text
}

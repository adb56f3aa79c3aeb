//! Text files of users and projects: read whole, or not at all.

use std::io;
use std::path::Path;

use pinch_stdx::text::bom_len;

use super::collect::ListedFile;

/// Bytes of such a file at most.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;

/// The text of a file; invalid UTF-8 becomes U+FFFD.
///
/// # Errors
/// Why it cannot be used, in words.
pub(super) fn read(path: &Path) -> Result<String, String> {
    read_listed(&ListedFile::named(path))
}

/// The same of a file that was found.
///
/// # Errors
/// Why it cannot be used, in words.
pub(super) fn read_listed(file: &ListedFile) -> Result<String, String> {
    match file.read(MAX_BYTES) {
        Ok(bytes) => Ok(text(bytes)),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err("is larger than 1 MiB".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// The text of bytes, of which most are UTF-8: those are not copied.
pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The text without the mark that some editors put at its beginning.
pub(super) fn without_bom(mut text: String) -> String {
    text.drain(..bom_len(text.as_bytes()));
    text
}

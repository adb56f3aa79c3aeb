//! Images: what they are by their first bytes, and how large they may be.

/// Base64 characters of an image in a message; the payload must stay below.
pub const MAX_ENCODED_BYTES: usize = 4_718_592;

/// Bytes of an image file that is looked into at all.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The MIME type of an image that models take, by its first bytes; a file's name says nothing.
pub fn sniff(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_begins_like_an_image_is_text() {
        assert_eq!(sniff(b"GIF is a format"), None);
        assert_eq!(sniff(b"GIF89a\x01\0"), Some("image/gif"));
        assert_eq!(sniff(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(sniff(b""), None);
    }
}

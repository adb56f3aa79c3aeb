//! Detection of image types by their first bytes.

/// Bytes at the start of a file that distinguish an image from a text with the same beginning.
const LOOKED_AT: usize = 4100;

/// Returns the MIME type of an image from the first bytes of its file: JPEG, PNG, GIF, WebP or BMP.
///
/// Text that starts with the letters of a format is text: image headers contain bytes that do not occur in text.
pub fn image_type(start: &[u8]) -> Option<&'static str> {
    let is_binary = || memchr::memchr(0, &start[..start.len().min(LOOKED_AT)]).is_some();
    match start {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] if is_binary() => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] if is_binary() => Some("image/webp"),
        // The file header is followed by the length of the next header, which determines the version.
        [b'B', b'M', _, _, _, _, _, _, _, _, _, _, _, _, 12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..] => {
            Some("image/bmp")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_begins_like_an_image_is_text() {
        assert_eq!(image_type(b"GIF is a format"), None);
        assert_eq!(image_type(b"GIF89a is a format"), None);
        assert_eq!(image_type(b"RIFF, a WEBP file is one"), None);
        assert_eq!(image_type(b"BM is short for Bob Marley, and more"), None);
        assert_eq!(image_type(b"GIF89a\x01\0"), Some("image/gif"));
        assert_eq!(image_type(b"RIFF\x10\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(image_type(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(image_type(b""), None);
    }
}

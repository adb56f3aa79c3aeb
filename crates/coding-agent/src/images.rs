//! Images: what they are by their first bytes, and how they get into a conversation.

use pinch_llm::message::Image;
use pinch_llm::model::ImageLimits;

#[cfg(feature = "images")]
mod known;
#[cfg(feature = "images")]
mod fit;
mod intake;

pub use intake::{Intake, Treatment};

/// Bytes of an image file that is looked into at all.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Formats that are taken, as the model is told.
pub(crate) const FORMATS: &str =
    if cfg!(feature = "images") { "JPEG, PNG, GIF, WebP, BMP" } else { "JPEG, PNG, GIF, WebP" };

/// Bytes at the start of a file that tell an image from a text which begins like one.
const LOOKED_AT: usize = 4100;

/// The MIME type of an image that [`Intake::admit`] takes, by its first bytes; a file's name says nothing.
///
/// Text that begins with the letters of a format is text: the head of an image has bytes that no text has. BMP is known only with the feature
/// `images`, for no model takes it as it is.
pub fn sniff(start: &[u8]) -> Option<&'static str> {
    let is_binary = || memchr::memchr(0, &start[..start.len().min(LOOKED_AT)]).is_some();
    match start {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] if is_binary() => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] if is_binary() => Some("image/webp"),
        // Behind the file's head comes the length of the next, which tells the version.
        [b'B', b'M', _, _, _, _, _, _, _, _, _, _, _, _, 12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..]
            if cfg!(feature = "images") =>
        {
            Some("image/bmp")
        }
        _ => None,
    }
}

/// An image that may go into a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The image.
    pub image: Image,
    /// What was done to it: lines for the model.
    pub notes: Vec<String>,
}

/// Why an image may not go into a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It stays too large, or cannot be decoded.
    #[error("could not be resized below the inline image size limit")]
    TooLarge,
    /// It is of a kind that no model takes, and cannot be turned into another.
    #[error("could not be converted to a supported inline image format")]
    NotConverted,
}

impl Refused {
    /// What stands in the image's place.
    pub fn note(self) -> String {
        format!("[Image omitted: {self}.]")
    }
}

/// Whether so many bytes stay below the limit once they are encoded.
fn can_be_sent(n_bytes: usize, limits: &ImageLimits) -> bool {
    (n_bytes as u64).div_ceil(3) * 4 < limits.max_encoded_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_begins_like_an_image_is_text() {
        assert_eq!(sniff(b"GIF is a format"), None);
        assert_eq!(sniff(b"GIF89a is a format"), None);
        assert_eq!(sniff(b"RIFF, a WEBP file is one"), None);
        assert_eq!(sniff(b"BM is short for Bob Marley, and more"), None);
        assert_eq!(sniff(b"GIF89a\x01\0"), Some("image/gif"));
        assert_eq!(sniff(b"RIFF\x10\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(sniff(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(sniff(b""), None);
    }

    #[test]
    fn what_is_sent_stays_below_the_limit_in_its_encoded_form() {
        let limits = ImageLimits::default();
        assert!(can_be_sent(3 * 1_179_647, &limits));
        assert!(!can_be_sent(3 * 1_179_647 + 1, &limits));
    }
}

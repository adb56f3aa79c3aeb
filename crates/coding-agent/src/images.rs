//! Images: what they are by their first bytes, and how they get into a conversation.

use pinch_llm::message::{Image, image_type};
use pinch_llm::model::ImageLimits;

#[cfg(feature = "images")]
mod known;
#[cfg(feature = "images")]
mod fit;
mod intake;

pub use intake::{Intake, Treatment};

/// Bytes of an image file that is looked into at all.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Supported formats, for the model.
pub(crate) const FORMATS: &str =
    if cfg!(feature = "images") { "JPEG, PNG, GIF, WebP, BMP" } else { "JPEG, PNG, GIF, WebP" };

/// The MIME type of an image that [`Intake::admit`] takes, by its first bytes; a file's name says nothing. BMP is known only with the feature
/// `images`, for no model takes it as it is.
pub fn sniff(start: &[u8]) -> Option<&'static str> {
    image_type(start).filter(|mime_type| cfg!(feature = "images") || *mime_type != "image/bmp")
}

/// An image of a [`sniff`]ed type as a PNG that has room in a square of this side: the right way up, of an animation the first frame. `None`: it
/// cannot be decoded, or the feature `images` is missing.
///
/// The work is done on a thread for such work; it continues there when the caller stops waiting.
pub async fn to_png(content: Vec<u8>, mime_type: &'static str, max_side: u32) -> Option<Vec<u8>> {
    #[cfg(feature = "images")]
    return fit::png_apart(content.into(), mime_type, max_side).await;
    #[cfg(not(feature = "images"))]
    {
        drop((content, mime_type, max_side));
        None
    }
}

/// An image that may go into a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Admitted {
    /// The image.
    pub image: Image,
    /// What was done to it: lines for the model.
    pub notes: Vec<String>,
}

/// Why an image may not go into a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectedImage {
    /// It stays too large, or cannot be decoded.
    #[error("could not be resized below the inline image size limit")]
    TooLarge,
    /// It is of a kind that no model takes, and cannot be turned into another.
    #[error("could not be converted to a supported inline image format")]
    NotConverted,
}

impl RejectedImage {
    /// The text that replaces the image.
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
    fn what_is_sent_stays_below_the_limit_in_its_encoded_form() {
        let limits = ImageLimits::default();
        assert!(can_be_sent(3 * 1_179_647, &limits));
        assert!(!can_be_sent(3 * 1_179_647 + 1, &limits));
    }
}

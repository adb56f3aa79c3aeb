//! Images: type detection, and preparation for a conversation.

use pinch_llm::message::{Image, image_type};
use pinch_llm::model::ImageLimits;

#[cfg(feature = "images")]
mod known;
#[cfg(feature = "images")]
mod fit;
mod intake;

pub use intake::{ImageIntake, ImageProcessing};

/// Maximum bytes of an image file to read.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Supported formats, for the model.
pub(crate) const FORMATS: &str =
    if cfg!(feature = "images") { "JPEG, PNG, GIF, WebP, BMP" } else { "JPEG, PNG, GIF, WebP" };

/// Returns the MIME type of an image that [`ImageIntake::admit`] accepts, detected by its first bytes rather than its name. BMP is only detected
/// with the feature `images`, because no model accepts it unconverted.
pub fn sniff(start: &[u8]) -> Option<&'static str> {
    image_type(start).filter(|mime_type| cfg!(feature = "images") || *mime_type != "image/bmp")
}

/// Converts an image of a [`sniff`]ed type to a PNG that fits into a square with side `max_side`, upright, using the first frame of an
/// animation. Returns `None` if it cannot be decoded, or without the feature `images`.
///
/// The work runs on a blocking thread, and continues there if the future is dropped.
pub async fn to_png(content: Vec<u8>, mime_type: &'static str, max_side: u32) -> Option<Vec<u8>> {
    #[cfg(feature = "images")]
    return fit::png_apart(content.into(), mime_type, max_side).await;
    #[cfg(not(feature = "images"))]
    {
        drop((content, mime_type, max_side));
        None
    }
}

/// An image ready for a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Admitted {
    /// The image.
    pub image: Image,
    /// Changes made to it, as lines for the model.
    pub notes: Vec<String>,
}

/// Why an image was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectedImage {
    /// It has no content.
    #[error("it is empty")]
    Empty,
    /// Its content is damaged.
    #[error("could not be decoded")]
    Undecodable,
    /// It has too many pixels to decode, or remains too large.
    #[error("could not be resized below the inline image size limit")]
    TooLarge,
    /// Models do not accept its type, and it cannot be converted.
    #[error("could not be converted to a supported inline image format")]
    NotConverted,
}

impl RejectedImage {
    /// Returns the text that replaces the image.
    pub fn note(self) -> String {
        format!("[Image omitted: {self}.]")
    }
}

/// Returns whether `n_bytes` are within the limit when encoded.
fn can_be_sent(n_bytes: usize, limits: &ImageLimits) -> bool {
    (n_bytes as u64).div_ceil(3) * 4 < limits.max_encoded_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_stay_below_the_limit_in_encoded_form() {
        let limits = ImageLimits::default();
        assert!(can_be_sent(3 * 1_179_647, &limits));
        assert!(!can_be_sent(3 * 1_179_647 + 1, &limits));
    }
}

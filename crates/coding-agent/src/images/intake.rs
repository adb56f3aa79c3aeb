//! Admitting images to a conversation.

use std::borrow::Cow;

use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{Engine as _, alphabet};
use bytes::Bytes;
use pinch_llm::message::{Block, Image};
use pinch_llm::model::ImageLimits;

use super::{Admitted, MAX_FILE_BYTES, RejectedImage, can_be_sent, sniff};
#[cfg(feature = "images")]
use super::{fit, known::KnownImages};

/// Decodes base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How to process images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageProcessing {
    /// Leave them unchanged.
    Untouched,
    /// Keep their sizes. With the feature `images`, images that cannot be decoded are rejected, and BMP becomes PNG.
    Checked,
    /// Like [`ImageProcessing::Checked`]; with the feature `images`, large images are also shrunk.
    #[default]
    Resized,
}

/// Admits images to a conversation.
///
/// An image that is admitted by its source and again as part of a message is decoded only once: clones of an intake share the few hundred
/// most recently admitted images.
#[derive(Clone, Debug, Default)]
pub struct ImageIntake {
    treatment: ImageProcessing,
    #[cfg(feature = "images")]
    known: KnownImages,
}

impl ImageIntake {
    /// Creates an intake without known images.
    pub fn new(treatment: ImageProcessing) -> Self {
        Self {
            treatment,
            #[cfg(feature = "images")]
            known: KnownImages::default(),
        }
    }

    /// Prepares an image of a [`sniff`]ed type for a message.
    ///
    /// The work runs on a blocking thread, and continues there if the future is dropped.
    ///
    /// # Errors
    /// [`RejectedImage`]; put its note into the message.
    pub async fn admit(
        &self,
        content: Bytes,
        mime_type: &'static str,
        limits: &ImageLimits,
    ) -> Result<Admitted, RejectedImage> {
        if self.treatment == ImageProcessing::Untouched {
            return Ok(Admitted { image: image(&content, mime_type), notes: Vec::new() });
        }
        #[cfg(feature = "images")]
        let fit::Fitted { content, mime_type, notes, sides } = {
            self.known.count();
            fit::fit_apart(content, mime_type, self.limits_of_change(limits)).await?
        };
        #[cfg(not(feature = "images"))]
        let notes = Vec::new();
        if !can_be_sent(content.len(), limits) {
            return Err(RejectedImage::TooLarge);
        }
        let image = image(&content, mime_type);
        #[cfg(feature = "images")]
        self.known.add(&image, sides);
        Ok(Admitted { image, notes })
    }

    /// Prepares the images among blocks like [`ImageIntake::admit`], detecting types by content rather than by label. Notes for the model
    /// precede an image; a rejected image is replaced by a note. Returns `None` if all images fit already.
    pub async fn admit_blocks(&self, blocks: &[Block], limits: &ImageLimits) -> Option<Vec<Block>> {
        if self.treatment == ImageProcessing::Untouched {
            return None;
        }
        let mut changed = None;
        for (at, block) in blocks.iter().enumerate() {
            let done = match block {
                Block::Image(image) if !self.knows(image, limits) => Some(self.admit_image(image, limits).await),
                _ => None,
            };
            let is_unchanged = match (&done, block) {
                (None, _) => true,
                (Some(Ok(done)), Block::Image(image)) => done.image == *image && done.notes.is_empty(),
                (Some(_), _) => false,
            };
            if is_unchanged && changed.is_none() {
                continue;
            }
            let changed = changed.get_or_insert_with(|| blocks[..at].to_vec());
            match done {
                None => changed.push(block.clone()),
                Some(Ok(Admitted { image, notes })) => {
                    changed.extend((!notes.is_empty()).then(|| Block::text(notes.join("\n"))));
                    changed.push(Block::Image(image));
                }
                Some(Err(refused)) => changed.push(Block::text(refused.note())),
            }
        }
        changed
    }

    async fn admit_image(&self, image: &Image, limits: &ImageLimits) -> Result<Admitted, RejectedImage> {
        if image.data.trim().is_empty() {
            return Err(RejectedImage::Empty);
        }
        if image.data.len() as u64 / 4 * 3 > MAX_FILE_BYTES {
            return Err(RejectedImage::TooLarge);
        }
        let mut data = Cow::Borrowed(image.data.as_bytes());
        if data.iter().any(u8::is_ascii_whitespace) {
            data.to_mut().retain(|byte| !byte.is_ascii_whitespace());
        }
        let content = LENIENT.decode(&data).map_err(|_| RejectedImage::Undecodable)?;
        let mime_type = sniff(&content).ok_or(RejectedImage::NotConverted)?;
        self.admit(content.into(), mime_type, limits).await
    }

    /// Returns whether an image was admitted before and is within the limits.
    #[cfg(feature = "images")]
    fn knows(&self, image: &Image, limits: &ImageLimits) -> bool {
        let is_within = |sides| fit::has_room(sides, &self.limits_of_change(limits));
        (image.data.len() as u64) < limits.max_encoded_bytes && self.known.sides(image).is_some_and(is_within)
    }

    #[cfg(not(feature = "images"))]
    fn knows(&self, _: &Image, _: &ImageLimits) -> bool {
        false
    }

    /// Returns the limits beyond which images are changed.
    #[cfg(feature = "images")]
    fn limits_of_change(&self, limits: &ImageLimits) -> ImageLimits {
        match self.treatment {
            ImageProcessing::Resized => *limits,
            ImageProcessing::Checked | ImageProcessing::Untouched => ImageLimits {
                max_width: u32::MAX,
                max_height: u32::MAX,
                max_encoded_bytes: u64::MAX,
                jpeg_quality: limits.jpeg_quality,
            },
        }
    }

    /// Returns how many images were decoded, which is the expensive step.
    #[cfg(feature = "images")]
    pub fn n_decoded(&self) -> u64 {
        self.known.n_decoded()
    }
}

fn image(content: &[u8], mime_type: &str) -> Image {
    Image { data: STANDARD.encode(content), mime_type: mime_type.to_owned() }
}

#[cfg(test)]
mod tests;

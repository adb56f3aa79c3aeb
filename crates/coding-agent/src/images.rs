//! Images: what they are by their first bytes, how large they may be, and how they get into a message.

use std::borrow::Cow;

use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{Engine as _, alphabet};
use bytes::Bytes;
use pinch_llm::message::{Block, Image};

#[cfg(feature = "images")]
mod fit;

/// Base64 characters of an image in a message; the payload must stay below.
pub const MAX_ENCODED_BYTES: usize = 4_718_592;

/// Bytes of an image file that is looked into at all.
pub const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Reads base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Formats that are taken, as the model is told.
pub(crate) const FORMATS: &str =
    if cfg!(feature = "images") { "JPEG, PNG, GIF, WebP, BMP" } else { "JPEG, PNG, GIF, WebP" };

/// Bytes at the start of a file that tell an image from a text which begins like one.
const LOOKED_AT: usize = 4100;

/// The MIME type of an image that [`admit`] takes, by its first bytes; a file's name says nothing.
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

/// Takes an image of a [`sniff`]ed type into a message.
///
/// With the feature `images`, one that cannot be decoded is refused, BMP becomes PNG, and with `resize` a large one is made smaller. Without it
/// images are passed on as they are. The work is done on a thread for such work; it goes on there when the caller stops waiting.
///
/// # Errors
/// [`Refused`]; its note goes into the message then.
pub async fn admit(content: Bytes, mime_type: &'static str, resize: bool) -> Result<Admitted, Refused> {
    #[cfg(feature = "images")]
    let (content, mime_type, notes) = {
        let fitted = fit::fit_apart(content, mime_type, resize).await?;
        (fitted.content, fitted.mime_type, fitted.notes)
    };
    #[cfg(not(feature = "images"))]
    let (notes, _) = (Vec::new(), resize);
    if !can_be_sent(content.len()) {
        return Err(Refused::TooLarge);
    }
    let image = Image { data: STANDARD.encode(&content), mime_type: mime_type.to_owned() };
    Ok(Admitted { image, notes })
}

/// Makes the images among blocks fit, as [`admit`] does, by what their bytes are and not by what is said of them. What the model is to know of an
/// image stands in front of it; a note takes the place of one that cannot be sent. `None`: all of them fit.
pub async fn admit_blocks(blocks: &[Block], resize: bool) -> Option<Vec<Block>> {
    let mut changed = None;
    for (at, block) in blocks.iter().enumerate() {
        let Block::Image(image) = block else {
            if let Some(changed) = &mut changed {
                Vec::push(changed, block.clone());
            }
            continue;
        };
        let done = admit_image(image, resize).await;
        if matches!(&done, Ok(same) if same.image == *image && same.notes.is_empty()) && changed.is_none() {
            continue;
        }
        let changed = changed.get_or_insert_with(|| blocks[..at].to_vec());
        match done {
            Ok(Admitted { image, notes }) => {
                changed.extend((!notes.is_empty()).then(|| Block::text(notes.join("\n"))));
                changed.push(Block::Image(image));
            }
            Err(refused) => changed.push(Block::text(refused.note())),
        }
    }
    changed
}

async fn admit_image(image: &Image, resize: bool) -> Result<Admitted, Refused> {
    if image.data.len() as u64 / 4 * 3 > MAX_FILE_BYTES {
        return Err(Refused::TooLarge);
    }
    let mut data = Cow::Borrowed(image.data.as_bytes());
    if data.iter().any(u8::is_ascii_whitespace) {
        data.to_mut().retain(|byte| !byte.is_ascii_whitespace());
    }
    let content = LENIENT.decode(&data).map_err(|_| Refused::NotConverted)?;
    let mime_type = sniff(&content).ok_or(Refused::NotConverted)?;
    admit(content.into(), mime_type, resize).await
}

/// Whether so many bytes stay below the limit once they are encoded.
fn can_be_sent(n_bytes: usize) -> bool {
    n_bytes.div_ceil(3) * 4 < MAX_ENCODED_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of one dot.
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

    fn image(data: &str, mime_type: &str) -> Block {
        Block::Image(Image { data: data.to_owned(), mime_type: mime_type.to_owned() })
    }

    #[tokio::test]
    async fn images_are_what_their_bytes_say() {
        let fits = [Block::text("a"), image(DOT, "image/png")];
        assert_eq!(admit_blocks(&fits, true).await, None);
        let mut wrapped = DOT.trim_end_matches('=').to_owned();
        wrapped.insert(40, '\n');
        let odd =
            [image(&wrapped, "image/jpeg"), Block::text("a"), image("AAAA", "image/png"), image("?", "image/png")];
        let note = Block::text(Refused::NotConverted.note());
        let made = [image(DOT, "image/png"), Block::text("a"), note.clone(), note];
        assert_eq!(admit_blocks(&odd, true).await.as_deref(), Some(&made[..]));
        assert_eq!(admit_blocks(&[], true).await, None);
    }

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
        assert!(can_be_sent(3 * 1_179_647));
        assert!(!can_be_sent(3 * 1_179_647 + 1));
    }
}

//! An image of a conversation, in the form that a terminal can show.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, OnceLock};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use pinch_coding_agent::images;
use pinch_llm::message::{Block, Content, Image, Message, image_type};

use super::{MAX_BYTES, PixelSize, dimensions};
use crate::text::one_line;

/// Number of base64 characters that contain a file's type and usually its size…
const HEAD: usize = 256;
/// … and of those that contain the size of a JPEG, after the data of cameras.
const JPEG_HEAD: usize = 1024 * 1024;
/// Maximum side length of a PNG made for a terminal, in pixels: more than its window has.
const MAX_PNG_SIDE: u32 = 2048;
/// Maximum length of a displayed type, in characters.
const MAX_TYPE: usize = 40;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Randomly keyed, so that ids are random, but equal images have equal hashes within one process.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// An image from a model, a tool or the user. Only its header is read until a terminal needs it.
#[derive(Clone, Debug)]
pub(crate) struct ImageSource {
    /// Type detected from its bytes, else the declared one.
    mime_type: String,
    /// `None`: it cannot be shown.
    size: Option<PixelSize>,
    data: ImageData,
    /// Hash of the data; `None`: not valid base64.
    hash: Arc<OnceLock<Option<u64>>>,
}

/// Location of the base64-encoded file.
#[derive(Clone, Debug)]
enum ImageData {
    Own(Arc<str>),
    /// In a block of a message.
    In(Arc<Message>, usize),
}

impl ImageSource {
    pub(crate) fn new(image: &Image) -> Self {
        let mut source = Self::with(image, ImageData::Own("".into()));
        // Data that is never sent to a terminal is not kept.
        if source.size.is_some() {
            source.data = ImageData::Own(image.data.as_str().into());
        }
        source
    }

    /// Returns the images of a message, which they keep alive.
    pub(crate) fn in_message(message: &Arc<Message>) -> Vec<Self> {
        let images = blocks_of(message).iter().enumerate().filter_map(|(at, block)| match block {
            Block::Image(image) => Some(Self::with(image, ImageData::In(Arc::clone(message), at))),
            _ => None,
        });
        images.collect()
    }

    fn with(image: &Image, data: ImageData) -> Self {
        let encoded = image.data.trim_end_matches('=');
        let is_small = encoded.len() as u64 <= MAX_BYTES / 3 * 4;
        let start = |n: usize| {
            let head = encoded.get(..n.min(encoded.len() / 4 * 4).max(encoded.len().min(3)))?;
            LENIENT.decode(head).ok().filter(|_| is_small)
        };
        let head = start(HEAD).unwrap_or_default();
        let kind = image_type(&head);
        let size = match kind {
            Some("image/jpeg") => start(JPEG_HEAD).and_then(|head| dimensions(&head)),
            Some(_) => dimensions(&head),
            None => None,
        };
        let said = || one_line(&image.mime_type).chars().take(MAX_TYPE).collect();
        let mime_type = kind.map_or_else(said, str::to_owned);
        Self { mime_type, size, data, hash: Arc::default() }
    }

    /// Returns the size in pixels; `None` if it cannot be shown.
    pub(crate) fn size(&self) -> Option<PixelSize> {
        self.size
    }

    /// Returns the base64-encoded file, if it has a hash.
    pub(crate) fn data(&self) -> &str {
        match &self.data {
            ImageData::Own(data) => data,
            ImageData::In(message, at) => match blocks_of(message).get(*at) {
                Some(Block::Image(image)) => &image.data,
                _ => "",
            },
        }
    }

    /// Returns a random number that is the same for all images with these bytes; `None` if the data is not base64 and cannot be sent to a
    /// terminal.
    pub(crate) fn hash(&self) -> Option<u64> {
        *self.hash.get_or_init(|| {
            let data = self.data();
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            data.trim_end_matches('=').bytes().all(is_base64).then(|| HASHES.hash_one(data))
        })
    }

    /// Returns the size of the file.
    pub(crate) fn n_bytes(&self) -> usize {
        self.data().trim_end_matches('=').len() * 3 / 4
    }

    pub(crate) fn is_png(&self) -> bool {
        self.mime_type == "image/png"
    }

    /// Converts the image to PNG, scaled down if necessary; `None` if that is impossible.
    pub(crate) async fn to_png(&self) -> Option<Self> {
        let source = self.clone();
        let file = tokio::task::spawn_blocking(move || LENIENT.decode(source.data()).ok()).await.ok()??;
        let mime_type = image_type(&file)?;
        let png = images::to_png(file, mime_type, MAX_PNG_SIDE).await?;
        let image = move || Self::new(&Image { data: STANDARD.encode(png), mime_type: String::new() });
        tokio::task::spawn_blocking(image).await.ok().filter(Self::is_png)
    }

    /// Returns the text that replaces it if it is not shown.
    pub(crate) fn label(&self) -> String {
        match self.size {
            Some(PixelSize { width, height }) => format!("[Image: {} {width}x{height}]", self.mime_type),
            None => format!("[Image: {}]", self.mime_type),
        }
    }
}

/// Returns the content of a user message or a tool result.
fn blocks_of(message: &Message) -> &[Block] {
    match message {
        Message::User(user) => match &user.content {
            Content::Text(_) => &[],
            Content::Blocks(blocks) => blocks,
        },
        Message::ToolResult(result) => &result.content,
        _ => &[],
    }
}

impl PartialEq for ImageSource {
    fn eq(&self, other: &Self) -> bool {
        (&self.mime_type, self.size, self.data()) == (&other.mime_type, other.size, other.data())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(data: &str, mime_type: &str) -> ImageSource {
        ImageSource::new(&Image { data: data.to_owned(), mime_type: mime_type.to_owned() })
    }

    #[test]
    fn the_type_of_an_image_is_detected_from_its_bytes() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06");
        let source = image(&png, "image/jpeg");
        assert_eq!((source.label().as_str(), source.is_png()), ("[Image: image/png 640x480]", true));
        assert_eq!((source.data(), source.n_bytes()), (&*png, 26));
        assert_eq!(source, image(&png, "image/png"));
        assert_ne!(
            source.hash(),
            image(&STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x07"), "").hash()
        );
    }

    #[test]
    fn broken_and_hostile_images_are_replaced_by_a_line() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0");
        for (data, mime_type, label) in [
            ("", "image/png", "[Image: image/png]"),
            ("A", "image/png", "[Image: image/png]"),
            ("QUJD", "image/svg+xml", "[Image: image/svg+xml]"),
            ("QUJD", "x\x1b]52;c;eA==\x07y\n\u{9b}2J", "[Image: xy ]"),
            (&png[..20], "image/png", "[Image: image/png]"),
            ("QUJD", &"x".repeat(1000), &format!("[Image: {}]", "x".repeat(40))),
        ] {
            let source = image(data, mime_type);
            assert_eq!((source.label().as_str(), source.data()), (label, ""), "{data:?}");
        }
        let png = png + &"A".repeat(256);
        for end in ["\x1b\\\x1b]52;c;eA==\x07", "\n", ";", "=A", "é"] {
            assert_eq!(image(&format!("{png}{end}"), "").hash(), None, "{end:?}");
        }
        assert!(image(&png, "").hash().is_some());
    }

    #[test]
    fn images_of_a_message_are_not_copied() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06");
        let block = Block::Image(Image { data: png.clone(), mime_type: String::new() });
        let content = Content::Blocks(vec![Block::text("see"), block]);
        let message = Arc::new(Message::User(pinch_llm::message::UserMessage::new(content, 1)));
        let images = ImageSource::in_message(&message);
        assert_eq!(images, [image(&png, "")]);
        assert_eq!(images[0].hash(), image(&png, "").hash());
        let Some(Block::Image(kept)) = blocks_of(&message).get(1) else { panic!() };
        assert!(std::ptr::eq(images[0].data(), kept.data.as_str()));
    }

    #[test]
    fn the_size_of_a_jpeg_is_found_after_a_large_profile() {
        let mut file = b"\xff\xd8".to_vec();
        for _ in 0..4 {
            file.extend(b"\xff\xe2\xff\xff");
            file.resize(file.len() + 0xfffd, 0);
        }
        file.extend(b"\xff\xc0\0\x0b\x08\x01\xe0\x02\x80\x01\x11\0");
        assert_eq!(image(&STANDARD.encode(file), "").label(), "[Image: image/jpeg 640x480]");
    }
}

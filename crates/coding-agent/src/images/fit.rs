//! Fitting images into limits: decoding with bounds, orienting, shrinking and re-encoding.

use std::io::Cursor;

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType as RowFilter, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits, Rgb, RgbImage};
use pinch_llm::model::ImageLimits;
use tokio::sync::Semaphore;

use super::known::Sides;
use super::{RejectedImage, can_be_sent};

/// Maximum pixels of an image to decode: enough for phone photos, but not for decompression bombs.
const MAX_PIXELS: u64 = 50_000_000;

/// Maximum bytes that a decoder may allocate.
const MAX_DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// Limits the images processed at the same time in this process. Each may take a few hundred megabytes.
static SLOTS: Semaphore = Semaphore::const_new(2);

/// Lower JPEG qualities, tried if neither PNG nor the limits' quality is small enough.
const LOWER_QUALITIES: [u8; 4] = [80, 70, 55, 40];

/// An image ready for models.
#[derive(Debug, PartialEq)]
pub(super) struct Fitted {
    pub(super) content: Bytes,
    pub(super) mime_type: &'static str,
    pub(super) notes: Vec<String>,
    pub(super) sides: Sides,
}

/// Runs [`fit`] on a blocking thread. Waits for a free slot.
pub(super) async fn fit_apart(
    content: Bytes,
    mime_type: &'static str,
    limits: ImageLimits,
) -> Result<Fitted, RejectedImage> {
    let slot = SLOTS.acquire().await.map_err(|_| RejectedImage::TooLarge)?;
    let work = tokio::task::spawn_blocking(move || {
        let fitted = fit(content, mime_type, &limits);
        // Held until the memory is freed, even if the caller is gone.
        drop(slot);
        fitted
    });
    // If the decoder panics, it cannot read the image.
    work.await.unwrap_or(Err(RejectedImage::Undecodable))
}

/// Converts an image to a PNG that fits into a square with side `max_side`, on a blocking thread. Waits for a free slot.
pub(super) async fn png_apart(content: Bytes, mime_type: &'static str, max_side: u32) -> Option<Vec<u8>> {
    let slot = SLOTS.acquire().await.ok()?;
    let work = tokio::task::spawn_blocking(move || {
        let png = as_png(&content, mime_type, max_side);
        drop(slot);
        png
    });
    // If the decoder panics, it cannot read the image.
    work.await.unwrap_or_default()
}

fn as_png(content: &[u8], mime_type: &str, max_side: u32) -> Option<Vec<u8>> {
    let (picture, orientation) = decode(content, mime_type).ok()?;
    let limits = ImageLimits { max_width: max_side, max_height: max_side, ..ImageLimits::default() };
    let (width, height) = target((picture.width(), picture.height()), &limits);
    png(&upright(resized(picture, width, height), orientation))
}

fn fit(content: Bytes, mime_type: &'static str, limits: &ImageLimits) -> Result<Fitted, RejectedImage> {
    let must_change = mime_type == "image/bmp";
    let refused = |why| if must_change { RejectedImage::NotConverted } else { why };
    let (picture, orientation) = decode(&content, mime_type).map_err(refused)?;
    let (width, height) = match is_turned(orientation) {
        true => (picture.height(), picture.width()),
        false => (picture.width(), picture.height()),
    };
    let sides = (width, height);
    let has_room = has_room(sides, limits);
    if !must_change && has_room && can_be_sent(content.len(), limits) {
        return Ok(Fitted { content, mime_type, notes: Vec::new(), sides });
    }
    drop(content);
    let converted = |to: &str| must_change.then(|| format!("[Image converted from {mime_type} to {to}.]"));
    if must_change && has_room {
        // BMP has no orientation.
        let png = png(&picture).ok_or(RejectedImage::NotConverted)?;
        if can_be_sent(png.len(), limits) {
            let notes = converted("image/png").into_iter().collect();
            return Ok(Fitted { content: png.into(), mime_type: "image/png", notes, sides });
        }
    }
    let (content, mime_type, shown) =
        shrink(picture, orientation, limits, target(sides, limits)).ok_or(RejectedImage::TooLarge)?;
    let scale = f64::from(width) / f64::from(shown.0);
    let resized = format!(
        "[Image: original {width}x{height}, displayed at {}x{}. Multiply coordinates by {scale:.2} to map to original image.]",
        shown.0, shown.1
    );
    Ok(Fitted {
        content: content.into(),
        mime_type,
        notes: converted(mime_type).into_iter().chain([resized]).collect(),
        sides: shown,
    })
}

/// Decodes an image, or the first frame of an animation, with eight bits per channel. Also returns its orientation.
fn decode(content: &[u8], mime_type: &str) -> Result<(DynamicImage, Orientation), RejectedImage> {
    let format = ImageFormat::from_mime_type(mime_type).ok_or(RejectedImage::Undecodable)?;
    let mut reader = ImageReader::with_format(Cursor::new(content), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(refusal)?;
    let (width, height) = decoder.dimensions();
    let n_pixels = u64::from(width) * u64::from(height);
    if n_pixels == 0 {
        return Err(RejectedImage::Undecodable);
    }
    if n_pixels > MAX_PIXELS || decoder.total_bytes() > MAX_DECODED_BYTES {
        return Err(RejectedImage::TooLarge);
    }
    // The metadata may be invalid although the image is not.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder).map_err(refusal)?;
    let color = picture.color();
    let picture = match (color.has_alpha(), color.has_color()) {
        (true, _) => picture.into_rgba8().into(),
        (false, true) => picture.into_rgb8().into(),
        (false, false) => picture.into_luma8().into(),
    };
    Ok((picture, orientation))
}

fn refusal(error: ImageError) -> RejectedImage {
    match error {
        ImageError::Limits(_) => RejectedImage::TooLarge,
        _ => RejectedImage::Undecodable,
    }
}

/// Returns whether an orientation swaps width and height.
fn is_turned(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    )
}

fn upright(mut picture: DynamicImage, orientation: Orientation) -> DynamicImage {
    picture.apply_orientation(orientation);
    picture
}

/// Returns whether the sides are within the limits.
pub(super) fn has_room((width, height): Sides, limits: &ImageLimits) -> bool {
    width <= limits.max_width && height <= limits.max_height
}

/// Returns sides within the limits, with the same aspect ratio.
fn target((mut width, mut height): Sides, limits: &ImageLimits) -> Sides {
    let scaled = |side: u32, to: u32, by: u32| {
        let side = f64::from(side) * f64::from(to) / f64::from(by);
        (side.round() as u32).max(1)
    };
    let (max_width, max_height) = (limits.max_width, limits.max_height);
    if width > max_width {
        (width, height) = (max_width, scaled(height, max_width, width));
    }
    if height > max_height {
        (width, height) = (scaled(width, max_height, height), max_height);
    }
    (width, height)
}

/// Encodes an image at the given size, or at the largest smaller one that can be sent. Returns its bytes, type and sides.
fn shrink(
    picture: DynamicImage,
    orientation: Orientation,
    limits: &ImageLimits,
    (mut width, mut height): Sides,
) -> Option<(Vec<u8>, &'static str, Sides)> {
    // Shrink before rotating, which takes less memory.
    let (across, down) = if is_turned(orientation) { (height, width) } else { (width, height) };
    let mut picture = upright(resized(picture, across, down), orientation);
    loop {
        if let Some((content, mime_type)) = encode(&picture, limits) {
            return Some((content, mime_type, (width, height)));
        }
        if (width, height) == (1, 1) {
            return None;
        }
        let smaller = |side: u32| (side * 3 / 4).max(1);
        (width, height) = (smaller(width), smaller(height));
        picture = resized(picture, width, height);
    }
}

fn resized(picture: DynamicImage, width: u32, height: u32) -> DynamicImage {
    if (picture.width(), picture.height()) == (width, height) {
        return picture;
    }
    picture.resize_exact(width, height, FilterType::Lanczos3)
}

/// Encodes as PNG or JPEG, whichever is smaller, or as a JPEG of lower quality if neither can be sent.
fn encode(picture: &DynamicImage, limits: &ImageLimits) -> Option<(Vec<u8>, &'static str)> {
    let opaque = on_white(picture);
    let flat = opaque.as_ref().unwrap_or(picture);
    let png = png(picture).map(|bytes| (bytes, "image/png"));
    let first = [png, jpeg(flat, limits.jpeg_quality)];
    let smallest = first.into_iter().flatten().min_by_key(|(bytes, _)| bytes.len());
    let lower = LOWER_QUALITIES.into_iter().filter(|quality| *quality < limits.jpeg_quality);
    let mut lower = lower.filter_map(|quality| jpeg(flat, quality));
    let sendable = |(bytes, _): &(Vec<u8>, _)| can_be_sent(bytes.len(), limits);
    smallest.filter(sendable).or_else(|| lower.find(sendable))
}

fn png(picture: &DynamicImage) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut out, CompressionType::Default, RowFilter::Adaptive);
    picture.write_with_encoder(encoder).ok()?;
    Some(out)
}

fn jpeg(picture: &DynamicImage, quality: u8) -> Option<(Vec<u8>, &'static str)> {
    let mut out = Vec::new();
    picture.write_with_encoder(JpegEncoder::new_with_quality(&mut out, quality)).ok()?;
    Some((out, "image/jpeg"))
}

/// Draws a transparent image on white, because JPEG does not support transparency.
fn on_white(picture: &DynamicImage) -> Option<DynamicImage> {
    let seen = picture.as_rgba8()?;
    let mix = |channel: u8, alpha: u8| {
        let (channel, alpha) = (u32::from(channel), u32::from(alpha));
        ((channel * alpha + 255 * (255 - alpha)) / 255) as u8
    };
    let flat = RgbImage::from_fn(seen.width(), seen.height(), |x, y| {
        let [red, green, blue, alpha] = seen.get_pixel(x, y).0;
        Rgb([mix(red, alpha), mix(green, alpha), mix(blue, alpha)])
    });
    Some(flat.into())
}

#[cfg(test)]
mod tests;

use image::{GenericImageView as _, GrayImage, Luma, Rgba, RgbaImage};

use super::*;

/// Limits that nothing exceeds.
const NONE: ImageLimits =
    ImageLimits { max_width: u32::MAX, max_height: u32::MAX, max_encoded_bytes: u64::MAX, jpeg_quality: 80 };

fn fit(content: impl Into<Bytes>, mime_type: &'static str, resize: bool) -> Result<Fitted, RejectedImage> {
    fit_to(&if resize { ImageLimits::default() } else { NONE }, content, mime_type)
}

fn fit_to(limits: &ImageLimits, content: impl Into<Bytes>, mime_type: &'static str) -> Result<Fitted, RejectedImage> {
    let fitted = super::fit(content.into(), mime_type, limits)?;
    let picture = reopened(&fitted);
    assert!(has_room(fitted.sides, limits) && can_be_sent(fitted.content.len(), limits));
    // An image passed on unchanged may be rotated.
    let (width, height) = picture.dimensions();
    assert!([(width, height), (height, width)].contains(&fitted.sides));
    assert!(fitted.notes.is_empty() || fitted.sides == (width, height));
    Ok(fitted)
}

/// Creates an image with four different quarters: red, green, blue and black, by rows.
fn quarters(width: u32, height: u32) -> DynamicImage {
    let picture = RgbImage::from_fn(width, height, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => Rgb([255, 0, 0]),
        (false, true) => Rgb([0, 255, 0]),
        (true, false) => Rgb([0, 0, 255]),
        (false, false) => Rgb([0, 0, 0]),
    });
    picture.into()
}

/// Creates an image that does not compress.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1u64;
    let picture = RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [.., a, b, c] = state.to_be_bytes()[..5] else { unreachable!() };
        Rgb([a, b, c])
    });
    picture.into()
}

fn written(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    picture.write_to(&mut out, format).unwrap();
    out.into_inner()
}

#[test]
fn an_image_becomes_a_png_that_fits() {
    for (format, mime_type) in [(ImageFormat::Jpeg, "image/jpeg"), (ImageFormat::Gif, "image/gif")] {
        let png = as_png(&written(&quarters(400, 100), format), mime_type, 200).unwrap();
        let picture = image::load_from_memory_with_format(&png, ImageFormat::Png).unwrap();
        assert_eq!(picture.dimensions(), (200, 50));
    }
    assert_eq!(as_png(b"\xff\xd8\xff\xe0", "image/jpeg", 200), None);
}

/// Inserts application data segments at the start of a JPEG.
fn with_segments(jpeg: &[u8], segments: &[Vec<u8>]) -> Vec<u8> {
    let mut out = jpeg[..2].to_vec();
    for segment in segments {
        let length = u16::try_from(segment.len() + 2).unwrap();
        out.extend([0xff, 0xe1]);
        out.extend(length.to_be_bytes());
        out.extend(segment);
    }
    out.extend(&jpeg[2..]);
    out
}

fn exif(orientation: u8) -> Vec<u8> {
    let mut out = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    out.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    out
}

fn reopened(fitted: &Fitted) -> DynamicImage {
    let format = ImageFormat::from_mime_type(fitted.mime_type).unwrap();
    image::load_from_memory_with_format(&fitted.content, format).unwrap()
}

/// Returns the colors of the four quarters, by rows.
fn colours(picture: &DynamicImage) -> String {
    let (width, height) = picture.dimensions();
    let at = |x: u32, y: u32| {
        let Rgba([red, green, blue, _]) = picture.get_pixel(width * x / 4, height * y / 4);
        match (red > 128, green > 128, blue > 128) {
            (true, false, false) => 'r',
            (false, true, false) => 'g',
            (false, false, true) => 'b',
            (false, false, false) => 'k',
            _ => '?',
        }
    };
    [at(1, 1), at(3, 1), at(1, 3), at(3, 3)].into_iter().collect()
}

#[test]
fn images_within_the_limits_are_passed_on_unchanged() {
    let picture = quarters(40, 20);
    for (format, mime_type) in [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/gif"),
        (ImageFormat::WebP, "image/webp"),
    ] {
        let content = written(&picture, format);
        let expected = Fitted { content: content.clone().into(), mime_type, notes: Vec::new(), sides: (40, 20) };
        assert_eq!(fit(content, mime_type, true), Ok(expected), "{mime_type}");
    }
}

#[test]
fn every_orientation_is_corrected() {
    let jpeg = written(&quarters(2400, 120), ImageFormat::Jpeg);
    let extended = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>".to_vec();
    let expected = ["rgbk", "grkb", "kbgr", "bkrg", "rbgk", "brkg", "kgbr", "gkrb"];
    for (value, expected) in (1..).zip(expected) {
        // The orientation may follow segments of the same type with other content.
        for segments in [vec![exif(value)], vec![extended.clone(), b"other".to_vec(), exif(value)]] {
            let fitted = fit(with_segments(&jpeg, &segments), "image/jpeg", true).unwrap();
            let picture = reopened(&fitted);
            let (sides, original) = if value < 5 { ((2000, 100), "2400x120") } else { ((100, 2000), "120x2400") };
            assert_eq!((picture.dimensions(), colours(&picture).as_str()), (sides, expected), "{value}");
            let note = format!(
                "[Image: original {original}, displayed at {}x{}. Multiply coordinates by 1.20 to map to original image.]",
                sides.0, sides.1
            );
            assert_eq!(fitted.notes, [note], "{value}");
        }
    }
}

#[test]
fn an_invalid_orientation_is_ignored() {
    let jpeg = written(&quarters(2400, 120), ImageFormat::Jpeg);
    for value in [0, 9, 255] {
        let fitted = fit(with_segments(&jpeg, &[exif(value)]), "image/jpeg", true).unwrap();
        assert_eq!(colours(&reopened(&fitted)), "rgbk", "{value}");
    }
}

#[test]
fn a_rotated_webp_is_measured_in_its_displayed_orientation() {
    let plain = written(&quarters(2400, 120), ImageFormat::WebP);
    let chunk = |name: &[u8; 4], content: &[u8]| {
        let mut chunk = [name, &(content.len() as u32).to_le_bytes()[..], content].concat();
        chunk.resize(chunk.len().next_multiple_of(2), 0);
        chunk
    };
    // The extended format: flags (8: EXIF metadata), three reserved bytes, and the sides minus one in three bytes each.
    let head = [8, 0, 0, 0, 0x5f, 0x09, 0, 119, 0, 0];
    let chunks = [&b"WEBP"[..], &chunk(b"VP8X", &head), &plain[12..], &chunk(b"EXIF", &exif(6)[6..])].concat();
    let fitted = fit(chunk(b"RIFF", &chunks), "image/webp", true).unwrap();
    let picture = reopened(&fitted);
    assert_eq!((picture.dimensions(), colours(&picture).as_str()), ((100, 2000), "brkg"));
}

#[test]
fn the_smaller_encoding_is_used() {
    let drawing = written(&quarters(2500, 100), ImageFormat::Png);
    assert_eq!(fit(drawing, "image/png", true).unwrap().mime_type, "image/png");
    let photo = written(&noise(2100, 100), ImageFormat::Png);
    assert_eq!(fit(photo, "image/png", true).unwrap().mime_type, "image/jpeg");
}

#[test]
fn too_many_bytes_are_reduced_although_the_sides_fit() {
    let content = written(&noise(1500, 1500), ImageFormat::Png);
    assert!(!can_be_sent(content.len(), &ImageLimits::default()));
    let fitted = fit(content.clone(), "image/png", true).unwrap();
    assert_eq!(reopened(&fitted).dimensions(), (1500, 1500));
    let note =
        "[Image: original 1500x1500, displayed at 1500x1500. Multiply coordinates by 1.00 to map to original image.]";
    assert_eq!(fitted.notes, [note]);
    let sides = (1500, 1500);
    let untouched = Fitted { content: content.clone().into(), mime_type: "image/png", notes: Vec::new(), sides };
    assert_eq!(fit(content, "image/png", false), Ok(untouched));
}

#[test]
fn bmp_becomes_png_whether_or_not_images_are_resized() {
    let small = written(&quarters(40, 20), ImageFormat::Bmp);
    assert_eq!(super::super::sniff(&small), Some("image/bmp"));
    for resize in [true, false] {
        let fitted = fit(small.clone(), "image/bmp", resize).unwrap();
        assert_eq!(fitted.notes, ["[Image converted from image/bmp to image/png.]"]);
        assert_eq!((fitted.mime_type, colours(&reopened(&fitted)).as_str()), ("image/png", "rgbk"));
    }
    let large = fit(written(&quarters(2500, 100), ImageFormat::Bmp), "image/bmp", true).unwrap();
    let expected = [
        "[Image converted from image/bmp to image/png.]",
        "[Image: original 2500x100, displayed at 2000x80. Multiply coordinates by 1.25 to map to original image.]",
    ];
    assert_eq!(large.notes, expected);
    let noisy = fit(written(&noise(1500, 1500), ImageFormat::Bmp), "image/bmp", true).unwrap();
    assert_eq!(noisy.notes[0], "[Image converted from image/bmp to image/jpeg.]");
    assert_eq!(noisy.mime_type, "image/jpeg");
    assert_eq!(fit(small[..60].to_vec(), "image/bmp", true), Err(RejectedImage::NotConverted));
}

#[test]
fn the_first_frame_of_an_animation_is_used() {
    let mut out = Vec::new();
    let mut encoder = image::codecs::gif::GifEncoder::new(&mut out);
    let other = DynamicImage::from(RgbImage::from_pixel(2500, 100, Rgb([255, 255, 255])));
    let frames = [quarters(2500, 100), other].map(|frame| image::Frame::new(frame.into_rgba8()));
    encoder.encode_frames(frames).unwrap();
    drop(encoder);
    let fitted = fit(out, "image/gif", true).unwrap();
    assert_eq!((fitted.mime_type, colours(&reopened(&fitted)).as_str()), ("image/png", "rgbk"));
}

#[test]
fn jpeg_shows_transparency_as_white() {
    let glass = DynamicImage::from(RgbaImage::from_fn(4, 1, |x, _| Rgba([0, 0, 0, if x < 2 { 0 } else { 255 }])));
    let flat = on_white(&glass).unwrap();
    assert_eq!((flat.get_pixel(0, 0), flat.get_pixel(3, 0)), (Rgba([255; 4]), Rgba([0, 0, 0, 255])));
    assert_eq!(on_white(&quarters(4, 4)), None);
}

#[test]
fn sides_keep_their_ratio_and_never_become_zero() {
    let usual = |width, height| target((width, height), &ImageLimits::default());
    assert_eq!(usual(2500, 1000), (2000, 800));
    assert_eq!(usual(3000, 6000), (1000, 2000));
    assert_eq!(usual(50_000, 1), (2000, 1));
    assert_eq!(usual(1, 50_000), (1, 2000));
    assert_eq!(usual(300, 200), (300, 200));
    let line = written(&GrayImage::from_pixel(50_000, 1, Luma([9])).into(), ImageFormat::Png);
    assert_eq!(reopened(&fit(line, "image/png", true).unwrap()).dimensions(), (2000, 1));
}

#[test]
fn model_limits_apply() {
    let usual = ImageLimits::default();
    let content = written(&quarters(400, 200), ImageFormat::Png);
    let sides = |limits: ImageLimits| fit_to(&limits, content.clone(), "image/png").map(|fitted| fitted.sides);
    assert_eq!(sides(ImageLimits { max_width: 100, ..usual }), Ok((100, 50)));
    assert_eq!(sides(ImageLimits { max_height: 100, ..usual }), Ok((200, 100)));
    assert_eq!(sides(ImageLimits { max_width: 100, max_height: 20, ..usual }), Ok((40, 20)));
    assert_eq!(sides(ImageLimits { max_width: 1, max_height: 1, ..usual }), Ok((1, 1)));
    assert_eq!(sides(ImageLimits { max_encoded_bytes: 1, ..usual }), Err(RejectedImage::TooLarge));
    // A model may accept more than the default.
    let large = written(&quarters(2500, 2200), ImageFormat::Png);
    let more = ImageLimits { max_width: 3000, max_height: 3000, ..usual };
    assert_eq!(fit_to(&more, large.clone(), "image/png").map(|fitted| fitted.content), Ok(large.into()));
}

#[test]
fn jpeg_encoding_starts_at_the_models_quality() {
    let content = written(&noise(400, 300), ImageFormat::Png);
    let fitted = |quality: u8, max_encoded_bytes: u64| {
        let limits = ImageLimits { max_width: 300, max_encoded_bytes, jpeg_quality: quality, ..ImageLimits::default() };
        fit_to(&limits, content.clone(), "image/png").unwrap()
    };
    let lengths = [100, 80, 40, 10].map(|quality| fitted(quality, u64::MAX).content.len());
    assert!(lengths.is_sorted_by(|a, b| a > b), "{lengths:?}");
    // Qualities below the model's are tried, never higher ones, and then smaller sides.
    assert_eq!(
        (fitted(100, 4 * lengths[0] as u64 / 3).sides, fitted(100, 4 * lengths[2] as u64 / 3).sides.0),
        ((300, 225), 225)
    );
    assert_eq!(fitted(10, 4 * lengths[3] as u64 / 3 - 8).sides, (225, 168));
}

#[test]
fn undecodable_images_are_rejected_and_no_bytes_cause_a_panic() {
    let whole = written(&quarters(64, 64), ImageFormat::Png);
    for resize in [true, false] {
        assert_eq!(fit(whole[..40].to_vec(), "image/png", resize), Err(RejectedImage::Undecodable));
        assert_eq!(fit(b"GIF89a\x01\0".to_vec(), "image/gif", resize), Err(RejectedImage::Undecodable));
    }
    let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Bmp];
    for format in formats {
        let whole = written(&quarters(16, 16), format);
        for at in 0..whole.len().min(400) {
            // A corrupted image may be rejected or accepted.
            let mut broken = whole.clone();
            broken[at] ^= 0x5a;
            drop(fit(broken, format.to_mime_type(), true));
            drop(fit(whole[..at].to_vec(), format.to_mime_type(), true));
        }
    }
}

#[test]
fn images_that_need_too_much_memory_are_rejected_although_valid() {
    let bomb = written(&GrayImage::new(10_000, 5_001).into(), ImageFormat::Png);
    assert!(bomb.len() < 1_000_000);
    for resize in [true, false] {
        assert_eq!(fit(bomb.clone(), "image/png", resize), Err(RejectedImage::TooLarge));
    }
}

#[tokio::test]
async fn many_concurrent_images_are_all_processed() {
    let content = Bytes::from(written(&quarters(40, 20), ImageFormat::Bmp));
    let all =
        futures::future::join_all((0..8).map(|_| fit_apart(content.clone(), "image/bmp", ImageLimits::default())))
            .await;
    assert!(all.iter().all(|fitted| fitted.as_ref().is_ok_and(|fitted| fitted.mime_type == "image/png")));
    assert_eq!(SLOTS.available_permits(), 2);
}

//! Reads the size of an image from the header of its file.

use super::{MAX_SIDE, PixelSize};

/// Returns the size of a PNG, JPEG, GIF or WebP from the beginning of its file; `None` if the header is broken, does not contain the size,
/// or contains more than [`MAX_SIDE`] pixels.
pub fn dimensions(start: &[u8]) -> Option<PixelSize> {
    let (width, height) = match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png(start)?,
        [0xff, 0xd8, 0xff, ..] => jpeg(start)?,
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => (u32::from(le16(start, 6)?), u32::from(le16(start, 8)?)),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp(start)?,
        _ => return None,
    };
    let is_side = |side: u32| (1..=MAX_SIDE).contains(&side);
    (is_side(width) && is_side(height)).then_some(PixelSize { width, height })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let side = |at| array(bytes, at).map(u32::from_be_bytes);
    (bytes.get(12..16)? == b"IHDR").then_some((side(16)?, side(20)?))
}

/// Scans the segments up to the frame header.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [mark, kind] = array(bytes, at)?;
        match kind {
            _ if mark != 0xff => return None,
            // Fill bytes, and markers without a segment.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((u32::from(be16(bytes, at + 7)?), u32::from(be16(bytes, at + 5)?)));
            }
            // The image data or the end, without a preceding frame header.
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::from(be16(bytes, at + 2)?.max(2)),
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match &array(bytes, 12)? {
        b"VP8X" => Some((le24(bytes, 24)? + 1, le24(bytes, 27)? + 1)),
        b"VP8 " if array(bytes, 23)? == [0x9d, 0x01, 0x2a] => {
            let side = |at| le16(bytes, at).map(|side| u32::from(side & 0x3fff));
            Some((side(26)?, side(28)?))
        }
        b"VP8L" if bytes.get(20) == Some(&0x2f) => {
            let bits = u32::from_le_bytes(array(bytes, 21)?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06";
    const GIF: &[u8] = b"GIF89a\x80\x02\xe0\x01\0\0\0";
    const JPEG: &[u8] =
        b"\xff\xd8\xff\xe0\0\x06JFIF\xff\xff\xfe\0\x04hi\xff\xc4\0\x03x\xff\xc2\0\x0b\x08\x01\xe0\x02\x80\x01\x11\0";
    const WEBP_EXTENDED: &[u8] = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
    const WEBP_LOSSY: &[u8] = b"RIFF\0\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
    const WEBP_LOSSLESS: &[u8] = b"RIFF\0\0\0\0WEBPVP8L\x0a\0\0\0\x2f\x7f\xc2\x77\0";

    #[test]
    fn every_header_contains_the_size_and_truncated_ones_are_rejected() {
        for file in [PNG, GIF, JPEG, WEBP_EXTENDED, WEBP_LOSSY, WEBP_LOSSLESS] {
            assert_eq!(dimensions(file), Some(PixelSize { width: 640, height: 480 }), "{file:?}");
            let needed = (0..=file.len()).find(|n| dimensions(&file[..*n]).is_some()).unwrap();
            for n in needed..file.len() {
                assert_eq!(dimensions(&file[..n]), dimensions(file));
            }
        }
    }

    #[test]
    fn impossible_sizes_are_rejected() {
        for file in [
            &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\x01\xe0"[..],
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x40\x01\0\0\x01\xe0",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIEND\0\0\x02\x80\0\0\x01\xe0",
            b"\xff\xd8\xff\xda\0\x03x",
            b"\xff\xd8\xff\xe0\0\0\0\0\0\0\0\0\0",
            b"GIF89a\0\0\0\0",
            b"BM",
            b"",
        ] {
            assert_eq!(dimensions(file), None, "{file:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            which in 0usize..6,
            changes in prop::collection::vec((2usize..60, any::<u8>()), 0..8),
        ) {
            let mut file = [PNG, GIF, JPEG, WEBP_EXTENDED, WEBP_LOSSY, WEBP_LOSSLESS][which].to_vec();
            for (at, byte) in changes {
                if let Some(place) = file.get_mut(at) {
                    *place = byte;
                }
            }
            if let Some(size) = dimensions(&file) {
                prop_assert!((1..=MAX_SIDE).contains(&size.width) && (1..=MAX_SIDE).contains(&size.height));
            }
        }
    }
}

//! Images in a page: embedded as data only, and only in formats that can contain nothing but an image.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_llm::message::{Image, image_type};

use super::out::PageWriter;

/// Writes an image, or a note if it cannot be shown.
pub(super) fn image(out: &mut PageWriter<'_>, image: &Image) -> io::Result<()> {
    match kind(&image.data) {
        Some(kind) => shown(out, kind, &image.data),
        None => {
            out.html("<p class=\"gone\">[image cannot be shown: ")?;
            out.text(&image.mime_type)?;
            out.html("]</p>")
        }
    }
}

/// Writes the image of a data URL. Returns false and writes nothing if it cannot be shown.
pub(super) fn data_url(out: &mut PageWriter<'_>, url: &str) -> io::Result<bool> {
    let data = url.strip_prefix("data:image/").and_then(|url| url.split_once(";base64,")).map(|(_, data)| data);
    match data.and_then(|data| Some((kind(data)?, data))) {
        Some((kind, data)) => shown(out, kind, data).map(|()| true),
        None => Ok(false),
    }
}

fn shown(out: &mut PageWriter<'_>, kind: &'static str, data: &str) -> io::Result<()> {
    out.html("<img alt=\"picture\" loading=\"lazy\" decoding=\"async\" src=\"data:")?;
    out.html(kind)?;
    out.html(";base64,")?;
    out.checked(data)?;
    out.html("\">")
}

/// Detects the type of an image by its first bytes. Returns `None` for invalid base64 and other types.
fn kind(data: &str) -> Option<&'static str> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if data.is_empty() || !data.bytes().all(is_base64) {
        return None;
    }
    let start = STANDARD.decode(data.get(..24).unwrap_or(data)).ok()?;
    image_type(&start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::written;

    fn page(data: &str) -> String {
        written(|out| image(out, &Image { data: data.to_owned(), mime_type: "image/<x>".into() }))
    }

    #[test]
    fn image_types_are_detected_by_content() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n and the rest of it");
        assert_eq!(
            page(&png),
            format!("<img alt=\"picture\" loading=\"lazy\" decoding=\"async\" src=\"data:image/png;base64,{png}\">")
        );
        let refused = "<p class=\"gone\">[image cannot be shown: image/&lt;x&gt;]</p>";
        let svg = STANDARD.encode("<svg onload='x'>");
        for data in [&svg, "", "\"onload=x", &format!("{png}\" onload=\"x"), "iVBO"] {
            assert_eq!(page(data), refused, "{data}");
        }
    }
}

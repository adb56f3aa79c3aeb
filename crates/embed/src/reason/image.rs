//! Images that a provider finds too large.

use super::find::{any, number_after};

/// An image with too many pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageDimension {
    /// How many a side may have.
    pub max_px: Option<u64>,
    /// The message with the image.
    pub message_idx: Option<u64>,
    /// The block of that message.
    pub content_idx: Option<u64>,
}

/// Reads the error, where the text is one.
pub fn image_dimension(text: &str) -> Option<ImageDimension> {
    let lower = text.to_lowercase();
    if !lower.contains("image dimensions exceed max allowed size") {
        return None;
    }
    let place = lower.find("messages.").and_then(|at| {
        let mut parts = lower[at + "messages.".len()..].splitn(4, '.');
        let message = parts.next()?.parse().ok()?;
        let content = parts.next().filter(|part| *part == "content").and(parts.next())?.parse().ok()?;
        Some((message, content))
    });
    Some(ImageDimension {
        max_px: number_after(&lower, "many-image requests:"),
        message_idx: place.map(|(message, _)| message),
        content_idx: place.map(|(_, content)| content),
    })
}

/// Whether a text says that an image has too many bytes.
pub fn is_image_size(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.contains("image exceeds") && lower.contains("mb")
}

/// How many megabytes an image may have, where the text says it.
pub fn image_size_mb(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    let rest = lower[lower.find("image exceeds")? + "image exceeds".len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[end..].trim_start().starts_with("mb").then(|| rest[..end].parse().ok()).flatten()
}

/// Whether a text says that messages do not alternate as the provider wants them to.
pub fn is_role_ordering(text: &str) -> bool {
    any(&text.to_lowercase(), &["incorrect role information", "roles must alternate"])
}

//! Errors about images that are too large for a provider, and about the order of messages.

use super::words::{any, number_after};

/// An image with too many pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageDimension {
    /// The maximum number of pixels per side.
    pub max_px: Option<u64>,
    /// The index of the message with the image.
    pub message_idx: Option<u64>,
    /// The index of the block in that message.
    pub content_idx: Option<u64>,
}

/// Parses an error about too many pixels.
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

/// Returns whether a text reports an image with too many bytes.
pub fn is_image_size(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.contains("image exceeds") && lower.contains("mb")
}

/// Returns the maximum size of an image in megabytes, if the text names it.
pub fn image_size_mb(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    let rest = lower[lower.find("image exceeds")? + "image exceeds".len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[end..].trim_start().starts_with("mb").then(|| rest[..end].parse().ok()).flatten()
}

/// Returns whether a text reports a request that alone needs more tokens per minute than the account has, so that it can never succeed:
/// "… tokens per minute (TPM): Limit 6000, Requested 9218". Source: Groq's refusals with status 413.
pub fn exceeds_token_rate(text: &str) -> bool {
    let lower = text.to_lowercase();
    // The word may also occur without a number: "rate limit reached".
    let number = |name: &str| lower.match_indices(name).find_map(|(at, _)| number_after(&lower[at..], name));
    any(&lower, &["tokens per minute", "(tpm)", "tpm:"])
        && number("limit ").zip(number("requested ")).is_some_and(|(limit, requested)| requested > limit)
}

/// Returns whether a text reports that roles do not alternate as the provider requires.
pub fn is_role_ordering(text: &str) -> bool {
    any(&text.to_lowercase(), &["incorrect role information", "roles must alternate"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_the_token_rate_are_recognised() {
        let refusal = |limit: u32, used: &str, requested: u32| {
            format!(
                "413 Rate limit reached for model `m` in organization `o` on tokens per minute (TPM): Limit {limit}, {used}Requested \
                 {requested}, please reduce your message size and try again."
            )
        };
        assert!(exceeds_token_rate(&refusal(6_000, "", 9_218)));
        assert!(!exceeds_token_rate(&refusal(6_000, "Used 5900, ", 218)), "it succeeds a minute later");
        assert!(!exceeds_token_rate("Rate limit reached: Limit 1, Requested 2"));
        assert!(!exceeds_token_rate("tokens per minute"));
    }
}

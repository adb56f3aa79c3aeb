//! Images that a prompt names by their path, so that a model sees what its user points at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use pinch_coding_agent::images::sniff;
use pinch_coding_agent::machine::Machine;
use pinch_llm::message::Image;

use crate::run::scope::RunScope;

const ENDINGS: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "bmp", "tiff", "tif", "heic", "heif"];

/// Bytes of an image file at most.
const MAX_BYTES: u64 = 6 * 1024 * 1024;

/// Images of one prompt at most.
const MAX_IMAGES: usize = 32;

/// The paths of images that a prompt names, each once, in the order in which it names them: attachments, sources, `file://` URLs, and paths
/// that stand alone.
pub fn references(prompt: &str) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (at, _) in prompt.match_indices('[') {
        let inside = prompt[at + 1..].split(']').next().unwrap_or_default();
        found.extend(attached(inside).map(|path| (at, path.to_owned())));
    }
    for (at, _) in prompt.match_indices("file://") {
        let url = word(&prompt[at + "file://".len()..]);
        // With or without a host in front of the path.
        let path = url.find('/').map_or(url, |slash| &url[slash..]);
        found.push((at, percent_decode_str(path).decode_utf8_lossy().into_owned()));
    }
    let mut before = ' ';
    for (at, c) in prompt.char_indices() {
        let begins = before.is_whitespace() || matches!(before, '"' | '\'' | '`' | '(');
        if begins && ["/", "./", "../", "~/"].iter().any(|head| prompt[at..].starts_with(head)) {
            found.push((at, word(&prompt[at..]).to_owned()));
        }
        before = c;
    }
    found.sort_by_key(|(at, _)| *at);
    let mut paths: Vec<String> = Vec::new();
    for (_, path) in found.into_iter().filter(|(_, path)| is_image(path)) {
        if !paths.iter().any(|known| known.to_lowercase() == path.to_lowercase()) {
            paths.push(path);
        }
    }
    paths
}

/// The path in `media attached: <path> (mime) | url`, `media attached 1/2: …`, or `Image: source: <path>`.
fn attached(inside: &str) -> Option<&str> {
    if let Some(path) = inside.strip_prefix("Image: source:") {
        return Some(path.trim());
    }
    let rest = inside.strip_prefix("media attached")?;
    let (number, path) = rest.split_once(':')?;
    let is_number = number.trim().chars().all(|c| c.is_ascii_digit() || c == '/');
    let path = path.split('|').next().unwrap_or_default();
    let path = path.rfind(" (").map_or(path, |mime| &path[..mime]);
    is_number.then(|| path.trim())
}

/// A text up to what cannot belong to a path in prose.
fn word(text: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '<' | '>' | '|');
    text[..text.find(ends).unwrap_or(text.len())].trim_end_matches(['.', ',', ';', ':', '!', '?'])
}

fn is_image(path: &str) -> bool {
    let is_remote = path.starts_with("http://") || path.starts_with("https://");
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    !is_remote && ENDINGS.contains(&ending.as_str())
}

/// Where the files lie that a prompt names.
pub(super) struct PromptFiles {
    machine: Arc<dyn Machine>,
    workspace: PathBuf,
    home: Option<PathBuf>,
}

impl PromptFiles {
    pub(super) fn of(scope: &RunScope) -> Self {
        let home = scope.host.home().map(Path::to_owned);
        Self { machine: Arc::clone(&scope.machine), workspace: scope.workspace.clone(), home }
    }

    /// Reads the images that a prompt names. What cannot be read, is too long, or is no image, is left out.
    pub(super) async fn images(&self, prompt: &str) -> Vec<Image> {
        let paths = references(prompt);
        let n_named = paths.len();
        let mut images = Vec::new();
        for path in paths.into_iter().take(MAX_IMAGES) {
            let path = match (path.strip_prefix("~/"), &self.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => self.workspace.join(path),
            };
            let Ok(bytes) = self.machine.read(&path, MAX_BYTES).await else { continue };
            if let Some(mime_type) = sniff(&bytes) {
                images.push(Image { data: STANDARD.encode(&bytes), mime_type: mime_type.to_owned() });
            }
        }
        if images.len() < n_named {
            tracing::debug!(named = n_named, loaded = images.len(), "some images that the prompt names were left out");
        }
        images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_images_are_found_where_people_and_channels_write_them() {
        for (prompt, expected) in [
            ("[media attached 1/2: /m/a b.png (image/png) | http://h/x]", &["/m/a b.png"][..]),
            ("[media attached: 2 files] [Image: source: /m/c.gif]", &["/m/c.gif"]),
            ("look at file:///tmp/a%20b.JPEG, please", &["/tmp/a b.JPEG"]),
            ("(~/x.webp) `../y.bmp` './z.tif'.", &["~/x.webp", "../y.bmp", "./z.tif"]),
            ("a/b.png word.png https://h/c.png /etc/passwd", &[]),
        ] {
            assert_eq!(references(prompt), expected, "{prompt}");
        }
    }
}

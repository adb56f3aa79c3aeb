//! Loads images that a prompt names by path, so that a model sees what its user refers to.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use pinch_coding_agent::images::sniff;
use pinch_coding_agent::machine::Machine;
use pinch_llm::message::Image;

use crate::config::paths::expand_home;
use crate::run::scope::RunScope;

const ENDINGS: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "bmp", "tiff", "tif", "heic", "heif"];

/// Size limit of an image file, in bytes.
const MAX_BYTES: u64 = 6 * 1024 * 1024;

/// Length limit of a reference, in bytes; no system opens a longer path. Without a limit, many nested references would each be read to the
/// end.
const MAX_REFERENCE: usize = 4096;

/// Maximum number of images per prompt.
const MAX_IMAGES: usize = 32;

/// Returns the paths of images that a prompt names, without duplicates and in order: attachments, sources, `file://` URLs, and bare paths.
pub fn references(prompt: &str) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    // The next closing bracket is searched for once for all that open before it.
    let mut close = 0;
    for (at, _) in prompt.match_indices('[') {
        if close <= at {
            close = prompt[at..].find(']').map_or(prompt.len(), |after| at + after);
        }
        let inside = &prompt[at + 1..close];
        if inside.len() <= MAX_REFERENCE {
            found.extend(attached(inside).map(|path| (at, path.to_owned())));
        }
    }
    let mut end = 0;
    for (at, head) in prompt.match_indices("file://") {
        let at_path = at + head.len();
        if end < at_path {
            end = at_path + prompt[at_path..].find(ends_word).unwrap_or(prompt.len() - at_path);
        }
        if end - at_path > MAX_REFERENCE {
            continue;
        }
        let url = word(&prompt[at_path..end]);
        // With or without a host before the path.
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
    let mut known = HashSet::new();
    let paths = found.into_iter().map(|(_, path)| path).filter(|path| is_image(path));
    paths.filter(|path| known.insert(path.to_lowercase())).collect()
}

/// Returns the path in `media attached: <path> (mime) | url`, `media attached 1/2: …`, or `Image: source: <path>`.
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

/// Returns a text up to the first character that cannot be part of a path in prose.
fn word(text: &str) -> &str {
    text[..text.find(ends_word).unwrap_or(text.len())].trim_end_matches(['.', ',', ';', ':', '!', '?'])
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '<' | '>' | '|')
}

fn is_image(path: &str) -> bool {
    let is_remote = path.starts_with("http://") || path.starts_with("https://");
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    !is_remote && ENDINGS.contains(&ending.as_str())
}

/// Where to find files named by a prompt.
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

    /// Reads the images that a prompt names. Files that cannot be read, are too large, or are not images, are skipped.
    pub(super) async fn images(&self, prompt: &str) -> Vec<Image> {
        let paths = references(prompt);
        let n_named = paths.len();
        let mut images = Vec::new();
        for path in paths.into_iter().take(MAX_IMAGES) {
            let path = self.workspace.join(expand_home(Path::new(&path), self.home.as_deref()));
            let Ok(bytes) = self.machine.read(&path, MAX_BYTES).await else { continue };
            if let Some(mime_type) = sniff(&bytes) {
                images.push(Image { data: STANDARD.encode(&bytes), mime_type: mime_type.to_owned() });
            }
        }
        if images.len() < n_named {
            tracing::debug!(named = n_named, loaded = images.len(), "skipped some images that the prompt names");
        }
        images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unterminated_references_are_not_paths() {
        for part in ["[", "[media attached: ", "file://", "file:///a.png", "/a.png "] {
            let prompt = format!("{}x.png]", part.repeat(1_000_000 / part.len()));
            let found = references(&prompt);
            assert!(found.len() < 10_000, "{part}: {}", found.len());
        }
    }

    #[test]
    fn image_paths_are_found_in_prose_and_channel_attachments() {
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

//! Handles media that are too large for a channel.

use std::path::Path;

use super::terms::DeliveryTerms;
use crate::replies::piece::BlockReply;
use crate::texts::Phrase;

/// Removes local files that are too large for the channel, and says so in the text.
pub(super) async fn drop_too_large(reply: &mut BlockReply, max_bytes: Option<u64>, terms: &DeliveryTerms) {
    let Some(max_bytes) = max_bytes.filter(|_| !reply.media_urls.is_empty()) else { return };
    let mut kept = Vec::with_capacity(reply.media_urls.len());
    for url in std::mem::take(&mut reply.media_urls) {
        match size_of(&url, terms.media_dir.as_deref()).await {
            Some(n_bytes) if n_bytes > max_bytes => {
                let name =
                    Path::new(&url).file_name().map_or_else(|| url.clone().into(), |name| name.to_string_lossy());
                let mb = (max_bytes as f64 / 10_485.76).ceil() / 100.0;
                let note = terms.texts.fill(Phrase::FileTooLarge, [("file", &name), ("mb", &mb.to_string())]);
                if !reply.text.is_empty() {
                    reply.text.push_str("\n\n");
                }
                reply.text.push_str(&note);
            }
            _ => kept.push(url),
        }
    }
    reply.media_urls = kept;
}

/// Returns the size of a local file; `None` for a URL or a missing file.
async fn size_of(url: &str, dir: Option<&Path>) -> Option<u64> {
    if url.contains("://") {
        return None;
    }
    let path = dir.map_or_else(|| Path::new(url).to_owned(), |dir| dir.join(url));
    tokio::fs::metadata(path).await.ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len())
}

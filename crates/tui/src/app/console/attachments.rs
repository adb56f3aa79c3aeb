//! Images that the user pastes or drops: into the editor, and from there into the session.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use pinch_coding_agent::images;
use pinch_llm::message::Image;
use pinch_stdx::fs::{open_regular, read_regular};

use super::Console;
use super::lookups::LookupResult;
use crate::clipboard;
use crate::editor::PastedImage;
use crate::image::MAX_BYTES;

/// Time limit for reading a dropped file.
const PATIENCE: Duration = Duration::from_secs(2);
/// Number of bytes needed to detect a file type.
const HEAD: u64 = 4100;

impl Console {
    /// Inserts the clipboard image into the editor.
    pub(super) fn paste_image(&mut self) {
        let dir = self.app.paste_dir();
        let env = self.host.env().clone();
        let work = async move { LookupResult::Image(clipboard::image(&env, &dir).await) };
        self.lookups.push(work.boxed());
    }

    /// Inserts the image in a dropped file into the editor, or the pasted text if it is not an image.
    pub(super) async fn insert_file(&mut self, path: PathBuf, pasted: &str) {
        let file = path.clone();
        let look = tokio::task::spawn_blocking(move || is_image(&file));
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(Ok(true)) => self.app.insert_image(&path),
            _ => self.app.paste(pasted),
        }
    }

    /// Reads the images of a message. The session resizes them for the model; unreadable ones are reported to the user.
    pub(in crate::app) async fn read_images(&mut self, pasted: &[PastedImage]) -> Vec<Image> {
        let mut images = Vec::with_capacity(pasted.len());
        for PastedImage { label, path } in pasted {
            let path = path.clone();
            let read = tokio::task::spawn_blocking(move || read_image(&path)).await;
            match read.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(image) => images.push(image),
                Err(why) => self.app.warning(&format!("{label} was not attached: {why}")),
            }
        }
        images
    }

    /// Converts images to PNG if the terminal does not support their format.
    pub(super) fn convert_images(&mut self) {
        for image in self.app.take_unconverted() {
            let work = async move {
                let png = image.to_png().await;
                LookupResult::Converted(Box::new((image, png)))
            };
            self.lookups.push(work.boxed());
        }
    }

    /// Removes old pasted images.
    pub(in crate::app) fn remove_old_pastes(&mut self) {
        let (dir, now_ms) = (self.app.paste_dir(), self.host.now_ms());
        let removed = tokio::task::spawn_blocking(move || clipboard::remove_old(&dir, now_ms));
        let work = async move {
            // Failures are retried next time.
            drop(removed.await);
            LookupResult::Done(Ok(String::new()))
        };
        self.lookups.push(work.boxed());
    }
}

/// Returns whether a file is an image that can be attached.
fn is_image(path: &Path) -> bool {
    let Ok(file) = open_regular(path) else { return false };
    let mut head = Vec::new();
    let is_small = file.metadata().is_ok_and(|meta| meta.len() <= MAX_BYTES);
    is_small && file.take(HEAD).read_to_end(&mut head).is_ok() && images::sniff(&head).is_some()
}

fn read_image(path: &Path) -> Result<Image, String> {
    let bytes = read_regular(path, MAX_BYTES).map_err(|error| error.to_string())?;
    let mime_type = images::sniff(&bytes).ok_or("it is not an image")?;
    Ok(Image { data: STANDARD.encode(&bytes), mime_type: mime_type.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_images_are_attached() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            std::fs::write(dir.path().join(name), content).unwrap();
            dir.path().join(name)
        };
        let image = file("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
        let text = file("b.png", b"text");
        assert_eq!(read_image(&image).unwrap().mime_type, "image/png");
        assert_eq!(read_image(&text).unwrap_err(), "it is not an image");
        let large = file("c.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
        std::fs::File::options().write(true).open(&large).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(read_image(&large).is_err());
        let missing = dir.path().join("missing.png");
        let all = [&image, &text, &large, &missing, &dir.path().to_owned()];
        assert_eq!(all.map(|path| is_image(path)), [true, false, false, false, false]);
    }
}

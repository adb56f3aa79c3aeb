//! Images: how the terminal displays them, and how they get into the editor.

use std::path::{Path, PathBuf};

use pinch_coding_agent::settings::values::Terminal;

use super::App;
use crate::image::{CellSize, ImageProtocol, ImageSource};
use crate::terminal::Size;

impl App {
    /// Selects the image protocol according to the settings.
    pub(super) fn choose_image_protocol(&mut self, terminal: &Terminal) {
        let is_off = !terminal.show_images || terminal.images.as_ref().is_some_and(|value| value == false);
        let word = terminal.images.as_ref().and_then(|value| value.as_str()).unwrap_or("auto");
        let protocol = if is_off { None } else { ImageProtocol::chosen(word, self.image_protocol) };
        if self.transcript.images().configure(protocol, terminal.image_width) {
            self.transcript.invalidate();
        }
    }

    /// Sets the size of the screen for the next frame, and of its cells in pixels.
    pub(crate) fn set_screen(&mut self, size: Size, cell: CellSize) {
        self.transcript.images().set_screen(size.height(), cell);
    }

    /// Inserts an image into the editor, or its path if the model does not accept images.
    pub(crate) fn insert_image(&mut self, path: &Path) {
        match self.model_without_images() {
            Some(model) => {
                self.status(&format!("{model} does not accept images; the path of the image was inserted"));
                self.editor.paste(&path.display().to_string());
            }
            None => self.editor.insert_image(path),
        }
        self.completion.close();
    }

    /// Returns the name of the model if it does not accept images.
    pub(super) fn model_without_images(&self) -> Option<String> {
        self.model.as_ref().filter(|model| !model.images).map(|model| model.id.to_string())
    }

    /// Takes the images that need conversion for the terminal.
    pub(crate) fn take_unconverted(&mut self) -> Vec<ImageSource> {
        self.transcript.images().take_unconverted()
    }

    /// Called when an image was converted, or could not be.
    pub(crate) fn converted(&mut self, image: &ImageSource, png: Option<ImageSource>) {
        self.transcript.converted(image, png);
    }

    /// Inserts a pasted text into the editor.
    pub(crate) fn paste(&mut self, text: &str) {
        self.editor.paste(text);
        self.completion.refresh(&self.editor);
    }

    /// Returns the directory for pasted files.
    pub(crate) fn paste_dir(&self) -> PathBuf {
        self.options.agent_dir.join("tmp")
    }
}

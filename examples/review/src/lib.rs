//! Shows the files of a directory in the terminal and collects remarks about them. Every part of the screen comes from `pinch-tui`: a
//! select list, a loader, Markdown, a diff view, images and an editor.
//!
//! [`Review`] is the whole state. It does no input or output: keys go in, rows and [`ReviewAction`]s come out, so that it can be tested
//! without a terminal. `main.rs` connects it to one.

mod content;

use std::time::Duration;

use pinch_tui::Row;
use pinch_tui::editor::{Editor, EditorEvent};
use pinch_tui::image::{CellSize, ImageProtocol};
use pinch_tui::key::{Key, KeyCode, KeyPress};
use pinch_tui::keymap::Keymap;
use pinch_tui::markdown::{Markdown, MarkdownOptions};
use pinch_tui::terminal::{Cursor, Size};
use pinch_tui::theme::{ColorRole, Palette};
use pinch_tui::widget::{Loader, PickItem, Picker, PickerEvent};

pub use content::{FileContent, read};

/// Number of files shown at a time.
const LIST_HEIGHT: usize = 8;

/// What the program has to do after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewAction {
    /// Nothing but drawing.
    None,
    /// Read this file, and pass the content to [`Review::show`].
    Read(String),
    /// Exit.
    Exit,
}

/// What the live area at the end of the screen shows.
enum ReviewStage {
    /// The list of files.
    Choosing,
    /// A file is being read.
    Reading,
    /// The editor for a remark about the last file.
    Remarking,
}

/// The state of the program.
pub struct Review {
    keymap: Keymap,
    theme: Palette,
    size: Size,
    images: Option<(ImageProtocol, CellSize)>,
    files: Vec<String>,
    list: Picker,
    loader: Loader,
    editor: Editor,
    stage: ReviewStage,
    /// Rows for the scrollback.
    finished: Vec<Row>,
    /// Bytes that the terminal needs before those rows.
    image_data: Vec<u8>,
    n_images: u32,
}

impl Review {
    /// Creates the state for these files. `images`: how the terminal shows images, if it does.
    pub fn new(files: Vec<String>, theme: Palette, size: Size, images: Option<(ImageProtocol, CellSize)>) -> Self {
        let items = files.iter().map(PickItem::new).collect();
        Self {
            keymap: Keymap::default(),
            theme,
            size,
            images,
            files,
            list: Picker::new(items, LIST_HEIGHT),
            loader: Loader::default(),
            editor: Editor::new().with_placeholder("A remark in Markdown; escape returns to the list"),
            stage: ReviewStage::Choosing,
            finished: Vec::new(),
            image_data: Vec::new(),
            n_images: 0,
        }
    }

    /// Sets the size of the terminal.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
    }

    /// Returns how often the screen changes by itself.
    pub fn animation(&self) -> Option<Duration> {
        matches!(self.stage, ReviewStage::Reading).then(|| self.loader.interval()).flatten()
    }

    /// Handles a key.
    pub fn key(&mut self, press: &KeyPress) -> ReviewAction {
        if press.key == Key::ctrl('d') {
            return ReviewAction::Exit;
        }
        match self.stage {
            ReviewStage::Choosing => match self.list.key(press, &self.keymap) {
                PickerEvent::Chosen(at) => {
                    self.stage = ReviewStage::Reading;
                    ReviewAction::Read(self.files[at].clone())
                }
                PickerEvent::Cancelled => ReviewAction::Exit,
                PickerEvent::Changed | PickerEvent::Ignored => ReviewAction::None,
            },
            ReviewStage::Reading => ReviewAction::None,
            ReviewStage::Remarking if press.key == Key::plain(KeyCode::Escape) => {
                self.stage = ReviewStage::Choosing;
                ReviewAction::None
            }
            ReviewStage::Remarking => {
                if let EditorEvent::Submit(remark) = self.editor.handle(press, &self.keymap) {
                    self.editor.remember(&remark);
                    self.markdown(&format!("> {}", remark.text.replace('\n', "\n> ")));
                }
                ReviewAction::None
            }
        }
    }

    /// Handles pasted text.
    pub fn paste(&mut self, text: &str) {
        match self.stage {
            ReviewStage::Choosing => self.list.paste(text),
            ReviewStage::Reading => {}
            ReviewStage::Remarking => self.editor.paste(text),
        }
    }

    /// Shows the content of the file that was read, and opens the editor.
    pub fn show(&mut self, name: &str, content: FileContent) {
        self.stage = ReviewStage::Remarking;
        self.markdown(&format!("## {name}"));
        let rows = match content {
            FileContent::Markdown(text) => return self.markdown(&text),
            FileContent::Diff(text) => content::diff_rows(&text, self.size.width(), &self.theme),
            FileContent::Image { bytes, size } => match self.images {
                Some((ImageProtocol::KittyPlaceholders, cell)) => {
                    self.n_images += 1;
                    let (data, rows) = content::image_rows(self.n_images, &bytes, size, cell, self.size);
                    self.image_data.extend(data);
                    rows
                }
                _ => {
                    let text = format!("[image of {} × {} pixels]", size.width, size.height);
                    vec![Row::styled(text, self.theme.fg(ColorRole::Muted))]
                }
            },
            FileContent::Problem(why) => vec![Row::styled(why, self.theme.fg(ColorRole::Error))],
        };
        self.finished.extend(rows);
        self.finished.push(Row::default());
    }

    fn markdown(&mut self, text: &str) {
        let mut markdown = Markdown::of(text, MarkdownOptions::default());
        self.finished.extend(markdown.rows(self.size.width(), &self.theme));
        self.finished.push(Row::default());
    }

    /// Returns the image data to write before the next finished rows.
    pub fn take_image_data(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.image_data)
    }

    /// Returns the rows that go into the scrollback.
    pub fn take_finished(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.finished)
    }

    /// Draws the live area. `elapsed`: since the file began to be read.
    pub fn live(&mut self, elapsed: Duration) -> (Vec<Row>, Cursor) {
        let columns = self.size.width();
        let (rows, at) = match self.stage {
            ReviewStage::Choosing => (self.list.rows(columns, &self.theme), None),
            ReviewStage::Reading => (vec![self.loader.row(elapsed, "Reading", &self.theme)], None),
            ReviewStage::Remarking => {
                let height = Editor::visible_rows(self.size.height());
                self.editor.rows(columns, height, &self.theme, self.theme.fg(ColorRole::Border))
            }
        };
        let (row, column) = at.unwrap_or_default();
        (rows, Cursor { row, column, visible: at.is_some() })
    }
}

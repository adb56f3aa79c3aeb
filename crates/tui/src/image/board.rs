//! Images of a conversation on one terminal: which of them it has, and what it must be sent.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;

use super::{
    CellSize, ImageCells, ImageProtocol, ImageSource, MAX_CELLS, cells_for, iterm2_image, kitty_image,
    kitty_placeholders, kitty_placement, kitty_transmission,
};
use crate::Row;
use crate::text::row_width;

/// Maximum number of rows of a collapsed image.
const MAX_ROWS: u16 = 20;
/// Maximum number of rows of an expanded image.
const MAX_EXPANDED: u16 = 60;
/// Number of screen rows reserved next to an image drawn at the cursor.
const OTHER_ROWS: usize = 4;
/// Maximum size of the images sent with one frame, in bytes, in addition to its first image…
const MAX_FRAME: usize = 24 * 1024 * 1024;
/// … and of all of them on a remote terminal.
const MAX_REMOTE_FRAME: usize = 4 * 1024 * 1024;
/// Maximum number of placements of an image; further sizes use the last one.
const MAX_PLACEMENTS: usize = 255;

/// Image data that a frame sends besides its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameImages {
    /// Written before the rows.
    pub(crate) before: Vec<u8>,
    /// Images drawn over blank rows; [`anchor`] finds their index in the first of these rows.
    pub(crate) drawn: Vec<DrawnImage>,
}

/// An image drawn at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DrawnImage {
    /// Number of rows it covers.
    pub(crate) rows: usize,
    /// Control sequence that draws it with the cursor at its first cell.
    pub(crate) bytes: Vec<u8>,
}

/// Images that a screen of the terminal has, and the sizes they are shown in.
type SentImages = HashMap<u32, Vec<ImageCells>>;

/// State of a conversion to PNG.
#[derive(Debug)]
enum Conversion {
    Waiting,
    Done(ImageSource),
    Failed,
}

/// The images of a conversation.
#[derive(Debug)]
pub(crate) struct ImageBoard {
    protocol: Option<ImageProtocol>,
    cell: CellSize,
    screen_rows: usize,
    max_columns: u16,
    is_remote: bool,
    ids: HashMap<u64, u32>,
    /// Images of the main and the alternate screen, which terminals store separately.
    sent: [SentImages; 2],
    is_alternate: bool,
    frame: FrameImages,
    /// Whether other formats are converted to PNG for terminals that accept nothing else.
    converts: bool,
    /// Conversions, by the hash of the image.
    conversions: HashMap<u64, Conversion>,
    unconverted: Vec<ImageSource>,
}

/// Images of a conversation, shared with layouts that otherwise only read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedImages(Arc<Mutex<ImageBoard>>);

impl SharedImages {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ImageBoard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two values are equal if they are the same.
impl PartialEq for SharedImages {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedImages {}

impl Default for ImageBoard {
    fn default() -> Self {
        Self {
            protocol: None,
            cell: CellSize::default(),
            screen_rows: 24,
            max_columns: 60,
            is_remote: false,
            ids: HashMap::new(),
            sent: Default::default(),
            is_alternate: false,
            frame: FrameImages::default(),
            converts: false,
            conversions: HashMap::new(),
            unconverted: Vec::new(),
        }
    }
}

impl ImageBoard {
    /// Sets the protocol and the maximum width in columns. Returns whether anything changed.
    pub(crate) fn configure(&mut self, protocol: Option<ImageProtocol>, max_columns: u64) -> bool {
        let max_columns = u16::try_from(max_columns).unwrap_or(MAX_CELLS).clamp(1, MAX_CELLS);
        let is_new = (self.protocol, self.max_columns) != (protocol, max_columns);
        (self.protocol, self.max_columns) = (protocol, max_columns);
        is_new
    }

    /// Marks the terminal as remote.
    pub(crate) fn set_remote(&mut self) {
        self.is_remote = true;
    }

    /// Enables conversions; the caller must take the images that need them.
    pub(crate) fn enable_conversion(&mut self) {
        self.converts = true;
    }

    /// Takes the images that need conversion, without duplicates.
    pub(crate) fn take_unconverted(&mut self) -> Vec<ImageSource> {
        mem::take(&mut self.unconverted)
    }

    /// Called when an image was converted, or could not be.
    pub(crate) fn converted(&mut self, image: &ImageSource, png: Option<ImageSource>) {
        if let Some(hash) = image.hash() {
            self.conversions.insert(hash, png.map_or(Conversion::Failed, Conversion::Done));
        }
    }

    /// Returns whether an image will be shown once it has been converted.
    pub(crate) fn is_waiting(&mut self, image: &ImageSource) -> bool {
        let wants_png = matches!(self.protocol, Some(ImageProtocol::KittyPlaceholders | ImageProtocol::Kitty));
        if !self.converts || !wants_png || image.is_png() || image.size().is_none() {
            return false;
        }
        let Some(hash) = image.hash() else { return false };
        let conversion = self.conversions.entry(hash).or_insert_with(|| {
            self.unconverted.push(image.clone());
            Conversion::Waiting
        });
        matches!(conversion, Conversion::Waiting)
    }

    /// Sets the number of rows and the cell size of the screen for the next frame.
    pub(crate) fn set_screen(&mut self, rows: usize, cell: CellSize) {
        (self.screen_rows, self.cell) = (rows, cell);
    }

    /// Called when the terminal switches between its main and alternate screen. The alternate one is always empty at first.
    pub(crate) fn screen_changed(&mut self, is_alternate: bool) {
        self.is_alternate = is_alternate;
        let [_, alternate] = &mut self.sent;
        alternate.clear();
    }

    /// Returns the rows that show an image; `None`: a line of text replaces it. `is_final`: they go into the scrollback.
    pub(crate) fn rows(&mut self, image: &ImageSource, columns: usize, look: ImageLook) -> Option<Vec<Row>> {
        let protocol = self.protocol?;
        if self.is_waiting(image) {
            return None;
        }
        let converted = match self.conversions.get(&image.hash()?) {
            Some(Conversion::Done(png)) if protocol != ImageProtocol::Iterm2 => Some(png.clone()),
            _ => None,
        };
        let image = converted.as_ref().unwrap_or(image);
        let (size, hash) = (image.size()?, image.hash()?);
        if !self.has_room(hash, image) {
            return None;
        }
        let has_placeholders = protocol == ImageProtocol::KittyPlaceholders;
        if protocol != ImageProtocol::Iterm2 && !image.is_png() || !has_placeholders && !look.is_final {
            return None;
        }
        let mut max_rows = if look.is_expanded { MAX_EXPANDED } else { MAX_ROWS };
        if !has_placeholders {
            let room = self.screen_rows.checked_sub(OTHER_ROWS).filter(|room| *room > 0)?;
            max_rows = max_rows.min(u16::try_from(room).unwrap_or(MAX_ROWS));
        }
        let columns = u16::try_from(columns).unwrap_or(MAX_CELLS).min(self.max_columns);
        let cells = cells_for(size, self.cell, ImageCells { columns, rows: max_rows });
        Some(match protocol {
            ImageProtocol::KittyPlaceholders => self.placeholders(hash, image, cells),
            ImageProtocol::Kitty => self.blank_rows(cells, kitty_image(cells, image.data())),
            ImageProtocol::Iterm2 => self.blank_rows(cells, iterm2_image(cells, image.n_bytes(), image.data())),
        })
    }

    /// Returns whether an image can be sent with this frame, or need not be sent. Nothing else is drawn while the terminal receives a
    /// frame.
    fn has_room(&self, hash: u64, image: &ImageSource) -> bool {
        let n_bytes = self.frame.before.len() + self.frame.drawn.iter().map(|drawn| drawn.bytes.len()).sum::<usize>();
        let is_there =
            || self.ids.get(&hash).is_some_and(|id| self.sent[usize::from(self.is_alternate)].contains_key(id));
        let max = if self.is_remote { MAX_REMOTE_FRAME } else { MAX_FRAME };
        let is_first = n_bytes == 0 && !self.is_remote;
        is_first || n_bytes + image.data().len() <= max || is_there()
    }

    fn placeholders(&mut self, hash: u64, image: &ImageSource, cells: ImageCells) -> Vec<Row> {
        let id = self.id(hash);
        let sent = &mut self.sent[usize::from(self.is_alternate)];
        let placements = sent.entry(id).or_default();
        let at = match placements.iter().position(|sent| *sent == cells) {
            Some(at) => at,
            None if placements.len() == MAX_PLACEMENTS => MAX_PLACEMENTS - 1,
            None => {
                placements.push(cells);
                let number = u8::try_from(placements.len()).unwrap_or(u8::MAX);
                let bytes = match number {
                    1 => kitty_transmission(id, 1, cells, image.data()),
                    _ => kitty_placement(id, number, cells),
                };
                self.frame.before.extend(bytes);
                placements.len() - 1
            }
        };
        kitty_placeholders(id, u8::try_from(at + 1).unwrap_or(u8::MAX), cells)
    }

    /// Returns the id of an image: random, with 24 bits. An id below 256 could be mistaken for a colour index.
    fn id(&mut self, hash: u64) -> u32 {
        if let Some(id) = self.ids.get(&hash) {
            return *id;
        }
        let [.., red, green, blue] = hash.to_be_bytes();
        let mut id = u32::from_be_bytes([0, red, green, blue]).max(256);
        while self.ids.values().any(|other| *other == id) {
            id = (id + 1) % (1 << 24);
            id = id.max(256);
        }
        self.ids.insert(hash, id);
        id
    }

    fn blank_rows(&mut self, cells: ImageCells, bytes: Vec<u8>) -> Vec<Row> {
        let rows = usize::from(cells.rows);
        let number = u32::try_from(self.frame.drawn.len()).unwrap_or(0);
        self.frame.drawn.push(DrawnImage { rows, bytes });
        let [_, red, green, blue] = number.to_be_bytes();
        let style = Style::new().fg(Color::Rgb(red, green, blue)).add_modifier(Modifier::HIDDEN);
        let mut blank = vec![Row::from(" ".repeat(usize::from(cells.columns))); rows];
        if let Some(first) = blank.first_mut() {
            first.spans.insert(0, Span::styled("", style));
        }
        blank
    }

    /// Returns what the next frame must send.
    pub(crate) fn take_frame(&mut self) -> FrameImages {
        mem::take(&mut self.frame)
    }
}

/// Display options of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageLook {
    /// Whether its rows go into the scrollback.
    pub(crate) is_final: bool,
    /// Whether it is expanded.
    pub(crate) is_expanded: bool,
}

/// Returns the column and the index of the image that begins in a row.
pub(crate) fn anchor(row: &Row) -> Option<(usize, usize)> {
    let at = row
        .spans
        .iter()
        .position(|span| span.content.is_empty() && span.style.add_modifier.contains(Modifier::HIDDEN))?;
    let Some(Color::Rgb(red, green, blue)) = row.spans[at].style.fg else { return None };
    let number = usize::try_from(u32::from_be_bytes([0, red, green, blue])).ok()?;
    Some((row_width(&Row::from(row.spans[..at].to_vec())), number))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use pinch_llm::message::Image;

    use super::*;

    const LIVE: ImageLook = ImageLook { is_final: false, is_expanded: false };
    const FINAL: ImageLook = ImageLook { is_final: true, is_expanded: false };

    fn png(rest: &str) -> ImageSource {
        let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06";
        let data = STANDARD.encode([&head[..], rest.as_bytes()].concat());
        ImageSource::new(&Image { data, mime_type: String::new() })
    }

    fn gif() -> ImageSource {
        ImageSource::new(&Image { data: STANDARD.encode(b"GIF89a\x80\x02\xe0\x01\0\0\0"), mime_type: String::new() })
    }

    fn board(protocol: ImageProtocol) -> ImageBoard {
        let mut board = ImageBoard::default();
        board.configure(Some(protocol), 60);
        board
    }

    /// Returns the beginnings of the commands in a frame.
    fn sent(board: &mut ImageBoard) -> Vec<String> {
        let text = String::from_utf8(board.take_frame().before).unwrap();
        text.split("\x1b_G").skip(1).map(|command| command.split(',').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn an_image_is_sent_once_for_all_its_placements() {
        let mut board = board(ImageProtocol::KittyPlaceholders);
        let first = board.rows(&png("a"), 80, LIVE).unwrap();
        assert_eq!(sent(&mut board), ["a=T"]);
        assert_eq!(board.rows(&png("a"), 80, FINAL).unwrap(), first);
        assert_eq!(sent(&mut board), [""; 0]);
        let narrow = board.rows(&png("a"), 30, LIVE).unwrap();
        assert_eq!(sent(&mut board), ["a=p"]);
        assert_eq!(first[0].spans[0].style.fg, narrow[0].spans[0].style.fg);
        assert_ne!(first[0].spans[0].style, narrow[0].spans[0].style, "another placement");
        assert_eq!(board.rows(&png("a"), 80, LIVE).unwrap(), first);
        let other = board.rows(&png("b"), 80, LIVE).unwrap();
        assert_ne!(first[0].spans[0].style.fg, other[0].spans[0].style.fg);
        assert_eq!(sent(&mut board), ["a=T"]);
    }

    #[test]
    fn the_alternate_screen_has_separate_images_and_loses_them() {
        let mut board = board(ImageProtocol::KittyPlaceholders);
        let rows = board.rows(&png("a"), 80, LIVE);
        for _ in 0..2 {
            board.take_frame();
            board.screen_changed(true);
            assert_eq!(board.rows(&png("a"), 80, LIVE), rows);
            assert_eq!(sent(&mut board), ["a=T"]);
        }
        board.screen_changed(false);
        assert_eq!(board.rows(&png("a"), 80, LIVE), rows);
        assert_eq!(sent(&mut board), [""; 0]);
    }

    #[test]
    fn images_at_the_cursor_are_drawn_when_their_rows_are_final() {
        let mut board = board(ImageProtocol::Iterm2);
        board.set_screen(14, CellSize::default());
        assert_eq!(board.rows(&gif(), 80, LIVE), None);
        assert_eq!(board.take_frame(), FrameImages::default());
        let rows = board.rows(&gif(), 80, FINAL).unwrap();
        assert_eq!(rows.len(), 10, "a screen of 14 rows");
        let mut first = rows[0].clone();
        first.spans.insert(0, Span::raw("ab"));
        assert_eq!((anchor(&first), anchor(&rows[1])), (Some((2, 0)), None));
        board.rows(&gif(), 80, FINAL).unwrap();
        let frame = board.take_frame();
        assert_eq!((frame.drawn.len(), frame.drawn[1].rows, frame.before.len()), (2, 10, 0));
        board.set_screen(4, CellSize::default());
        assert_eq!(board.rows(&gif(), 80, FINAL), None);
    }

    #[test]
    fn other_formats_wait_for_their_conversion_and_use_the_size_of_the_png() {
        let mut board = board(ImageProtocol::KittyPlaceholders);
        assert!(!board.is_waiting(&gif()), "nobody converts");
        board.enable_conversion();
        assert!(board.is_waiting(&gif()) && !board.is_waiting(&png("a")));
        assert_eq!(board.rows(&gif(), 80, LIVE), None);
        assert_eq!(board.take_unconverted(), [gif()]);
        assert_eq!(board.take_unconverted(), [], "once");
        board.converted(&gif(), Some(png("a")));
        assert!(!board.is_waiting(&gif()));
        assert_eq!(board.rows(&gif(), 80, LIVE), board.rows(&png("a"), 80, LIVE));
        board.converted(&gif(), None);
        assert_eq!((board.rows(&gif(), 80, LIVE), board.is_waiting(&gif())), (None, false));
        board.configure(Some(ImageProtocol::Iterm2), 60);
        assert!(!board.is_waiting(&gif()), "iTerm2 accepts it directly");
    }

    #[test]
    fn a_frame_is_not_blocked_by_many_large_images() {
        let large = |name: &str| png(&format!("{name}{}", "x".repeat(8 * 1024 * 1024)));
        for (is_remote, expected) in [(false, [true, true, false]), (true, [false, false, false])] {
            let mut board = board(ImageProtocol::KittyPlaceholders);
            if is_remote {
                board.set_remote();
            }
            let shown = ["a", "b", "c"].map(|name| board.rows(&large(name), 80, FINAL).is_some());
            assert_eq!(shown, expected);
            assert!(board.rows(&png("small"), 80, FINAL).is_some(), "there is room for a small one");
            assert_eq!(board.rows(&large("a"), 80, FINAL).is_some(), !is_remote, "what is there needs no room");
        }
    }

    #[test]
    fn a_line_replaces_images_that_cannot_be_shown() {
        assert_eq!(ImageBoard::default().rows(&png("a"), 80, FINAL), None);
        assert_eq!(board(ImageProtocol::KittyPlaceholders).rows(&gif(), 80, FINAL), None, "only PNG");
        assert!(board(ImageProtocol::Iterm2).rows(&gif(), 80, FINAL).is_some());
        let broken = ImageSource::new(&Image { data: "QUJD".to_owned(), mime_type: "image/png".to_owned() });
        assert_eq!(board(ImageProtocol::Iterm2).rows(&broken, 80, FINAL), None);
    }
}

//! Texts of bounded length, cut between entries.

use pinch_stdx::text::{prefix, shortened, strip_control};

/// Maximum bytes of a description in one line.
const MAX_LINE: usize = 160;

/// A text that takes whole entries while there is room.
#[derive(Debug)]
pub(super) struct BoundedText {
    text: String,
    /// Characters left.
    room: usize,
}

impl BoundedText {
    pub(super) fn new(max: usize) -> Self {
        Self { text: String::new(), room: max }
    }

    /// Appends an entry if it fits.
    pub(super) fn add(&mut self, entry: &str) -> bool {
        let n = entry.chars().count();
        let fits = n <= self.room;
        if fits {
            self.text.push_str(entry);
            self.room -= n;
        }
        fits
    }

    /// Returns how many characters are left.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Returns the first line of a description, shortened.
pub(super) fn first_line(description: &str) -> String {
    let line = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let words: Vec<&str> = prefix(line, 2 * MAX_LINE).split_whitespace().collect();
    strip_control(&shortened(&words.join(" "), MAX_LINE)).into_owned()
}

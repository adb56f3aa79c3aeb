//! Steps through the characters of a line: graphemes, and whole markers.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::marker::Markers;
use crate::text::{grapheme_width, width};

/// A character of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// Byte offset of its start.
    pub(super) at: usize,
    pub(super) text: &'a str,
    pub(super) is_marker: bool,
}

impl Step<'_> {
    /// Returns the byte offset of its end.
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// Returns its width in rows of at most `max` columns. A character wider than a row is shown truncated.
    pub(super) fn columns(&self, max: usize) -> usize {
        let columns = if self.is_marker { width(self.text) } else { grapheme_width(self.text) };
        columns.min(max)
    }

    /// Returns whether it is blank.
    pub(super) fn is_blank(&self) -> bool {
        self.text.chars().all(char::is_whitespace)
    }
}

fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte)
}

/// Returns the character that begins at a byte.
pub(super) fn next<'a>(line: &'a str, at: usize, markers: &Markers) -> Option<Step<'a>> {
    let bytes = line.as_bytes();
    let first = *bytes.get(at)?;
    if let Some(len) = markers.len_at(line, at) {
        return Some(Step { at, text: &line[at..at + len], is_marker: true });
    }
    let is_alone = is_plain(first) && bytes.get(at + 1).is_none_or(|byte| is_plain(*byte));
    let text = if is_alone { &line[at..=at] } else { line[at..].graphemes(true).next()? };
    Some(Step { at, text, is_marker: false })
}

/// Returns the character that ends at a byte.
pub(super) fn previous<'a>(line: &'a str, at: usize, markers: &Markers) -> Option<Step<'a>> {
    let bytes = line.as_bytes();
    let last = *bytes.get(at.checked_sub(1)?)?;
    if let Some(start) = markers.start_before(line, at) {
        return Some(Step { at: start, text: &line[start..at], is_marker: true });
    }
    let is_alone = is_plain(last) && at.checked_sub(2).is_none_or(|before| is_plain(bytes[before]));
    let text = if is_alone { &line[at - 1..at] } else { line[..at].graphemes(true).next_back()? };
    Some(Step { at: at - text.len(), text, is_marker: false })
}

/// Returns the characters of a part of a line that begins and ends at character boundaries.
pub(super) fn steps<'a>(line: &'a str, range: Range<usize>, markers: &'a Markers) -> impl Iterator<Item = Step<'a>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let step = next(line, at, markers).filter(|_| at < range.end)?;
        at = step.end();
        Some(step)
    })
}

/// Returns the character boundary at a byte, or the next one after it. The byte must be between two code points.
pub(super) fn snap(line: &str, at: usize, markers: &Markers) -> usize {
    if let Some(marker) = markers.around(line, at) {
        return marker.end;
    }
    let bytes = line.as_bytes();
    if at == 0 || at >= bytes.len() || (is_plain(bytes[at - 1]) && is_plain(bytes[at])) {
        return at.min(bytes.len());
    }
    let mut cursor = GraphemeCursor::new(at, line.len(), true);
    match cursor.is_boundary(line, 0) {
        Ok(false) => cursor.next_boundary(line, 0).ok().flatten().unwrap_or(line.len()),
        // The whole line is available, so no more context can be requested.
        Ok(true) | Err(_) => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphemes_and_markers_are_one_step_in_both_directions() {
        let mut markers = Markers::default();
        let label = markers.add_paste("x", 1);
        let line = format!("ae\u{301}日👨‍👩‍👧🇩🇪🇫{label}[");
        let forward: Vec<Step<'_>> = steps(&line, 0..line.len(), &markers).collect();
        let texts: Vec<&str> = forward.iter().map(|step| step.text).collect();
        assert_eq!(texts, ["a", "e\u{301}", "日", "👨‍👩‍👧", "🇩🇪", "🇫", &label, "["]);
        let mut at = line.len();
        for step in forward.iter().rev() {
            assert_eq!(previous(&line, at, &markers).as_ref(), Some(step));
            for byte in step.at + 1..step.end() {
                if line.is_char_boundary(byte) {
                    assert_eq!(snap(&line, byte, &markers), step.end(), "{byte}");
                }
            }
            assert_eq!(snap(&line, step.at, &markers), step.at);
            at = step.at;
        }
        assert_eq!((next(&line, line.len(), &markers), previous(&line, 0, &markers)), (None, None));
    }
}

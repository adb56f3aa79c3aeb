//! Markers: short texts such as `[paste #1 +20 lines]` that represent a pasted text or an image, and count as one character.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::text::{SanitizeMode, sanitize};

/// Content of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkerContent {
    /// A pasted text.
    Text(Arc<str>),
    /// An image file.
    Image(PathBuf),
}

/// A marker: its label and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextMarker {
    pub(super) label: String,
    pub(super) content: MarkerContent,
}

impl TextMarker {
    /// Returns the pasted text of the marker.
    pub(super) fn text(&self) -> Option<Arc<str>> {
        match &self.content {
            MarkerContent::Text(text) => Some(Arc::clone(text)),
            MarkerContent::Image(_) => None,
        }
    }

    fn weight(&self) -> usize {
        match &self.content {
            MarkerContent::Text(text) => text.len(),
            MarkerContent::Image(_) => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MarkerKind {
    Paste,
    Image,
}

const KINDS: [(MarkerKind, &str); 2] = [(MarkerKind::Paste, "[paste #"), (MarkerKind::Image, "[image ")];

/// Maximum length of a label, in bytes.
pub(super) const MAX_LABEL: usize = 64;
/// Maximum length of an image's name in a label, in bytes; leaves room for a ten-digit number and the rest.
const MAX_NAME: usize = 40;

type MarkerKey = (MarkerKind, u32);

/// A text with its markers, independent of the editor's own list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkedText {
    pub(super) text: String,
    markers: BTreeMap<MarkerKey, TextMarker>,
}

impl MarkedText {
    /// Creates a text without markers.
    pub(super) fn plain(text: String) -> Self {
        Self { text, markers: BTreeMap::new() }
    }

    /// Adopts the image markers of another text that occur in this one.
    pub(super) fn take_images(&mut self, other: &Self) {
        for (key, marker) in other.markers.iter().filter(|(key, _)| key.0 == MarkerKind::Image) {
            if !self.markers.contains_key(key) && self.text.contains(&marker.label) {
                self.markers.insert(*key, marker.clone());
            }
        }
    }

    /// Joins a text before or after this one; the meaning of markers must not have changed in between.
    pub(super) fn join(&mut self, other: Self, is_before: bool) {
        if is_before {
            self.text.insert_str(0, &other.text)
        } else {
            self.text.push_str(&other.text)
        }
        self.markers.extend(other.markers);
    }

    /// Trims blanks.
    pub(super) fn trimmed(mut self) -> Self {
        let trimmed = self.text.trim();
        if trimmed.len() < self.text.len() {
            self.text = trimmed.to_owned();
        }
        self
    }

    /// Returns its markers.
    pub(super) fn markers(&self) -> impl Iterator<Item = &TextMarker> {
        self.markers.values()
    }

    /// Returns its length with markers expanded.
    pub(super) fn weight(&self) -> usize {
        self.text.len() + self.markers.values().map(TextMarker::weight).sum::<usize>()
    }

    /// Returns the text with pasted texts in place of their markers.
    pub(super) fn expanded(&self) -> String {
        self.replaced(|marker| match &marker.content {
            MarkerContent::Text(text) => text.to_string(),
            MarkerContent::Image(_) => marker.label.clone(),
        })
    }

    /// Returns the text with pasted texts and image paths in place of their markers.
    pub(super) fn expanded_to_paths(&self) -> String {
        self.replaced(|marker| match &marker.content {
            MarkerContent::Text(text) => text.to_string(),
            MarkerContent::Image(path) => path.display().to_string(),
        })
    }

    fn replaced(&self, replace: impl Fn(&TextMarker) -> String) -> String {
        rewritten(&self.text, &self.markers, |key| self.markers.get(&key).map(&replace))
    }
}

/// Returns the text with some of its markers replaced.
fn rewritten(
    text: &str,
    known: &BTreeMap<MarkerKey, TextMarker>,
    replace: impl Fn(MarkerKey) -> Option<String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, key) in found(text, known) {
        if let Some(new) = replace(key) {
            out.push_str(&text[copied..range.start]);
            out.push_str(&new);
            copied = range.end;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Returns the marker that begins at a byte of a text.
fn marker_at<'a>(
    text: &str,
    at: usize,
    known: &'a BTreeMap<MarkerKey, TextMarker>,
) -> Option<(MarkerKey, &'a TextMarker)> {
    if known.is_empty() || text.as_bytes().get(at) != Some(&b'[') {
        return None;
    }
    let rest = &text[at..];
    let (kind, number) = KINDS.iter().find_map(|(kind, start)| Some((*kind, rest.strip_prefix(start)?)))?;
    let digits = number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let key = (kind, number[..digits].parse().ok()?);
    let marker = known.get(&key)?;
    rest.starts_with(&marker.label).then_some((key, marker))
}

/// Returns all markers in a text, in order.
fn found<'a>(
    text: &'a str,
    known: &'a BTreeMap<MarkerKey, TextMarker>,
) -> impl Iterator<Item = (Range<usize>, MarkerKey)> + 'a {
    let starts = if known.is_empty() { "" } else { text };
    starts.match_indices('[').filter_map(|(at, _)| {
        let (key, marker) = marker_at(text, at, known)?;
        Some((at..at + marker.label.len(), key))
    })
}

/// The markers that an editor knows. Text that looks like an unknown marker is plain text.
#[derive(Clone, Debug, Default)]
pub(super) struct Markers {
    known: BTreeMap<MarkerKey, TextMarker>,
    last_paste: u32,
    last_image: u32,
}

impl Markers {
    /// Creates a marker for a pasted text.
    pub(super) fn add_paste(&mut self, text: &str, n_lines: usize) -> String {
        self.last_paste += 1;
        let size = if n_lines > 1 { format!("+{n_lines} lines") } else { format!("{} chars", text.chars().count()) };
        let label = format!("[paste #{} {size}]", self.last_paste);
        let content = MarkerContent::Text(text.into());
        self.known.insert((MarkerKind::Paste, self.last_paste), TextMarker { label: label.clone(), content });
        label
    }

    /// Creates a marker for an image.
    pub(super) fn add_image(&mut self, path: &Path) -> String {
        self.last_image += 1;
        let label = format!("[image {}: {}]", self.last_image, label_name(path));
        let content = MarkerContent::Image(path.to_owned());
        self.known.insert((MarkerKind::Image, self.last_image), TextMarker { label: label.clone(), content });
        label
    }

    /// Returns the length of the marker that begins at a byte of a line.
    pub(super) fn len_at(&self, line: &str, at: usize) -> Option<usize> {
        marker_at(line, at, &self.known).map(|(_, marker)| marker.label.len())
    }

    /// Returns the start of the marker that ends at a byte of a line.
    pub(super) fn start_before(&self, line: &str, at: usize) -> Option<usize> {
        if self.known.is_empty() || at == 0 || line.as_bytes()[at - 1] != b']' {
            return None;
        }
        let start = bracket_before(line, at)?;
        (self.len_at(line, start)? == at - start).then_some(start)
    }

    /// Returns the marker around a byte of a line: it begins before the byte and ends after it.
    pub(super) fn around(&self, line: &str, at: usize) -> Option<Range<usize>> {
        if self.known.is_empty() {
            return None;
        }
        let start = bracket_before(line, at)?;
        let end = start + self.len_at(line, start)?;
        (at < end).then_some(start..end)
    }

    /// Returns the content of the marker at a byte of a line.
    pub(super) fn content_at(&self, line: &str, at: usize) -> Option<&MarkerContent> {
        marker_at(line, at, &self.known).map(|(_, marker)| &marker.content)
    }

    /// Returns the length of a text with its markers expanded.
    pub(super) fn weight(&self, text: &str) -> usize {
        let contents = found(text, &self.known).filter_map(|(_, key)| self.known.get(&key));
        text.len() + contents.map(TextMarker::weight).sum::<usize>()
    }

    /// Returns a text together with its markers.
    pub(super) fn marked(&self, text: String) -> MarkedText {
        let keys: Vec<MarkerKey> = found(&text, &self.known).map(|(_, key)| key).collect();
        let markers = keys.into_iter().filter_map(|key| Some((key, self.known.get(&key)?.clone()))).collect();
        MarkedText { text, markers }
    }

    /// Adopts the markers of a text, and returns the text to insert: markers whose numbers are already used for other content get new
    /// numbers.
    pub(super) fn adopt(&mut self, marked: &MarkedText) -> String {
        let mut labels = BTreeMap::new();
        for (key, marker) in &marked.markers {
            match self.known.get(key) {
                Some(known) if known == marker => {}
                None => {
                    self.known.insert(*key, marker.clone());
                    let last = self.last_of(key.0);
                    *last = key.1.max(*last);
                }
                Some(_) => drop(labels.insert(*key, self.add_again(key.0, marker))),
            }
        }
        rewritten(&marked.text, &marked.markers, |key| labels.get(&key).cloned())
    }

    fn last_of(&mut self, kind: MarkerKind) -> &mut u32 {
        match kind {
            MarkerKind::Paste => &mut self.last_paste,
            MarkerKind::Image => &mut self.last_image,
        }
    }

    /// Adds a marker under the next number.
    fn add_again(&mut self, kind: MarkerKind, marker: &TextMarker) -> String {
        let last = self.last_of(kind);
        *last += 1;
        let number = *last;
        let start = KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, start)| start);
        let rest =
            marker.label.strip_prefix(start).unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_digit());
        let label = format!("{start}{number}{rest}");
        self.known.insert((kind, number), TextMarker { label: label.clone(), content: marker.content.clone() });
        label
    }

    /// Forgets markers that occur in none of the texts. Their numbers are not reused.
    pub(super) fn retain_in<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        let mentioned: BTreeSet<MarkerKey> =
            texts.flat_map(|text| found(text, &self.known).map(|(_, key)| key).collect::<Vec<_>>()).collect();
        self.known.retain(|key, _| mentioned.contains(key));
    }

    /// Forgets all markers, and restarts numbering at 1.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Returns the name of a file for a label: sanitised, short, and without brackets.
fn label_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = sanitize(&name, SanitizeMode::Output);
    let name: String = name.chars().map(|c| if matches!(c, '[' | ']' | '\n' | '\t') { '_' } else { c }).collect();
    if name.len() <= MAX_NAME {
        return name;
    }
    format!("{}…", &name[..name.floor_char_boundary(MAX_NAME - '…'.len_utf8())])
}

/// Returns the last opening bracket before a byte of a line, within the length of a label.
fn bracket_before(line: &str, at: usize) -> Option<usize> {
    let from = at.saturating_sub(MAX_LABEL);
    let bytes = &line.as_bytes()[from..at];
    bytes.iter().rposition(|byte| *byte == b'[').map(|position| from + position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_markers_are_plain_text() {
        let mut markers = Markers::default();
        let label = markers.add_paste("a\nb", 2);
        assert_eq!(label, "[paste #1 +2 lines]");
        let line = format!("x{label}[paste #2 +2 lines][paste #1 +3 lines]");
        assert_eq!(markers.len_at(&line, 1), Some(label.len()));
        assert_eq!(markers.len_at(&line, 1 + label.len()), None);
        assert_eq!(markers.len_at(&line, 1 + 2 * label.len()), None);
        assert_eq!(markers.start_before(&line, 1 + label.len()), Some(1));
        assert_eq!(markers.start_before(&line, line.len()), None);
        assert_eq!(markers.around(&line, 5), Some(1..1 + label.len()));
        assert_eq!(markers.around(&line, 1), None);
        assert_eq!(markers.around(&line, 1 + label.len()), None);
        assert_eq!(markers.marked(line).expanded(), "xa\nb[paste #2 +2 lines][paste #1 +3 lines]");
    }

    #[test]
    fn a_marker_with_a_conflicting_number_is_renumbered() {
        let mut old = Markers::default();
        let text = format!("{} {}", old.add_paste("first", 1), old.add_image(Path::new("/i.png")));
        let kept = old.marked(text);
        let mut new = Markers::default();
        assert_eq!(new.adopt(&kept), "[paste #1 5 chars] [image 1: i.png]", "numbers that are free stay");
        assert_eq!(new.adopt(&kept), "[paste #1 5 chars] [image 1: i.png]", "what is known already, too");
        let mut other = Markers::default();
        other.add_paste("other", 1);
        let text = other.adopt(&kept);
        assert_eq!(text, "[paste #2 5 chars] [image 1: i.png]");
        assert_eq!(other.marked(text).expanded_to_paths(), "first /i.png");
    }

    #[test]
    fn the_name_of_an_image_cannot_break_its_marker() {
        let mut markers = Markers::default();
        for (path, label) in [
            ("/a/b c.png", "[image 1: b c.png]".to_owned()),
            ("/a/[x]\n\u{1b}[2Jy\u{202e}.png", "[image 2: _x__y\u{fffd}.png]".to_owned()),
            (&format!("/{}.png", "é".repeat(200)), format!("[image 3: {}…]", "é".repeat(18))),
            ("/", "[image 4: ]".to_owned()),
        ] {
            let added = markers.add_image(Path::new(path));
            assert_eq!(added, label);
            assert!(added.len() <= MAX_LABEL);
            assert_eq!(markers.len_at(&added, 0), Some(added.len()));
        }
    }

    #[test]
    fn unused_markers_are_forgotten_and_their_numbers_not_reused() {
        let mut markers = Markers::default();
        let (first, second) = (markers.add_paste("one", 1), markers.add_paste("two", 1));
        markers.retain_in([&*second].into_iter());
        assert_eq!((markers.len_at(&first, 0), markers.len_at(&second, 0)), (None, Some(second.len())));
        assert_eq!(markers.add_paste("three", 1), "[paste #3 5 chars]");
    }
}

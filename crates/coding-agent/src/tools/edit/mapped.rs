//! Normalized texts whose bytes can be traced to the original.

use std::ops::Range;

use icu_normalizer::ComposingNormalizerBorrowed;
use unicode_segmentation::UnicodeSegmentation as _;

/// How often a text occurs in another one.
#[derive(Clone, Copy)]
pub(super) enum Occurrences {
    Never,
    /// Once, at this offset.
    Once(usize),
    Often(usize),
}

impl Occurrences {
    /// Returns the number of occurrences.
    pub(super) fn count(self) -> usize {
        match self {
            Self::Never => 0,
            Self::Once(_) => 1,
            Self::Often(n) => n,
        }
    }
}

/// A normalized text, with the original location of each of its bytes.
pub(super) struct Mapped {
    /// The normalized text.
    pub(super) text: String,
    /// The origins of the bytes, run by run in order.
    runs: Vec<MappedRun>,
}

/// Bytes of a mapped text with a common origin.
struct MappedRun {
    /// Start in the mapped text.
    at: usize,
    /// Start in the original.
    from: usize,
    /// Length of the original that the whole run represents; `None` if bytes correspond one to one.
    piece: Option<usize>,
}

impl Mapped {
    /// Appends unchanged text.
    fn copy(&mut self, text: &str, from: usize) {
        let at = self.text.len();
        let continues = |run: &MappedRun| run.piece.is_none() && run.from + (at - run.at) == from;
        if !text.is_empty() && !self.runs.last().is_some_and(continues) {
            self.runs.push(MappedRun { at, from, piece: None });
        }
        self.text.push_str(text);
    }

    /// Appends text that replaces part of the original.
    fn replace(&mut self, text: &str, from: Range<usize>) {
        if !text.is_empty() {
            self.runs.push(MappedRun { at: self.text.len(), from: from.start, piece: Some(from.len()) });
            self.text.push_str(text);
        }
    }

    /// Returns the bytes of the original for a byte.
    fn origin(&self, at: usize) -> Range<usize> {
        let run = &self.runs[self.runs.partition_point(|run| run.at <= at).saturating_sub(1)];
        match run.piece {
            Some(len) => run.from..run.from + len,
            None => run.from + (at - run.at)..run.from + (at - run.at) + 1,
        }
    }

    /// Returns the part of the original for a non-empty part of the text.
    pub(super) fn original(&self, part: Range<usize>) -> Range<usize> {
        self.origin(part.start).start..self.origin(part.end - 1).end
    }

    /// Converts all line breaks to line feeds.
    pub(super) fn line_feeds(original: &str) -> Self {
        let mut mapped = Self { text: String::with_capacity(original.len()), runs: Vec::new() };
        for line in MappedLines::of(original) {
            mapped.copy(&original[line.text.clone()], line.text.start);
            mapped.line_end(original, &line);
        }
        mapped
    }

    /// Normalizes compatibility forms and typographic quotes, dashes and spaces, and removes trailing whitespace.
    pub(super) fn nearly(original: &str) -> Self {
        let normalizer = ComposingNormalizerBorrowed::new_nfkc();
        let mut mapped = Self { text: String::with_capacity(original.len()), runs: Vec::new() };
        for line in MappedLines::of(original) {
            let line_start = mapped.text.len();
            let text = &original[line.text.clone()];
            if text.is_ascii() {
                mapped.copy(text, line.text.start);
            } else {
                for (at, cluster) in text.grapheme_indices(true) {
                    let from = line.text.start + at;
                    let composed = normalizer.normalize(cluster);
                    let plain: String = composed.chars().map(plain_char).collect();
                    if plain == cluster {
                        mapped.copy(cluster, from);
                    } else {
                        mapped.replace(&plain, from..from + cluster.len());
                    }
                }
            }
            mapped.trim_line(line_start, line.text.end);
            mapped.line_end(original, &line);
        }
        mapped
    }

    fn line_end(&mut self, original: &str, line: &MappedLine) {
        let end = line.text.end..line.end;
        match &original[end.clone()] {
            "" => {}
            "\n" => self.copy("\n", end.start),
            _ => self.replace("\n", end),
        }
    }

    /// Removes trailing whitespace of a line, assigning its original range to the preceding text.
    fn trim_line(&mut self, line_start: usize, line_end: usize) {
        let kept = line_start + self.text[line_start..].trim_end().len();
        if kept == self.text.len() {
            return;
        }
        let last = (kept > line_start).then(|| self.origin(kept - 1).start);
        self.text.truncate(kept);
        let n_runs = self.runs.partition_point(|run| run.at < kept.saturating_sub(usize::from(last.is_some())));
        self.runs.truncate(n_runs);
        if let Some(from) = last {
            self.runs.push(MappedRun { at: kept - 1, from, piece: Some(line_end - from) });
        }
    }

    /// Returns the non-overlapping occurrences of a text.
    pub(super) fn occurrences(&self, needle: &str) -> Occurrences {
        if needle.is_empty() {
            return Occurrences::Never;
        }
        let mut places = self.text.match_indices(needle).map(|(at, _)| at);
        match (places.next(), places.count()) {
            (None, _) => Occurrences::Never,
            (Some(at), 0) => Occurrences::Once(at),
            (Some(_), more) => Occurrences::Often(1 + more),
        }
    }
}

/// A line of a text: the range of its content, and its end including the line break.
struct MappedLine {
    text: Range<usize>,
    end: usize,
}

/// The lines of a text, with any line breaks.
struct MappedLines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> MappedLines<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for MappedLines<'_> {
    type Item = MappedLine;

    fn next(&mut self) -> Option<MappedLine> {
        let rest = self.text.as_bytes().get(self.at..).filter(|rest| !rest.is_empty())?;
        let n_bytes = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let n_end = match rest.get(n_bytes..) {
            Some([b'\r', b'\n', ..]) => 2,
            Some([_, ..]) => 1,
            _ => 0,
        };
        let text = self.at..self.at + n_bytes;
        self.at = text.end + n_end;
        Some(MappedLine { end: self.at, text })
    }
}

fn plain_char(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

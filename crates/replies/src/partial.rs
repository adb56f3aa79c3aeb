//! Cleans the text of an answer as it grows.
//!
//! Each character is cleaned once. Only a `MEDIA:` line may change what was shown of it; earlier text is forgotten.

use super::directives::{DirectiveRules, Ending, Gap, GrowingLine, Parsed};
use super::piece::Growth;

/// Tracks one answer.
#[derive(Debug, Default)]
pub struct PartialText {
    view: View,
    line: GrowingLine,
    gap: Gap,
    /// Where the growing line begins in the view, including the preceding line feeds.
    line_at: usize,
    /// Whether the view contains text of the growing line.
    has_words: bool,
    /// Whether that text may still change entirely.
    is_preview: bool,
    found: Parsed,
    n_media_reported: usize,
    voice_reported: bool,
}

impl PartialText {
    /// Creates the state for a new answer.
    pub fn new(rules: DirectiveRules) -> Self {
        Self { line: GrowingLine::new(rules), ..Self::default() }
    }

    /// Consumes visible text and returns how the cleaned text grew. A rewind is not reported; when the text grows again, the omitted part
    /// is restored first.
    pub fn push(&mut self, visible: &str) -> Option<Growth> {
        for part in visible.split_inclusive('\n') {
            match part.strip_suffix('\n') {
                Some(line) => {
                    self.line.push(line);
                    self.end_line();
                }
                None => {
                    self.line.push(part);
                    self.show_line();
                }
            }
        }
        self.report(&[], false)
    }

    /// Ends the text block: returns what only the end of a line reveals, such as media and brackets that began no directive, and what was
    /// omitted because of a rewind.
    pub fn settle(&mut self) -> Option<Growth> {
        self.line.release();
        self.show_line();
        let media = self.line.media();
        self.report(&media, false).or_else(|| self.report(&media, self.view.is_behind()))
    }

    fn show_line(&mut self) {
        if let Some(preview) = self.line.media_preview() {
            let preview = preview.trim_end().to_owned();
            self.hide_preview();
            if !preview.is_empty() {
                self.show(&preview);
                self.is_preview = true;
            }
        } else if let Some(solid) = self.line.take_solid() {
            self.hide_preview();
            self.show(&solid);
        }
    }

    fn end_line(&mut self) {
        let ending = self.line.end(&mut self.found);
        self.hide_preview();
        match ending {
            Ending::Gone => self.gap.removed(),
            Ending::Kept | Ending::Replaced if self.line.is_blank() => self.gap.blank(),
            Ending::Kept | Ending::Replaced => {
                let rest = self.line.shown().to_owned();
                self.show(&rest);
                self.gap = self.gap.filled();
            }
        }
        self.line.next();
        (self.line_at, self.has_words) = (self.view.len(), false);
    }

    fn show(&mut self, text: &str) {
        let mut text = text;
        if !std::mem::replace(&mut self.has_words, true) {
            let mut feeds = String::new();
            self.gap.fill(&mut feeds);
            self.view.push(&feeds);
            if self.view.is_empty() {
                // An answer does not begin with white space.
                text = text.trim_start();
            }
        }
        self.view.push(text);
    }

    fn hide_preview(&mut self) {
        if std::mem::take(&mut self.is_preview) {
            self.view.truncate(self.line_at);
            self.has_words = false;
        }
    }

    /// `anyway` also reports a text that has not grown.
    fn report(&mut self, of_line: &[String], anyway: bool) -> Option<Growth> {
        let media_urls = self.found.media_urls.iter().chain(of_line).skip(self.n_media_reported).cloned();
        let media_urls: Vec<String> = media_urls.collect();
        let voice = (self.found.audio_as_voice || self.line.found().audio_as_voice) && !self.voice_reported;
        let growth = self.view.report(!media_urls.is_empty() || voice || anyway);
        self.view.forget_before(if self.is_preview { self.line_at } else { self.view.len() });
        let growth = growth?;
        self.n_media_reported += media_urls.len();
        self.voice_reported |= voice;
        Some(Growth { media_urls, ..growth })
    }
}

/// A text that grows and sometimes shrinks, and what its reader knows of it. Positions are byte offsets into the whole text.
#[derive(Debug, Default)]
struct View {
    /// The text from `base` on: the part that may still change, or that the reader does not have.
    text: String,
    base: usize,
    /// Nothing before this has changed since the last report.
    low: usize,
    /// The text after `low` at that time.
    undone: String,
    /// Length of the text that the reader has.
    n_reported: usize,
}

impl View {
    fn len(&self) -> usize {
        self.base + self.text.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the reader lacks text.
    fn is_behind(&self) -> bool {
        self.n_reported < self.len()
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn truncate(&mut self, at: usize) {
        if at < self.low {
            self.undone.insert_str(0, &self.text[at - self.base..self.low - self.base]);
            self.low = at;
        }
        self.text.truncate(at - self.base);
    }

    /// Returns the growth since the last report; `None` if nothing grew, or the text does not extend the previous one.
    fn report(&mut self, anyway: bool) -> Option<Growth> {
        let (low, undone) = (self.low, std::mem::take(&mut self.undone));
        let before = low + undone.len();
        self.low = self.len();
        if !self.text[low - self.base..].starts_with(&undone) {
            self.n_reported = self.n_reported.min(low);
            return None;
        }
        if self.len() == before && !anyway {
            return None;
        }
        let at = self.n_reported;
        self.n_reported = self.len();
        let restored = self.text[at - self.base..before - self.base].to_owned();
        let delta = self.text[before - self.base..].to_owned();
        Some(Growth { at, restored, delta, ..Growth::default() })
    }

    /// Forgets final text before a position, as far as the reader has it.
    fn forget_before(&mut self, at: usize) {
        let n = at.min(self.n_reported).min(self.low) - self.base;
        if n > 256 && n * 2 > self.text.len() {
            self.text.drain(..n);
            self.base += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::directives::parse;

    fn parts_of(growth: Option<Growth>) -> Option<(usize, String, String)> {
        growth.map(|growth| (growth.at, growth.restored, growth.delta))
    }

    #[test]
    fn growth_is_reported_and_rewinds_are_not() {
        let mut partial = PartialText::default();
        assert_eq!(parts_of(partial.push("Hello ")), Some((0, String::new(), "Hello".into())));
        assert_eq!(parts_of(partial.push("wor")), Some((5, String::new(), " wor".into())));
        assert_eq!(parts_of(partial.push("ld\n\n[[vo")), Some((9, String::new(), "ld".into())));
        let voice = partial.push("ice]]").unwrap();
        assert_eq!(voice.delta, "");
        assert_eq!(parts_of(partial.push("\nMEDIA:")), Some((11, String::new(), "\n\nMEDIA:".into())));
        assert_eq!(parts_of(partial.push("https://e.com/a.png")), None);
        let end = partial.push("\nEnd").unwrap();
        assert_eq!(end.media_urls, ["https://e.com/a.png"]);
        assert_eq!(parts_of(Some(end)), Some((11, String::new(), "\n\nEnd".into())));
    }

    #[test]
    fn an_answer_does_not_begin_with_white_space() {
        let mut partial = PartialText::default();
        assert_eq!(parts_of(partial.push("\n\t]")), Some((0, String::new(), "]".into())));
    }

    #[test]
    fn media_of_a_line_is_reported_when_its_address_is_complete() {
        let mut partial = PartialText::default();
        assert_eq!(partial.push("MEDIA:https://e"), None);
        let end = partial.push(".com/a.png\n").unwrap();
        assert_eq!(end.media_urls, ["https://e.com/a.png"]);
    }

    #[test]
    fn brackets_that_begin_no_directive_are_shown_at_the_end() {
        let mut partial = PartialText::default();
        assert_eq!(partial.push("see [[reply_to").unwrap().delta, "see");
        assert_eq!(parts_of(partial.settle()), Some((3, String::new(), " [[reply_to".into())));
        assert_eq!(parts_of(partial.push("\nmore")), Some((14, String::new(), "\nmore".into())));
    }

    #[test]
    fn text_omitted_by_a_rewind_is_restored_at_the_end() {
        let mut partial = PartialText::default();
        let mut reader = String::new();
        for chunk in ["MEDIA: \"/tmp/a3MEDIA:", " ./a", "\"\nend."] {
            reader.extend(partial.push(chunk).map(|growth| growth.delta));
        }
        assert_eq!(reader, "MEDIA: \"/tmp/a3MEDIA:");
        let end = partial.settle().unwrap();
        assert_eq!(reader[..end.at].to_owned() + &end.restored + &end.delta, "MEDIA: \"/tmp/a3MEDIA: ./a\"\nend.");
    }

    proptest! {
        /// The reader's text equals the answer with its directives parsed, however the answer is split.
        #[test]
        fn the_reader_has_the_cleaned_text(
            words in prop::collection::vec(prop::sample::select(vec![
                "a", " ", "  ", "\n", "\n\n", "[[", "]]", "[", "]", "[[voice]]", "[[reply_to: 7]]", "[[x]]", "`", "```", "MEDIA:",
                "https://e.com/a.png", "./b c.png", "\t", "é", "M", ":",
            ]), 0..40),
            whole_words: bool,
        ) {
            let text = words.concat() + "\nend.";
            let mut partial = PartialText::default();
            let mut reader = String::new();
            let mut push = |part: &str| {
                if let Some(growth) = partial.push(part) {
                    reader.truncate(growth.at);
                    reader += &growth.restored;
                    reader += &growth.delta;
                }
            };
            if whole_words {
                words.iter().copied().chain(["\n", "end."]).for_each(&mut push);
            } else {
                text.chars().for_each(|c| push(c.encode_utf8(&mut [0; 4])));
            }
            let cleaned = parse(&text, None);
            // If nothing was removed, blank lines keep their white space in one form and become empty in the other.
            let lines = |text: &str| text.trim_start().split('\n').map(|line| if line.trim().is_empty() { "" } else { line }.to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(lines(&reader), lines(&cleaned.text));
        }
    }

    #[test]
    fn a_long_answer_is_forgotten_while_it_grows_and_still_whole_at_the_reader() {
        let (mut partial, mut reader, mut text) = (PartialText::default(), String::new(), String::new());
        let take = |reader: &mut String, growth: Option<Growth>| {
            if let Some(growth) = growth {
                reader.truncate(growth.at);
                *reader += &growth.restored;
                *reader += &growth.delta;
            }
        };
        for n in 0..600 {
            let line = match n % 7 {
                3 => format!("MEDIA: ./a b{n}.png more\n"),
                5 => "[[voice]]\n".to_owned(),
                6 => "\n".to_owned(),
                _ => format!("Line {n} has some words.\n"),
            };
            let (first, second) = line.split_at(line.len() * (n % 4) / 4);
            take(&mut reader, partial.push(first));
            take(&mut reader, partial.push(second));
            text += &line;
            assert!(partial.view.text.len() < 1_024, "{}", partial.view.text.len());
        }
        take(&mut reader, partial.push("end."));
        text += "end.";
        assert_eq!(reader, parse(&text, None).text);
    }

    #[test]
    fn media_and_voice_are_reported_once() {
        let mut partial = PartialText::default();
        let mut seen = Vec::new();
        for part in
            ["[[voice]] a\n", "MEDIA:https://e.com/a.png\n", "[[voice]]\n", "MEDIA:https://e.com/b.png\n", "b", "c"]
        {
            seen.push(partial.push(part).map(|growth| (growth.delta, growth.media_urls)));
        }
        let grown =
            |delta: &str, media: &[&str]| Some((delta.to_owned(), media.iter().map(|url| (*url).to_owned()).collect()));
        assert_eq!(
            seen,
            [
                grown("a", &[]),
                grown("", &["https://e.com/a.png"]),
                None,
                grown("", &["https://e.com/b.png"]),
                grown("\nb", &[]),
                grown("c", &[]),
            ]
        );
        assert_eq!(partial.settle(), None);
    }

    #[test]
    fn media_of_the_last_line_is_reported_at_the_end() {
        let mut partial = PartialText::default();
        partial.push("  MEDIA: https://e.com/a.png");
        assert_eq!(partial.settle().unwrap().media_urls, ["https://e.com/a.png"]);
        let mut fenced = PartialText::default();
        fenced.push("```\nMEDIA:https://e.com/a.png");
        assert_eq!(fenced.settle(), None);
        let tags = crate::directives::TagForms::None;
        let mut text = PartialText::new(DirectiveRules { tags, ..DirectiveRules::default() });
        assert_eq!(text.push("MEDIA:https://e.com/a.png").unwrap().delta, "MEDIA:https://e.com/a.png");
        assert_eq!(text.settle(), None);
    }
}

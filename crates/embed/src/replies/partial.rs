//! The text of an answer so far, cleaned, as it grows.
//!
//! Finished lines are cleaned once; only the line that is still growing is looked at again.

use super::directives::{Lines, Parsed, complete_len};
use super::piece::Growth;

/// Follows one answer.
#[derive(Clone, Debug, Default)]
pub struct PartialText {
    lines: Lines,
    line: String,
    /// How much of the finished lines was there when the reader was last told, and what stood after it.
    told: Option<(usize, String)>,
    /// The last told text was really given out.
    in_step: bool,
    media: Parsed,
    n_media_told: usize,
    voice_told: bool,
}

impl PartialText {
    /// Takes visible text in; says how the cleaned text grew. A text that was rewound is not told; when it grows again, it is told whole.
    pub fn push(&mut self, visible: &str) -> Option<Growth> {
        for part in visible.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.lines.push(line.trim_end_matches('\n'), &mut self.media);
            }
        }
        let mut found = Parsed::default();
        let tail = self.lines.preview(&self.line[..complete_len(&self.line)], &mut found);
        self.tell(&tail, &found)
    }

    fn tell(&mut self, tail: &str, found: &Parsed) -> Option<Growth> {
        let done = &self.lines.text;
        let after = if tail.trim().is_empty() { String::new() } else { self.lines.separator() + tail.trim_end() };
        let after = if done.is_empty() { after.trim_start().to_owned() } else { after };
        let base = self.told.as_ref().map_or(0, |(base, _)| *base);
        let now = format!("{}{after}", &done[base..]);
        let is_empty = done.is_empty() && now.is_empty();
        let before = self.told.as_ref().map_or("", |(_, told)| told.as_str());
        let had_text = self.told.as_ref().is_some_and(|(base, told)| *base > 0 || !told.is_empty());
        let media: Vec<String> =
            self.media.media_urls.iter().chain(&found.media_urls).skip(self.n_media_told).cloned().collect();
        let voice = (self.media.audio_as_voice || found.audio_as_voice) && !self.voice_told;
        let growth = match now.strip_prefix(before) {
            Some(delta) if !is_empty || !media.is_empty() || voice => (!delta.is_empty() || !media.is_empty() || voice)
                .then(|| Growth {
                    before: (!self.in_step || !had_text).then(|| format!("{}{before}", &done[..base])),
                    delta: delta.to_owned(),
                    media_urls: media.clone(),
                    shown: true,
                }),
            _ => None,
        };
        if growth.is_some() {
            self.in_step = true;
            self.n_media_told += media.len();
            self.voice_told |= voice;
        } else if now != before {
            self.in_step = false;
        }
        self.told = Some((done.len(), after));
        growth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_and_rewind() {
        let mut partial = PartialText::default();
        let told = |growth: Option<Growth>| growth.map(|g| (g.before, g.delta));
        assert_eq!(told(partial.push("Hello ")), Some((Some(String::new()), "Hello".into())));
        assert_eq!(told(partial.push("wor")), Some((None, " wor".into())));
        assert_eq!(told(partial.push("ld\n\n[[vo")), Some((None, "ld".into())));
        let voice = partial.push("ice]]").unwrap();
        assert_eq!(voice.delta, "");
        assert_eq!(told(partial.push("\nMEDIA:")), Some((None, "\n\nMEDIA:".into())));
        assert_eq!(told(partial.push("https://e.com/a.png")), None);
        assert_eq!(told(partial.push("\nEnd")), Some((Some("Hello world".into()), "\n\nEnd".into())));
    }
}

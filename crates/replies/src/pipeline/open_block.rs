//! The blocks of an answer that are being received, and how much of their text has arrived.
//!
//! Some servers alternate between blocks, and some formats end all blocks only with the answer.

use pinch_llm::event::BlockKind;

/// The blocks of an answer that have not ended, and the one that ended last.
#[derive(Default)]
pub(super) struct StreamedBlocks(Vec<StreamedBlock>);

struct StreamedBlock {
    index: usize,
    kind: Kind,
    has_ended: bool,
}

enum Kind {
    /// Number of bytes received, and the last of them.
    Text(usize, String),
    Thinking,
    Commentary,
}

/// The kind of text that a delta extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaKind {
    Text,
    Thinking,
    /// Something that is not for people, or the block is unknown.
    Nothing,
}

impl StreamedBlocks {
    /// Begins a block.
    pub(super) fn start(&mut self, index: usize, kind: &BlockKind) {
        self.0.retain(|block| !block.has_ended && block.index != index);
        let kind = match kind {
            BlockKind::Text => Kind::Text(0, String::new()),
            BlockKind::Thinking { .. } => Kind::Thinking,
            BlockKind::Commentary => Kind::Commentary,
            BlockKind::ToolCall { .. } => return,
        };
        self.0.push(StreamedBlock { index, kind, has_ended: false });
    }

    /// Counts a delta, and returns what it extends.
    pub(super) fn add(&mut self, index: usize, text: &str) -> DeltaKind {
        match self.0.iter_mut().rfind(|block| block.index == index).map(|block| &mut block.kind) {
            Some(Kind::Text(n_bytes, tail)) => {
                *n_bytes += text.len();
                tail.push_str(text);
                if tail.len() > 2 * MAX_TAIL {
                    tail.drain(..tail.ceil_char_boundary(tail.len() - MAX_TAIL));
                }
                DeltaKind::Text
            }
            Some(Kind::Thinking) => DeltaKind::Thinking,
            Some(Kind::Commentary) | None => DeltaKind::Nothing,
        }
    }

    /// Ends a text block, and returns the part of its whole text that the deltas did not contain.
    pub(super) fn end_text<'a>(&mut self, index: usize, whole: &'a str) -> &'a str {
        let missing = match self.0.iter().rfind(|block| block.index == index) {
            Some(StreamedBlock { kind: Kind::Text(n_bytes, tail), .. }) => missing_text(*n_bytes, tail, whole),
            _ => {
                self.start(index, &BlockKind::Text);
                whole
            }
        };
        self.add(index, missing);
        self.0.iter_mut().filter(|block| block.index == index).for_each(|block| block.has_ended = true);
        missing
    }
}

/// Bytes of a block's text kept to compare its end: texts that agree in these bytes and in length are considered equal.
const MAX_TAIL: usize = 256;

/// Minimum overlap for two texts to be considered pieces of one.
const MIN_OVERLAP: usize = 10;

/// Returns the part of a block's whole text that the deltas did not contain.
fn missing_text<'a>(n_bytes: usize, tail: &str, whole: &'a str) -> &'a str {
    if n_bytes == 0 {
        return whole;
    }
    if let Some((_, rest)) = whole.split_at_checked(n_bytes).filter(|(same, _)| same.ends_with(tail)) {
        return rest;
    }
    if tail.contains(whole) {
        return "";
    }
    let overlap = overlap(tail.as_bytes(), whole.as_bytes());
    if whole[..overlap].chars().count() >= MIN_OVERLAP { &whole[overlap..] } else { whole }
}

/// Returns the length of the longest prefix of `whole` that `so_far` ends with. Uses the failure function of Knuth, Morris and Pratt, so
/// that each byte is compared a constant number of times.
fn overlap(so_far: &[u8], whole: &[u8]) -> usize {
    let tail = &so_far[so_far.len().saturating_sub(whole.len())..];
    let mut borders = vec![0; whole.len() + 1];
    let step = |borders: &[usize], mut matched: usize, byte: u8| {
        while matched > 0 && (matched == whole.len() || whole[matched] != byte) {
            matched = borders[matched];
        }
        matched + usize::from(whole.get(matched) == Some(&byte))
    };
    for at in 1..whole.len() {
        borders[at + 1] = step(&borders, borders[at], whole[at]);
    }
    tail.iter().fold(0, |matched, byte| step(&borders, matched, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_missing_from_the_deltas_is_recovered() {
        for (so_far, whole, expect) in [
            ("", "Grüße", "Grüße"),
            ("Grü", "Grüße", "ße"),
            ("Grüße an alle", "an alle", ""),
            ("Hallo, liebe Grüße", "liebe Grüße an alle", " an alle"),
            ("a b", "b c", "b c"),
            ("x ababababab", "ababababac", "ababababac"),
            ("x abababababab", "ababababababc", "c"),
        ] {
            let mut blocks = StreamedBlocks::default();
            blocks.start(0, &BlockKind::Text);
            assert_eq!(blocks.add(0, so_far), DeltaKind::Text);
            assert_eq!(blocks.add(1, "other"), DeltaKind::Nothing);
            assert_eq!(blocks.end_text(0, whole), expect, "{so_far} {whole}");
            assert_eq!(blocks.end_text(0, whole), "", "{so_far} {whole}");
        }
    }

    #[test]
    fn blocks_may_alternate_and_end_late() {
        let mut blocks = StreamedBlocks::default();
        blocks.start(0, &BlockKind::Text);
        assert_eq!(blocks.add(0, "Let me"), DeltaKind::Text);
        blocks.start(1, &BlockKind::Thinking { redacted: false });
        assert_eq!(blocks.add(1, "hm"), DeltaKind::Thinking);
        assert_eq!(blocks.add(0, " look."), DeltaKind::Text);
        blocks.start(2, &BlockKind::ToolCall { id: "c".into(), name: "bash".into() });
        assert_eq!(blocks.add(2, "{}"), DeltaKind::Nothing);
        assert_eq!(blocks.end_text(0, "Let me look."), "");
    }

    #[test]
    fn a_long_text_is_compared_by_its_length_and_end() {
        let text: String = (0..1_000).map(|n| format!("{n} é ")).collect();
        let mut blocks = StreamedBlocks::default();
        blocks.start(0, &BlockKind::Text);
        for (at, c) in text.char_indices() {
            blocks.add(0, &text[at..at + c.len_utf8()]);
            let Some(StreamedBlock { kind: Kind::Text(_, tail), .. }) = blocks.0.first() else { unreachable!() };
            assert!(tail.len() <= 2 * MAX_TAIL);
        }
        assert_eq!(blocks.end_text(0, &(text.clone() + "more")), "more");
        // An ended block is forgotten when another begins; one that has not ended stays.
        blocks.start(1, &BlockKind::Text);
        assert_eq!(blocks.add(0, "x"), DeltaKind::Nothing);
        blocks.start(2, &BlockKind::Commentary);
        assert_eq!((blocks.add(1, "x"), blocks.add(2, "x")), (DeltaKind::Text, DeltaKind::Nothing));
        blocks.start(1, &BlockKind::Thinking { redacted: false });
        assert_eq!(blocks.add(1, "x"), DeltaKind::Thinking);
    }

    #[test]
    fn the_overlap_is_the_longest() {
        for (so_far, whole, expect) in [
            ("abcab", "abcabd", 5),
            ("xabcabcab", "abcabcabd", 8),
            ("aab", "aaab", 0),
            ("xaaa", "aaaa", 3),
            ("aaa", "aab", 2),
            ("abab", "ab", 2),
            ("", "a", 0),
            ("a", "b", 0),
        ] {
            assert_eq!(overlap(so_far.as_bytes(), whole.as_bytes()), expect, "{so_far} {whole}");
        }
    }
}

//! The current block of an answer: which one it is, and how much of its text has arrived.

use pinch_llm::event::BlockKind;

/// The current block.
pub(super) struct StreamedBlock {
    index: usize,
    kind: Kind,
}

enum Kind {
    /// Number of bytes received, and the last of them.
    Text(usize, String),
    Thinking,
    Call,
}

/// The kind of text that a delta extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaKind {
    Text,
    Thinking,
    /// Neither, or the block is not the current one.
    Nothing,
}

impl StreamedBlock {
    pub(super) fn new(index: usize, kind: &BlockKind) -> Self {
        let kind = match kind {
            BlockKind::Text => Kind::Text(0, String::new()),
            BlockKind::Thinking { .. } => Kind::Thinking,
            BlockKind::ToolCall { .. } => Kind::Call,
        };
        Self { index, kind }
    }

    /// Counts a delta, and returns what it extends.
    pub(super) fn add(&mut self, index: usize, text: &str) -> DeltaKind {
        match &mut self.kind {
            _ if self.index != index => DeltaKind::Nothing,
            Kind::Text(n_bytes, tail) => {
                *n_bytes += text.len();
                tail.push_str(text);
                if tail.len() > 2 * MAX_TAIL {
                    tail.drain(..tail.ceil_char_boundary(tail.len() - MAX_TAIL));
                }
                DeltaKind::Text
            }
            Kind::Thinking => DeltaKind::Thinking,
            Kind::Call => DeltaKind::Nothing,
        }
    }

    /// Returns the completed block, and the part of its whole text that the deltas did not contain.
    pub(super) fn complete(open: Option<Self>, index: usize, whole: &str) -> (Self, &str) {
        let (n_bytes, tail) = match open {
            Some(Self { index: open, kind: Kind::Text(n_bytes, tail) }) if open == index => (n_bytes, tail),
            _ => (0, String::new()),
        };
        let missing = missing_text(n_bytes, &tail, whole);
        let mut block = Self { index, kind: Kind::Text(n_bytes, tail) };
        block.add(index, missing);
        (block, missing)
    }
}

/// Bytes of a block's text kept to compare its end: texts that agree in these bytes and in length are considered equal.
const MAX_TAIL: usize = 1024;

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
            let mut open = StreamedBlock::new(0, &BlockKind::Text);
            assert_eq!(open.add(0, so_far), DeltaKind::Text);
            assert_eq!(open.add(1, "other"), DeltaKind::Nothing);
            assert_eq!(StreamedBlock::complete(Some(open), 0, whole).1, expect, "{so_far} {whole}");
        }
    }
}

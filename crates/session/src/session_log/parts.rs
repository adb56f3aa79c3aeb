//! Finding the entries of a text, in parts.

use std::io;
use std::ops::Range;

use memchr::{memchr, memrchr};
use pinch_stdx::text::bom_len;

use super::slots::{EntrySlot, NONE, number};
use super::threads;
use crate::entry::EntryId;
use crate::entry::scan::{self, EntryType, ScannedLine};
use crate::store::StoredText;

/// Bytes of a stored text read at a time.
const BUFFER: usize = 1 << 18;

/// The entries of the lines that start in one part of a text.
#[derive(Debug, Default)]
pub(super) struct TextPart {
    /// The entries, without their segments and parents.
    pub(super) found: Vec<EntrySlot>,
    /// Parents of entries that do not follow the previous one, with their index in `found`. Most entries do.
    pub(super) others: Vec<(usize, Option<EntryId>)>,
    /// Number of lines that are not entries.
    pub(super) n_skipped: usize,
    /// The text after the last line break.
    pub(super) torn: Vec<u8>,
}

impl TextPart {
    /// Reads lines whose first byte is at `base`. Returns true if a line starts at `end` or later, which belongs to another part.
    fn add_lines(&mut self, lines: &[u8], base: u64, end: u64) -> bool {
        let mut from = if base == 0 { bom_len(lines) } else { 0 };
        while from < lines.len() {
            if base + from as u64 >= end {
                return true;
            }
            from += self.add_line(&lines[from..], base + from as u64);
        }
        false
    }

    /// Reads the first line of a text at `base`; returns its length, line break included.
    fn add_line(&mut self, text: &[u8], base: u64) -> usize {
        let n_blank = text.iter().take_while(|byte| byte.is_ascii_whitespace() && **byte != b'\n').count();
        let line = &text[n_blank..];
        if let [] | [b'\n', ..] = line {
            return n_blank + 1;
        }
        let Some((seen, place)) = scan::first_line(line) else {
            self.n_skipped += 1;
            return n_blank + memchr(b'\n', line).unwrap_or(line.len()) + 1;
        };
        self.add(seen, base + n_blank as u64, place.n_bytes);
        n_blank + place.line_end + 1
    }

    fn add(&mut self, seen: ScannedLine<'_>, start: u64, len: usize) {
        match (seen.kind, seen.id) {
            (EntryType::Session, _) => {}
            (_, None) => self.n_skipped += 1,
            (kind, Some(id)) => {
                let before = self.found.last().map(|found| found.id.as_str());
                if before.is_none() || seen.parent_id.as_deref() != before {
                    self.others.push((self.found.len(), seen.parent_id.map(EntryId::new)));
                }
                // Texts longer than this are never in memory.
                let start = u32::try_from(start).unwrap_or(NONE);
                let (id, role) = (EntryId::new(id), seen.role);
                self.found.push(EntrySlot { segment: 0, start, len: number(len), parent: NONE, id, kind, role });
            }
        }
    }
}

/// Finds the entries of a text.
pub(super) fn of_text(text: &[u8]) -> Vec<TextPart> {
    let ranges = whole_lines(text, threads::worth(text.len()));
    threads::map(&ranges, ranges.len(), |range| {
        let mut part = TextPart::default();
        part.add_lines(&text[range.clone()], range.start as u64, u64::MAX);
        part
    })
}

/// Splits a text into ranges of whole lines.
fn whole_lines(text: &[u8], n_parts: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::with_capacity(n_parts);
    let mut start = 0;
    for n in 1..=n_parts {
        let from = (text.len() / n_parts * n).max(start);
        let end = memchr(b'\n', &text[from..]).filter(|_| n < n_parts).map_or(text.len(), |at| from + at + 1);
        parts.push(start..end);
        start = end;
    }
    parts
}

/// Finds the entries of a stored text, with at most one buffer in memory at a time.
pub(super) fn of_stored(text: &dyn StoredText) -> io::Result<Vec<TextPart>> {
    in_parts(text, threads::worth(usize::try_from(text.len()).unwrap_or(usize::MAX)), BUFFER)
}

fn in_parts(text: &dyn StoredText, n_parts: usize, buffer: usize) -> io::Result<Vec<TextPart>> {
    let part = text.len().div_ceil(n_parts as u64);
    let ranges: Vec<_> = (0..n_parts as u64).map(|n| n * part..((n + 1) * part).min(text.len())).collect();
    threads::map(&ranges, n_parts, |range| of_range(text, range.clone(), vec![0; buffer])).into_iter().collect()
}

fn of_range(text: &dyn StoredText, range: Range<u64>, mut buffer: Vec<u8>) -> io::Result<TextPart> {
    let mut part = TextPart::default();
    // Text before the first line break belongs to the previous part, unless that part ends with it.
    let mut is_others = range.start > 0;
    let mut base = range.start.saturating_sub(1);
    let mut filled = 0;
    while base < range.end {
        let at = base + filled as u64;
        let wanted = (buffer.len() - filled).min(usize::try_from(text.len() - at).unwrap_or(usize::MAX));
        if wanted == 0 {
            if !is_others {
                part.add_lines(&buffer[..filled], base, range.end);
                part.torn = buffer[..filled].to_vec();
            }
            break;
        }
        text.read_at(at, &mut buffer[filled..filled + wanted])?;
        filled += wanted;
        let Some(last) = memrchr(b'\n', &buffer[..filled]) else {
            if filled == buffer.len() {
                buffer.resize(2 * filled, 0);
            }
            continue;
        };
        let from = if is_others { memchr(b'\n', &buffer[..=last]).map_or(0, |at| at + 1) } else { 0 };
        is_others = false;
        if part.add_lines(&buffer[from..=last], base + from as u64, range.end) {
            break;
        }
        buffer.copy_within(last + 1..filled, 0);
        filled -= last + 1;
        base += last as u64 + 1;
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct MemoryText(Vec<u8>);

    impl StoredText for MemoryText {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
            into.copy_from_slice(&self.0[at as usize..][..into.len()]);
            Ok(())
        }
    }

    /// Everything that was found, in words.
    fn summary(parts: &[TextPart]) -> (Vec<String>, usize) {
        let mut before = None;
        let mut found = Vec::new();
        for part in parts {
            for (at, slot) in part.found.iter().enumerate() {
                let other = part.others.iter().find(|(place, _)| *place == at);
                let parent = other.map_or_else(|| before.clone(), |(_, parent)| parent.clone());
                found.push(format!("{parent:?} {slot:?}"));
                before = Some(slot.id.clone());
            }
        }
        (found, parts.iter().map(|part| part.n_skipped).sum())
    }

    #[track_caller]
    fn check(text: &str, n_found: usize, n_skipped: usize) {
        let mut whole = TextPart::default();
        whole.add_lines(text.as_bytes(), 0, u64::MAX);
        let whole = summary(&[whole]);
        assert_eq!((whole.0.len(), whole.1), (n_found, n_skipped));
        for n_parts in 1..24 {
            let ranges = whole_lines(text.as_bytes(), n_parts);
            assert_eq!((ranges[0].start, ranges[n_parts - 1].end), (0, text.len()));
            for buffer in [1, 2, 7, 64, 1000, 4000] {
                let parts = in_parts(&MemoryText(text.into()), n_parts, buffer).unwrap();
                assert_eq!(summary(&parts), whole, "{n_parts} parts, a buffer of {buffer} bytes");
                let torn = &text[text.rfind('\n').map_or(0, |at| at + 1)..];
                let summary: Vec<u8> = parts.into_iter().flat_map(|part| part.torn).collect();
                assert_eq!(summary, torn.as_bytes(), "{n_parts} parts, a buffer of {buffer} bytes");
            }
        }
    }

    #[test]
    fn parts_find_the_same_entries_as_the_whole() {
        let line = |n: usize| match n % 7 {
            0 => "no entry\n".to_owned(),
            1 => "\n".to_owned(),
            2 => format!("   {{\"type\":\"x\",\"id\":\"{n}\"}}  \r\n"),
            _ => format!("{{\"type\":\"x\",\"id\":\"{n}\",\"parentId\":\"{}\"}}\n", n - 1),
        };
        let text: String = std::iter::once("\u{feff}".to_owned()).chain((2..50).map(line)).collect();
        check(&text, 35, 7);
        check(&format!("{text}{{\"type\":\"x\",\"id\":\"last\"}}"), 36, 7);
        check(&format!("{text}{{\"type\":\"x\",\"id\":\"torn"), 35, 8);
        check("", 0, 0);
        check("\n\n", 0, 0);
    }
}

//! Blocks of a long reply: none is longer than allowed, nothing is lost or repeated, and each is complete by itself.
//!
//! Options: the minimum; how much longer the maximum is; preference, unit and paragraph mode; the cuts.

use pinch_embed::replies::chunk::{BreakPreference, Chunker, Chunking, Drain};
use pinch_embed::replies::code::CodeState;
use pinch_embed::replies::unit::TextUnit;

use crate::input::{Cuts, options, text};

/// A block, and how much of the text it and those before it consume.
type PlacedBlock = (String, usize);

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([min, more, flags, cuts], content) = options(data);
    let content = text(content);
    let options = Chunking {
        min_chars: usize::from(min),
        max_chars: usize::from(min) + usize::from(more),
        preference: match flags & 3 {
            0 => BreakPreference::Newline,
            1 => BreakPreference::Sentence,
            _ => BreakPreference::Paragraph,
        },
        unit: match flags >> 2 & 3 {
            0 => TextUnit::Bytes,
            1 => TextUnit::Chars,
            2 => TextUnit::Graphemes,
            _ => TextUnit::Utf16,
        },
        flush_on_paragraph: flags & 16 != 0,
    };
    let chunks = Cuts::Random(cuts).text(&content);
    let at_end = blocks(options, &[&content], When::AtEnd);
    if options.unit != TextUnit::Graphemes {
        // Characters that arrive in parts are counted in parts.
        assert_eq!(blocks(options, &chunks, When::AtEnd), at_end, "chunks give other blocks");
    }
    for blocks in [at_end, blocks(options, &chunks, When::Ready), blocks(options, &[&content], When::Ready)] {
        check_blocks(&blocks, &content, &options);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Ready,
    AtEnd,
}

fn blocks(options: Chunking, chunks: &[&str], when: When) -> Vec<PlacedBlock> {
    let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
    for chunk in chunks {
        chunker.append(chunk);
        if when == When::Ready {
            chunker.drain(Drain::Ready, &mut |block, end| blocks.push((block, end)));
        }
    }
    chunker.drain(Drain::All, &mut |block, end| blocks.push((block, end)));
    assert!(!chunker.has_buffered() && chunker.buffered().is_empty(), "something is left");
    blocks
}

fn check_blocks(blocks: &[PlacedBlock], content: &str, options: &Chunking) {
    let max = options.max_chars.max(options.min_chars).max(1);
    let mut start = 0;
    for (block, end) in blocks {
        assert!(!block.trim().is_empty(), "a blank block in {blocks:?}");
        // A character that is longer than a block is sent all the same.
        let is_character = block.chars().count() == 1;
        assert!(is_character || options.unit.len(block) <= max, "longer than {max} {:?}: {block:?}", options.unit);
        assert!(start < *end && content.is_char_boundary(*end), "positions: {blocks:?}");
        check_content(block, &content[start..*end], content);
        start = *end;
    }
    assert!(content[start..].trim().is_empty(), "lost: {:?} of {blocks:?}", &content[start..]);
    if fences_fit(content, options.unit, max) && is_balanced(content) {
        let broken = blocks.iter().find(|(block, _)| !is_balanced(block));
        assert!(broken.is_none(), "an open fence in {broken:?} of {blocks:?}");
    }
}

/// A block is its part of the text, after lines or markup that are opened again, and before markup that is closed.
fn check_content(block: &str, part: &str, content: &str) {
    let part = part.trim();
    // A line that is opened again may be equal to the part, or overlap it.
    let fits = |before: &str, from: &str| {
        from.strip_prefix(part).is_some_and(|after| is_opened(before, content) && is_closed(after, content))
    };
    let mut splits = block.char_indices().map(|(at, _)| block.split_at(at));
    assert!(splits.any(|(before, from)| fits(before, from)), "{block:?} is not {part:?}");
}

fn is_markup(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || matches!(c, '`' | '~' | '*' | '_' | '['))
}

fn is_opened(before: &str, content: &str) -> bool {
    before.lines().all(|line| is_markup(line) || content.contains(line))
}

fn is_closed(mut after: &str, content: &str) -> bool {
    while let Some((markup, rest)) = after.split_once("](") {
        let (address, rest) = rest.split_once(')').unwrap_or((rest, ""));
        if !is_markup(markup) || !content.contains(&format!("]({address})")) {
            return false;
        }
        after = rest;
    }
    is_markup(after)
}

fn is_balanced(text: &str) -> bool {
    let mut code = CodeState::default();
    text.chars().chain(['\n']).for_each(|c| _ = code.push(c));
    !code.in_fence()
}

/// Returns whether a block has room for the lines of every fence and something between them.
fn fences_fit(content: &str, unit: TextUnit, max: usize) -> bool {
    let mut lines = content.lines().filter(|line| line.contains("```") || line.contains("~~~"));
    lines.all(|line| 2 * unit.len(line) + 6 <= max)
}

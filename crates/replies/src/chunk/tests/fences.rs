//! Fences stay fences, and markers that begin none do not become one.

use super::*;
use crate::unit::TextUnit;

#[test]
fn no_break_turns_a_marker_in_a_line_into_a_fence() {
    for space in [" ", "  ", "\t", "\r", "\r\r", " \r", "\u{b}", "\u{c}", "\u{a0}", "\u{2028}", "\u{3000}"] {
        for marker in ["```", "~~~~"] {
            let text = format!("é{space}{marker}");
            for (min, max) in [(1, 2), (1, 4), (1, 5), (1, 8), (2, 6), (4, 80)] {
                for preference in [BreakPreference::Paragraph, BreakPreference::Newline, BreakPreference::Sentence] {
                    let options = chunking(min, max, preference);
                    let (before, after) = text.split_at("é".len() + space.len());
                    let blocks =
                        [cut(options, &[&text]), cut(options, &[before, after]), cut_at_end(options, &[&text])];
                    for blocks in blocks {
                        let broken = blocks.iter().find(|block| !is_balanced(block));
                        assert!(max < text.chars().count() || broken.is_none(), "{text:?} {options:?}: {blocks:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_break_at_the_start_of_a_line_keeps_a_marker_that_is_indented_too_far() {
    for indent in ["    ", "\u{b}", "\t", "\u{a0}", "  \t", "\r", "\r\r", " \r"] {
        for marker in ["```", "~~~~"] {
            let text = format!("ab cdef\n{indent}{marker} gh\nij klmnop");
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            for max in 8..20 {
                for preference in [BreakPreference::Paragraph, BreakPreference::Newline, BreakPreference::Sentence] {
                    let options = chunking(1, max, preference);
                    for blocks in [cut(options, &[&text]), cut(options, &chars), cut_at_end(options, &[&text])] {
                        let broken = blocks.iter().find(|block| !is_balanced(block));
                        assert!(broken.is_none(), "{text:?} {options:?}: {blocks:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_fence_whose_characters_arrive_in_parts_is_closed() {
    let text = "```\nabc 👩\u{200d}👩\u{200d}👧 de\nfg\n```\nafter it";
    let chars: Vec<String> = text.chars().map(String::from).collect();
    let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
    for max in 12..30 {
        let options = Chunking { unit: TextUnit::Graphemes, ..chunking(max, max, BreakPreference::Newline) };
        let blocks = cut(options, &chars);
        assert!(blocks.iter().all(|block| is_balanced(block)), "{max}: {blocks:?}");
    }
}

#[test]
fn markers_of_nested_strikethroughs_are_not_opened_again_as_a_fence() {
    for max in 8..20 {
        for text in ["~~§~~r§§", "~~one ~~two three~~ four~~ five", "~~a~~b~~c~~ d e f g h"] {
            let options = Chunking { unit: TextUnit::Bytes, ..chunking(5, max, BreakPreference::Newline) };
            let blocks = cut(options, &[text]);
            assert!(blocks.iter().all(|block| is_balanced(block)), "{text} {max}: {blocks:?}");
        }
    }
}

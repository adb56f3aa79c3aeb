//! The exact blocks of many shapes of text: where they end, and what closes and reopens fences and markup.

use super::*;
use crate::unit::TextUnit;

/// Renders the blocks of a text at some limits. Text that arrives in pieces and text that is complete are split alike, or both are shown.
fn shapes(texts: &[&str], limits: &[(usize, usize)], preference: BreakPreference, unit: TextUnit) -> String {
    let mut all = String::new();
    for text in texts {
        all += &format!("=== {text:?}\n");
        for (min, max) in limits {
            let options = Chunking { unit, ..chunking(*min, *max, preference) };
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            let (arriving, complete) = (cut(options, &chars), cut_at_end(options, &[text]));
            for block in arriving.iter().chain(&complete) {
                // A line that names media is kept whole.
                assert!(unit.len(block) <= *max || block.starts_with("MEDIA:"), "{max} {block:?}");
            }
            all += &format!("{min}..{max} {arriving:?}\n");
            if arriving != complete {
                all += &format!("  complete {complete:?}\n");
            }
        }
    }
    all
}

#[test]
fn fences() {
    let texts = [
        "```\nabcdefghijklmnopqrstuvwxyz0123456789\n```",
        "```rust\nlet a = 1;\nlet b = 2;\nlet c = 3;\n```\nafter it",
        "before the fence\n```rust\nlet a = 1;\nlet b = 22;\n```",
        "~~~~py\nx = 1\n```\ny = 2\n```\nz = 3\n~~~~",
        "a\n\n  ```js\n  f();\n  g();\n  h();\n  ```\nb",
        "```\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n```",
        "text and ``` in it, which begins no fence, but goes on",
        "one two three four\n````\nfive\n````\nsix seven eight nine ten",
        "```a very long line that opens a fence, far too long\nx\ny\n```",
        "words words words ```\nthen more words",
    ];
    let limits = [(1, 20), (4, 24), (8, 31), (8, 40)];
    insta::assert_snapshot!(shapes(&texts, &limits, BreakPreference::Paragraph, TextUnit::Utf16));
}

#[test]
fn inline_markup() {
    let texts = [
        "some **bold words that go on for a while** and then not",
        "*one two three four* **five six seven eight** ~~nine ten eleven~~ twelve",
        "***bold and slanted words*** and `code with several words` here",
        "``code with ` inside of it and more`` next",
        "a **bold and *slanted inside* of it** end of it",
        "~~deleted text with ~ in it and more words~~",
        "**abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz**",
        "`abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz`",
        "[a link with a long text](https://example.com/long/path) and words",
        "unclosed **bold that never ends and `code that never ends",
        "2 * 3 * 4 is not markup, and neither is a_b_c or ** alone",
    ];
    let limits = [(1, 12), (4, 18), (8, 25), (8, 40)];
    insta::assert_snapshot!(shapes(&texts, &limits, BreakPreference::Paragraph, TextUnit::Utf16));
}

#[test]
fn prose_lists_and_tables() {
    let texts = [
        "One sentence. Another one! A third? The last, v1.2.3 of it. End",
        "First paragraph.\n\nSecond paragraph, longer.\n \nThird.\r\n\r\nFourth one.",
        "- one item\n- another item\n  with a second line\n- third item\n\nAfter the list.",
        "1. first\n2. second\n10. tenth\n\ntext",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nbelow the table",
        "    indented code\n    more of it\n\nprose follows here",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
        "   \n\n   leading space, and trailing space   \n\n   ",
        "see MEDIA: no media\nMEDIA:./a/picture.png\nafter it\nMEDIA: ./b c.png",
    ];
    let limits = [(1, 16), (8, 24), (20, 40)];
    for (name, preference) in [
        ("paragraph", BreakPreference::Paragraph),
        ("newline", BreakPreference::Newline),
        ("sentence", BreakPreference::Sentence),
    ] {
        insta::assert_snapshot!(name, shapes(&texts, &limits, preference, TextUnit::Utf16));
    }
}

#[test]
fn units() {
    let texts = ["naïve café, 日本語のテキスト。 👩‍👩‍👧 🇩🇪 e\u{301}a done", "```\nñandú 👍🏽👍🏽👍🏽 äöü\nß\n```"];
    for (name, unit) in [
        ("utf16", TextUnit::Utf16),
        ("chars", TextUnit::Chars),
        ("bytes", TextUnit::Bytes),
        ("graphemes", TextUnit::Graphemes),
    ] {
        insta::assert_snapshot!(name, shapes(&texts, &[(1, 14), (6, 19)], BreakPreference::Paragraph, unit));
    }
}

#[test]
fn paragraphs_are_sent_as_soon_as_they_end() {
    let mut all = String::new();
    for text in
        ["a\n\nbb\n\n\nccc\r\n\r\ndddd\n", "```\na\n\nb\n```\n\nafter\n\n", "x\n \ny\n\nabcdefghijklmnopqrstuvwxyz z"]
    {
        for max in [12, 30] {
            let options = Chunking { flush_on_paragraph: true, ..chunking(1, max, BreakPreference::Paragraph) };
            for n in [1, 5] {
                let chars: Vec<char> = text.chars().collect();
                let pieces: Vec<String> = chars.chunks(n).map(|piece| piece.iter().collect()).collect();
                let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
                for piece in &pieces {
                    chunker.append(piece);
                    chunker.drain(Drain::Ready, &mut |block, position| blocks.push((block, position)));
                }
                let buffered = chunker.buffered();
                all += &format!("{text:?} {max} by {n}: {blocks:?} then {buffered:?}\n");
            }
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn fences_and_markup_at_every_limit() {
    let texts = [
        "```\nab\ncd\n```\nef",
        "a\n~~~py\nx = 1\ny\n~~~\nb",
        "````\n```\nabcdefghijklmnop\n````",
        "ab **cd ef gh** ij",
        "`ab` ``c ` d``",
        "~~ab~~cd~~ ef",
        "[ab cd](ef) gh",
        "ab ``` cd ~~~ ef",
    ];
    let limits: Vec<(usize, usize)> = (4..24).map(|max| (1, max)).collect();
    let shapes = shapes(&texts, &limits, BreakPreference::Newline, TextUnit::Bytes);
    insta::assert_snapshot!(shapes);
}

#[test]
fn text_before_fences_and_media_at_every_limit() {
    let texts = [
        "ab\n```\ncdefghij\n```\nkl",
        "a b\n~~~py\nc\nd\n~~~ \ne",
        "a\n```\n``````b\n```\nc",
        "a\n   ~~~\n~~~~c\nd\n   ~~~\n",
        "a\n```bcdefghij\nk\n```",
        "ab\nMEDIA:./c d.png\nef",
        "a **b *c d* e** ~~f~~",
        "a `bc` `` d ` e `` [f g](h) i",
    ];
    let limits: Vec<(usize, usize)> = (5..26).flat_map(|max| [(max / 2, max), (max - 1, max)]).collect();
    let shapes = shapes(&texts, &limits, BreakPreference::Paragraph, TextUnit::Bytes);
    insta::assert_snapshot!(shapes);
}

/// Texts with markup at the very end of a block.
#[test]
fn markup_that_ends_where_a_block_does() {
    use BreakPreference::{Newline, Paragraph, Sentence};
    use TextUnit::{Bytes, Chars};
    let mut all = String::new();
    for (text, min, max, preference, unit) in [
        ("**[m](u)*", 2, 5, Sentence, Chars),
        ("a ~~\n\n\n~~~~~~", 4, 7, Paragraph, Bytes),
        ("```\n]]````\n````", 1, 14, Sentence, Chars),
        ("`c d`)`!`", 1, 7, Newline, Chars),
        ("**d words**\n", 1, 8, Sentence, Chars),
        ("`. ``b `b", 2, 8, Sentence, Chars),
        ("~~``~~", 1, 6, Paragraph, Chars),
        ("`~``~~", 1, 6, Paragraph, Chars),
        (".long.\t\t\t\t```*", 1, 13, Newline, Bytes),
        ("\n~~~~\n  ~~s t~~", 1, 14, Paragraph, Chars),
        ("  \\.   . \n```\n   .   ", 20, 20, Paragraph, Chars),
        ("`😀\r\n```. ", 4, 6, Newline, Bytes),
        ("  x\n`c d`\n~~~\n``", 8, 9, Paragraph, Bytes),
        ("*l](u)_   [l m](u)~](    ](x\n~~~~[l m](u)x\n~~~~ m](u)", 8, 28, Newline, Chars),
    ] {
        all += &shapes(&[text], &[(min, max)], preference, unit);
        let options = Chunking { unit, ..chunking(min, max, preference) };
        // The first line alone, then the rest.
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        all += &format!("  at once {:?}\n  by line {:?}\n", cut(options, &[text]), cut(options, &lines));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn reopened_markup_without_content_is_no_block() {
    assert_eq!(cut(chunking(4, 7, BreakPreference::Newline), &["a _b c\n"]), ["a _b c_"]);
}

#[test]
fn media_after_split_markup_stays_whole() {
    assert_eq!(cut(chunking(1, 9, BreakPreference::Newline), &["*a\nMEDIA:png"]), ["*a*", "MEDIA:png"]);
}

#[test]
fn a_fence_after_split_markup_stays_a_fence() {
    for marker in ["`", "*", "**", "~~"] {
        for fence in ["```", "~~~"] {
            let text = format!("{marker}ab cdefgh\n{fence}\ncode\n{fence}\nafter it");
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            for max in 12..40 {
                let blocks = cut(chunking(1, max, BreakPreference::Newline), &chars);
                let broken = blocks.iter().find(|block| !is_balanced(block));
                assert!(broken.is_none(), "{text:?} {max}: {blocks:?}");
                assert!(blocks.iter().any(|block| block.contains(&format!("{fence}\ncode\n{fence}"))), "{blocks:?}");
            }
        }
    }
}

#[test]
fn a_split_link_keeps_its_address() {
    let text = "see [the ex _aaaaaaaaaaaa _bbbbbbbbbbbbb _c _d _e _flink](https:/.ex    ^)in _g";
    for max in 36..80 {
        let options = chunking(1, max, BreakPreference::Paragraph);
        let blocks = cut_at_end(options, &[text]);
        for part in blocks.iter().flat_map(|block| block.split("](").skip(1)) {
            assert!(part.starts_with("https:/.ex    ^)"), "{max}: {blocks:?}");
        }
    }
}

#[test]
fn markers_that_turn_out_to_be_text_are_not_repeated() {
    let blocks = cut(chunking(1, 12, BreakPreference::Paragraph), &["*one two three ", "four\n\nfive"]);
    assert_eq!(blocks, ["*one two*", "three four", "five"]);
    // Without its marker, the line would begin a fence.
    let blocks = cut(chunking(1, 12, BreakPreference::Paragraph), &["*one two\n     ", "~~~ four\n\nfive"]);
    assert_eq!(blocks, ["*one two*", "\u{a0}~~~ four", "five"]);
}

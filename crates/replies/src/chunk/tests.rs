use proptest::prelude::*;

use super::*;
use crate::code::CodeState;
use crate::inline::InlineMarks;

mod fences;
mod shapes;

fn cut(options: Chunking, pieces: &[&str]) -> Vec<String> {
    let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
    for piece in pieces {
        chunker.append(piece);
        chunker.drain(Drain::Ready, &mut |block, _| blocks.push(block));
    }
    chunker.drain(Drain::All, &mut |block, _| blocks.push(block));
    assert!(!chunker.has_buffered() && chunker.buffered().is_empty());
    blocks
}

/// Returns the blocks of a text that is complete before it is split.
fn cut_at_end(options: Chunking, pieces: &[&str]) -> Vec<String> {
    let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
    pieces.iter().for_each(|piece| chunker.append(piece));
    chunker.drain(Drain::All, &mut |block, _| blocks.push(block));
    blocks
}

fn chunking(min_chars: usize, max_chars: usize, preference: BreakPreference) -> Chunking {
    Chunking { min_chars, max_chars, preference, flush_on_paragraph: false, ..Chunking::default() }
}

fn is_balanced(block: &str) -> bool {
    let mut code = CodeState::default();
    block.chars().chain(['\n']).for_each(|c| {
        code.push(c);
    });
    !code.in_fence()
}

/// Returns the words of a text, without fence lines, backticks, which are added where code is split, and white space.
fn words(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("```"));
    lines.flat_map(str::split_whitespace).flat_map(|word| word.split('`')).collect()
}

#[test]
fn lines_and_paragraphs_may_end_with_carriage_returns() {
    let text = "One two.\r\nThree four.\r\n\r\nFive six.\r\n\r\nSeven.";
    for preference in [BreakPreference::Paragraph, BreakPreference::Newline] {
        let options = Chunking { min_chars: 4, max_chars: 30, preference, ..Chunking::default() };
        let (mut chunker, mut pieces) = (Chunker::new(options), Vec::new());
        chunker.append(text);
        chunker.drain(Drain::Ready, &mut |piece, _| pieces.push(piece.trim_end().to_owned()));
        pieces.push(chunker.buffered());
        assert_eq!(pieces, ["One two.\r\nThree four.", "Five six.\r\n\r\nSeven."], "{preference:?}");
    }
    let options = Chunking { min_chars: 4, max_chars: 40, ..Chunking::default() };
    let text = "One two.\r\nThree four.\r\n\r\nFive six.\r\nSeven, eight.";
    assert_eq!(pick_break(text, &options), Some("One two.\r\nThree four.\r\n\r\n".len()));
}

#[test]
fn a_long_fence_is_closed_and_reopened() {
    let text = "Code:\n\n```rust\nlet a = 1;\nlet b = 2;\nlet c = 3;\n```\n\nDone.";
    insta::assert_json_snapshot!(cut(chunking(5, 32, BreakPreference::Paragraph), &[text]), @r#"
    [
      "Code:",
      "```rust\nlet a = 1;\n```",
      "```rust\nlet b = 2;\n```",
      "```rust\nlet c = 3;\n```\n\nDone."
    ]
    "#);
}

fn by_paragraph(max: usize) -> Chunking {
    Chunking { flush_on_paragraph: true, ..chunking(1, max, BreakPreference::Paragraph) }
}

/// Returns the blocks of a text by paragraph, given at once and by character; both are the same.
fn paragraphs(max: usize, text: &str) -> Vec<String> {
    let options = by_paragraph(max);
    let characters: Vec<String> = text.chars().map(String::from).collect();
    let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
    let blocks = cut(options, &[text]);
    assert_eq!(cut(options, &characters), blocks);
    blocks
}

#[test]
fn paragraphs_after_a_split_fence_end_where_they_do_without_one() {
    let text = "```rs\nlet one = 1;\nlet two = 2;\n```\n\nAfter it.\n\nThe end.";
    let expected = ["```rs\nlet one = 1;\n```", "```rs\nlet two = 2;\n```", "After it.", "The end."];
    assert_eq!(paragraphs(24, text), expected);
}

#[test]
fn all_blank_lines_between_paragraphs_are_dropped() {
    for n in 2..30 {
        let text = format!("12345678{}next", "\n".repeat(n));
        // Blank lines that arrive later are dropped when the next block is sent.
        assert_eq!(cut(by_paragraph(10), &[&text]), ["12345678", "next"], "{n}");
    }
}

#[test]
fn a_blank_first_line_of_code_is_no_block_of_its_own() {
    let text = format!("```\n\n{}\n```", "abcdefghij".repeat(3));
    let blocks = cut(chunking(1, 20, BreakPreference::Paragraph), &[&text]);
    assert!(blocks.iter().all(|block| !words(block).is_empty()), "{blocks:?}");
}

#[test]
fn media_late_in_a_long_answer_stays_whole() {
    let line = format!("MEDIA:/tmp/{}.png", "a".repeat(60));
    let text = format!("{}\n{line}\nThe end.", "Some words. ".repeat(500));
    let blocks = cut(chunking(20, 50, BreakPreference::Paragraph), &[&text]);
    assert!(blocks.iter().any(|block| block.trim() == line), "{blocks:?}");
}

/// Returns the blocks that are sent of a text before it is complete.
fn ready(options: Chunking, text: &str) -> Vec<String> {
    let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
    chunker.append(text);
    chunker.drain(Drain::Ready, &mut |block, _| blocks.push(block));
    blocks
}

#[test]
fn a_full_block_is_sent_at_once() {
    for options in
        [chunking(3, 3, BreakPreference::Paragraph), chunking(1, 3, BreakPreference::Newline), by_paragraph(3)]
    {
        assert_eq!(ready(options, "ab"), [""; 0], "{options:?}");
        assert_eq!(ready(options, "abc"), ["abc"], "{options:?}");
        assert_eq!(ready(options, "abcdef"), ["abc", "def"], "{options:?}");
    }
}

#[test]
fn a_sentence_that_is_only_as_long_as_the_minimum_is_no_block() {
    assert_eq!(ready(chunking(3, 8, BreakPreference::Sentence), "ab. cd ef gh"), ["ab. cd"]);
    assert_eq!(ready(chunking(2, 8, BreakPreference::Sentence), "ab. cd ef gh"), ["ab.", "cd ef"]);
}

#[test]
fn blank_lines_before_the_first_paragraph_belong_to_it() {
    assert_eq!(cut(by_paragraph(10), &["\n\nab\n\ncd"]), ["\n\nab", "cd"]);
}

#[test]
fn text_after_a_flush_is_split_as_if_nothing_came_before() {
    let texts = [
        "- a b c d e \n",
        "*a b c d e \n",
        "MEDIA: b c d e \n",
        "| a |\n| b |\n| c |\n",
        "a [b c d e \n",
        "a. b. c. d. e. f.",
    ];
    for first in texts {
        for second in texts {
            for options in [chunking(1, 8, BreakPreference::Paragraph), chunking(4, 9, BreakPreference::Sentence)] {
                let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
                for text in [first, second] {
                    chunker.append(text);
                    chunker.drain(Drain::All, &mut |block, _| blocks.push(block));
                }
                let expect = [cut_at_end(options, &[first]), cut_at_end(options, &[second])].concat();
                assert_eq!(blocks, expect, "{first:?} {second:?} {options:?}");
            }
        }
    }
}

#[test]
fn lines_that_name_media_stay_whole() {
    let url = format!("https://e.com/a.png?signature={}", "0123456789".repeat(30));
    for line in [
        "MEDIA: ./my dir/some other file.png",
        "  MEDIA:./a b c d e f g h i j k l m n o p.png",
        &format!("MEDIA:{url}"),
    ] {
        for text in [
            format!("Here are words, and more.\n{line}\nAnd more words."),
            format!("{line}\n{line}"),
            format!("a\n\n{line}"),
        ] {
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            for preference in [BreakPreference::Paragraph, BreakPreference::Newline, BreakPreference::Sentence] {
                for blocks in
                    [cut(chunking(8, 30, preference), &chars), cut_at_end(chunking(8, 30, preference), &[&text])]
                {
                    let n_whole =
                        blocks.iter().flat_map(|block| block.lines()).filter(|found| found.trim() == line.trim());
                    assert_eq!(n_whole.count(), text.matches(line).count(), "{preference:?} {text:?} {blocks:?}");
                }
            }
        }
    }
    let prose = format!("MEDIA: {}", "word ".repeat(2_000));
    assert!(cut(chunking(8, 30, BreakPreference::Paragraph), &[&prose]).iter().all(|block| block.len() <= 30));
}

#[test]
fn code_spans_directives_and_tables_stay_whole() {
    let preference = BreakPreference::Paragraph;
    for (text, expect) in [
        ("see `a b c d e` now", &["see", "`a b c d e`", "now"][..]),
        ("hi [[reply_to: 1]] x", &["hi", "[[reply_to: 1]]", "x"]),
        ("top\n| a | b |\n| c | d |", &["top", "| a | b |\n| c | d |"]),
    ] {
        let max = expect.iter().map(|block| block.len()).max().unwrap_or(0) + 1;
        assert_eq!(cut(chunking(1, max, preference), &[text]), expect, "{text}");
    }
}

#[test]
fn characters_longer_than_a_block_are_sent_one_by_one() {
    let options = Chunking { unit: TextUnit::Bytes, ..chunking(1, 1, BreakPreference::Newline) };
    assert_eq!(cut(options, &["é😀\n~~~\né"]), ["é", "😀", "~", "~", "~", "é"]);
}

#[test]
fn markup_stays_whole_if_a_block_has_room() {
    let preference = BreakPreference::Paragraph;
    for (text, expect) in [
        ("see *a b c d e* now", &["see", "*a b c d e*", "now"][..]),
        ("see _a b c d e_ now", &["see", "_a b c d e_", "now"]),
        ("see ~~a b c d~~ now", &["see", "~~a b c d~~", "now"]),
        ("see __a `b` c__ now", &["see", "__a `b` c__", "now"]),
        ("see ![a b](http://c) now", &["see", "![a b](http://c)", "now"]),
    ] {
        let max = expect.iter().map(|block| block.len()).max().unwrap_or(0) + 1;
        assert_eq!(cut(chunking(1, max, preference), &[text]), expect, "{text}");
    }
}

#[test]
fn long_markup_is_closed_and_reopened() {
    for (text, expect) in [
        ("**one two three four five six**", &["**one two three**", "**four five six**"][..]),
        ("x *one two ~~three four five~~ six*", &["x", "*one two*", "*~~three four~~*", "*~~five~~ six*"]),
        ("***one two three four five***", &["***one two***", "***three four***", "***five***"]),
        ("``one two three ` four five``", &["``one two three``", "`` ` four five``"]),
        ("[one two three four five](u) six", &["[one two three](u)", "[four five](u) six"]),
        ("`onetwothreefourfive` six", &["`onetwothreefourf`", "`ive` six"]),
        // No counterpart: text.
        ("**one two three four five six", &["**one two three", "four five six"]),
        ("one **two three four five\n\nsix seven", &["one **two three", "four five\n\nsix", "seven"]),
        // Without room for markers, and images.
        ("![one two three](http://four) five", &["![one two", "three](http://four", ") five"]),
    ] {
        let max = 18;
        let blocks = cut_at_end(chunking(8, max, BreakPreference::Sentence), &[text]);
        assert_eq!(blocks, expect, "{text}");
    }
}

#[test]
fn the_marker_of_a_fence_closes_no_markup() {
    let text = "aaaa ``b\n```\nc c c c c c c c\n```\nd";
    let blocks = cut_at_end(chunking(8, 20, BreakPreference::Paragraph), &[text]);
    assert!(blocks.iter().all(|block| is_balanced(block) && TextUnit::Utf16.len(block) <= 20), "{blocks:?}");
    assert_eq!(blocks.iter().filter(|block| block.contains("``b")).count(), 1);
}

#[test]
fn long_markers_of_fences_are_kept() {
    let text = "````md\n```\none two\n```\nthree four\n````\nend";
    assert_eq!(
        cut(chunking(1, 28, BreakPreference::Paragraph), &[text]),
        ["````md\n```\none two\n```\n````", "````md\nthree four\n````\nend"]
    );
}

#[test]
fn a_block_begins_no_fence_of_its_own() {
    for text in
        ["one two three ``` four five six", "onetwothreefour```five", "one two three ~~~~~~", "one two ``\n\n````"]
    {
        for max in 12..20 {
            let blocks = cut_at_end(chunking(1, max, BreakPreference::Sentence), &[text]);
            assert!(is_balanced(text) != blocks.iter().any(|block| !is_balanced(block)), "{text:?}: {blocks:?}");
        }
    }
}

#[test]
fn growing_markup_is_closed_and_reopened() {
    let text = "**one two three four five six** seven eight *nine ten eleven twelve*";
    let pieces: Vec<&str> = text.split_inclusive(' ').collect();
    assert_eq!(
        cut(chunking(8, 24, BreakPreference::Sentence), &pieces),
        ["**one two three four**", "**five six**", "seven eight", "*nine ten eleven*", "*twelve*"]
    );
}

#[test]
fn equal_pieces_have_different_positions() {
    let text = format!("```\n{}\n```", "x".repeat(80));
    let blocks = cut(chunking(10, 33, BreakPreference::Paragraph), &[&text]);
    assert_eq!(blocks.iter().map(|block| block.matches('x').count()).sum::<usize>(), 80);
    assert!(blocks.iter().all(|block| is_balanced(block) && TextUnit::Utf16.len(block) <= 33), "{blocks:?}");
}

#[test]
fn a_megabyte_is_chunked_quickly() {
    let n = 1_200_000;
    for (part, is_blank) in [
        ("Some words in a line. `code` and more.\n", false),
        ("`", false),
        ("~~", false),
        ("` ", false),
        (" ```", false),
        (" ", true),
        ("a\n```", false),
        ("MEDIA: x\n", false),
    ] {
        let text = part.repeat(n / part.len());
        let start = std::time::Instant::now();
        let blocks = cut(Chunking::default(), &[&text]);
        assert!(blocks.len() > 800 || is_blank, "{part:?}: {} blocks", blocks.len());
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{part:?}: {:?}", start.elapsed());
    }
}

/// Prose without markup, in which every character has one unit.
fn prose() -> String {
    (0..400).map(|n| format!("Word {n} of it.{}", ["", " ", "\n", "\n\n", " \n"][n % 5])).collect()
}

#[test]
fn the_position_of_a_block_is_where_its_text_ends() {
    let text = prose();
    for (options, n_parts) in [
        (chunking(20, 60, BreakPreference::Paragraph), 1),
        (chunking(20, 60, BreakPreference::Sentence), 40),
        (Chunking { flush_on_paragraph: true, ..chunking(1, 50, BreakPreference::Paragraph) }, 7),
        (Chunking { unit: TextUnit::Graphemes, ..chunking(20, 60, BreakPreference::Newline) }, 40),
    ] {
        let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
        for (n, part) in text.as_bytes().chunks(text.len() / n_parts + 1).enumerate() {
            chunker.append(std::str::from_utf8(part).unwrap());
            let drain = if n % 5 == 4 { Drain::All } else { Drain::Ready };
            let n_before = blocks.len();
            chunker.drain(drain, &mut |block, end| blocks.push((block, end)));
            if blocks.len() > n_before {
                assert_eq!(chunker.n_units(), options.unit.len(&chunker.buffered()), "{options:?}");
            }
        }
        chunker.drain(Drain::All, &mut |block, end| blocks.push((block, end)));
        let mut start = 0;
        for (block, end) in &blocks {
            assert_eq!(block.trim(), text[start..*end].trim(), "{options:?}");
            assert!(options.unit.len(block) <= options.max_chars);
            start = *end;
        }
        assert_eq!(text[start..].trim(), "");
    }
}

#[test]
fn characters_that_arrive_in_parts_are_counted_whole_after_a_block() {
    let options = Chunking { unit: TextUnit::Graphemes, ..chunking(2, 5, BreakPreference::Sentence) };
    let (mut chunker, mut blocks) = (Chunker::new(options), Vec::new());
    ["ab e", "\u{301}"].iter().for_each(|part| chunker.append(part));
    chunker.drain(Drain::Ready, &mut |block, _| blocks.push(block));
    assert_eq!((blocks.concat().as_str(), chunker.buffered().as_str(), chunker.n_units()), ("ab", "e\u{301}", 1));
}

#[test]
fn the_best_break_of_a_text_is_picked() {
    for (text, min, max, expect) in [
        ("ab\n\ncd\nef gh", 2, 8, Some(4)),
        ("ab\n\ncd\nef gh", 5, 9, Some(7)),
        ("ab\r\n\r\ncd ef", 2, 9, Some(6)),
        ("ab. cd ef gh", 2, 8, Some(3)),
        ("ab. cd ef gh", 4, 8, Some(8)),
        ("ab. cd", 4, 8, None),
        ("abcdef", 2, 6, None),
        ("abcdefg", 2, 6, Some(6)),
        ("ab.", 1, 6, None),
        ("ab\n", 1, 6, None),
        ("\n\nab", 0, 3, Some(2)),
        ("abc", 0, 0, None),
    ] {
        let options = Chunking { min_chars: min, max_chars: max, ..Chunking::default() };
        assert_eq!(pick_break(text, &options), expect, "{text:?} {min}..{max}");
    }
}

fn any_text() -> impl Strategy<Value = Vec<&'static str>> {
    let parts = vec!["word ", "longer-word", "\n", "\n\n", "```\n", "```js\n", ". ", "`", "é", "  ", "a\n", "😀"];
    prop::collection::vec(prop::sample::select(parts), 0..60)
}

/// Returns the words of a text without markup.
fn bare_words(text: &str) -> String {
    text.replace("](u)", "").chars().filter(|c| !c.is_whitespace() && !"*_~`[".contains(*c)).collect()
}

/// Returns a text without its markup.
fn rendered(text: &str) -> String {
    let mut marks = InlineMarks::default();
    text.char_indices().for_each(|(at, c)| marks.push(c, at));
    marks.end_block();
    let mut is_marker = vec![false; text.len()];
    for span in (0..=text.len()).flat_map(|at| marks.around(at)) {
        let (closing, end) = span.close.unwrap();
        is_marker[span.start..span.content].fill(true);
        is_marker[closing..end].fill(true);
    }
    text.char_indices().filter(|(at, _)| !is_marker[*at]).map(|(_, c)| c).collect()
}

fn any_markup() -> impl Strategy<Value = String> {
    let words = prop::collection::vec("[a-z]{1,9}[.!]?", 1..12).prop_map(|words| words.join(" "));
    let marked = (prop::sample::select(vec!["**", "*", "_", "__", "~~", "`", "``", "["]), words.clone())
        .prop_map(|(marker, words)| format!("{marker}{words}{}", if marker == "[" { "](u)" } else { marker }));
    let nested = (prop::sample::select(vec!["**", "~~", "_"]), prop::collection::vec(marked.clone(), 1..3))
        .prop_map(|(marker, inner)| (marker, format!("{marker}a {} b{marker}", inner.join(" c "))))
        .prop_filter("markup inside of equal markup", |(marker, text)| text.matches(marker).count() == 2)
        .prop_map(|(_, text)| text);
    let part = prop_oneof![words, marked, nested];
    let gap = prop::sample::select(vec![" ", " ", "\n", "\n\n"]);
    prop::collection::vec((part, gap), 1..12)
        .prop_map(|parts| parts.into_iter().map(|(part, gap)| part + gap).collect())
}

proptest! {
    #[test]
    fn markup_is_complete_in_each_block(text in any_markup(), min in 1_usize..20, extra in 20_usize..60, n in 1_usize..9) {
        let options = chunking(min, min + extra, BreakPreference::Paragraph);
        prop_assume!(!rendered(&text).contains(['*', '_', '~', '`', '[']));
        let pieces: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
        let pieces: Vec<String> = pieces.chunks(n).map(<[&str]>::concat).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let at_end = cut_at_end(options, &pieces);
        prop_assert_eq!(&cut_at_end(options, &[&text]), &at_end);
        // The address of a link that still arrives is not known.
        let growing = if text.contains('[') { Vec::new() } else { vec![cut(options, &pieces)] };
        for blocks in [vec![at_end], growing].concat() {
            for block in &blocks {
                prop_assert!(TextUnit::Utf16.len(block) <= min + extra, "{:?}", blocks);
                prop_assert!(!rendered(block).contains(['*', '_', '~', '`', '[']), "{:?} of {:?}", block, blocks);
            }
            prop_assert_eq!(bare_words(&blocks.concat()), bare_words(&text));
        }
    }

    #[test]
    fn nothing_is_lost_or_duplicated(parts in any_text(), min in 1_usize..40, extra in 16_usize..60, newline: bool) {
        let preference = if newline { BreakPreference::Newline } else { BreakPreference::Paragraph };
        let text = parts.concat();
        let blocks = cut(chunking(min, min + extra, preference), &parts);
        // A fence marker in the middle of a line does not open a fence, so only texts whose markers are on their own lines can be compared
        // line by line.
        if text.split("```").skip(1).all(|rest| rest.starts_with("\n") || rest.starts_with("js\n"))
            && text.split("```").all(|before| before.is_empty() || before.ends_with('\n'))
        {
            let joined: String = blocks.iter().map(|block| words(block)).collect();
            prop_assert_eq!(joined, words(&text));
        }
    }

    #[test]
    fn markers_of_fences_are_never_split(
        words in prop::collection::vec(
            prop::sample::select(vec!["a ", "bcd", "\n", "\n\n", "e ```f", "h ~~~ g ", "``h`` ", "\n```\n", "\n```js\n", "\n~~~~\n"]), 0..40),
        min in 1_usize..20, extra in 20_usize..60, n in 1_usize..9,
    ) {
        let mut code = CodeState::default();
        let mut text = words.concat() + "\n";
        text.chars().for_each(|c| _ = code.push(c));
        if let Some(fence) = code.fence() {
            text.push_str(&fence.closing());
        }
        let fits = |line: &str| 2 * line.len() + 6 <= min + extra;
        prop_assume!(text.lines().filter(|line| line.contains("```") || line.contains("~~~")).all(fits));
        let options = chunking(min, min + extra, BreakPreference::Paragraph);
        let mut pieces: Vec<String> = words.chunks(n).map(<[&str]>::concat).collect();
        pieces.push(text[pieces.concat().len()..].to_owned());
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        for blocks in [cut_at_end(options, &[&text]), cut(options, &pieces)] {
            for block in &blocks {
                prop_assert!(is_balanced(block), "{:?} of {:?}", block, blocks);
                prop_assert!(TextUnit::Utf16.len(block) <= min + extra, "{:?} of {:?}", block, blocks);
            }
        }
    }

    #[test]
    fn closed_fences_stay_closed(n_lines in 1_usize..20, width in 1_usize..30, max in 24_usize..80) {
        let line = "y".repeat(width);
        let text = format!("Intro\n\n```py\n{}```\n\nOutro", format!("{line}\n").repeat(n_lines));
        let blocks = cut(chunking(1, max, BreakPreference::Paragraph), &[&text]);
        for block in &blocks {
            prop_assert!(is_balanced(block) && TextUnit::Utf16.len(block) <= max, "{:?}", blocks);
        }
        prop_assert_eq!(blocks.concat().matches('y').count(), n_lines * width + blocks.concat().matches("```py").count());
    }
}

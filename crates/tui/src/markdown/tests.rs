use proptest::prelude::*;

use super::cut::{LONG, WORK};
use super::*;
use crate::text::row_width;
use crate::theme::ColorDepth;

/// Documents with every construct that is laid out.
const CORPUS: [&str; 30] = [
    "plain text\n",
    "# One\n\nText.\n\n## Two\n### Three\ntext right below\n",
    "Setext\n===\n\nother\n---\n",
    "a *b **c** d* `code` ~~gone~~ [link](https://example.org) <https://auto.example> ![image](x.png)\n",
    "- one\n- two\n  - nested\n    more of it\n- three\n\nafter\n",
    "1. one\n2. two\n\n   a paragraph\n\n3. three\n",
    "7. seven\n8. eight\n",
    "- [ ] open\n- [x] done\n",
    "- loose\n\n- items\n\n- here\n",
    "text\n- list below\n- more\n",
    "```rust\nfn main() {\n    println!(\"hi\");\n}\n```\n\nafter\n",
    "```\nno language\n\nblank above\n```\n",
    "~~~\ntildes\n~~~\n",
    "```rust\nlet unclosed = 1;\n",
    "    indented code\n\n    more\n\ntext\n",
    "> quote\n> more\n> > deeper\n\nafter\n",
    "> lazy\ncontinuation\n",
    "| a | b |\n|---|--:|\n| one | 2 |\n| longer cell with words | 3 |\n",
    "| 日本 | 語 |\n|:-:|---|\n| 👍 | x |\n",
    "before\n\n***\n\nafter\n",
    "<div>\nhtml\n</div>\n\ntext\n",
    "<!-- comment\n\nmore -->\n\ntext\n",
    "[ref]: https://example.org\n\nA [link][ref].\n",
    "line one\nline two  \nline three\\\nline four\n",
    "- item\n\n  ```sh\n  ls -la\n  ```\n\n- next\n",
    "日本語の長い文章がここにあります。折り返しが必要です。\n",
    "emoji 👨‍👩‍👧 and flags 🇩🇪🇫🇷 and e\u{301}\n",
    "a\u{1b}]52;c;ZXZpbA==\u{7}b \u{1b}[2Jc\n",
    "* star\n+ plus\n- minus\n",
    "para\n\n\n\npara after blanks\n\n- list\n\npara\n",
];

fn theme() -> Palette {
    Palette::builtin("dark", ColorDepth::True)
}

fn plain(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn one_shot(text: &str, columns: usize) -> Vec<Row> {
    Markdown::of(text, MarkdownOptions::default()).rows(columns, &theme())
}

#[test]
fn example_documents_are_laid_out() {
    let shown: Vec<String> = CORPUS.iter().map(|text| format!("{text}---\n{}", plain(&one_shot(text, 40)))).collect();
    insta::assert_snapshot!(shown.join("=====\n"));
}

#[test]
fn no_row_is_wider_than_the_screen() {
    for columns in 1..60 {
        for text in CORPUS {
            for row in one_shot(text, columns) {
                assert!(row_width(&row) <= columns, "{columns}: {row} of {text:?}");
            }
        }
    }
}

#[test]
fn wide_tables_fit_narrow_screens_without_losing_text() {
    let cell = |row: usize, column: usize| format!("r{row}c{column} with several words");
    let row = |row: usize| format!("| {} |\n", (0..7).map(|column| cell(row, column)).collect::<Vec<_>>().join(" | "));
    let text = format!("{}{}\n{}", row(0), "|---".repeat(7) + "|", (1..6).map(row).collect::<String>());
    for columns in [10, 20, 40, 80, 120, 300] {
        let rows = one_shot(&text, columns);
        assert!(rows.iter().all(|row| row_width(row) <= columns), "{columns}:\n{}", plain(&rows));
        let shown = plain(&rows);
        for (row, column) in (0..6).flat_map(|row| (0..7).map(move |column| (row, column))) {
            assert!(shown.contains(&format!("r{row}c{column}")), "r{row}c{column} at {columns}:\n{shown}");
        }
        let n_words = shown.matches("words").count();
        assert!(n_words >= 42 || columns < 20, "{n_words} of 42 at {columns}:\n{shown}");
    }
}

/// Pushes a text in two parts: what was stable in between must still be there at the end, and the result must equal that of pushing the
/// text at once.
#[track_caller]
fn check_split(text: &str, at: usize, columns: usize) {
    let theme = theme();
    let mut markdown = Markdown::new(MarkdownOptions::default());
    markdown.push(&text[..at]);
    let n = markdown.n_stable_rows(columns, &theme);
    let stable = markdown.rows(columns, &theme)[..n].to_vec();
    markdown.push(&text[at..]);
    markdown.finish();
    let rows = markdown.rows(columns, &theme);
    assert_eq!(plain(&rows[..n]), plain(&stable), "{text:?} at {at}");
    assert_eq!(plain(&rows), plain(&one_shot(text, columns)), "{text:?} at {at}");
}

#[test]
fn rows_do_not_depend_on_how_the_text_arrives_and_stable_rows_stay() {
    for text in CORPUS {
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            check_split(text, at, 30);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_documents_do_not_depend_on_how_they_are_split(
        parts in prop::collection::vec(0..CORPUS.len(), 1..5),
        at in 0.0f64..1.0,
        columns in 8usize..50,
    ) {
        let text: String = parts.iter().map(|part| format!("{}\n", CORPUS[*part])).collect();
        let at = text.floor_char_boundary((text.len() as f64 * at) as usize);
        check_split(&text, at, columns);
    }
}

/// Returns how many bytes are parsed and laid out for a text that arrives in pieces with a frame after each: the total, and the maximum per
/// frame.
fn work_of(text: &str) -> (usize, usize) {
    let theme = theme();
    let mut markdown = Markdown::new(MarkdownOptions::default());
    let (mut all, mut most, mut at) = (0, 0, 0);
    while at < text.len() {
        let next = text.floor_char_boundary(at + 4096);
        let before = WORK.get();
        markdown.push(&text[at..next]);
        at = next;
        let n = markdown.n_stable_rows(60, &theme);
        markdown.rows_from(n, 60, &theme);
        let work = WORK.get() - before;
        all += work;
        most = most.max(work);
    }
    (all, most)
}

#[test]
fn total_work_is_linear_and_work_per_frame_is_constant() {
    let n_lines = |len: usize, line: &str| line.repeat(len / line.len() + 1);
    let cases: [(&str, &dyn Fn(usize) -> String); 12] = [
        ("a paragraph of one line", &|len| n_lines(len, "words and ")),
        ("a word", &|len| n_lines(len, "word")),
        ("a code line", &|len| format!("```rust\n{}", n_lines(len, "let a = 1; "))),
        ("a code block", &|len| format!("```\n{}", n_lines(len, "let a = 1;\n"))),
        ("an indented code block", &|len| n_lines(len, "    code\n\n")),
        ("a list", &|len| n_lines(len, "- an item\n")),
        ("a nested list", &|len| format!("- a\n{}", n_lines(len, "  1. an item\n\n     - with more\n"))),
        ("an item", &|len| format!("- {}", n_lines(len, "words and "))),
        ("a quote", &|len| n_lines(len, "> words and\n")),
        ("a code block in a quote in a list", &|len| format!("- > ```\n{}", n_lines(len, "  > code\n"))),
        ("a table", &|len| format!("|a|b|\n|-|-|\n{}", n_lines(len, "|one|two|\n"))),
        ("HTML", &|len| format!("<!--\n{}", n_lines(len, "a comment\n"))),
    ];
    for (name, text) in cases {
        let ((short, _), (long, most)) = (work_of(&text(8 << 10)), work_of(&text(800 << 10)));
        assert!(long < 250 * short, "{name}: {short} bytes, then {long}");
        assert!(most < 5 * LONG, "{name}: {most} bytes for a frame");
    }
}

#[test]
fn long_blocks_are_laid_out_like_their_parts() {
    let theme = theme();
    let check = |text: String| {
        let whole = one_shot(&text, 30);
        let mut markdown = Markdown::new(MarkdownOptions::default());
        for at in (0..text.len()).step_by(700) {
            markdown.push(&text[at..text.len().min(at + 700)]);
            let n = markdown.n_stable_rows(30, &theme);
            assert_eq!(markdown.rows(30, &theme)[..n], whole[..n]);
        }
        markdown.finish();
        assert_eq!(markdown.rows(30, &theme), whole);
        whole
    };
    // No split is visible.
    let rows = check(format!("> - {}", "word ".repeat(9_000)));
    assert!(rows.iter().skip(1).rev().skip(1).all(|row| row.to_string() == rows[1].to_string()));
    let rows = check(format!("- ```rust\n  {}\n  ```\n", "let a = 1;".repeat(3_000)));
    assert!(rows[2..rows.len() - 2].iter().all(|row| row_width(row) == 30));
    let rows = check(format!("|name|value|\n|-|-|\n{}", "|one|two|\n".repeat(4_000)));
    assert_eq!(rows.len(), 2 * 4_001 + 1);
    assert!(rows.iter().all(|row| row_width(row) == 16));
}

#[test]
fn blocks_nested_too_deeply_are_text() {
    let rows = one_shot(&format!("{}a\n\n{}b\n", "> ".repeat(100), "- ".repeat(100)), 90);
    assert!(rows.iter().any(|row| row.to_string().ends_with("> a")));
    assert!(rows.last().unwrap().to_string().ends_with("- b"));
}

#[test]
fn reference_links_use_earlier_definitions() {
    let rows = |text: &str| plain(&one_shot(text, 60));
    assert_eq!(rows("[a]: http://x\n\n[text][A], [a]\n"), "text (http://x), a (http://x)\n");
    assert_eq!(rows("> - [a]: http://x\n\nsee [a]\n\n[a]: http://y\n\n- [a]\n").lines().last(), Some("- a (http://x)"));
    // What was shown cannot be changed.
    assert_eq!(rows("see [a]\n\n[a]: http://x\n"), "see [a]\n");
}

#[cfg(feature = "highlight")]
#[test]
fn the_last_line_of_a_code_block_is_highlighted_before_it_ends() {
    let theme = theme();
    let mut markdown = Markdown::new(MarkdownOptions::default());
    markdown.push("- ```rust\n  /* one\n  two */ let x");
    let open = markdown.rows(40, &theme);
    markdown.push("\n  ```\n");
    markdown.finish();
    assert_eq!(open[..], markdown.rows(40, &theme)[..3]);
    assert!(open[2].spans.len() > 3, "{:?}", open[2]);
}

#[test]
fn a_long_paragraph_is_finished_from_its_beginning_on() {
    let theme = theme();
    let mut markdown = Markdown::new(MarkdownOptions::default());
    let mut most_open = 0;
    for n in 0..4_000 {
        markdown.push(&format!("word{n} and some "));
        if n % 50 == 0 {
            let all = markdown.rows(40, &theme).len();
            most_open = most_open.max(all - markdown.n_stable_rows(40, &theme));
        }
    }
    // The work per frame does not grow with the text.
    assert!(most_open < 300, "{most_open}");
}

#[test]
fn a_long_code_block_is_finished_line_by_line() {
    let theme = theme();
    let mut markdown = Markdown::new(MarkdownOptions::default());
    markdown.push("```rust\n");
    for n in 0..1_000 {
        markdown.push(&format!("let a{n} = {n};\n"));
        let all = markdown.rows(40, &theme).len();
        if n % 100 == 99 {
            assert!(all - markdown.n_stable_rows(40, &theme) <= 1);
        }
    }
}

#[test]
fn the_pieces_of_a_long_line_take_no_more_memory_than_its_text() {
    for text in ["x".repeat(2_000_000), "word ".repeat(400_000), format!("```\n{}\n", "x".repeat(2_000_000))] {
        let mut splitter = Splitter::new();
        splitter.advance(&text);
        splitter.finish(&text);
        let capacity: usize = splitter.pieces_from(0).unwrap().iter().map(|piece| piece.source.capacity()).sum();
        assert!(capacity < 2 * text.len(), "{capacity} bytes for {}", text.len());
    }
}

use proptest::prelude::*;

use super::*;
use crate::text::row_width;
use crate::theme::ColorDepth;

/// Documents with everything that is laid out.
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
fn documents_are_laid_out_for_people() {
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

/// Pushes a text in two parts; what was stable in between must still be there at the end, and the end must look like the text in one piece.
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
    fn documents_in_any_order_are_laid_out_alike(
        parts in prop::collection::vec(0..CORPUS.len(), 1..5),
        at in 0.0f64..1.0,
        columns in 8usize..50,
    ) {
        let text: String = parts.iter().map(|part| format!("{}\n", CORPUS[*part])).collect();
        let at = text.floor_char_boundary((text.len() as f64 * at) as usize);
        check_split(&text, at, columns);
    }
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
    // What is laid out with every frame does not grow with the text.
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

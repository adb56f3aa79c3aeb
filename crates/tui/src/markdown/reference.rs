//! Compares the structure of documents between the parser, which sees all of them, and the splitter.

use std::fmt::Write;

use proptest::prelude::*;
use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, Parser, Tag, TagEnd, TextMergeWithOffset};

use super::leaf::{MarkdownPiece, PieceKind};
use super::options::EXTENSIONS;
use super::split::Splitter;
use super::*;
use crate::text::row_width;
use crate::theme::ColorDepth;

/// Returns whether the line before a position is blank, ignoring quote markers.
fn is_after_blank(source: &str, at: usize) -> bool {
    // The parser treats a tab as as many characters as it has columns.
    let at = source.len() - source[at..].trim_start().len();
    let before = source[..at].rsplit_once('\n').map(|(before, _)| before.rsplit('\n').next().unwrap_or_default());
    before.is_some_and(|line| line.chars().all(|c| matches!(c, '>' | ' ' | '\t')))
}

/// Writes text blocks, one per line.
fn write_blocks(source: &str, is_nested: bool, out: &mut String) {
    let mut is_inline = false;
    let mut numbers: Vec<(Option<u64>, bool)> = Vec::new();
    // Links resolve on both sides, wherever they are defined.
    let mut resolve = |_: BrokenLink<'_>| Some((CowStr::from(""), CowStr::from("")));
    let parser = Parser::new_with_broken_link_callback(source, EXTENSIONS, Some(&mut resolve));
    let mut events = TextMergeWithOffset::new(parser.into_offset_iter()).peekable();
    let mut line = |text: &str, is_inline: &mut bool| {
        if std::mem::take(is_inline) {
            out.push('\n');
        }
        out.push_str(text);
    };
    while let Some((event, range)) = events.next() {
        match event {
            Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) => line("", &mut is_inline),
            Event::Start(Tag::BlockQuote(_)) if is_nested => line("quote\n", &mut is_inline),
            Event::Start(Tag::List(first)) if is_nested => {
                line("", &mut is_inline);
                numbers.push((first, false));
            }
            Event::End(TagEnd::List(_)) if is_nested => {
                line("", &mut is_inline);
                numbers.pop();
            }
            Event::Start(Tag::Item) if is_nested => {
                if let Some((number, continues)) = numbers.last_mut() {
                    let after_blank = is_after_blank(source, range.start);
                    let text = format!("item {number:?} {continues} {after_blank}\n");
                    line(&text, &mut is_inline);
                    *number = number.map(|number| number.saturating_add(1));
                    *continues = true;
                }
            }
            Event::End(TagEnd::Item | TagEnd::BlockQuote(_)) if is_nested => line("end\n", &mut is_inline),
            Event::TaskListMarker(is_checked) => line(&format!("task {is_checked}\n"), &mut is_inline),
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                line(&format!("code {info:?}\n"), &mut is_inline);
                let mut text = String::new();
                for (event, _) in events.by_ref() {
                    match event {
                        Event::Text(part) => text.push_str(&part),
                        _ => break,
                    }
                }
                text.lines().for_each(|text| line(&format!("| {text}\n"), &mut is_inline));
            }
            Event::Start(Tag::HtmlBlock) => {
                line("html\n", &mut is_inline);
                let mut text = String::new();
                for (event, _) in events.by_ref() {
                    match event {
                        Event::Html(part) | Event::Text(part) => text.push_str(&part),
                        _ => break,
                    }
                }
                // It does not matter whether a tab there becomes spaces.
                text.trim_end().lines().for_each(|text| line(&format!("| {}\n", text.trim_start()), &mut is_inline));
            }
            Event::Start(Tag::Heading { level, .. }) => {
                let task = events.next_if(|(event, _)| matches!(event, Event::TaskListMarker(_)));
                if let Some((Event::TaskListMarker(is_checked), _)) = task {
                    line(&format!("task {is_checked}\n"), &mut is_inline);
                }
                line(&format!("heading {level} "), &mut is_inline);
            }
            Event::End(TagEnd::Heading(_)) => line("\n", &mut is_inline),
            Event::Start(Tag::Table(alignments)) => line(&format!("table {alignments:?}\n"), &mut is_inline),
            Event::Rule => line("rule\n", &mut is_inline),
            Event::End(TagEnd::TableRow | TagEnd::TableHead) => line("\n", &mut is_inline),
            Event::End(TagEnd::TableCell) => line("|", &mut is_inline),
            Event::Start(Tag::TableHead | Tag::TableRow | Tag::TableCell) | Event::End(TagEnd::Table) => {}
            event => {
                let text = match event {
                    Event::Text(text) => text.into_string(),
                    // The parser leaves quote markers in it.
                    Event::InlineHtml(text) | Event::Code(text) => {
                        text.replace('>', " ").split_whitespace().collect::<Vec<_>>().join(" ")
                    }
                    Event::SoftBreak | Event::HardBreak => "⏎".to_owned(),
                    Event::Start(Tag::Link { .. } | Tag::Image { .. }) => "<".to_owned(),
                    other => format!("{other:?}"),
                };
                line("", &mut false);
                let mut keeps = false;
                line(&text, &mut keeps);
                is_inline = true;
            }
        }
    }
    line("", &mut is_inline);
}

fn whole(source: &str) -> String {
    let mut out = String::new();
    write_blocks(source, true, &mut out);
    out
}

fn joined(pieces: &[MarkdownPiece]) -> String {
    let mut out = String::new();
    let mut n_blank = 0;
    for piece in pieces {
        match piece.kind {
            PieceKind::QuoteStart => out.push_str("quote\n"),
            PieceKind::ItemStart(head) => {
                writeln!(out, "item {:?} {} {}", head.number, head.continues, piece.after_blank).unwrap();
                if let Some(is_checked) = head.task {
                    writeln!(out, "task {is_checked}").unwrap();
                }
            }
            PieceKind::ContainerEnd => out.push_str("end\n"),
            PieceKind::Blocks => write_blocks(&piece.source, false, &mut out),
            PieceKind::Middle => {
                let mut text = String::new();
                write_blocks(&format!("x{}", piece.source), false, &mut text);
                out.push_str(&text.replacen('x', "", 1));
            }
            PieceKind::TableRows => unreachable!("the documents are short"),
            PieceKind::CodeStart => writeln!(out, "code {:?}", piece.source.trim()).unwrap(),
            PieceKind::CodeLine => writeln!(out, "| {}", piece.source).unwrap(),
            PieceKind::CodeEnd => {}
            PieceKind::HtmlStart | PieceKind::HtmlLine => {
                if piece.kind == PieceKind::HtmlStart {
                    out.push_str("html\n");
                    n_blank = 0;
                }
                if piece.source.trim().is_empty() {
                    n_blank += 1;
                    continue;
                }
                (0..std::mem::take(&mut n_blank)).for_each(|_| out.push_str("| \n"));
                writeln!(out, "| {}", piece.source.trim_start()).unwrap();
            }
        }
    }
    out
}

fn pieces_of(source: &str) -> Vec<MarkdownPiece> {
    let mut splitter = Splitter::new();
    splitter.advance(source);
    splitter.finish(source);
    splitter.pieces_from(0).unwrap().to_vec()
}

/// Removes irrelevant differences: space at line ends, and the checkbox before a table, which the parser drops.
fn clean(text: &str) -> String {
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    text.replace("task true\ntable", "table").replace("task false\ntable", "table")
}

#[track_caller]
fn check(source: &str) {
    let pieces = pieces_of(source);
    assert_eq!(clean(&joined(&pieces)), clean(&whole(source)), "{source:?}");
}

#[test]
fn blocks_below_lists_and_quotes_nest_as_in_commonmark() {
    for source in [
        "1. one\n  ```\n  a\n\n  b\n  ```\n",
        "10. ten\n   ```\n   a\n\n   b\n   ```\n",
        "- a\nlazy\n",
        "> a\nlazy\n",
        "- a\n<div>\nx\n\n",
        "> a\n<b>x\n",
        "-\n\n  a\n",
        "-\n  a\n-\n\n- b\n",
        "| a |\n|---|\n- b\n",
        "| a |\n|---|\n2. b\n",
        "> a\n===\n",
        "> a\n--\n",
        "- a\n\n    b\n",
        "- [ ] a\n- [x]\n- [x] # b\n",
        "text\n| a | b |\n|---|---|\n| c | d |\n",
        "[a]: /b\n===\nfoo\n",
        "> ```\n> a\nb\n",
        "- [ ] text\n  \t-\n",
        "- [ ] [a]: /u\n  ---\n",
        "- [ ] a\n  b\n",
        "- a\n  > b\n  > - c\n  >\n  >   d\n",
    ] {
        check(source);
    }
}

/// Parts of lines, which combine to documents with every construct in every position.
const PARTS: [&str; 62] = [
    "\n",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "  ",
    " ",
    "    ",
    "\t",
    "> ",
    ">",
    "- ",
    "* ",
    "1. ",
    "10) ",
    "2. ",
    "-",
    "-\n",
    "- [ ] ",
    "- [x] ",
    "a",
    "b c",
    "text\n",
    "text\n",
    "```\n",
    "```rust\n",
    "~~~\n",
    "````\n",
    "  ```\n",
    "   ~~~\n",
    "# h\n",
    "## h\n",
    "===\n",
    "---\n",
    "***\n",
    "--\n",
    "<div>\n",
    "</div>\n",
    "<b>",
    "<!-- c\n",
    "-->\n",
    "<?x\n",
    "| a | b |\n",
    "|---|---|\n",
    "|a|\n|-|\n",
    "|x|y|\n",
    "| c\n",
    "a|b\n-|-\n",
    "---|---\n",
    "*e*",
    "`c`",
    "[n1]: /u\n",
    "\n> ",
    "\n- ",
    "\n  ",
    "\n    ",
    "\n   ",
    "\n1. ",
    "\n> > ",
    "\n  - ",
    "\n> - ",
    "\\\n",
];

fn documents() -> impl Strategy<Value = String> {
    prop::collection::vec(0..PARTS.len(), 1..14).prop_map(|parts| {
        let mut document = parts.iter().map(|part| PARTS[*part]).collect::<String>() + "\n";
        // The parser ignores that a tab before a quote marker is too wide.
        while document.contains("\t>") {
            document = document.replace("\t>", ">");
        }
        document
    })
}

/// Returns whether a table header lacks container markers that the line below has. The parser, surprisingly, moves it out of its list.
fn has_lazy_head(source: &str) -> bool {
    let columns = |c: char| if c == '\t' { 4 } else { 1 };
    let is_marker = |c: &char| matches!(c, '>' | ' ' | '\t');
    let indent = |line: &str| line.chars().take_while(is_marker).map(columns).sum::<usize>();
    let lines: Vec<&str> = source.lines().collect();
    let is_lazy = |pair: &[&str]| pair[0].trim_start().starts_with('|') && indent(pair[0]) < indent(pair[1]);
    lines.windows(2).any(|pair| is_lazy(pair) && pair[1].contains("-"))
}

/// Returns whether a table header is the text of a task and looks like another block, which the splitter treats as a paragraph.
fn has_odd_task(source: &str) -> bool {
    let is_odd =
        |text: &str| text.contains('|') && !text.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '|');
    source.lines().filter_map(|line| line.split_once("] ")).any(|(_, text)| is_odd(text))
}

/// Returns whether there is a tab in a table, whose columns the parser does not count after an item marker.
fn has_tab_in_table(source: &str) -> bool {
    source.lines().any(|line| line.contains('\t') && line.contains('|'))
}

/// `PROPTEST_CASES` can raise the number of cases.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(2_000), max_shrink_iters: 20_000, max_global_rejects: u32::MAX, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pieces_have_the_structure_of_the_whole(source in documents()) {
        prop_assume!(!has_lazy_head(&source) && !has_odd_task(&source) && !has_tab_in_table(&source));
        let pieces = pieces_of(&source);
        prop_assert_eq!(clean(&joined(&pieces)), clean(&whole(&source)), "{:?}", source);
    }

    #[test]
    fn rows_do_not_depend_on_how_a_text_is_split(
        source in documents(),
        cuts in prop::collection::vec(0.0f64..1.0, 0..6),
        columns in 1usize..50,
    ) {
        check_cuts(&source, &cuts, columns)?;
    }
}

/// Parts that do not fit into one piece.
fn long_documents() -> impl Strategy<Value = String> {
    let part = (0..PARTS.len() + 6).prop_map(|part| match PARTS.get(part) {
        Some(part) => (*part).to_owned(),
        None => match part - PARTS.len() {
            0 => "some *words* and `code` ".repeat(900),
            1 => "日本".repeat(1_500),
            2 => "|c|a longer cell|\n".repeat(800),
            3 => "> - [ ] quoted\n".repeat(600),
            4 => "x".repeat(8_191),
            _ => "a line\n".repeat(1_800),
        },
    });
    prop::collection::vec(part, 1..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 50, ..config() })]

    #[test]
    fn rows_do_not_depend_on_how_a_long_text_is_split(
        source in long_documents(),
        cuts in prop::collection::vec(0.0f64..1.0, 0..6),
        columns in 1usize..50,
    ) {
        check_cuts(&source, &cuts, columns)?;
    }
}

/// Splits a text at fractions of its length.
fn check_cuts(source: &str, cuts: &[f64], columns: usize) -> Result<(), TestCaseError> {
    let theme = Palette::builtin("dark", ColorDepth::True);
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| source.floor_char_boundary((source.len() as f64 * cut) as usize)).collect();
    cuts.sort_unstable();
    let mut markdown = Markdown::new(MarkdownOptions::default());
    let mut from = 0;
    let mut stable: Vec<Row> = Vec::new();
    for cut in cuts {
        markdown.push(&source[from..cut]);
        from = cut;
        let n = markdown.n_stable_rows(columns, &theme);
        let rows = markdown.rows(columns, &theme);
        prop_assert_eq!(&rows[..stable.len()], &stable[..], "{:?}", source);
        stable = rows[..n].to_vec();
    }
    markdown.push(&source[from..]);
    markdown.finish();
    let rows = markdown.rows(columns, &theme);
    prop_assert_eq!(&rows[..stable.len()], &stable[..], "{:?}", source);
    prop_assert!(rows.iter().all(|row| row_width(row) <= columns), "{:?} at {}", source, columns);
    prop_assert_eq!(rows, Markdown::of(source, MarkdownOptions::default()).rows(columns, &theme), "{:?}", source);
    Ok(())
}

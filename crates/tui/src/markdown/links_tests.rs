//! Tests of clickable links.

use super::*;
use crate::hyperlink::Hyperlinks;
use crate::terminal::{Cursor, Fullscreen, InlineScreen, Size};
use crate::theme::ColorDepth;

/// Returns the rows of a text, with links if possible.
fn rows(text: &str, columns: usize, links: Option<&Hyperlinks>) -> Vec<Row> {
    let theme = Palette::builtin("dark", ColorDepth::None).with_links(links.cloned());
    Markdown::of(text, MarkdownOptions::default()).rows(columns, &theme)
}

/// Returns the bytes sent to a terminal, with `^` for an escape.
fn sent(text: &str, columns: u16) -> String {
    let links = Hyperlinks::default();
    let rows = rows(text, usize::from(columns), Some(&links));
    let mut screen = Fullscreen::new(Size::new(columns, 50));
    screen.set_links(links);
    String::from_utf8(screen.draw(&rows, None)).unwrap()
}

/// Returns the links sent to a terminal, with their texts.
fn links_in(text: &str) -> Vec<(String, String)> {
    let sent = sent(text, 70);
    let mut found: Vec<(String, String)> = Vec::new();
    for part in sent.split("\u{1b}]8;").skip(1) {
        let (link, rest) = part.split_once("\u{1b}\\").unwrap();
        let url = link.split_once(';').unwrap().1;
        if !url.is_empty() {
            let mut terminal = vt100::Parser::new(2.try_into().unwrap(), 200.try_into().unwrap(), 0);
            terminal.process(rest.split("\u{1b}]8;").next().unwrap().as_bytes());
            found.push((terminal.screen().contents(), url.to_owned()));
        }
    }
    found
}

#[test]
fn links_lead_to_their_urls_and_misleading_ones_show_them() {
    for (text, shown, expected) in [
        ("see [the docs](https://a.b/c)", "see the docs", &[("the docs", "https://a.b/c")][..]),
        ("see https://a.b/c, yes", "see https://a.b/c, yes", &[("https://a.b/c", "https://a.b/c")]),
        ("<me@a.b>", "me@a.b", &[("me@a.b", "mailto:me@a.b")]),
        ("[a](https://x.y) [b](https://z)", "a b", &[("a", "https://x.y"), ("b", "https://z")]),
        ("[**bold** text](https://x.y)", "bold text", &[("bold text", "https://x.y")]),
        ("![](https://x.y/z.png)", "(https://x.y/z.png)", &[("(https://x.y/z.png)", "https://x.y/z.png")]),
        (
            "[bank.com](https://evil.org)",
            "bank.com (https://evil.org)",
            &[("bank.com (https://evil.org)", "https://evil.org")],
        ),
        ("[file](src/main.rs)", "file (src/main.rs)", &[]),
        ("[run](javascript:alert(1))", "run (javascript:alert(1))", &[]),
    ] {
        let links = Hyperlinks::default();
        assert_eq!(rows(text, 70, Some(&links)).iter().map(ToString::to_string).collect::<String>(), shown, "{text}");
        let found = links_in(text);
        let found: Vec<_> = found.iter().map(|(text, url)| (text.trim_end(), url.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn links_whose_text_is_their_url_do_not_affect_widths_and_breaks() {
    let text =
        "A text with https://example.com/a/rather/long/path and https://b.c/日本 in it, and <me@example.com> as well. "
            .repeat(5);
    for columns in 5..60 {
        let links = Hyperlinks::default();
        let plain = |links| rows(&text, columns, links).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(plain(Some(&links)), plain(None));
    }
    // A link that continues in the next row keeps its number, and every row ends it.
    let sent = sent("[one two three](https://a.b)", 6);
    assert_eq!(sent.matches("\u{1b}]8;id=0;https://a.b\u{1b}\\").count(), 3, "{sent:?}");
    assert_eq!(sent.matches("\u{1b}]8;;\u{1b}\\").count(), 3, "{sent:?}");
}

/// URLs that try to inject control sequences.
fn hostile() -> Vec<String> {
    let pieces = [
        "\u{1b}]0;owned\u{7}",
        "\u{1b}\\",
        "\u{1b}[2J",
        "\u{7}",
        "\u{9c}\u{9b}31m",
        "\u{9d}52;c;eA==\u{9c}",
        "\u{0}",
        "\r\n",
        "\u{7f}",
        "&#27;]52;c;eA==&#7;",
        "&#x9b;31m",
        "&#155;2J",
        "%1b%5d0;x%07",
        ";;id=x:y",
        "\u{202e}gpj.exe",
        "\u{200b}\u{feff}",
        "日本\u{85}",
    ];
    let make = |piece: &&str| {
        [
            format!("https://a.b/{piece}"),
            format!("https://a.b/?q={piece}&r=#{piece}"),
            format!("mailto:{piece}@a.b"),
            format!("{piece}https://a.b/"),
        ]
    };
    pieces.iter().flat_map(make).collect()
}

#[test]
fn no_url_sends_a_control_character_to_the_terminal() {
    let hostile = hostile();
    assert!(hostile.len() >= 50, "{}", hostile.len());
    for url in &hostile {
        for text in [
            format!("[text](<{url}>)"),
            format!("[text]({url})"),
            format!("<{url}>"),
            url.clone(),
            format!("[a]\n\n[a]: {url}\n"),
        ] {
            let links = Hyperlinks::default();
            let rows = rows(&text, 40, Some(&links));
            let mut fullscreen = Fullscreen::new(Size::new(40, 20));
            fullscreen.set_links(links.clone());
            let mut inline = InlineScreen::new(Size::new(40, 20), true);
            inline.set_links(links);
            let cursor = Cursor { row: 0, column: 0, visible: true };
            for bytes in [fullscreen.draw(&rows, None), inline.draw(&rows, &[Row::from("x")], cursor)] {
                let sent = String::from_utf8(bytes).unwrap();
                assert!(!sent.contains("]52;") || !sent.contains("\u{1b}]52;"), "{url:?} {sent:?}");
                for part in sent.split("\u{1b}]8;").skip(1) {
                    let (link, _) = part.split_once("\u{1b}\\").unwrap();
                    assert!(link.bytes().all(|byte| (b'!'..=b'~').contains(&byte)), "{url:?} {link:?}");
                }
                // Apart from the links and our own movements and styles, there is only text.
                let mut rest = sent.replace("\r\n", "").replace('\r', "");
                while let Some((before, after)) = rest.split_once("\u{1b}]8;") {
                    rest = format!("{before}{}", after.split_once("\u{1b}\\").unwrap().1);
                }
                let is_own = |c: &str| {
                    c.starts_with('[') && c[1..].starts_with(|c: char| c.is_ascii_digit() || "?mHKJ".contains(c))
                };
                assert!(rest.split('\u{1b}').skip(1).all(is_own), "{url:?} {rest:?}");
                assert!(!rest.replace('\u{1b}', "").contains(char::is_control), "{url:?} {rest:?}");
            }
        }
    }
}

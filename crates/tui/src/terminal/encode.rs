//! Encodes rows as bytes for a terminal.

use std::io::Write as _;

use ratatui_core::style::{Color, Modifier, Style};

use crate::Row;
use crate::hyperlink::Hyperlinks;
use crate::text::{is_obeyed, row_width};

/// Attributes and the codes that enable them.
const ATTRIBUTES: [(Modifier, u8); 7] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

/// Ends a link.
const LINK_END: &[u8] = b"\x1b]8;;\x1b\\";

/// Writes a row from the first column on, replacing the line. Afterwards attributes are reset and links ended.
pub(super) fn row(out: &mut Vec<u8>, row: &Row, width: usize, links: Option<&Hyperlinks>) {
    // Clear the whole line, not just the rest of it afterwards: tmux considers a line as long as it has ever been since it was last cleared
    // completely, and wraps its blank end when the window gets narrower.
    if row_width(row) < width {
        out.extend(b"\x1b[2K");
    }
    let mut current = Style::new();
    let mut open = None;
    for span in &row.spans {
        let style = row.style.patch(span.style);
        let link = links.and_then(|links| links.of(style));
        if link != open {
            // The number tells the terminal which parts of a link belong together if it continues in the next row.
            match &link {
                Some((number, url)) => write_to(out, format_args!("\x1b]8;id={number};{url}\x1b\\")),
                None => out.extend(LINK_END),
            }
            open = link;
        }
        let placement = style.underline_color.filter(|color| matches!(color, Color::Indexed(_)));
        let style = Style { underline_color: placement, ..style };
        if style != current {
            set_style(out, style);
            current = style;
        }
        // Layouts contain none of these; a line feed or an escape would corrupt the screen.
        out.extend(span.content.chars().filter(|c| !is_obeyed(*c)).collect::<String>().bytes());
    }
    if open.is_some() {
        out.extend(LINK_END);
    }
    if current != Style::new() {
        out.extend(b"\x1b[0m");
    }
}

/// Sets the attributes to those of a style.
fn set_style(out: &mut Vec<u8>, style: Style) {
    out.extend(b"\x1b[0");
    for (attribute, code) in ATTRIBUTES {
        if style.add_modifier.contains(attribute) {
            write_to(out, format_args!(";{code}"));
        }
    }
    for (color, base) in [(style.fg, 30), (style.bg, 40)] {
        match color {
            None | Some(Color::Reset) => {}
            Some(Color::Rgb(red, green, blue)) => write_to(out, format_args!(";{};2;{red};{green};{blue}", base + 8)),
            Some(Color::Indexed(index)) => write_to(out, format_args!(";{};5;{index}", base + 8)),
            Some(named) => {
                if let Some(index) = ansi_index(named) {
                    let (base, index) = if index < 8 { (base, index) } else { (base + 60, index - 8) };
                    write_to(out, format_args!(";{}", base + index));
                }
            }
        }
    }
    // Encodes the placement of an image; written with colons, so that a terminal that does not support it skips it entirely.
    if let Some(Color::Indexed(index)) = style.underline_color {
        write_to(out, format_args!(";58:5:{index}"));
    }
    out.push(b'm');
}

fn ansi_index(color: Color) -> Option<u8> {
    const NAMED: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    NAMED.iter().zip(0..).find(|(named, _)| **named == color).map(|(_, index)| index)
}

/// Appends formatted text.
pub(super) fn write_to(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    out.write_fmt(text).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use ratatui_core::text::Span;

    use super::*;

    #[test]
    fn styles_are_set_on_change_and_reset_at_the_end() {
        let mut out = Vec::new();
        let bold = Style::new().add_modifier(Modifier::BOLD).fg(Color::Rgb(1, 2, 3));
        let line = Row::from(vec![Span::raw("a"), Span::styled("b", bold), Span::styled("c", bold), Span::raw("d")]);
        row(&mut out, &line, 10, None);
        assert_eq!(String::from_utf8(out).unwrap(), "\x1b[2Ka\x1b[0;1;38;2;1;2;3mbc\x1b[0md");
    }

    #[test]
    fn a_full_row_needs_no_clearing_and_control_characters_are_dropped() {
        let mut out = Vec::new();
        row(&mut out, &Row::from("a\u{1b}[2Jb\u{9b}\u{202e}"), 5, None);
        assert_eq!(String::from_utf8(out).unwrap(), "a[2Jb");
    }

    #[test]
    fn links_begin_and_end_with_their_text() {
        let links = Hyperlinks::default();
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let link = |url: &str| links.link(url, Style::new()).unwrap();
        let line = Row::from(vec![
            Span::raw("a"),
            Span::styled("b", link("https://x.y/")),
            Span::styled("c", bold.patch(link("https://x.y/"))),
            Span::styled("d", link("https://z/")),
            Span::raw("e"),
        ]);
        let bytes = |links: Option<&Hyperlinks>| {
            let mut out = Vec::new();
            row(&mut out, &line, 5, links);
            String::from_utf8(out).unwrap().replace('\u{1b}', "^")
        };
        assert_eq!(bytes(Some(&links)), "a^]8;id=0;https://x.y/^\\b^[0;1mc^]8;id=1;https://z/^\\^[0md^]8;;^\\e");
        assert_eq!(bytes(None), "ab^[0;1mc^[0mde");
    }
}

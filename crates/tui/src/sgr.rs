//! Text with colours and attributes in SGR sequences, from extensions. No other control sequence remains.

use std::collections::BTreeMap;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;

use crate::Row;
use crate::text::one_line;
use crate::theme::Palette;

/// Attributes and the codes that switch them on.
const ATTRIBUTES: [(Modifier, u8); 6] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

/// Returns a line as a row.
pub(crate) fn row(line: &str, theme: &Palette) -> Row {
    let mut spans = Vec::new();
    let mut style = Style::new();
    let mut push = |text: &str, style: Style| {
        let text = one_line(text);
        if !text.is_empty() {
            spans.push(Span::styled(text, style));
        }
    };
    let mut rest = line;
    let mut from = 0;
    while let Some(at) = rest[from..].find("\u{1b}[").map(|at| from + at) {
        let parameters = &rest[at + 2..];
        let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.filter(|end| parameters[*end..].starts_with('m')) {
            Some(end) => {
                push(&rest[..at], style);
                style = changed(style, &parameters[..end], theme);
                (rest, from) = (&parameters[end + 1..], 0);
            }
            // Removed with the text around it.
            None => from = at + 2,
        }
    }
    push(rest, style);
    Row::from(spans)
}

/// Returns a line as spans whose style is based on another one.
pub(crate) fn spans_on(base: Style, line: &str, theme: &Palette) -> impl Iterator<Item = Span<'static>> {
    row(line, theme).spans.into_iter().map(move |span| {
        let style = base.patch(span.style);
        span.style(style)
    })
}

/// Applies the parameters of a sequence. Unknown ones are ignored.
fn changed(mut style: Style, parameters: &str, theme: &Palette) -> Style {
    let mut codes = parameters.split(';').map(|code| code.parse::<u8>().unwrap_or(0));
    while let Some(code) = codes.next() {
        style = match code {
            0 => Style::new(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            27 => style.remove_modifier(Modifier::REVERSED),
            29 => style.remove_modifier(Modifier::CROSSED_OUT),
            30..=37 => colored(style, true, Some(Color::Indexed(code - 30)), theme),
            90..=97 => colored(style, true, Some(Color::Indexed(code - 82)), theme),
            40..=47 => colored(style, false, Some(Color::Indexed(code - 40)), theme),
            100..=107 => colored(style, false, Some(Color::Indexed(code - 92)), theme),
            38 => colored(style, true, extended(&mut codes), theme),
            48 => colored(style, false, extended(&mut codes), theme),
            39 => Style { fg: None, ..style },
            49 => Style { bg: None, ..style },
            _ => style,
        };
    }
    style
}

/// Reads a colour of 256 or of 24 bits.
fn extended(codes: &mut impl Iterator<Item = u8>) -> Option<Color> {
    match codes.next()? {
        5 => Some(Color::Indexed(codes.next()?)),
        2 => Some(Color::Rgb(codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

fn colored(style: Style, is_foreground: bool, color: Option<Color>, theme: &Palette) -> Style {
    match color.and_then(|color| theme.shown(color)) {
        Some(color) if is_foreground => style.fg(color),
        Some(color) => style.bg(color),
        None => style,
    }
}

/// Returns a row as a line, which is the row again if it is passed to [`row`].
pub(crate) fn line(row: &Row) -> String {
    let mut line = String::new();
    for span in &row.spans {
        let style = row.style.patch(span.style);
        let attributes = ATTRIBUTES.iter().filter(|(attribute, _)| style.add_modifier.contains(*attribute));
        let mut codes: Vec<String> = attributes.map(|(_, code)| code.to_string()).collect();
        codes.extend(style.fg.and_then(|color| parameters(color, true)));
        codes.extend(style.bg.and_then(|color| parameters(color, false)));
        match codes.is_empty() {
            true => line.push_str(&span.content),
            false => line.push_str(&format!("\u{1b}[{}m{}\u{1b}[0m", codes.join(";"), span.content)),
        }
    }
    line
}

/// Returns the parameters for the colours of a theme, by their names in theme files.
pub(crate) fn colors(theme: &Palette, is_foreground: bool) -> BTreeMap<String, String> {
    let parameters = |(name, color): (&str, Color)| Some((name.to_owned(), parameters(color, is_foreground)?));
    theme.named_colors().filter_map(parameters).collect()
}

/// Returns the parameters of the sequence that selects a colour; `None`: it is the terminal's default.
fn parameters(color: Color, is_foreground: bool) -> Option<String> {
    let kind = if is_foreground { 38 } else { 48 };
    match color {
        Color::Indexed(index) => Some(format!("{kind};5;{index}")),
        Color::Rgb(red, green, blue) => Some(format!("{kind};2;{red};{green};{blue}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ColorDepth;

    fn shown(line: &str, depth: ColorDepth) -> Vec<(String, Style)> {
        let row = row(line, &Palette::builtin("dark", depth));
        row.spans.into_iter().map(|span| (span.content.into_owned(), span.style)).collect()
    }

    #[test]
    fn colours_and_attributes_are_kept() {
        let line = "a\u{1b}[1;38;2;1;2;3mb\u{1b}[22;48;5;9mc\u{1b}[39;49md\u{1b}[31me\u{1b}[m f";
        let text = |text: &str, style: Style| (text.to_owned(), style);
        let rgb = Style::new().fg(Color::Rgb(1, 2, 3));
        let not_bold = rgb.add_modifier(Modifier::BOLD).remove_modifier(Modifier::BOLD | Modifier::DIM);
        let expected = [
            text("a", Style::new()),
            text("b", rgb.add_modifier(Modifier::BOLD)),
            text("c", not_bold.bg(Color::Indexed(9))),
            text("d", Style { fg: None, bg: None, ..not_bold }),
            text("e", Style { fg: None, bg: None, ..not_bold }.fg(Color::Indexed(1))),
            text(" f", Style::new()),
        ];
        assert_eq!(shown(line, ColorDepth::True), expected);
        let plain = shown("\u{1b}[1;31mx", ColorDepth::None);
        assert_eq!(plain, [text("x", Style::new().add_modifier(Modifier::BOLD))]);
    }

    #[test]
    fn everything_else_is_removed() {
        for line in [
            "\u{1b}[2Jok",
            "o\u{1b}]52;c;ZXZpbA==\u{7}k",
            "o\u{1b}[1\u{1b}[0mk",
            "\u{1b}[38;2mok",
            "\u{1b}]0;\u{1b}[1mok",
            "ok\u{1b}[",
            "ok\u{1b}[1;",
            "\u{9b}2Jok",
            "\u{1b}P\u{1b}[0mok\u{1b}\\\u{7}",
            "\u{1b}[>4;1mok",
        ] {
            let all: String = shown(line, ColorDepth::True).into_iter().map(|(text, _)| text).collect();
            assert!(all.chars().all(|c| !c.is_control()), "{line:?}: {all:?}");
            assert!(all.contains("ok") || all.contains('k'), "{line:?}: {all:?}");
        }
        assert_eq!(shown("a\nb\tc", ColorDepth::True)[0].0, "a b c", "a line stays a line");
    }
}

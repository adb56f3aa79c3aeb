//! Sanitises untrusted text: nothing from a model, a tool or a file name reaches the terminal as a control sequence.

use std::borrow::Cow;

/// What is removed from a text besides control sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SanitizeMode {
    /// Prose of models and people: only characters that reorder text are removed.
    Prose,
    /// Tool output, file names, titles: invisible characters are shown as `�`.
    Output,
}

/// Returns whether terminals may act upon a character instead of showing it: control characters, and those that end lines or override the
/// direction of text.
pub(crate) fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Removes escape sequences and control characters other than line feed and tab; `\r\n` and `\r` become line feeds. Text that needs no
/// change is borrowed.
pub fn sanitize(text: &str, strictness: SanitizeMode) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | 0x20..0x7f)) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => clean.push(c),
            '\r' => {
                chars.next_if_eq(&'\n');
                clean.push('\n');
            }
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            _ if c.is_control() => {}
            '\u{2028}' | '\u{2029}' if strictness == SanitizeMode::Prose => clean.push('\n'),
            _ if is_obeyed(c) => {
                if strictness == SanitizeMode::Output {
                    clean.push('\u{fffd}');
                }
            }
            // Terminals differ in whether they show a soft hyphen.
            '\u{ad}' if strictness == SanitizeMode::Prose => {}
            // Flags of regions are a black flag and tags.
            '\u{e0000}'..='\u{e007f}' if clean.ends_with(is_flag_part) => clean.push(c),
            _ if is_invisible(c) && strictness == SanitizeMode::Output => clean.push('\u{fffd}'),
            _ => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// Sanitises a name, a title or another text that is shown on a single row: line feeds and tabs become spaces.
pub(crate) fn one_line(text: &str) -> String {
    sanitize(text, SanitizeMode::Output).replace(['\n', '\t'], " ")
}

/// Returns whether a character shows nothing, and changes how others are shown or read.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2060}'..='\u{2064}'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Returns whether a tag may follow this character.
fn is_flag_part(c: char) -> bool {
    matches!(c, '\u{1f3f4}' | '\u{e0020}'..='\u{e007e}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows an ESC.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_' | 'k') => {
            chars.next();
            skip_string(chars);
        }
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// Skips the parameters and the final byte of a control sequence.
fn skip_csi(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// Skips a string up to its terminator, or to the next control sequence. An unterminated string ends with its line, so that it hides no more
/// than that.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(&c) = chars.peek() {
        match c {
            '\n' | '\u{1b}' | '\u{80}'..='\u{9b}' | '\u{9d}'..='\u{9f}' => return,
            '\u{7}' | '\u{9c}' => {
                chars.next();
                return;
            }
            _ => {
                chars.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_removed_entirely() {
        for (text, clean) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{1b}]52;c;ZXZpbA==\u{7}b", "ab"),
            ("a\u{1b}]0;title\u{1b}\\b", "ab"),
            ("\u{9b}2Jx", "x"),
            ("\u{1b}P+q544e\u{1b}\\x", "x"),
            ("\u{1b}(0x", "x"),
            ("\u{1b}cx", "x"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("a\u{8}\u{0}b\u{7f}", "ab"),
            ("open \u{1b}]0;never\nnext", "open \nnext"),
            ("a\u{1b}]0;cut off\u{1b}]52;c;ZXZpbA==\u{7}b", "ab"),
            ("a\u{9d}0;cut off\u{9b}2Jb", "ab"),
            ("a\u{1b}Ptmux;\u{1b}\u{1b}]52;c;ZXZpbA==\u{7}b", "ab"),
            ("a\u{1b}kname\u{1b}\\b", "ab"),
            ("\u{1b}", ""),
            ("\u{1b}\u{1b}[2Jx", "x"),
        ] {
            assert_eq!(sanitize(text, SanitizeMode::Prose), clean, "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_are_only_shown_in_output() {
        assert_eq!(sanitize("a\u{202e}b\u{200b}", SanitizeMode::Output), "a\u{fffd}b\u{fffd}");
        assert_eq!(sanitize("a\u{202e}b\u{200b}", SanitizeMode::Prose), "ab\u{200b}");
        assert_eq!(sanitize("a\u{2028}b\u{ad}c", SanitizeMode::Prose), "a\nbc");
        assert_eq!(sanitize("a\u{2028}b\u{ad}c\u{61c}", SanitizeMode::Output), "a\u{fffd}b\u{fffd}c\u{fffd}");
        let england = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
        for (text, shown) in [(england, england), ("a\u{e0041}\u{e0042}", "a\u{fffd}\u{fffd}")] {
            assert_eq!(sanitize(text, SanitizeMode::Output), shown);
        }
    }
}

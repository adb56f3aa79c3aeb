//! Determines which block a line of Markdown begins, without its context.

use pulldown_cmark::{Event, Parser, Tag};

use super::cursor::LineCursor;
use super::options::EXTENSIONS;

/// Number of bytes examined: the kind of a longer line is clear from its beginning.
pub(super) const HEAD: usize = 512;

/// The beginning of a line.
pub(super) struct LineHead<'a> {
    /// Width of the space before the text, in columns.
    pub(super) indent: usize,
    /// The block it begins, if its indentation permits.
    pub(super) start: LineStart,
    /// The trimmed text.
    pub(super) text: &'a str,
    /// Whether the line is complete.
    is_whole: bool,
}

/// The block that a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineStart {
    Blank,
    Fence {
        mark: u8,
        len: usize,
    },
    Heading,
    Rule,
    Quote,
    /// A list item; `mark` distinguishes kinds of lists.
    Item {
        mark: u8,
        /// Length of the marker in bytes.
        len: usize,
        number: Option<u64>,
        /// Whether the list may interrupt a paragraph.
        interrupts: bool,
    },
    /// Possibly HTML.
    Tag,
    Text,
}

impl<'a> LineHead<'a> {
    /// Analyses the rest of a line; `is_whole`: whether the line is complete.
    pub(super) fn of(cursor: &LineCursor<'a>, is_whole: bool) -> Self {
        let text = cursor.rest().trim_matches([' ', '\t']);
        let start = if text.is_empty() && is_whole { LineStart::Blank } else { start(text, is_whole) };
        Self { indent: cursor.indent(), start, text, is_whole }
    }

    /// Returns whether it turns the paragraph above into a heading.
    pub(super) fn is_underline(&self) -> bool {
        let is_all = |mark: u8| self.text.bytes().all(|byte| byte == mark);
        self.is_whole && self.indent < 4 && !self.text.is_empty() && (is_all(b'=') || is_all(b'-'))
    }

    /// Returns whether it may turn the line above into a table.
    pub(super) fn may_be_delimiter_row(&self) -> bool {
        let is_of_row = |byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t');
        self.is_whole && self.indent < 4 && self.text.contains('-') && self.text.bytes().all(is_of_row)
    }

    /// Returns whether it begins a block that can interrupt a paragraph, ignoring its indentation. `is_lazy`: whether the line lacks
    /// markers of the paragraph's containers.
    pub(super) fn interrupts(&self, is_lazy: bool) -> bool {
        match self.start {
            LineStart::Fence { .. } | LineStart::Heading | LineStart::Rule | LineStart::Quote => true,
            LineStart::Item { interrupts, .. } => interrupts || is_lazy,
            LineStart::Tag => self.html(true).is_some(),
            LineStart::Blank | LineStart::Text => false,
        }
    }

    /// Returns whether it closes a code block opened by `len` times `mark`.
    pub(super) fn closes_fence(&self, mark: u8, len: usize) -> bool {
        self.is_whole && self.indent < 4 && self.text.len() >= len && self.text.bytes().all(|byte| byte == mark)
    }

    /// Returns what ends the HTML block that it begins, if any; only some kinds can interrupt a paragraph.
    pub(super) fn html(&self, in_paragraph: bool) -> Option<HtmlEnd> {
        if self.start != LineStart::Tag {
            return None;
        }
        let lower = self.text.to_lowercase();
        let name_end = lower[1..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(lower.len(), |at| at + 1);
        match (&lower[1..name_end], &lower[1..]) {
            ("script" | "pre" | "style" | "textarea", _) => Some(HtmlEnd::Tag),
            (_, text) if text.starts_with("!--") => Some(HtmlEnd::Comment),
            (_, text) if text.starts_with("![cdata[") => Some(HtmlEnd::CData),
            (_, text) if text.starts_with('?') => Some(HtmlEnd::Instruction),
            (_, text) if text.starts_with('!') => Some(HtmlEnd::Declaration),
            _ => {
                // Only certain tags count; the parser has the list.
                let text = format!("{}{}", if in_paragraph { "x\n" } else { "" }, self.text);
                let is_html = Parser::new_ext(&text, EXTENSIONS).any(|event| event == Event::Start(Tag::HtmlBlock));
                is_html.then_some(HtmlEnd::Blank)
            }
        }
    }
}

/// How an HTML block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// At a blank line.
    Blank,
    /// At the end of an element with raw content.
    Tag,
    Comment,
    Instruction,
    Declaration,
    CData,
}

impl HtmlEnd {
    /// Returns whether the line contains it.
    pub(super) fn is_in(self, line: &str) -> bool {
        match self {
            Self::Blank => false,
            Self::Tag => {
                let line = line.to_lowercase();
                ["</script>", "</pre>", "</style>", "</textarea>"].iter().any(|end| line.contains(end))
            }
            Self::Comment => line.contains("-->"),
            Self::Instruction => line.contains("?>"),
            Self::Declaration => line.contains('>'),
            Self::CData => line.contains("]]>"),
        }
    }
}

fn start(text: &str, is_whole: bool) -> LineStart {
    let bytes = text.as_bytes();
    let n_same = bytes.iter().take_while(|byte| Some(*byte) == bytes.first()).count();
    let after = |at: usize| matches!(bytes.get(at), None | Some(b' ' | b'\t'));
    match bytes.first() {
        Some(b'#') if n_same <= 6 && after(n_same) => LineStart::Heading,
        Some(b'>') => LineStart::Quote,
        Some(b'<') => LineStart::Tag,
        Some(b'`') if n_same >= 3 && !bytes[n_same..].contains(&b'`') => LineStart::Fence { mark: b'`', len: n_same },
        Some(b'~') if n_same >= 3 => LineStart::Fence { mark: b'~', len: n_same },
        Some(mark @ (b'*' | b'-' | b'_')) if is_whole && is_rule(bytes, *mark) => LineStart::Rule,
        Some(mark @ (b'*' | b'-' | b'+')) if after(1) => {
            LineStart::Item { mark: *mark, len: 1, number: None, interrupts: bytes.len() > 1 }
        }
        Some(b'0'..=b'9') => {
            let n_digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            match bytes.get(n_digits) {
                Some(mark @ (b'.' | b')')) if n_digits <= 9 && after(n_digits + 1) => LineStart::Item {
                    mark: *mark,
                    len: n_digits + 1,
                    number: text[..n_digits].parse().ok(),
                    interrupts: text[..n_digits].parse() == Ok(1) && bytes.len() > n_digits + 1,
                },
                _ => LineStart::Text,
            }
        }
        _ => LineStart::Text,
    }
}

fn is_rule(bytes: &[u8], mark: u8) -> bool {
    let n_marks = bytes.iter().filter(|byte| **byte == mark).count();
    n_marks >= 3 && bytes.iter().all(|byte| *byte == mark || matches!(byte, b' ' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_characters_determine_which_block_a_line_begins() {
        let item = |mark, number: Option<u64>| {
            let len = 1 + usize::from(number.is_some());
            LineStart::Item { mark, len, number, interrupts: number.is_none_or(|number| number == 1) }
        };
        for (line, indent, start) in [
            ("", 0, LineStart::Blank),
            (" \t", 4, LineStart::Blank),
            ("# a", 0, LineStart::Heading),
            ("#a", 0, LineStart::Text),
            ("####### a", 0, LineStart::Text),
            ("```rust", 0, LineStart::Fence { mark: b'`', len: 3 }),
            ("``` a`b", 0, LineStart::Text),
            ("  ~~~~ a`b", 2, LineStart::Fence { mark: b'~', len: 4 }),
            ("---", 0, LineStart::Rule),
            ("* * *", 0, LineStart::Rule),
            ("--", 0, LineStart::Text),
            ("- a", 0, item(b'-', None)),
            ("-", 0, LineStart::Item { mark: b'-', len: 1, number: None, interrupts: false }),
            ("\t* a", 4, item(b'*', None)),
            ("1. a", 0, item(b'.', Some(1))),
            ("2) a", 0, item(b')', Some(2))),
            ("2024 was", 0, LineStart::Text),
            ("> a", 0, LineStart::Quote),
            ("<b>", 0, LineStart::Tag),
            ("=", 0, LineStart::Text),
        ] {
            let head = LineHead::of(&LineCursor::new(line), true);
            assert_eq!((head.indent, head.start), (indent, start), "{line:?}");
        }
    }

    #[test]
    fn the_start_of_html_determines_how_it_ends() {
        for (line, in_paragraph, end) in [
            ("<div>", true, Some(HtmlEnd::Blank)),
            ("<x-y>", false, Some(HtmlEnd::Blank)),
            ("<x-y>", true, None),
            ("<https://a.b>", false, None),
            ("<!-- a", true, Some(HtmlEnd::Comment)),
            ("<Script src=x>", true, Some(HtmlEnd::Tag)),
            ("< 3", false, None),
            ("text", false, None),
        ] {
            assert_eq!(LineHead::of(&LineCursor::new(line), true).html(in_paragraph), end, "{line}");
        }
        assert!(HtmlEnd::Comment.is_in("b --> c") && !HtmlEnd::Blank.is_in("x"));
    }
}

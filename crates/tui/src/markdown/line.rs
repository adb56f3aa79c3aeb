//! What a line of Markdown begins, judged by itself.

use pulldown_cmark::{Event, Parser, Tag};

use super::cursor::LineCursor;
use super::options::EXTENSIONS;

/// Bytes of a line that are looked at: what a longer line is shows at its beginning.
pub(super) const HEAD: usize = 512;

/// The beginning of a line.
pub(super) struct LineHead<'a> {
    /// Columns of the space before the text.
    pub(super) indent: usize,
    /// What it begins, where the indentation allows it.
    pub(super) start: LineStart,
    /// The text without the space around it.
    pub(super) text: &'a str,
    /// All of the line is there.
    is_whole: bool,
}

/// What a line begins.
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
    /// An item of a list; `mark` tells kinds of lists apart.
    Item {
        mark: u8,
        /// Bytes of the marker.
        len: usize,
        number: Option<u64>,
        /// The list may begin within a paragraph.
        interrupts: bool,
    },
    /// Perhaps HTML.
    Tag,
    Text,
}

impl<'a> LineHead<'a> {
    /// The head of what follows in a line; `is_whole` says that all of the line is known.
    pub(super) fn of(cursor: &LineCursor<'a>, is_whole: bool) -> Self {
        let text = cursor.rest().trim_matches([' ', '\t']);
        let start = if text.is_empty() && is_whole { LineStart::Blank } else { start(text, is_whole) };
        Self { indent: cursor.indent(), start, text, is_whole }
    }

    /// Whether it makes a heading of the paragraph above.
    pub(super) fn is_underline(&self) -> bool {
        let is_all = |mark: u8| self.text.bytes().all(|byte| byte == mark);
        self.is_whole && self.indent < 4 && !self.text.is_empty() && (is_all(b'=') || is_all(b'-'))
    }

    /// Whether it may make a table of the line above.
    pub(super) fn may_be_delimiter_row(&self) -> bool {
        let is_of_row = |byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t');
        self.is_whole && self.indent < 4 && self.text.contains('-') && self.text.bytes().all(is_of_row)
    }

    /// Whether it begins a block that can begin right below a paragraph, leaving aside its indentation. `is_lazy` says that the line lacks markers
    /// of what the paragraph is in.
    pub(super) fn interrupts(&self, is_lazy: bool) -> bool {
        match self.start {
            LineStart::Fence { .. } | LineStart::Heading | LineStart::Rule | LineStart::Quote => true,
            LineStart::Item { interrupts, .. } => interrupts || is_lazy,
            LineStart::Tag => self.html(true).is_some(),
            LineStart::Blank | LineStart::Text => false,
        }
    }

    /// Whether it ends a code block that began with `len` times `mark`.
    pub(super) fn closes_fence(&self, mark: u8, len: usize) -> bool {
        self.is_whole && self.indent < 4 && self.text.len() >= len && self.text.bytes().all(|byte| byte == mark)
    }

    /// What ends the HTML block that it begins, when it begins one; within a paragraph, only some of them count.
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
                // There is a list of tags that count, which the parser knows.
                let text = format!("{}{}", if in_paragraph { "x\n" } else { "" }, self.text);
                let is_html = Parser::new_ext(&text, EXTENSIONS).any(|event| event == Event::Start(Tag::HtmlBlock));
                is_html.then_some(HtmlEnd::Blank)
            }
        }
    }
}

/// What ends an HTML block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlEnd {
    /// A blank line.
    Blank,
    /// The end of an element whose content is no HTML.
    Tag,
    Comment,
    Instruction,
    Declaration,
    CData,
}

impl HtmlEnd {
    /// Whether the line has it.
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
    fn lines_begin_what_their_first_characters_say() {
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
    fn html_ends_as_its_beginning_says() {
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

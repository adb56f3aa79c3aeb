//! Syntax highlighting: strings, comments, numbers, keywords, functions and types. One pass over the text, without a grammar.

use std::io;

use pinch_stdx::text::to_line_feeds;

use super::languages::{self, Language};
use super::out::PageWriter;

/// Maximum bytes of a piece of code to highlight, to keep the page responsive.
const MAX_COLOURED: usize = 256 * 1024;
/// Maximum bytes of highlighted tool code in total: about 150 000 elements, which browsers load in a second or two.
const MAX_ALL_COLOURED: usize = 2 * 1024 * 1024;

/// Returns the maximum length of highlighted code, given the lengths of all pieces. Short pieces come first, because they are read most.
pub(super) fn max_coloured(mut lengths: Vec<usize>) -> usize {
    lengths.sort_unstable();
    let mut sum = 0_usize;
    let too_long = lengths.into_iter().find(|length| {
        sum = sum.saturating_add(*length);
        sum > MAX_ALL_COLOURED
    });
    too_long.map_or(MAX_COLOURED, |length| (length - 1).min(MAX_COLOURED))
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Plain,
    Comment,
    String,
    Number,
    Keyword,
    Function,
    Type,
    Name,
    Added,
    Removed,
}

impl TokenKind {
    fn tag(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Comment => "<span class=\"sc\">",
            Self::String => "<span class=\"ss\">",
            Self::Number => "<span class=\"sn\">",
            Self::Keyword => "<span class=\"sk\">",
            Self::Function => "<span class=\"sf\">",
            Self::Type => "<span class=\"st\">",
            Self::Name => "<span class=\"sv\">",
            Self::Added => "<span class=\"da\">",
            Self::Removed => "<span class=\"dr\">",
        }
    }
}

/// Writes code in a language, or a diff. Code that is too long or in an unknown language stays plain.
pub(super) fn code(out: &mut PageWriter<'_>, language: &str, code: &str) -> io::Result<()> {
    if is_diff(language) {
        return diff(out, code);
    }
    // A CR LF must not be split between two tokens.
    let code = &*to_line_feeds(code);
    match languages::named(language).filter(|_| code.len() <= out.max_coloured) {
        None => out.text(code),
        Some(language) => pieces(language, code, &mut |kind, text| piece(out, kind, text)),
    }
}

/// Writes the lines of a diff, merging successive lines of the same kind.
pub(super) fn diff(out: &mut PageWriter<'_>, diff: &str) -> io::Result<()> {
    // A CR LF must not be split between two tokens.
    let diff = &*to_line_feeds(diff);
    let kind = |line: &str| match line.as_bytes() {
        [b'+', ..] => TokenKind::Added,
        [b'-', ..] => TokenKind::Removed,
        _ => TokenKind::Plain,
    };
    let (mut begin, mut end, mut before) = (0, 0, TokenKind::Plain);
    for line in diff.split_inclusive('\n') {
        let this = kind(line);
        if this != before {
            piece(out, before, &diff[begin..end])?;
            (begin, before) = (end, this);
        }
        end += line.len();
    }
    piece(out, before, &diff[begin..end])
}

/// Returns whether a language denotes diffs.
pub(super) fn is_diff(language: &str) -> bool {
    matches!(language, "diff" | "patch")
}

fn piece(out: &mut PageWriter<'_>, kind: TokenKind, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    out.html(kind.tag())?;
    out.text(text)?;
    if kind == TokenKind::Plain { Ok(()) } else { out.html("</span>") }
}

/// Calls back with all tokens of some code, in order.
fn pieces(language: &Language, code: &str, emit: &mut dyn FnMut(TokenKind, &str) -> io::Result<()>) -> io::Result<()> {
    // Start of the plain text not emitted yet.
    let mut plain = 0;
    let mut at = 0;
    while let Some(next) = code[at..].chars().next() {
        let (kind, len) = match special(language, code, at) {
            Some(found) => found,
            None if next.is_alphanumeric() || next == '_' || next == '$' => word(language, code, at),
            None => (TokenKind::Plain, next.len_utf8()),
        };
        if kind != TokenKind::Plain {
            emit(TokenKind::Plain, &code[plain..at])?;
            emit(kind, &code[at..at + len])?;
            plain = at + len;
        }
        at += len;
    }
    emit(TokenKind::Plain, &code[plain..])
}

/// Returns the kind and length of a comment, string or tag that starts here.
fn special(language: &Language, code: &str, at: usize) -> Option<(TokenKind, usize)> {
    let rest = &code[at..];
    if let Some((open, close)) = language.block_comment
        && let Some(inside) = rest.strip_prefix(open)
    {
        let len = inside.find(close).map_or(rest.len(), |end| open.len() + end + close.len());
        return Some((TokenKind::Comment, len));
    }
    // Single-character comment markers may also occur inside words: `a#b`, `$#`.
    let after_blank = || code[..at].chars().next_back().is_none_or(char::is_whitespace);
    if language.line_comments.iter().any(|mark| rest.starts_with(mark) && (mark.len() > 1 || after_blank())) {
        return Some((TokenKind::Comment, rest.find('\n').unwrap_or(rest.len())));
    }
    if let Some(quote) = language.quotes.iter().find(|quote| rest.starts_with(**quote)) {
        let len = string(rest, quote);
        let is_key = !language.is_markup && rest[len..].trim_start_matches([' ', '\t']).starts_with(':');
        return Some((if is_key { TokenKind::Name } else { TokenKind::String }, len));
    }
    if language.has_lifetimes && rest.starts_with('\'') {
        return Some((TokenKind::String, character(rest)?));
    }
    if language.is_markup && rest.starts_with('<') {
        let len = rest[1..].find(|c: char| !c.is_alphanumeric() && !"/!-_:.".contains(c)).unwrap_or(rest.len() - 1);
        return (len > 0).then_some((TokenKind::Keyword, 1 + len));
    }
    None
}

/// Returns the length of a string. Unless its quotes allow several lines, an unterminated string ends with its line.
fn string(text: &str, quote: &str) -> usize {
    let many_lines = quote.len() > 1 || quote == "`";
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(quote.chars().count()) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' if !many_lines => return at,
            _ if text[at..].starts_with(quote) => return at + quote.len(),
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character literal, or `None` if the quote starts a lifetime.
fn character(text: &str) -> Option<usize> {
    let inside = &text[1..];
    let mut chars = inside.char_indices();
    let (_, first) = chars.next()?;
    let (end, _) = if first == '\\' {
        // The character after the backslash is escaped, even if it is a quote.
        chars.nth(1)?;
        inside.char_indices().skip(2).take(10).find(|(_, c)| *c == '\'')?
    } else {
        chars.next().filter(|(_, c)| *c == '\'')?
    };
    Some(1 + end + 1)
}

/// Returns the kind and length of the word that starts here.
fn word(language: &Language, code: &str, at: usize) -> (TokenKind, usize) {
    let rest = &code[at..];
    let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
    let belongs = |c: char| {
        c.is_alphanumeric() || c == '_' || c == '$' || (c == '.' && is_number) || (c == '-' && language.has_keys)
    };
    let len = rest.find(|c: char| !belongs(c)).unwrap_or(rest.len());
    let (word, after) = rest.split_at(len);
    let is_keyword = |word: &str| language.keywords.split_ascii_whitespace().any(|keyword| keyword == word);
    let kind = if is_number {
        TokenKind::Number
    } else if is_keyword(word) || language.any_case && is_keyword(&word.to_ascii_lowercase()) {
        TokenKind::Keyword
    } else if word.starts_with('$') || language.has_keys && after.trim_start_matches(' ').starts_with([':', '=']) {
        TokenKind::Name
    } else if after.starts_with('(') || after.starts_with("!(") {
        TokenKind::Function
    } else if word.starts_with(char::is_uppercase) && word.len() > 1 && !language.is_markup {
        TokenKind::Type
    } else {
        TokenKind::Plain
    };
    (kind, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::written;
    use proptest::prelude::*;

    /// Checks the tokens that are not plain.
    #[track_caller]
    fn check(language: &str, code: &str, expected: &[(TokenKind, &str)]) {
        let mut found = Vec::new();
        let mut emit = |kind, text: &str| {
            found.push((kind, text.to_owned()));
            Ok(())
        };
        pieces(languages::named(language).unwrap(), code, &mut emit).unwrap();
        assert_eq!(found.iter().map(|(_, text)| text.as_str()).collect::<String>(), code);
        found.retain(|(kind, _)| *kind != TokenKind::Plain);
        let found: Vec<(TokenKind, &str)> = found.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn code_is_split_into_tokens() {
        use TokenKind::{Comment, Function, Keyword, Name, Number, String, Type};
        check(
            "rs",
            "let x: &'a Foo = f('\\'', '\"', \"a\\\"b\"); // 1\n1.5e3",
            &[
                (Keyword, "let"),
                (Type, "Foo"),
                (Function, "f"),
                (String, "'\\''"),
                (String, "'\"'"),
                (String, "\"a\\\"b\""),
                (Comment, "// 1"),
                (Number, "1.5e3"),
            ],
        );
        check(
            "sh",
            "echo $HOME#x 'it' # done",
            &[(Keyword, "echo"), (Name, "$HOME"), (String, "'it'"), (Comment, "# done")],
        );
        check(
            "json",
            "{\"a\": \"b\", \"c\" : null}",
            &[(Name, "\"a\""), (String, "\"b\""), (Name, "\"c\""), (Keyword, "null")],
        );
        check("py", "'''a\nb''' 'open\nNone", &[(String, "'''a\nb'''"), (String, "'open"), (Keyword, "None")]);
        check(
            "html",
            "<a href=\"x\">T</a><!-- c",
            &[(Keyword, "<a"), (String, "\"x\""), (Keyword, "</a"), (Comment, "<!-- c")],
        );
        check("yaml", "a-b: yes # c", &[(Name, "a-b"), (Keyword, "yes"), (Comment, "# c")]);
        check("sql", "SELECT a FROM t -- x", &[(Keyword, "SELECT"), (Keyword, "FROM"), (Comment, "-- x")]);
    }

    #[test]
    fn short_pieces_are_highlighted_first() {
        let all = MAX_ALL_COLOURED;
        assert_eq!(max_coloured(vec![]), MAX_COLOURED);
        assert_eq!(max_coloured(vec![10; all / 10]), MAX_COLOURED);
        assert_eq!(max_coloured(vec![all]), MAX_COLOURED);
        assert_eq!(max_coloured([vec![1000; all / 1000], vec![10; 100]].concat()), 999);
        assert_eq!(max_coloured([vec![2000], vec![10; all / 10]].concat()), 1999);
        assert_eq!(max_coloured(vec![usize::MAX; 3]), MAX_COLOURED);
        assert_eq!(written(|out| code(out, "rs", &"fn ".repeat(333))).matches("<span").count(), 333);
        assert_eq!(written(|out| code(out, "rs", &"fn ".repeat(334))).matches("<span").count(), 0);
    }

    #[test]
    fn diff_lines_are_marked() {
        assert_eq!(
            written(|out| code(out, "diff", "+<a>\n+\n-b\r\n c\n d\n-")),
            "<span class=\"da\">+&lt;a&gt;\n+\n</span><span class=\"dr\">-b\n</span> c\n d\n<span class=\"dr\">-</span>"
        );
    }

    proptest! {
        #[test]
        fn highlighting_loses_no_characters(
            language in "rs|js|py|sh|html|json|yaml|sql|lua|hs",
            code in "(\r\n|[a-zA-Z0-9\"'`\\\\/*#<>!=:$. \n-é😀]){0,60}",
        ) {
            let page = written(|out| super::code(out, &language, &code));
            let mut bare = String::new();
            let mut is_tag = false;
            for c in page.chars() {
                match c {
                    '<' => is_tag = true,
                    '>' => is_tag = false,
                    c if !is_tag => bare.push(c),
                    _ => {}
                }
            }
            prop_assert_eq!(bare, written(|out| out.text(&code)));
        }
    }
}

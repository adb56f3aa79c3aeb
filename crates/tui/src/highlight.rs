//! Syntax highlighting, line by line.
//!
//! With the feature `highlight`, the grammars of syntect classify words; colours always come from the theme. Without it, the same calls
//! return
//! plain text, so that callers need no conditional code.
//!
//! ```
//! use pinch_tui::highlight::{Highlighter, CodeLanguage};
//! use pinch_tui::theme::{ColorDepth, Palette};
//!
//! let theme = Palette::builtin("dark", ColorDepth::True);
//! let mut highlighter = Highlighter::new(CodeLanguage::named("rust"));
//! let spans = highlighter.line("let x = 1; // one", &theme);
//! assert_eq!(spans.iter().map(|span| &*span.content).collect::<String>(), "let x = 1; // one");
//! ```

use ratatui_core::text::Span;

use crate::theme::{ColorRole, Palette};

mod names;
#[cfg(feature = "highlight")]
mod grammar;
#[cfg(not(feature = "highlight"))]
mod plain;

#[cfg(feature = "highlight")]
use grammar::{Grammar, GrammarState};
#[cfg(not(feature = "highlight"))]
use plain::{NoGrammar as Grammar, NoLineState as GrammarState};

/// Maximum length of a highlighted line, in characters: highlighting longer ones is useless, and grammars may be slow.
pub const MAX_LINE_CHARS: usize = 2000;

/// Number of bytes of a text that are highlighted; the rest has a single colour. A grammar takes about 100 µs per line, and nobody reads
/// the end of a text of thousands of lines.
pub const MAX_BYTES: usize = 128 * 1024;

/// A language with a known grammar.
#[derive(Clone, Copy, Debug)]
pub struct CodeLanguage(Grammar);

impl CodeLanguage {
    /// Returns the language with this name or file extension, as used in code fences: `rust`, `rs`, `Python`. Of `rust,ignore` or
    /// `{.python}`, only the name is used.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim_start_matches(['{', '.', ' ']);
        let end = name.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '{' | '}' | ':'));
        let name = name[..end.unwrap_or(name.len())].to_lowercase();
        if name.is_empty() { None } else { Grammar::named(names::grammar_name(&name)).map(Self) }
    }

    /// Returns the language of a file: by the name or extension of its path, else by the interpreter in its first line.
    pub fn of_file(path: &str, first_line: Option<&str>) -> Option<Self> {
        let by_path = names::name_of_path(path).and_then(|name| Self::named(&name));
        by_path.or_else(|| Self::named(names::interpreter(first_line?)?))
    }
}

/// Highlights the lines of a text, in order.
#[derive(Clone, Debug)]
pub struct Highlighter {
    state: Option<GrammarState>,
    /// Number of bytes left to highlight.
    left: usize,
}

impl Highlighter {
    /// Starts at the first line of a text. Without a language every line has the colour of code.
    pub fn new(language: Option<CodeLanguage>) -> Self {
        Self { state: language.map(|language| GrammarState::new(language.0)), left: MAX_BYTES }
    }

    /// Highlights the next line, given without its line feed, and returns its spans. Lines longer than [`MAX_LINE_CHARS`] have a single
    /// colour and do not affect later lines; lines after [`MAX_BYTES`] also have a single colour.
    pub fn line(&mut self, line: &str, theme: &Palette) -> Vec<Span<'static>> {
        let is_short = line.len() <= MAX_LINE_CHARS || line.chars().count() <= MAX_LINE_CHARS;
        self.left = self.left.saturating_sub(line.len());
        let has_colors = is_short && self.left > 0;
        let pieces = self.state.as_mut().filter(|_| has_colors).and_then(|state| state.line(line));
        let pieces = pieces.unwrap_or_else(|| vec![(ColorRole::MdCodeBlock, line.to_owned())]);
        pieces.into_iter().map(|(token, text)| Span::styled(text, theme.fg(token))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ColorDepth;

    /// Checks the highlighted spans of a text and their roles.
    #[cfg(feature = "highlight")]
    #[track_caller]
    fn check(language: &str, text: &str, expected: &[(ColorRole, &str)]) {
        let mut state = GrammarState::new(CodeLanguage::named(language).unwrap().0);
        let pieces: Vec<(ColorRole, String)> = text.lines().flat_map(|line| state.line(line).unwrap()).collect();
        let shown: Vec<(ColorRole, &str)> = pieces
            .iter()
            .map(|(token, text)| (*token, text.trim()))
            .filter(|(token, text)| *token != ColorRole::Text && !text.is_empty())
            .collect();
        assert_eq!(shown, expected);
    }

    #[cfg(feature = "highlight")]
    #[test]
    fn words_have_the_colour_role_of_their_scope() {
        use ColorRole::*;
        check(
            "rust",
            "fn one() -> u8 { 1 } // \"1\"",
            &[
                (SyntaxKeyword, "fn"),
                (SyntaxFunction, "one"),
                (SyntaxPunctuation, "() ->"),
                (SyntaxKeyword, "u8"),
                (SyntaxPunctuation, "{"),
                (SyntaxNumber, "1"),
                (SyntaxPunctuation, "}"),
                (SyntaxComment, "// \"1\""),
            ],
        );
        check(
            "py",
            "class A(B): x = \"a\\n\"",
            &[
                (SyntaxKeyword, "class"),
                (SyntaxType, "A"),
                (SyntaxPunctuation, "("),
                (SyntaxType, "B"),
                (SyntaxPunctuation, "):"),
                (SyntaxOperator, "="),
                (SyntaxString, "\"a\\n\""),
            ],
        );
        check("diff", "+a\n-b", &[(ToolDiffAdded, "+a"), (ToolDiffRemoved, "-b")]);
    }

    #[cfg(feature = "highlight")]
    #[test]
    fn the_end_of_a_very_long_text_has_one_colour() {
        let theme = Palette::builtin("dark", ColorDepth::True);
        let mut highlighter = Highlighter::new(CodeLanguage::named("rust"));
        let line = "let x = 1;";
        let n_coloured = (0..MAX_BYTES).take_while(|_| highlighter.line(line, &theme).len() > 1).count();
        assert_eq!(n_coloured, MAX_BYTES / line.len());
        assert_eq!(highlighter.line(line, &theme)[0].style, theme.fg(ColorRole::MdCodeBlock));
    }

    #[cfg(feature = "highlight")]
    #[test]
    fn constructs_continue_across_lines() {
        check(
            "c",
            "/* a\nb */ 1",
            &[(ColorRole::SyntaxComment, "/* a"), (ColorRole::SyntaxComment, "b */"), (ColorRole::SyntaxNumber, "1")],
        );
    }

    #[cfg(feature = "highlight")]
    #[test]
    fn languages_are_found_by_name_extension_file_name_and_interpreter() {
        let is_same = |language: Option<CodeLanguage>, name: &str| {
            let (a, b) = (language.map(|l| l.0.name()), CodeLanguage::named(name).map(|l| l.0.name()));
            assert_eq!(a, b, "{name}");
            assert!(a.is_some(), "{name}");
        };
        is_same(CodeLanguage::named("Rust"), "rs");
        is_same(CodeLanguage::named("rust,no_run"), "rs");
        is_same(CodeLanguage::named("{.python}"), "py");
        is_same(CodeLanguage::named("tsx"), "javascript");
        is_same(CodeLanguage::named("c++"), "cpp");
        is_same(CodeLanguage::of_file("src/Makefile", None), "make");
        is_same(CodeLanguage::of_file("/a/b.c/x.RS", None), "rust");
        is_same(CodeLanguage::of_file("bin/tool", Some("#!/usr/bin/env -S python3 -u")), "python");
        is_same(CodeLanguage::of_file("bin/tool", Some("#!/bin/sh")), "bash");
        for (path, line) in [("tool", None), ("tool", Some("text")), ("a.unknown", None), (".rs", None), ("", None)] {
            assert!(CodeLanguage::of_file(path, line).is_none(), "{path}");
        }
        assert!(CodeLanguage::named("").is_none() && CodeLanguage::named("text").is_none());
    }

    #[test]
    fn text_without_a_language_and_long_lines_have_the_color_of_code() {
        let theme = Palette::builtin("dark", ColorDepth::True);
        for (language, line) in [(None, "let x".to_owned()), (CodeLanguage::named("rust"), "let x;".repeat(400))] {
            let spans = Highlighter::new(language).line(&line, &theme);
            assert_eq!(spans, [Span::styled(line, theme.fg(ColorRole::MdCodeBlock))]);
        }
    }

    #[test]
    fn no_character_is_lost() {
        let theme = Palette::builtin("dark", ColorDepth::True);
        let mut highlighter = Highlighter::new(CodeLanguage::named("rust"));
        for line in ["", "let é = \"日本\"; /* 👍", "\tend */ x", "'"] {
            let spans = highlighter.line(line, &theme);
            assert_eq!(spans.iter().map(|span| &*span.content).collect::<String>(), line);
        }
    }
}

//! Detects what can be completed at the cursor.

/// What to complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionQuery {
    /// The name of a command, after its slash.
    Command {
        /// The typed prefix.
        typed: String,
    },
    /// The arguments of a command.
    Argument {
        /// Name of the command.
        command: String,
        /// The typed prefix of its arguments.
        typed: String,
    },
    /// A file or directory mentioned with `@`.
    Mention {
        /// The typed prefix of its path.
        typed: String,
        /// Whether the path is in quotes.
        is_quoted: bool,
    },
    /// A path before the cursor, requested with the tab key.
    Path {
        /// The typed prefix.
        typed: String,
        /// Whether it is in quotes.
        is_quoted: bool,
    },
    /// An item provided by an extension, after `#`.
    Hash {
        /// The typed prefix.
        typed: String,
    },
}

impl CompletionQuery {
    /// Returns the typed prefix.
    pub fn typed(&self) -> &str {
        match self {
            Self::Command { typed }
            | Self::Argument { typed, .. }
            | Self::Mention { typed, .. }
            | Self::Path { typed, .. }
            | Self::Hash { typed } => typed,
        }
    }

    /// Returns whether an answer requires reading directories or searching many paths, which must not happen on the drawing thread.
    pub fn touches_files(&self) -> bool {
        matches!(self, Self::Mention { .. } | Self::Path { .. })
    }
}

/// A completable part of a line, which ends at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompletionToken {
    pub(super) query: CompletionQuery,
    /// Byte offset of its start in the line.
    pub(super) start: usize,
}

/// Returns the part that is completed without an explicit request, given the line before the cursor.
pub(super) fn typed_token(before: &str, is_first_line: bool) -> Option<CompletionToken> {
    if let Some(token) = quoted_mention(before) {
        return Some(token);
    }
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + next_len(before, at));
    let word = &before[start..];
    if let Some(typed) = word.strip_prefix('@') {
        let query = CompletionQuery::Mention { typed: typed.to_owned(), is_quoted: false };
        return Some(CompletionToken { query, start });
    }
    if let Some(typed) = word.strip_prefix('#') {
        return Some(CompletionToken { query: CompletionQuery::Hash { typed: typed.to_owned() }, start });
    }
    let command = before.strip_prefix('/').filter(|_| is_first_line)?;
    let end =
        command.find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'))).unwrap_or(command.len());
    let (name, rest) = command.split_at(end);
    if rest.is_empty() {
        return Some(CompletionToken { query: CompletionQuery::Command { typed: name.to_owned() }, start: 0 });
    }
    let typed = rest.strip_prefix(' ').filter(|_| !name.is_empty())?;
    let query = CompletionQuery::Argument { command: name.to_owned(), typed: typed.to_owned() };
    Some(CompletionToken { query, start: before.len() - typed.len() })
}

fn next_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Returns a path after `@"` whose closing quote is missing.
fn quoted_mention(before: &str) -> Option<CompletionToken> {
    let start = before.rfind("@\"")?;
    let typed = &before[start + 2..];
    let is_begin = before[..start].chars().next_back().is_none_or(char::is_whitespace);
    let query = CompletionQuery::Mention { typed: typed.to_owned(), is_quoted: true };
    (is_begin && !typed.contains('"')).then_some(CompletionToken { query, start })
}

/// Returns the path before the cursor: the text after the last blank, quote or equals sign.
pub(super) fn path_token(before: &str) -> CompletionToken {
    let n_quotes = before.matches('"').count();
    if let Some(start) = before.rfind('"').filter(|_| n_quotes % 2 == 1) {
        let query = CompletionQuery::Path { typed: before[start + 1..].to_owned(), is_quoted: true };
        return CompletionToken { query, start };
    }
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=');
    let start = before.rfind(is_end).map_or(0, |at| at + next_len(before, at));
    CompletionToken { query: CompletionQuery::Path { typed: before[start..].to_owned(), is_quoted: false }, start }
}

/// Returns a path in the form to insert, quoted if necessary, and how many bytes before its end the cursor stays.
pub(super) fn written_path(path: &str, is_quoted: bool) -> (String, usize) {
    if !is_quoted && !path.contains(char::is_whitespace) {
        return (path.to_owned(), 0);
    }
    // The contents of a directory are typed before the closing quote.
    (format!("\"{path}\""), usize::from(path.ends_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(token: &CompletionToken) -> String {
        let CompletionToken { query, start } = token;
        match query {
            CompletionQuery::Command { typed } => format!("{start} command {typed}"),
            CompletionQuery::Argument { command, typed } => format!("{start} argument of {command}: {typed}"),
            CompletionQuery::Mention { typed, is_quoted } => format!("{start} mention {typed} {is_quoted}"),
            CompletionQuery::Path { typed, is_quoted } => format!("{start} path {typed} {is_quoted}"),
            CompletionQuery::Hash { typed } => format!("{start} hash {typed}"),
        }
    }

    #[test]
    fn the_typed_text_determines_the_kind_of_completion() {
        for (before, expected) in [
            ("/", Some("0 command ")),
            ("/mo", Some("0 command mo")),
            ("/skill:my-1.x_y", Some("0 command skill:my-1.x_y")),
            ("/usr/bin", None),
            (" /mo", None),
            ("a /mo", None),
            ("/model ", Some("7 argument of model: ")),
            ("/model gpt 5", Some("7 argument of model: gpt 5")),
            ("/ x", None),
            ("@", Some("0 mention  false")),
            ("see @src/m", Some("4 mention src/m false")),
            ("a\u{3000}@x", Some("4 mention x false")),
            ("mail@host", None),
            ("see @\"my fi", Some("4 mention my fi true")),
            ("see @\"my file\" and", None),
            ("x@\"a", None),
            ("/review @a", Some("8 mention a false")),
            ("fix #12", Some("4 hash 12")),
            ("word", None),
            ("", None),
        ] {
            assert_eq!(typed_token(before, true).as_ref().map(shown).as_deref(), expected, "{before:?}");
        }
        assert_eq!(typed_token("/mo", false), None, "commands are on the first line");
    }

    #[test]
    fn a_path_begins_after_the_last_blank_quote_or_equals_sign() {
        for (before, expected) in [
            ("", "0 path  false"),
            ("cat sr", "4 path sr false"),
            ("x=~/a", "2 path ~/a false"),
            ("cat 'a", "5 path a false"),
            ("cat \"my di", "4 path my di true"),
            ("\"a\" ./b", "4 path ./b false"),
        ] {
            assert_eq!(shown(&path_token(before)), expected, "{before:?}");
        }
    }

    #[test]
    fn paths_with_blanks_are_quoted() {
        assert_eq!(written_path("a/b", false), ("a/b".to_owned(), 0));
        assert_eq!(written_path("a b", false), ("\"a b\"".to_owned(), 0));
        assert_eq!(written_path("a b/", false), ("\"a b/\"".to_owned(), 1));
        assert_eq!(written_path("ab", true), ("\"ab\"".to_owned(), 0));
    }
}

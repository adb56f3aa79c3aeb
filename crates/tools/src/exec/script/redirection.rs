//! Redirections and here-documents.

use super::super::programs::Expansion;
use super::{Parser, ScriptResult, is_end, token};

/// A here-document whose text follows after the line.
pub(super) struct HereDocument<'a> {
    delimiter: &'a str,
    /// Whether the delimiter is quoted, so that the shell expands nothing.
    is_quoted: bool,
    /// Whether leading tabs are removed.
    is_indented: bool,
}

impl<'a> Parser<'a, '_> {
    /// Takes a redirection that discards output, joins both outputs, or begins a here-document.
    pub(super) fn take_redirection(&mut self) -> ScriptResult<bool> {
        let rest = self.rest();
        let (descriptor, operator) = match rest.strip_prefix('&') {
            Some(operator) if operator.starts_with('>') => ("&", operator),
            _ => {
                let operator = rest.trim_start_matches(|c: char| c.is_ascii_digit());
                (&rest[..rest.len() - operator.len()], operator)
            }
        };
        let Some(direction) = operator.chars().next().filter(|c| matches!(c, '<' | '>')) else { return Ok(false) };
        let is_known = matches!(descriptor, "" | "&" | "0" | "1" | "2");
        self.at += rest.len() - operator.len();
        if !is_known {
            return Err(token(&direction.to_string()));
        }
        if self.take("<<") {
            if descriptor.is_empty() && self.take_delimiter() {
                return Ok(true);
            }
            return Err(token("<<"));
        }
        let rejected = Err(token(&direction.to_string()));
        self.at += 1;
        if direction == '>' && descriptor != "&" && self.take("&") {
            let is_output = self.take_word("1") || self.take_word("2");
            return if is_output { Ok(true) } else { rejected };
        }
        if direction == '>' {
            self.take(">");
        }
        while self.take(" ") || self.take("\t") {}
        if self.take_word("/dev/null") { Ok(true) } else { rejected }
    }

    /// Takes the delimiter of a here-document; returns false if it is not a plain one.
    fn take_delimiter(&mut self) -> bool {
        let is_indented = self.take("-");
        while self.take(" ") || self.take("\t") {}
        let quote = self.peek().filter(|c| matches!(c, '\'' | '"' | '\\'));
        self.at += quote.map_or(0, char::len_utf8);
        let rest = self.rest();
        let n = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let delimiter = &rest[..n];
        self.at += n;
        let is_closed = match quote {
            Some(quote @ ('\'' | '"')) => self.take(&quote.to_string()),
            _ => true,
        };
        self.pending.push(HereDocument { delimiter, is_quoted: quote.is_some(), is_indented });
        is_closed && !delimiter.is_empty() && self.peek().is_none_or(is_end)
    }

    /// Parses the text of a here-document.
    pub(super) fn here_document(&mut self, document: &HereDocument<'a>) -> ScriptResult {
        let start = self.at;
        loop {
            let line_start = self.at;
            let Some(n) = self.rest().find('\n').or((!self.rest().is_empty()).then(|| self.rest().len())) else {
                return Err(token("<<"));
            };
            let line = &self.rest()[..n];
            let line = if document.is_indented { line.trim_start_matches('\t') } else { line };
            self.at += n;
            // Some shells join such a line with the next one.
            if self.is_substituted && line.ends_with('\\') {
                return Err(token("<<"));
            }
            if line == document.delimiter {
                let text = &self.text[start..line_start];
                return if document.is_quoted { Ok(()) } else { self.expanded_text(text) };
            }
            if self.next().is_none() {
                return Err(token("<<"));
            }
        }
    }

    /// Parses a text whose variables and substitutions are expanded.
    fn expanded_text(&mut self, text: &'a str) -> ScriptResult {
        let (depth, mut expansion, mut out) = (self.depth, Expansion::None, String::new());
        let mut inner = Parser {
            depth,
            is_substituted: self.is_substituted,
            ..Parser::new(text, self.is_simple, &mut *self.found)
        };
        while let Some(c) = inner.next() {
            match c {
                // The next line would become a part of this one, and might be the delimiter.
                '\\' if inner.peek() == Some('\n') => return Err(token("<<")),
                '\\' => drop(inner.next()),
                '`' => return Err(token("`")),
                '$' => {
                    let start = inner.at;
                    inner.dollar(true, &mut out, &mut expansion)?;
                    // Shells differ in whether the delimiter counts within a substitution.
                    if text[start..inner.at].contains('\n') {
                        return Err(token("<<"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

//! Words: quotes, escapes, variables and substitutions.

use super::super::programs::{AnalysisError, Expansion, is_home, plain_variable};
use super::{MAX_DEPTH, Parser, ScriptResult, is_end, token};

/// A word of a command.
pub(super) struct ShellWord {
    /// Its text without quotes and escapes.
    pub(super) text: String,
    /// What the shell replaces in it.
    pub(super) expansion: Expansion,
    /// Whether nothing in it is quoted or escaped.
    pub(super) is_bare: bool,
    /// Whether nothing up to its first equals sign is quoted or escaped.
    pub(super) has_bare_name: bool,
}

impl Parser<'_, '_> {
    pub(super) fn word(&mut self) -> ScriptResult<ShellWord> {
        let mut word =
            ShellWord { text: String::new(), expansion: Expansion::None, is_bare: true, has_bare_name: false };
        if self.peek() == Some('#') && !self.is_simple {
            return Err(token("#"));
        }
        while let Some(c) = self.peek() {
            match c {
                c if is_end(c) => break,
                '\r' if self.is_simple => return Err(token("\r")),
                '\\' => {
                    self.at += 1;
                    match self.next().ok_or(AnalysisError::Unterminated)? {
                        '\n' => {}
                        c => {
                            word.is_bare = false;
                            word.text.push(c);
                        }
                    }
                }
                '\'' => {
                    self.at += 1;
                    word.is_bare = false;
                    let n = self.rest().find('\'').ok_or(AnalysisError::Unterminated)?;
                    let text = &self.rest()[..n];
                    self.refuse_line_end(text)?;
                    word.text.push_str(text);
                    self.at += n + 1;
                }
                '"' => {
                    self.at += 1;
                    word.is_bare = false;
                    self.double_quoted(&mut word)?;
                }
                '`' => return Err(token("`")),
                '$' => {
                    self.at += 1;
                    self.dollar(false, &mut word.text, &mut word.expansion)?;
                }
                _ => {
                    self.at += c.len_utf8();
                    if c == '=' && !word.text.contains('=') {
                        word.has_bare_name = word.is_bare;
                    }
                    let is_expanded = match c {
                        '*' | '?' => true,
                        // The command `[` is no pattern.
                        '[' => self.peek().is_some_and(|next| !is_end(next)),
                        '{' => self.peek().is_some_and(|next| next != '}'),
                        _ => false,
                    };
                    if is_expanded {
                        word.expansion = Expansion::Free;
                    }
                    word.text.push(c);
                }
            }
        }
        // A parenthesis within a word is a pattern, a list or a function.
        if self.peek() == Some('(') { Err(token("(")) } else { Ok(word) }
    }

    fn double_quoted(&mut self, word: &mut ShellWord) -> ScriptResult {
        loop {
            match self.next().ok_or(AnalysisError::Unterminated)? {
                '"' => return Ok(()),
                '`' => return Err(token("`")),
                '$' => self.dollar(true, &mut word.text, &mut word.expansion)?,
                '\\' => match self.peek() {
                    Some('\n') => self.at += 1,
                    Some(c @ ('\\' | '"' | '$' | '`')) => {
                        self.at += 1;
                        word.text.push(c);
                    }
                    _ => word.text.push('\\'),
                },
                c => {
                    if self.is_simple && matches!(c, '\n' | '\r') {
                        return Err(token("newline"));
                    }
                    if c == '\n' {
                        self.refuse_line_end("\n")?;
                    }
                    word.text.push(c);
                }
            }
        }
    }

    /// Shells differ in whether a here-document begins after a line end within a word.
    fn refuse_line_end(&self, text: &str) -> ScriptResult {
        if text.contains('\n') && !self.pending.is_empty() { Err(token("<<")) } else { Ok(()) }
    }

    /// Parses what follows a dollar sign.
    pub(super) fn dollar(&mut self, is_quoted: bool, out: &mut String, expansion: &mut Expansion) -> ScriptResult {
        let rest = self.rest();
        let start = self.at;
        let Some(next) = rest.chars().next() else {
            out.push('$');
            return Ok(());
        };
        match next {
            '(' if self.is_simple => return Err(token("$()")),
            '(' => {
                self.at += 1;
                self.refuse_arithmetic("$((")?;
                self.substitution()?;
            }
            '\'' | '"' if !is_quoted => return Err(token("$'")),
            '[' => return Err(token("$[")),
            '{' => {
                self.at += plain_variable(rest).ok_or_else(|| token("${"))?;
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let n = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
                self.at += n;
            }
            '?' | '#' | '@' | '*' | '!' | '$' | '-' => {
                self.at += 1;
                // In zsh, the length of a parameter.
                let is_length = |c: char| c.is_ascii_alphanumeric() || "_*?@#$!-".contains(c);
                if next == '#' && self.after_line_ends().starts_with(is_length) {
                    return Err(token("$#"));
                }
            }
            c if is_end(c) || (is_quoted && c == '"') => {
                out.push('$');
                return Ok(());
            }
            // Some of these expand something in zsh.
            _ => return Err(token("$")),
        }
        // zsh evaluates such a subscript, and modifiers after a parameter without braces.
        let behind = self.after_line_ends();
        if behind.starts_with('[') {
            return Err(token("["));
        }
        let mut after = behind.chars();
        if !matches!(next, '{' | '(')
            && after.next() == Some(':')
            && after.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '\\')
        {
            return Err(token(":"));
        }
        *expansion = (*expansion).max(match is_quoted && next != '@' {
            _ if is_home(rest) => Expansion::None,
            true => Expansion::Quoted,
            false => Expansion::Free,
        });
        out.push('$');
        out.push_str(&self.text[start..self.at]);
        Ok(())
    }

    /// Returns the rest after escaped line ends.
    fn after_line_ends(&self) -> &str {
        self.rest().trim_start_matches("\\\n")
    }

    /// Parses the commands of a substitution, and its closing parenthesis.
    fn substitution(&mut self) -> ScriptResult {
        let start = self.at;
        // Shells differ in where a here-document begins that crosses the border of a substitution.
        if !self.pending.is_empty() {
            return Err(token("<<"));
        }
        let was_substituted = std::mem::replace(&mut self.is_substituted, true);
        self.nested(|parser| parser.list(&[]))?;
        self.is_substituted = was_substituted;
        if !self.pending.is_empty() {
            return Err(token("<<"));
        }
        if !self.take(")") {
            return Err(AnalysisError::Unterminated);
        }
        // Old shells look for the end without understanding comments and here-documents. Where they find it in the same place, a nested
        // substitution is scanned once a level; otherwise the whole rest could be scanned each time.
        let limit = self.text.len().saturating_mul(MAX_DEPTH).saturating_sub(self.n_scanned);
        let (found, n_scanned) = end_by_quotes(self.tail(start), limit);
        self.n_scanned += n_scanned;
        match found {
            _ if n_scanned >= limit => Err(AnalysisError::TooDeep),
            Some(n) if start + n != self.at => Err(token("$()")),
            _ => Ok(()),
        }
    }
}

/// Returns where a substitution ends if only quotes and parentheses count, `None` if it does not; and how many bytes were scanned, about
/// `limit` at most.
fn end_by_quotes(text: &str, limit: usize) -> (Option<usize>, usize) {
    let (mut depth, mut quote) = (1_usize, None);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if at >= limit {
            return (None, at);
        }
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => drop(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return (Some(at + 1), at + 1);
                }
            }
            _ => {}
        }
    }
    (None, text.len())
}

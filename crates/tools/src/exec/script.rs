//! Finding the programs that a script starts: commands in lists, loops, conditions, groups and subshells, in substitutions and
//! here-documents.
//!
//! A strict parser for what POSIX shells, bash and zsh read the same way. Anything else is an error with the construct found, and a person
//! decides: redirections to files, functions, `case`, arithmetic, background jobs, process substitutions.

use super::analysis::{AnalysisError, CommandAnalysis, is_home, is_plain_variable};

/// Maximum nesting of constructs.
const MAX_DEPTH: usize = 16;

/// Words that begin or continue compound commands, and are no names of programs.
const RESERVED: [&str; 14] =
    ["}", "then", "else", "elif", "fi", "do", "done", "esac", "in", "case", "select", "function", "[[", "coproc"];

/// Variables that scripts may set: their names mean nothing to shells or programs.
const VARIABLES: [&str; 21] = [
    "file", "files", "dir", "name", "item", "line", "word", "pkg", "package", "crate", "module", "branch", "commit",
    "tag", "target", "result", "output", "count", "version", "root", "src",
];

/// Returns whether a script may set a variable.
pub(super) fn may_set(name: &str) -> bool {
    (name.len() == 1 && name.starts_with(|c: char| c.is_ascii_lowercase())) || VARIABLES.contains(&name)
}

/// Finds the programs that a script starts.
///
/// # Errors
/// Names the construct that is not supported.
pub(super) fn parse(script: &str) -> Result<CommandAnalysis, AnalysisError> {
    let mut found = CommandAnalysis::default();
    let mut parser = Parser { text: script, at: 0, depth: 0, pending: Vec::new(), found: &mut found };
    parser.list(&[])?;
    match parser.peek() {
        None if parser.pending.is_empty() => Ok(found),
        None => Err(token("<<")),
        Some(c) => Err(token(&c.to_string())),
    }
}

struct Parser<'a, 'f> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Here-documents whose text follows after the line.
    pending: Vec<HereDocument<'a>>,
    found: &'f mut CommandAnalysis,
}

struct HereDocument<'a> {
    delimiter: &'a str,
    /// Whether the delimiter is quoted, so that the shell expands nothing.
    is_quoted: bool,
    /// Whether leading tabs are removed.
    is_indented: bool,
}

/// A word of a command.
struct ShellWord {
    /// Its text without quotes and escapes.
    text: String,
    /// Whether the shell replaces parts of it.
    is_expanded: bool,
    /// Whether nothing in it is quoted or escaped.
    is_bare: bool,
    /// Whether nothing up to its first equals sign is quoted or escaped.
    has_bare_name: bool,
}

type ScriptResult<T = ()> = Result<T, AnalysisError>;

fn token(text: &str) -> AnalysisError {
    AnalysisError::Token(text.to_owned())
}

/// Returns whether a character ends a word.
fn is_end(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

impl<'a> Parser<'a, '_> {
    fn rest(&self) -> &'a str {
        self.tail(self.at)
    }

    fn tail(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ScriptResult<T>) -> ScriptResult<T> {
        if self.depth >= MAX_DEPTH {
            return Err(AnalysisError::TooDeep);
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Skips blanks and, before a word, a comment.
    fn skip_blanks(&mut self) {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
        if self.peek() == Some('#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Takes the end of a line, and the here-documents that follow it.
    fn take_line_end(&mut self) -> ScriptResult<bool> {
        if !self.take("\n") {
            return Ok(false);
        }
        for document in std::mem::take(&mut self.pending) {
            self.here_document(&document)?;
        }
        Ok(true)
    }

    fn skip_lines(&mut self) -> ScriptResult {
        self.skip_blanks();
        while self.take_line_end()? {
            self.skip_blanks();
        }
        Ok(())
    }

    /// Takes a word if it is next in this form.
    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_next_word(word);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn is_next_word(&self, word: &str) -> bool {
        self.rest().strip_prefix(word).is_some_and(|rest| rest.chars().next().is_none_or(is_end))
    }

    fn expect_word(&mut self, word: &str) -> ScriptResult {
        match self.take_word(word) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> AnalysisError {
        let word = self.rest().split(is_end).next().filter(|word| !word.is_empty());
        match word {
            Some(word) => token(word),
            None => self.peek().map_or(AnalysisError::NoWords, |c| token(&c.to_string())),
        }
    }

    /// Parses commands up to one of the words, a closing parenthesis or the end of the text. There must be at least one.
    fn list(&mut self, ends: &[&str]) -> ScriptResult {
        let mut n_commands = 0;
        loop {
            self.skip_lines()?;
            if matches!(self.peek(), None | Some(')')) || ends.iter().any(|end| self.is_next_word(end)) {
                break;
            }
            self.and_or()?;
            n_commands += 1;
            self.skip_blanks();
            match self.peek() {
                Some(';') if !self.rest().starts_with(";;") => self.at += 1,
                None | Some('\n' | ')') => {}
                Some(_) => return Err(self.unexpected()),
            }
        }
        if n_commands == 0 { Err(AnalysisError::EmptySegment) } else { Ok(()) }
    }

    fn and_or(&mut self) -> ScriptResult {
        loop {
            self.pipeline()?;
            self.skip_blanks();
            if !(self.take("&&") || self.take("||")) {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    fn pipeline(&mut self) -> ScriptResult {
        self.skip_blanks();
        if self.take_word("!") {
            self.skip_blanks();
        }
        loop {
            self.nested(Self::command)?;
            self.skip_blanks();
            let rest = self.rest();
            if rest.starts_with("|&") {
                return Err(token("|&"));
            }
            if !rest.starts_with('|') || rest.starts_with("||") {
                return Ok(());
            }
            self.at += 1;
            self.skip_lines()?;
        }
    }

    fn command(&mut self) -> ScriptResult {
        if self.take("(") {
            self.refuse_arithmetic("((")?;
            self.list(&[])?;
            return if self.take(")") { self.after_compound() } else { Err(AnalysisError::Unterminated) };
        }
        if self.take_word("{") {
            self.list(&["}"])?;
            self.expect_word("}")?;
        } else if self.take_word("if") {
            self.condition()?;
        } else if self.take_word("while") || self.take_word("until") {
            self.list(&["do"])?;
            self.body()?;
        } else if self.take_word("for") {
            self.names()?;
            self.body()?;
        } else {
            return self.simple();
        }
        self.after_compound()
    }

    /// Refuses a second parenthesis; the shell does not see a line end that is escaped.
    fn refuse_arithmetic(&mut self, name: &str) -> ScriptResult {
        while self.take("\\\n") {}
        if self.peek() == Some('(') { Err(token(name)) } else { Ok(()) }
    }

    /// Parses what follows `if`.
    fn condition(&mut self) -> ScriptResult {
        loop {
            self.list(&["then"])?;
            self.expect_word("then")?;
            self.list(&["elif", "else", "fi"])?;
            if !self.take_word("elif") {
                break;
            }
        }
        if self.take_word("else") {
            self.list(&["fi"])?;
        }
        self.expect_word("fi")
    }

    /// Parses what follows `for`, up to the body.
    fn names(&mut self) -> ScriptResult {
        self.skip_blanks();
        let name = self.word()?;
        if !name.is_bare || !may_set(&name.text) {
            return Err(token(&format!("for {}", name.text)));
        }
        self.skip_lines()?;
        if self.take_word("in") {
            loop {
                self.skip_blanks();
                if self.peek().is_none_or(is_end) {
                    break;
                }
                self.word()?;
            }
        }
        self.skip_blanks();
        self.take(";");
        self.skip_lines()
    }

    /// Parses the body of a loop.
    fn body(&mut self) -> ScriptResult {
        self.found.has_loops = true;
        self.expect_word("do")?;
        self.list(&["done"])?;
        self.expect_word("done")
    }

    /// After a compound command, only redirections may follow.
    fn after_compound(&mut self) -> ScriptResult {
        loop {
            self.skip_blanks();
            if !self.take_redirection()? {
                break;
            }
        }
        match self.peek() {
            None | Some('\n' | ';' | '|' | '&' | ')') => Ok(()),
            Some(_) => Err(self.unexpected()),
        }
    }

    fn simple(&mut self) -> ScriptResult {
        let mut words: Vec<String> = Vec::new();
        let mut is_expanded = false;
        let (mut is_over, mut has_name) = (false, false);
        loop {
            self.skip_blanks();
            // In some shells, the command ends before this.
            is_over |= self.rest().starts_with("&>");
            if self.take_redirection()? {
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '|' | '&' | ')') => break,
                Some('(') => return Err(token("(")),
                Some(_) => {}
            }
            if is_over {
                return Err(token("&"));
            }
            let word = self.word()?;
            // Such a word before a redirection is the descriptor, or the name of a variable for it.
            let is_descriptor = word.text.ends_with('}') || word.text.chars().all(|c| c.is_ascii_digit());
            if let Some(direction) = self.peek().filter(|c| is_descriptor && matches!(c, '<' | '>')) {
                return Err(token(&direction.to_string()));
            }
            // Only bare names are assigned to, and only a bare tilde is the home directory.
            if !has_name && !word.has_bare_name && word.text.contains('=') {
                return Err(token("="));
            }
            if !has_name && !word.is_bare && word.text.starts_with('~') {
                return Err(token("~"));
            }
            has_name |= !word.text.contains('=');
            // zsh ends groups at such words, wherever they are.
            let is_brace = matches!(word.text.as_str(), "{" | "}");
            if word.is_bare && (is_brace || (words.is_empty() && RESERVED.contains(&word.text.as_str()))) {
                return Err(token(&word.text));
            }
            is_expanded |= word.is_expanded;
            words.push(word.text);
        }
        if words.is_empty() {
            return Err(match self.peek() {
                Some(';' | '&') => self.unexpected(),
                _ => AnalysisError::EmptySegment,
            });
        }
        self.found.chains.push(vec![words]);
        self.found.expansions.push(is_expanded);
        Ok(())
    }

    /// Takes a redirection that discards output, joins both outputs, or begins a here-document.
    fn take_redirection(&mut self) -> ScriptResult<bool> {
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
    fn here_document(&mut self, document: &HereDocument<'a>) -> ScriptResult {
        let start = self.at;
        loop {
            let line_start = self.at;
            let Some(n) = self.rest().find('\n').or((!self.rest().is_empty()).then(|| self.rest().len())) else {
                return Err(token("<<"));
            };
            let line = &self.rest()[..n];
            let line = if document.is_indented { line.trim_start_matches('\t') } else { line };
            self.at += n;
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
        let (depth, mut is_expanded, mut out) = (self.depth, false, String::new());
        let mut inner = Parser { text, at: 0, depth, pending: Vec::new(), found: &mut *self.found };
        while let Some(c) = inner.next() {
            match c {
                // The next line would become a part of this one, and might be the delimiter.
                '\\' if inner.peek() == Some('\n') => return Err(token("<<")),
                '\\' => drop(inner.next()),
                '`' => return Err(token("`")),
                '$' => {
                    let start = inner.at;
                    inner.dollar(true, &mut out, &mut is_expanded)?;
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

    fn word(&mut self) -> ScriptResult<ShellWord> {
        let mut word = ShellWord { text: String::new(), is_expanded: false, is_bare: true, has_bare_name: false };
        while let Some(c) = self.peek() {
            match c {
                c if is_end(c) => break,
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
                    self.dollar(false, &mut word.text, &mut word.is_expanded)?;
                }
                _ => {
                    self.at += c.len_utf8();
                    if c == '=' && !word.text.contains('=') {
                        word.has_bare_name = word.is_bare;
                    }
                    word.is_expanded |= match c {
                        '*' | '?' => true,
                        // The command `[` is no pattern.
                        '[' => self.peek().is_some_and(|next| !is_end(next)),
                        '{' => self.peek().is_some_and(|next| next != '}'),
                        _ => false,
                    };
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
                '$' => self.dollar(true, &mut word.text, &mut word.is_expanded)?,
                '\\' => match self.peek() {
                    Some('\n') => self.at += 1,
                    Some(c @ ('\\' | '"' | '$' | '`')) => {
                        self.at += 1;
                        word.text.push(c);
                    }
                    _ => word.text.push('\\'),
                },
                c => {
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
    fn dollar(&mut self, is_quoted: bool, out: &mut String, is_expanded: &mut bool) -> ScriptResult {
        let rest = self.rest();
        let start = self.at;
        let Some(next) = rest.chars().next() else {
            out.push('$');
            return Ok(());
        };
        match next {
            '(' => {
                self.at += 1;
                self.refuse_arithmetic("$((")?;
                self.substitution()?;
            }
            '\'' | '"' if !is_quoted => return Err(token("$'")),
            '[' => return Err(token("$[")),
            '{' => {
                let n =
                    rest.find('}').filter(|_| is_plain_variable(self.tail(start - 1))).ok_or_else(|| token("${"))?;
                self.at += n + 1;
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let n = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
                self.at += n;
            }
            '?' | '#' | '@' | '*' | '!' | '$' | '-' => self.at += 1,
            c if is_end(c) || (is_quoted && c == '"') => {
                out.push('$');
                return Ok(());
            }
            // Some of these expand something in zsh.
            _ => return Err(token("$")),
        }
        // zsh evaluates such a subscript.
        if self.peek() == Some('[') {
            return Err(token("["));
        }
        *is_expanded |= !is_home(rest);
        out.push('$');
        out.push_str(&self.text[start..self.at]);
        Ok(())
    }

    /// Parses the commands of a substitution, and its closing parenthesis.
    fn substitution(&mut self) -> ScriptResult {
        // Shells differ in where a here-document begins that crosses the border of a substitution.
        if !self.pending.is_empty() {
            return Err(token("<<"));
        }
        self.nested(|parser| parser.list(&[]))?;
        if !self.pending.is_empty() {
            return Err(token("<<"));
        }
        if self.take(")") { Ok(()) } else { Err(AnalysisError::Unterminated) }
    }
}

#[cfg(test)]
mod tests;

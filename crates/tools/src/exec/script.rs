//! Finding the programs that a script starts: commands in lists, loops, conditions, groups and subshells, in substitutions and
//! here-documents.
//!
//! A strict parser for what POSIX shells, bash and zsh read the same way. Anything else is an error with the construct found, and a person
//! decides: redirections to files, functions, `case`, arithmetic, background jobs, process substitutions.

use super::programs::{AnalysisError, CommandAnalysis, Expansion};

mod word;
mod redirection;

use redirection::HereDocument;

/// Maximum nesting of constructs.
const MAX_DEPTH: usize = 16;

/// Words that begin or continue compound commands, and are no names of programs.
const RESERVED: [&str; 14] =
    ["}", "then", "else", "elif", "fi", "do", "done", "esac", "in", "case", "select", "function", "[[", "coproc"];

/// Variables that scripts may set: their names mean nothing to shells or programs.
const VARIABLES: [&str; 29] = [
    "file", "files", "dir", "name", "item", "line", "word", "pkg", "package", "crate", "module", "branch", "commit",
    "tag", "target", "result", "output", "count", "version", "root", "src", "ext", "rc", "url", "msg", "num", "DIR",
    "FILE", "BRANCH",
];

/// Returns whether a script may set a variable.
pub(super) fn may_set(name: &str) -> bool {
    (name.len() == 1 && name.starts_with(|c: char| c.is_ascii_lowercase())) || VARIABLES.contains(&name)
}

/// Finds the programs that a script starts. `is_simple`: it may only have programs with arguments, pipes, `&&`, `||` and `;`.
///
/// # Errors
/// Names the construct that is not supported.
pub(super) fn parse(script: &str, is_simple: bool) -> Result<CommandAnalysis, AnalysisError> {
    let mut found = CommandAnalysis::default();
    let mut parser = Parser::new(script, is_simple, &mut found);
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
    /// Whether only simple commands are understood.
    is_simple: bool,
    /// The first operator between commands; it is named if there is none behind one.
    operator: Option<&'static str>,
    /// Number of chains after the last program of the current pipeline.
    piped: Option<usize>,
    /// Whether this is in a substitution.
    is_substituted: bool,
    /// Number of bytes that were scanned for the ends of substitutions.
    n_scanned: usize,
}

type ScriptResult<T = ()> = Result<T, AnalysisError>;

fn token(text: &str) -> AnalysisError {
    AnalysisError::Token(text.to_owned())
}

/// Returns whether a character ends a word.
fn is_end(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

impl<'a, 'f> Parser<'a, 'f> {
    fn new(text: &'a str, is_simple: bool, found: &'f mut CommandAnalysis) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            pending: Vec::new(),
            found,
            is_simple,
            operator: None,
            piped: None,
            is_substituted: false,
            n_scanned: 0,
        }
    }

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
        let mut is_continued = false;
        loop {
            let is_blank = self.take(" ") || self.take("\t");
            if !is_blank && !self.take("\\\n") {
                break;
            }
            is_continued = !is_blank;
        }
        // Shells differ in whether a comment begins right after a continued line.
        if !self.is_simple && !is_continued && self.peek() == Some('#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// Takes the end of a line, and the here-documents that follow it.
    fn take_line_end(&mut self) -> ScriptResult<bool> {
        match self.peek() {
            Some(c @ ('\n' | '\r')) if self.is_simple => return Err(token(&c.to_string())),
            Some('\n') => self.at += 1,
            _ => return Ok(false),
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
                if let Some(operator) = self.operator.filter(|_| self.is_simple && n_commands > 0) {
                    return Err(token(operator));
                }
                break;
            }
            self.and_or()?;
            n_commands += 1;
            self.skip_blanks();
            match self.peek() {
                Some(';') if !self.rest().starts_with(";;") => {
                    self.operator.get_or_insert(";");
                    self.at += 1;
                }
                None if self.is_simple => break,
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
            let operator = match self.rest() {
                rest if rest.starts_with("&&") => "&",
                rest if rest.starts_with("||") => "||",
                _ => return Ok(()),
            };
            let operator = *self.operator.get_or_insert(operator);
            self.at += 2;
            self.skip_lines()?;
            if self.peek().is_none_or(|c| matches!(c, ';' | '&' | ')')) || self.rest().starts_with("||") {
                return Err(token(operator));
            }
        }
    }

    fn pipeline(&mut self) -> ScriptResult {
        self.skip_blanks();
        if self.take_word("!") {
            // Some shells take this for a pattern.
            if self.peek() == Some('(') {
                return Err(token("!("));
            }
            self.skip_blanks();
        }
        let outer = self.piped.take();
        loop {
            self.nested(Self::command)?;
            self.skip_blanks();
            let rest = self.rest();
            if rest.starts_with("|&") {
                return Err(token("|&"));
            }
            if !rest.starts_with('|') || rest.starts_with("||") {
                self.piped = outer;
                return Ok(());
            }
            self.at += 1;
            self.skip_lines()?;
        }
    }

    fn command(&mut self) -> ScriptResult {
        if self.is_simple {
            return self.simple();
        }
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
        let mut expansion = Expansion::None;
        let (mut is_over, mut has_name) = (false, false);
        loop {
            self.skip_blanks();
            // In some shells, the command ends before this.
            is_over |= self.rest().starts_with("&>");
            match self.peek() {
                Some(c @ ('<' | '>')) if self.is_simple => return Err(token(&c.to_string())),
                _ if self.is_simple => {}
                _ => {
                    if self.take_redirection()? {
                        continue;
                    }
                }
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
            expansion = expansion.max(word.expansion);
            words.push(word.text);
        }
        if words.is_empty() {
            return Err(match self.peek() {
                Some(';' | '&') => self.unexpected(),
                _ => AnalysisError::EmptySegment,
            });
        }
        // What is within substitutions and groups comes before, as chains of its own.
        let chains = &mut self.found.chains;
        let is_piped = self.piped == Some(chains.len());
        match chains.last_mut().filter(|_| is_piped) {
            Some(chain) => chain.push(words),
            None => chains.push(vec![words]),
        }
        self.piped = Some(self.found.chains.len());
        self.found.expansions.push(expansion);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

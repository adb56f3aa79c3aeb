//! Command lines of the simple form: programs with arguments, pipes, and `&&`, `||` and `;` between them.
//!
//! Commands of the Windows interpreter have no other form. For POSIX shells, whose scripts have a parser of their own, this says what is
//! wrong with a command that neither accepts, in the words of other tools.

/// The shell that interprets a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellKind {
    /// A POSIX shell.
    #[default]
    Posix,
    /// The Windows command interpreter.
    Windows,
}

/// The programs of a command line, as chains of pipelines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandAnalysis {
    /// A pipeline for each part of the chain, with a program name and its arguments for each command.
    pub chains: Vec<Vec<Vec<String>>>,
    /// For each of [`Self::segments`], whether the shell expands variables or patterns in its words.
    pub expansions: Vec<bool>,
    /// Whether commands may run more than once.
    pub has_loops: bool,
}

/// Why a command line could not be analyzed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// It contains an unsupported construct.
    #[error("unsupported shell token: {0}")]
    Token(String),
    /// It contains an unsupported construct of the Windows shell.
    #[error("unsupported windows shell token: {0}")]
    WindowsToken(String),
    /// A quote or an escape is not terminated.
    #[error("unterminated shell quote/escape")]
    Unterminated,
    /// The command is empty.
    #[error("empty command")]
    Empty,
    /// A pipeline segment is empty.
    #[error("empty pipeline segment")]
    EmptySegment,
    /// A segment has no words.
    #[error("unable to parse shell segment")]
    NoWords,
    /// Constructs are nested too deep.
    #[error("commands are nested too deep")]
    TooDeep,
}

impl CommandAnalysis {
    /// Returns all programs with their arguments.
    pub fn segments(&self) -> impl Iterator<Item = &Vec<String>> {
        self.chains.iter().flatten()
    }
}

/// Splits a command line into programs.
///
/// # Errors
/// Names the construct that is not supported.
pub fn analyze(command: &str, shell: ShellKind) -> Result<CommandAnalysis, AnalysisError> {
    if command.trim().is_empty() {
        return Err(AnalysisError::Empty);
    }
    match shell {
        ShellKind::Posix => {
            let mut analysis = CommandAnalysis::default();
            for part in chain_parts(command)? {
                let chain = pipeline(part)?;
                analysis.expansions.extend(chain.iter().map(|(_, expands)| *expands));
                analysis.chains.push(chain.into_iter().map(|(words, _)| words).collect());
            }
            Ok(analysis)
        }
        ShellKind::Windows => windows(command),
    }
}

/// The quoting state at a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Single,
    Double,
}

/// Walks the characters of a command: `visit` receives the position, the character, and whether it is quoted or escaped; it returns how
/// many characters to advance.
fn walk(
    text: &str,
    mut visit: impl FnMut(usize, char, Quoting, bool) -> Result<(), AnalysisError>,
) -> Result<(), AnalysisError> {
    let mut quoting = Quoting::None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quoting, c) {
            (Quoting::None, '\\') => {
                let (next, c) = chars.next().ok_or(AnalysisError::Unterminated)?;
                visit(next, c, quoting, true)?;
            }
            (Quoting::Double, '\\')
                if chars.peek().is_some_and(|(_, c)| matches!(c, '\\' | '"' | '$' | '`' | '\n')) =>
            {
                if let Some((next, c)) = chars.next() {
                    visit(next, c, quoting, true)?;
                }
            }
            (Quoting::None, '\'') => quoting = Quoting::Single,
            (Quoting::None, '"') => quoting = Quoting::Double,
            (Quoting::Single, '\'') | (Quoting::Double, '"') => quoting = Quoting::None,
            _ => visit(at, c, quoting, false)?,
        }
    }
    if quoting == Quoting::None { Ok(()) } else { Err(AnalysisError::Unterminated) }
}

/// Splits at `&&`, `||` and `;`. If a part is empty, returns the whole as one part, so that the operator is rejected later.
fn chain_parts(command: &str) -> Result<Vec<&str>, AnalysisError> {
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    walk(command, |at, c, quoting, is_escaped| {
        let is_operator = quoting == Quoting::None && !is_escaped && cuts.last().is_none_or(|(_, end)| at >= *end);
        if is_operator {
            match &command[at..] {
                rest if rest.starts_with("&&") || rest.starts_with("||") => cuts.push((at, at + 2)),
                _ if c == ';' => cuts.push((at, at + 1)),
                _ => {}
            }
        }
        Ok(())
    })?;
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let mut from = 0;
    for (start, end) in cuts {
        parts.push(&command[from..start]);
        from = end;
    }
    parts.push(&command[from..]);
    Ok(if parts.iter().any(|part| part.trim().is_empty()) { vec![command] } else { parts })
}

/// Returns the programs of a pipeline, and whether their words are expanded.
fn pipeline(part: &str) -> Result<Vec<(Vec<String>, bool)>, AnalysisError> {
    let mut cuts = Vec::new();
    walk(part, |at, c, quoting, is_escaped| {
        let token = |text: &str| Err(AnalysisError::Token(text.to_owned()));
        let next = part[at + c.len_utf8()..].chars().next();
        match (quoting, c) {
            _ if is_escaped => Ok(()),
            (Quoting::Single, _) => Ok(()),
            (_, '$') if next == Some('(') => token("$()"),
            (_, '`') => token("`"),
            // Quotes with escapes, arithmetic, and expansions that evaluate their operands.
            (Quoting::None, '$') if matches!(next, Some('\'' | '"')) => token("$'"),
            (_, '$') if next == Some('[') => token("$["),
            (_, '$') if next == Some('{') && !is_plain_variable(&part[at..]) => token("${"),
            (Quoting::Double, '\n' | '\r') => token("newline"),
            (Quoting::Double, _) => Ok(()),
            (Quoting::None, '|') => match next {
                Some('|') => token("||"),
                Some('&') => token("|&"),
                _ => {
                    cuts.push(at);
                    Ok(())
                }
            },
            (Quoting::None, '&' | ';' | '>' | '<' | '\n' | '\r' | '(' | ')') => token(&c.to_string()),
            (Quoting::None, _) => Ok(()),
        }
    })?;
    let mut segments = Vec::with_capacity(cuts.len() + 1);
    let mut from = 0;
    for cut in cuts.into_iter().chain([part.len()]) {
        let segment = part.get(from..cut).unwrap_or_default();
        if segment.trim().is_empty() {
            return Err(AnalysisError::EmptySegment);
        }
        segments.push((words(segment)?, is_expanded(segment)?));
        from = cut + 1;
    }
    Ok(segments)
}

/// Returns whether a text begins with `${NAME}`.
pub(super) fn is_plain_variable(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// Returns whether the shell replaces words of a command: it contains variables other than `HOME`, patterns, or braces.
fn is_expanded(segment: &str) -> Result<bool, AnalysisError> {
    let mut is_expanded = false;
    walk(segment, |at, c, quoting, is_escaped| {
        let rest = &segment[at + c.len_utf8()..];
        is_expanded |= match (quoting, c) {
            _ if is_escaped => false,
            (Quoting::Single, _) => false,
            (_, '$') => !is_home(rest) && rest.starts_with(|c: char| !c.is_whitespace() && c != '"'),
            (Quoting::None, '{') => !rest.starts_with('}'),
            // The command `[` is no pattern.
            (Quoting::None, '[') => !rest.starts_with(char::is_whitespace),
            (Quoting::None, '*' | '?') => true,
            _ => false,
        };
        Ok(())
    })?;
    Ok(is_expanded)
}

/// Returns whether the text after a dollar sign names the variable `HOME`, which calls cannot set.
pub(super) fn is_home(text: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.starts_with("{HOME}") || text.strip_prefix("HOME").is_some_and(is_end)
}

/// Returns the words of a command without quotes and escapes.
fn words(segment: &str) -> Result<Vec<String>, AnalysisError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut end = 0;
    walk(segment, |at, c, quoting, is_escaped| {
        // Quotes are not visited: something was skipped, so there is a word, even if it is empty.
        if at > end {
            word.get_or_insert_default();
        }
        end = at + c.len_utf8();
        if quoting == Quoting::None && !is_escaped && c.is_whitespace() {
            words.extend(word.take());
        } else if !(is_escaped && c == '\n') {
            word.get_or_insert_default().push(c);
        }
        Ok(())
    })?;
    if segment.len() > end {
        word.get_or_insert_default();
    }
    words.extend(word);
    if words.is_empty() { Err(AnalysisError::NoWords) } else { Ok(words) }
}

fn windows(command: &str) -> Result<CommandAnalysis, AnalysisError> {
    for c in command.chars() {
        match c {
            '&' | '|' | '<' | '>' | '^' | '(' | ')' | '%' | '!' => {
                return Err(AnalysisError::WindowsToken(c.to_string()));
            }
            '\n' | '\r' => return Err(AnalysisError::WindowsToken("newline".to_owned())),
            _ => {}
        }
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in command.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if is_quoted {
        return Err(AnalysisError::Unterminated);
    }
    words.extend(word);
    Ok(CommandAnalysis { chains: vec![vec![words]], expansions: vec![false], has_loops: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expect: Result<&[&[&str]], &str>) {
        let found = analyze(command, ShellKind::Posix).map_err(|error| error.to_string());
        let found = found.map(|found| found.segments().cloned().collect::<Vec<_>>());
        let expect =
            expect.map(|all| all.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect());
        assert_eq!(found, expect.map_err(str::to_owned), "{command:?}");
    }

    #[test]
    fn words_are_split_as_by_the_shell() {
        check(r#"echo 'a "b' "c 'd" e\ f """#, Ok(&[&["echo", "a \"b", "c 'd", "e f", ""]]));
        check(r#"a "" '' b"#, Ok(&[&["a", "", "", "b"]]));
        check(r#"a"b"'c'd"#, Ok(&[&["abcd"]]));
        check("a \\\n b", Ok(&[&["a", "", "b"]]));
        check(r#"a "\x \" \$""#, Ok(&[&["a", "\\x \" $"]]));
        check("grüße|wc", Ok(&[&["grüße"], &["wc"]]));
    }

    #[test]
    fn expanded_words_are_recognized() {
        for (command, expect) in [
            ("a b | c '$x' \"*\" \\$x {} ~/y $", &[false, false][..]),
            ("a $HOME/x | b \"${HOME}\" | c $HOMES", &[false, false, true]),
            ("a $x; b \"$x\" && c * || d {e,f}", &[true; 4]),
            ("a '$'\"$x\"", &[true]),
            ("a b[c] | d ?", &[true, true]),
        ] {
            assert_eq!(analyze(command, ShellKind::Posix).unwrap().expansions, expect, "{command}");
        }
    }

    #[test]
    fn unsupported_constructs_are_rejected() {
        for (command, expect) in [
            ("a &&", "unsupported shell token: &"),
            ("a || || b", "unsupported shell token: ||"),
            ("a;", "unsupported shell token: ;"),
            ("a \"$(b)\"", "unsupported shell token: $()"),
            ("a \"`b`\"", "unsupported shell token: `"),
            ("a \"b\nc\"", "unsupported shell token: newline"),
            ("a $'b'", "unsupported shell token: $'"),
            ("a $[b]", "unsupported shell token: $["),
            ("a \"${b@P}\"", "unsupported shell token: ${"),
            ("a ${b[c]}", "unsupported shell token: ${"),
            ("a > b", "unsupported shell token: >"),
            ("a <(b)", "unsupported shell token: <"),
            ("a | | b", "empty pipeline segment"),
            ("| a", "empty pipeline segment"),
            ("a \\", "unterminated shell quote/escape"),
            (" \t", "empty command"),
        ] {
            check(command, Err(expect));
        }
        check("a '$(b)' \\$(", Err("unsupported shell token: ("));
        check("a '$(b) > c & `d`'", Ok(&[&["a", "$(b) > c & `d`"]]));
    }
}

//! Finding the programs that a command starts, in the syntax that is understood.

use super::script;

/// What is understood of a command. Commands with anything else need an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandSyntax {
    /// Scripts of POSIX shells: lists, loops, conditions, groups, substitutions, here-documents, comments; redirections that discard output.
    #[default]
    Scripts,
    /// Programs with arguments, pipes, and `&&`, `||` and `;` between them.
    Simple,
    /// A program with arguments, for the Windows command interpreter.
    Windows,
}

/// What the shell replaces in the words of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expansion {
    /// Nothing.
    #[default]
    None,
    /// Parts of quoted words, each of which stays one word.
    Quoted,
    /// Words, which may become several.
    Free,
}

/// The programs of a command line, as chains of pipelines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandAnalysis {
    /// A pipeline for each part of the chain, with a program name and its arguments for each command.
    pub chains: Vec<Vec<Vec<String>>>,
    /// For each of [`Self::segments`], what the shell replaces in its words.
    pub expansions: Vec<Expansion>,
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

/// Finds the programs that a command starts.
///
/// # Errors
/// Names the construct that is not supported.
pub fn analyze(command: &str, syntax: CommandSyntax) -> Result<CommandAnalysis, AnalysisError> {
    if command.trim().is_empty() {
        return Err(AnalysisError::Empty);
    }
    match syntax {
        CommandSyntax::Scripts => script::parse(command, false),
        CommandSyntax::Simple => script::parse(command, true),
        CommandSyntax::Windows => windows(command),
    }
}

/// Returns the length of `{NAME}` at the beginning of a text, or of a form that cuts a plain pattern off the variable or names a plain default
/// for it. Other forms evaluate their operands.
pub(super) fn plain_variable(text: &str) -> Option<usize> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (whole, _) = text.strip_prefix('{')?.split_once('}')?;
    let (name, operation) = whole.split_at(whole.find(|c| !is_name(c)).unwrap_or(whole.len()));
    let operand = ["##", "#", "%%", "%", ":-"].iter().find_map(|operator| operation.strip_prefix(operator));
    let is_plain = |c: char| is_name(c) || matches!(c, '.' | '/' | '-' | '*' | '?');
    // A name is needed: `${#}` is a number.
    let is_cut = !name.is_empty()
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && operand.is_some_and(|operand| !operand.is_empty() && operand.chars().all(is_plain));
    (is_cut || (operation.is_empty() && !name.is_empty())).then(|| whole.len() + 2)
}

/// Returns whether the text after a dollar sign names the variable `HOME`, which calls cannot set.
pub(super) fn is_home(text: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.starts_with("{HOME}") || text.strip_prefix("HOME").is_some_and(is_end)
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
    Ok(CommandAnalysis { chains: vec![vec![words]], expansions: vec![Expansion::None], has_loops: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expect: Result<&[&[&str]], &str>) {
        let found = analyze(command, CommandSyntax::Simple).map_err(|error| error.to_string());
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
        check("a \\\n b", Ok(&[&["a", "b"]]));
        check(r#"a "\x \" \$""#, Ok(&[&["a", "\\x \" $"]]));
        check("grüße|wc", Ok(&[&["grüße"], &["wc"]]));
    }

    #[test]
    fn expanded_words_are_recognized() {
        use Expansion::{Free, None, Quoted};
        for (command, expect) in [
            ("a b | c '$x' \"*\" \\$x {} ~/y $", &[None, None][..]),
            ("a $HOME/x | b \"${HOME}\" | c $HOMES", &[None, None, Free]),
            ("a $x; b \"$x\" && c * || d {e,f}", &[Free, Quoted, Free, Free]),
            ("a '$'\"$x\"", &[Quoted]),
            ("a \"$x\" $y; b \"$@\"; c \"$*\"", &[Free, Free, Quoted]),
            ("a b[c] | d ?", &[Free, Free]),
            ("a \"${x%.rs}\" ${y##*/} | b \"${z:-none}\"", &[Free, Quoted]),
        ] {
            assert_eq!(analyze(command, CommandSyntax::Simple).unwrap().expansions, expect, "{command}");
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
            ("a ${b:=c}", "unsupported shell token: ${"),
            ("a ${b/c/d}", "unsupported shell token: ${"),
            ("a ${b:-$c}", "unsupported shell token: ${"),
            ("a ${b#'c'}", "unsupported shell token: ${"),
            ("a ${!b}", "unsupported shell token: ${"),
            ("a ${#b}", "unsupported shell token: ${"),
            ("a ${b#}", "unsupported shell token: ${"),
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

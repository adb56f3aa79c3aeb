//! Finding the programs that a command starts.

pub use super::programs::{AnalysisError, CommandAnalysis, Expansion};
use super::script;

/// Which commands are understood. All others need an approval.
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

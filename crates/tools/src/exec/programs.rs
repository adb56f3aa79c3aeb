//! What is known of the programs that a command starts.

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

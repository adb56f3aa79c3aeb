//! The grammars of syntect, and the mapping of their scopes to theme colours.

use std::fmt;
use std::sync::LazyLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::theme::ColorRole;

/// Loaded when the first language is requested.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);

/// Colour roles of scopes; the first match is used.
const TOKENS: &[(&str, ColorRole)] = &[
    ("comment", ColorRole::SyntaxComment),
    ("punctuation.definition.comment", ColorRole::SyntaxComment),
    ("string", ColorRole::SyntaxString),
    ("punctuation.definition.string", ColorRole::SyntaxString),
    ("constant.character", ColorRole::SyntaxString),
    ("constant", ColorRole::SyntaxNumber),
    ("support.constant", ColorRole::SyntaxNumber),
    ("keyword.operator.word", ColorRole::SyntaxKeyword),
    ("keyword.operator", ColorRole::SyntaxOperator),
    ("keyword", ColorRole::SyntaxKeyword),
    ("storage", ColorRole::SyntaxKeyword),
    ("variable.language", ColorRole::SyntaxKeyword),
    ("variable.function", ColorRole::SyntaxFunction),
    ("variable", ColorRole::SyntaxVariable),
    ("entity.name.function", ColorRole::SyntaxFunction),
    ("entity.name.tag", ColorRole::SyntaxKeyword),
    ("entity.other.attribute-name", ColorRole::SyntaxVariable),
    ("entity.other.inherited-class", ColorRole::SyntaxType),
    ("entity", ColorRole::SyntaxType),
    ("support.function", ColorRole::SyntaxFunction),
    ("support.macro", ColorRole::SyntaxFunction),
    ("support.variable", ColorRole::SyntaxVariable),
    ("support", ColorRole::SyntaxType),
    ("punctuation.definition.inserted", ColorRole::ToolDiffAdded),
    ("punctuation.definition.deleted", ColorRole::ToolDiffRemoved),
    ("markup.inserted", ColorRole::ToolDiffAdded),
    ("markup.deleted", ColorRole::ToolDiffRemoved),
    ("markup.heading", ColorRole::MdHeading),
    ("markup.raw", ColorRole::SyntaxString),
    ("markup.underline.link", ColorRole::SyntaxString),
    ("punctuation", ColorRole::SyntaxPunctuation),
];

static SCOPES: LazyLock<Vec<(Scope, ColorRole)>> =
    LazyLock::new(|| TOKENS.iter().filter_map(|(scope, token)| Some((Scope::new(scope).ok()?, *token))).collect());

/// The grammar of a language.
#[derive(Clone, Copy)]
pub(super) struct Grammar(&'static SyntaxReference);

impl Grammar {
    /// Returns the grammar with this name or file extension, in lower case.
    pub(super) fn named(name: &str) -> Option<Self> {
        SYNTAXES.find_syntax_by_token(name).filter(|syntax| syntax.name != "Plain Text").map(Self)
    }

    /// Returns the grammar's name.
    #[cfg(test)]
    pub(super) fn name(self) -> &'static str {
        &self.0.name
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grammar({})", self.0.name)
    }
}

/// State of a grammar within a text.
#[derive(Clone, Debug)]
pub(super) struct GrammarState {
    parse: ParseState,
    scopes: ScopeStack,
}

impl GrammarState {
    /// Creates the state at the beginning of a text.
    pub(super) fn new(grammar: Grammar) -> Self {
        Self { parse: ParseState::new(grammar.0), scopes: ScopeStack::new() }
    }

    /// Returns the spans of the next line; `None` if the grammar is broken.
    pub(super) fn line(&mut self, line: &str) -> Option<Vec<(ColorRole, String)>> {
        let ended = format!("{line}\n");
        let changes = self.parse.parse_line(&ended, &SYNTAXES).ok()?;
        let mut pieces: Vec<(ColorRole, String)> = Vec::new();
        let mut add = |text: &str, scopes: &ScopeStack| {
            if text.is_empty() {
                return;
            }
            let token = token(scopes);
            match pieces.last_mut() {
                // Spaces have no colour, so they do not separate spans.
                Some((last, joined)) if *last == token || text.trim().is_empty() => joined.push_str(text),
                _ => pieces.push((token, text.to_owned())),
            }
        };
        let mut from = 0;
        for (at, change) in changes {
            let at = at.clamp(from, line.len());
            add(&line[from..at], &self.scopes);
            from = at;
            // A missing scope is a bug in the grammar that only affects colours.
            if self.scopes.apply(&change).is_err() {
                self.scopes = ScopeStack::new();
            }
        }
        add(&line[from..], &self.scopes);
        Some(pieces)
    }
}

/// Returns the colour role of the innermost known scope.
fn token(scopes: &ScopeStack) -> ColorRole {
    let known = |scope: &Scope| SCOPES.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, token)| *token);
    scopes.as_slice().iter().rev().find_map(known).unwrap_or(ColorRole::Text)
}

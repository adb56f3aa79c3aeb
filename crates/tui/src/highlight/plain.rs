//! The implementation without grammars: all text is plain.

use crate::theme::ColorRole;

/// The grammar of a language; never exists.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoGrammar {}

impl NoGrammar {
    /// Returns the grammar with this name.
    pub(super) fn named(_: &str) -> Option<Self> {
        None
    }
}

/// State of a grammar within a text.
#[derive(Clone, Debug)]
pub(super) enum NoLineState {}

impl NoLineState {
    /// Creates the state at the beginning of a text.
    pub(super) fn new(grammar: NoGrammar) -> Self {
        match grammar {}
    }

    /// Returns the spans of the next line.
    pub(super) fn line(&mut self, _: &str) -> Option<Vec<(ColorRole, String)>> {
        match *self {}
    }
}

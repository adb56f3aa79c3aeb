//! No grammars: all text is plain.

use crate::theme::ColorRole;

/// The grammar of a language; there is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoGrammar {}

impl NoGrammar {
    /// The grammar of this name.
    pub(super) fn named(_: &str) -> Option<Self> {
        None
    }
}

/// Where a text is in its grammar.
#[derive(Clone, Debug)]
pub(super) enum NoLineState {}

impl NoLineState {
    /// At the beginning of a text.
    pub(super) fn new(grammar: NoGrammar) -> Self {
        match grammar {}
    }

    /// The pieces of the next line.
    pub(super) fn line(&mut self, _: &str) -> Option<Vec<(ColorRole, String)>> {
        match *self {}
    }
}

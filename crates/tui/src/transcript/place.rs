//! Positions in the conversation.

/// A row of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPlace {
    pub(super) entry: usize,
    /// Row within the entry.
    pub(super) row: usize,
}

/// A position within a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) place: RowPlace,
    pub(super) column: usize,
}

/// Target of scrolling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// Down by this many rows; up if negative.
    Rows(isize),
    Top,
    End,
}

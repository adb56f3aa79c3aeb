//! Places in the conversation.

/// A row of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPlace {
    pub(super) entry: usize,
    /// The row within the entry.
    pub(super) row: usize,
}

/// A place within a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) place: RowPlace,
    pub(super) column: usize,
}

/// Where the window is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// Down by so many rows; up if there are fewer than none.
    Rows(isize),
    Top,
    End,
}

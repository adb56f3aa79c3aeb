//! Everything peculiar about a model, as data.

/// The peculiarities of one model: detected from its host and id, overridable in models.json (`compat`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dialect {}

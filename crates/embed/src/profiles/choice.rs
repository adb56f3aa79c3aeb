//! The choice of credentials for a run.

use crate::key::ProfileId;

/// A choice of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileChoice {
    /// The chosen profile.
    pub id: ProfileId,
    /// Who made the choice.
    pub source: ProfileSource,
}

/// Who made a choice of credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileSource {
    /// The program; it is only a preference.
    #[default]
    Auto,
    /// The user; no other profile is used.
    User,
}

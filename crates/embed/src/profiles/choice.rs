//! Whose credentials a run should use.

use crate::key::ProfileId;

/// A choice of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileChoice {
    /// Which.
    pub id: ProfileId,
    /// Who chose.
    pub source: ProfileSource,
}

/// Who chose credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileSource {
    /// The program: a preference.
    #[default]
    Auto,
    /// The user: no other profile is used.
    User,
}

//! Auth profiles: many credentials a provider, each with its health.

pub use crate::key::ProfileId;

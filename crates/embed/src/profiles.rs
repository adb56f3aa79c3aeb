//! Auth profiles: many credentials a provider, each with its health.

pub mod id;

pub use id::ProfileId;

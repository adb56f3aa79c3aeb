//! Showing runs to people.

pub(crate) mod events;
pub(crate) mod payloads;
pub(crate) mod timeline;

//! Sessions by key: what is remembered about the session that a key means, and when it starts anew.

pub(crate) mod reset;
pub(crate) mod entry;

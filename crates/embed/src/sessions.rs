//! Sessions by key: the stored entry of a key, and when its session is reset.

pub(crate) mod reset;
pub(crate) mod entry;

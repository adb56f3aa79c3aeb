//! The text of responses in the formats of providers.

pub mod completions;
pub mod anthropic;
pub mod responses;

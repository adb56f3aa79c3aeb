//! The text of responses in the formats of providers.

pub mod anthropic;
pub mod completions;

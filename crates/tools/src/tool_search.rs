//! Tool search: tools that a model is not told about, but can find, look up and call.
//!
//! A run with many tools would spend much of every request on their schemas. With tool search, only a few are declared; the others are
//! *deferred*: they are in a [`ToolCatalog`], which the model uses through three tools. [`TOOL_SEARCH`] finds deferred tools by words,
//! [`TOOL_DESCRIBE`] returns what a call needs, and [`TOOL_CALL`] calls one.
//!
//! `tool_call` is a [gateway](pinch_agent_core::tool::ToolGateway): the loop replaces its calls with those of the deferred tool before
//! anything else sees them. The alternative, a `tool_call` that runs the other tool inside itself, would have to repeat what the loop does
//! with a call: validation, hooks, loop detection, progress, cancellation. Anything forgotten there would be a way around a guard.

mod words;

mod properties;

mod rank;

mod reply;

mod catalog;

mod tools;

pub use catalog::ToolCatalog;
pub use rank::{SearchText, ToolIndex};
pub use tools::{SEARCH_TOOLS, TOOL_CALL, TOOL_DESCRIBE, TOOL_SEARCH, search_tools};

use crate::ask_user::ASK_USER;
use crate::policy::canonical_name;

/// Default number of hits of a query.
pub const DEFAULT_LIMIT: usize = 8;
/// Maximum number of hits of a query.
pub const MAX_LIMIT: usize = 20;

/// Tools that are always declared, by canonical name.
const DIRECT: [&str; 10] = ["read", "write", "edit", "apply_patch", "exec", "process", "ls", "find", "grep", ASK_USER];

/// Returns whether a tool is declared even if tool search is enabled: coding tools, and the question to a person.
pub fn is_direct(name: &str) -> bool {
    DIRECT.contains(&canonical_name(name).as_str())
}

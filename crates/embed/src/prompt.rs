//! The system prompt of an agent: its sections, the workspace files, and a report of their sizes.
//!
//! The headings are OpenClaw's, so that programs can find sections by them; the sentences are our own. What changes from run to run comes
//! last, so that providers can cache the rest.

pub mod bootstrap;
pub(crate) mod templates;
pub mod runtime_line;
pub mod params;
mod tool_lines;
mod directory;
mod wording;
mod sections;
pub mod report;

pub use params::{PromptMode, ReactionLevel, SandboxPrompt, SystemPromptParams, ToolSummary};
pub use report::PromptReport;
pub use runtime_line::RuntimeInfo;

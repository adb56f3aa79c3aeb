//! The system prompt of an agent: its sections, the files of its workspace, and a report of their sizes.
//!
//! The headings are OpenClaw's, so that programs find sections by them; the sentences are our own. What changes from run to run stands last, so
//! that providers keep the rest in their caches.

pub mod bootstrap;
pub mod runtime_line;
pub mod params;
mod tool_lines;
mod wording;
mod sections;
pub mod report;

pub use params::{PromptMode, ReactionLevel, SandboxPrompt, SystemPromptParams, ToolSummary};
pub use report::PromptReport;
pub use runtime_line::RuntimeInfo;

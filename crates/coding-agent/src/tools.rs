//! The built-in tools: read, bash, edit, write, ls and, with the feature `search`, grep and find.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSet, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use crate::images::ImageIntake;
use crate::machine::{Machine, MachineError};

pub mod path;
pub mod truncate;
pub mod facts;
pub mod environment;
pub mod bash;
pub mod file_queue;
pub mod edit;
pub mod read;
pub mod write;

mod listing;
mod collate;
#[cfg(feature = "search")]
pub mod grep;
#[cfg(feature = "search")]
pub mod find;
pub mod ls;
pub mod choice;

use facts::SessionFacts;
use file_queue::FileQueue;
use path::WorkingDirectory;

/// The parts that the coding tools are created from.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolParts {
    /// The machine they act on.
    pub machine: Arc<dyn Machine>,
    /// Their working directory.
    pub place: WorkingDirectory,
    /// Serializes changes to each file.
    pub files: FileQueue,
    /// How commands run.
    pub shell: bash::Shell,
    /// Facts about the session.
    pub facts: SessionFacts,
    /// Prepares images. If the session shares it, each image is decoded only once.
    pub images: ImageIntake,
    /// Returns the bytes of text that `read` may return, by the model's context window in tokens (0: unknown). `None`: a fixed number.
    pub read_budget: Option<fn(u64) -> usize>,
}

impl ToolParts {
    /// Creates parts with a separate file queue, for use outside a session.
    pub fn new(machine: Arc<dyn Machine>, place: WorkingDirectory, shell: bash::Shell) -> Self {
        Self {
            machine,
            place,
            files: FileQueue::default(),
            shell,
            facts: SessionFacts::default(),
            images: ImageIntake::default(),
            read_budget: None,
        }
    }
}

/// Names of the tools that are active by default, in order.
pub const CODING: [&str; 4] = ["read", "bash", "edit", "write"];

/// Names of the read-only tools, in order.
#[cfg(feature = "search")]
pub const READ_ONLY: &[&str] = &["read", "grep", "find", "ls"];
/// Names of the read-only tools, in order.
#[cfg(not(feature = "search"))]
pub const READ_ONLY: &[&str] = &["read", "ls"];

/// Names of all tools, in order. grep and find require the feature `search`.
#[cfg(feature = "search")]
pub const ALL: &[&str] = &["read", "bash", "edit", "write", "grep", "find", "ls"];
/// Names of all tools, in order. grep and find require the feature `search`.
#[cfg(not(feature = "search"))]
pub const ALL: &[&str] = &["read", "bash", "edit", "write", "ls"];

/// Returns all tools in order.
pub fn all_tools(parts: &ToolParts) -> ToolSet {
    let tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(read::ReadTool::new(parts)),
        Arc::new(bash::BashTool::new(parts)),
        Arc::new(edit::EditTool::new(parts)),
        Arc::new(write::WriteTool::new(parts)),
        #[cfg(feature = "search")]
        Arc::new(grep::GrepTool::new(parts)),
        #[cfg(feature = "search")]
        Arc::new(find::FindTool::new(parts)),
        Arc::new(ls::LsTool::new(parts)),
    ];
    tools.into_iter().collect()
}

/// Returns the coding tools in order.
pub fn coding_tools(parts: &ToolParts) -> ToolSet {
    all_tools(parts).filter(|tool| CODING.contains(&tool.spec().name.as_str()))
}

/// Returns the read-only tools in order.
pub fn read_only_tools(parts: &ToolParts) -> ToolSet {
    all_tools(parts).filter(|tool| READ_ONLY.contains(&tool.spec().name.as_str()))
}

/// Returns a tool's line in the system prompt's list of tools.
pub fn prompt_snippet(name: &str) -> Option<&'static str> {
    Some(match name {
        "read" => "read a file",
        "bash" => "run a shell command",
        "edit" => "replace text in a file",
        "write" => "create or overwrite a file",
        "grep" => "search file contents for a pattern, respecting .gitignore",
        "find" => "find files by a glob, respecting .gitignore",
        "ls" => "list a directory",
        _ => return None,
    })
}

/// Returns the guidelines for a tool in the system prompt.
pub fn prompt_guidelines(name: &str) -> &'static [&'static str] {
    match name {
        "read" => &["Read files with read, not with cat or sed."],
        "edit" => &[
            "edit replaces text that matches exactly; copy oldText from the file, spaces and line breaks included.",
            "Change several places of one file in one edit call with several edits.",
            "Every edit is matched against the file as it was before the call, so edits must not overlap; merge nearby changes.",
            "Keep oldText as short as possible, but long enough to occur only once in the file.",
        ],
        "write" => &["Use write for new files and for complete rewrites only."],
        _ => &[],
    }
}

/// Returns a string argument that the schema requires.
fn text<'a>(input: &'a JsonObject, name: &str) -> Result<&'a str, ToolError> {
    input.get(name).and_then(Value::as_str).ok_or_else(|| ToolError::new(format!("{name} must be a string")))
}

/// Creates the declaration of a tool, with its schema enforced if possible.
fn spec(name: &str, about: impl Into<String>, parameters: Schema) -> ToolSpec {
    let mut spec = ToolSpec::new(name, about, parameters);
    spec.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    spec
}

/// Runs a read-only tool, stopping when the call is cancelled.
async fn reading(
    cx: &ToolCx<'_>,
    work: impl Future<Output = Result<ToolOutput, ToolError>>,
) -> Result<ToolOutput, ToolError> {
    cx.cancel.check().map_err(|_| ToolError::aborted())?;
    cx.cancel.run(work).await.map_err(|_| ToolError::aborted())?
}

/// Returns the directory to search: the given one, or else the working directory.
fn folder_or_cwd(input: &JsonObject) -> &str {
    input.get("path").and_then(Value::as_str).filter(|path| !path.is_empty()).unwrap_or(".")
}

/// Returns the error for an inaccessible path.
fn not_found(path: &Path, error: MachineError) -> ToolError {
    match error.code {
        "ENOENT" | "ENOTDIR" => ToolError::new(format!("Path not found: {}", path.display())),
        _ => error.into(),
    }
}

/// Accepts older spellings of `path`.
fn accept_file_path(mut raw: JsonObject) -> JsonObject {
    if !raw.contains_key("path")
        && let Some(path) = raw.remove("file_path")
    {
        raw.insert("path".into(), path);
    }
    raw
}

/// Returns the error for a missing working directory.
fn missing_folder(cwd: &Path) -> ToolError {
    ToolError::new(format!("Working directory does not exist: {}\nCannot execute bash commands.", cwd.display()))
}

//! The built-in tools: read, bash, edit, write, and for looking around ls and, with the feature `search`, grep and find.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSet, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use crate::images::Intake;
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

/// What the coding tools are built from.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolParts {
    /// Where they act.
    pub machine: Arc<dyn Machine>,
    /// The directory they work in.
    pub place: WorkingDirectory,
    /// Keeps changes of one file apart.
    pub files: FileQueue,
    /// How commands are run.
    pub shell: bash::Shell,
    /// What they know of the session.
    pub facts: SessionFacts,
    /// Makes images fit. Who shares it with the session has each of them decoded once.
    pub images: Intake,
}

impl ToolParts {
    /// Tools with a file queue of their own, outside of a session.
    pub fn new(machine: Arc<dyn Machine>, place: WorkingDirectory, shell: bash::Shell) -> Self {
        Self {
            machine,
            place,
            files: FileQueue::default(),
            shell,
            facts: SessionFacts::default(),
            images: Intake::default(),
        }
    }
}

/// Names of the tools that are active by default, in order.
pub const CODING: [&str; 4] = ["read", "bash", "edit", "write"];

/// Names of the tools that change nothing, in order.
#[cfg(feature = "search")]
pub const READ_ONLY: &[&str] = &["read", "grep", "find", "ls"];
/// Names of the tools that change nothing, in order.
#[cfg(not(feature = "search"))]
pub const READ_ONLY: &[&str] = &["read", "ls"];

/// Names of all tools, in order. grep and find are there with the feature `search`.
#[cfg(feature = "search")]
pub const ALL: &[&str] = &["read", "bash", "edit", "write", "grep", "find", "ls"];
/// Names of all tools, in order. grep and find are there with the feature `search`.
#[cfg(not(feature = "search"))]
pub const ALL: &[&str] = &["read", "bash", "edit", "write", "ls"];

/// All tools in their order.
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

/// The coding tools in their order.
pub fn coding_tools(parts: &ToolParts) -> ToolSet {
    all_tools(parts).filter(|tool| CODING.contains(&tool.spec().name.as_str()))
}

/// The tools that change nothing, in their order.
pub fn read_only_tools(parts: &ToolParts) -> ToolSet {
    all_tools(parts).filter(|tool| READ_ONLY.contains(&tool.spec().name.as_str()))
}

/// A line for the list of tools in the system prompt.
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

/// Advice on using a tool, for the system prompt.
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

/// A string argument that the schema requires.
fn text<'a>(input: &'a JsonObject, name: &str) -> Result<&'a str, ToolError> {
    input.get(name).and_then(Value::as_str).ok_or_else(|| ToolError::new(format!("{name} must be a string")))
}

/// The declaration of a tool; each prefers to be held to its schema.
fn spec(name: &str, about: impl Into<String>, parameters: Schema) -> ToolSpec {
    let mut spec = ToolSpec::new(name, about, parameters);
    spec.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    spec
}

/// The work of a tool that only reads: given up at once when the call is cancelled.
async fn reading(
    cx: &ToolCx<'_>,
    work: impl Future<Output = Result<ToolOutput, ToolError>>,
) -> Result<ToolOutput, ToolError> {
    cx.cancel.check().map_err(|_| ToolError::aborted())?;
    cx.cancel.run(work).await.map_err(|_| ToolError::aborted())?
}

/// The directory that is searched: the one that is named, else the working directory.
fn folder_or_cwd(input: &JsonObject) -> &str {
    input.get("path").and_then(Value::as_str).filter(|path| !path.is_empty()).unwrap_or(".")
}

/// A place that cannot be looked into.
fn not_found(path: &Path, error: MachineError) -> ToolError {
    match error.code {
        "ENOENT" | "ENOTDIR" => ToolError::new(format!("Path not found: {}", path.display())),
        _ => error.into(),
    }
}

/// Takes older spellings of `path` in.
fn accept_file_path(mut raw: JsonObject) -> JsonObject {
    if !raw.contains_key("path")
        && let Some(path) = raw.remove("file_path")
    {
        raw.insert("path".into(), path);
    }
    raw
}

/// Where the sentence about a directory that is gone comes from.
fn missing_folder(cwd: &Path) -> ToolError {
    ToolError::new(format!("Working directory does not exist: {}\nCannot execute bash commands.", cwd.display()))
}

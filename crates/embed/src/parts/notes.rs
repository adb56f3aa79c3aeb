//! Tools of a run that saves memories: it reads, and appends to one file.

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_coding_agent::machine::{Machine, MachineError};
use pinch_coding_agent::tools::ToolParts;
use pinch_coding_agent::tools::file_queue::FileQueue;
use pinch_coding_agent::tools::path::WorkingDirectory;
use pinch_llm::schema::Schema;
use pinch_tools::pipeline::ToolLayers;
use pinch_tools::policy::canonical_name;
use serde_json::{Value, json};

/// Names of the tools that such a run may have.
const READ: &str = "read";
pub(crate) const WRITE: &str = "write";
/// The largest notes file that can be appended to, in bytes.
const MAX_NOTES: u64 = 4 * 1024 * 1024;

/// Reduces the tools of a run to those that save memories. If the host replaces `write`, it is unknown where that tool writes, so nothing
/// can be written.
pub(crate) fn only_notes(layers: ToolLayers, parts: &ToolParts, path: &str) -> ToolLayers {
    let is = |tool: &dyn Tool, name: &str| canonical_name(&tool.spec().name) == name;
    let writes = layers.base.get(WRITE).is_some() && !layers.replacements.iter().any(|tool| is(&**tool, WRITE));
    let notes: Option<Arc<dyn Tool>> = writes.then(|| -> Arc<dyn Tool> { Arc::new(AppendNotes::new(parts, path)) });
    let base = layers.base.filter(|tool| is(tool, READ)).iter().cloned().chain(notes).collect();
    let replacements = layers.replacements.into_iter().filter(|tool| is(&**tool, READ)).collect();
    ToolLayers { base, replacements, ..ToolLayers::default() }
}

/// A replacement for `write` while memories are saved: it only appends, and only to one file.
struct AppendNotes {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
    files: FileQueue,
    path: String,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["path", "content"],
        "properties": {
            "path": {"type": "string", "description": "The file of notes"},
            "content": {"type": "string", "description": "What is appended"},
        },
    }))
    .lenient();
    ToolSpec::new(
        WRITE,
        "Appends text to the file of today's notes, and creates it if need be. No other file can be written.",
        parameters,
    )
});

impl AppendNotes {
    fn new(parts: &ToolParts, path: &str) -> Self {
        Self {
            machine: Arc::clone(&parts.machine),
            place: parts.place.clone(),
            files: parts.files.clone(),
            path: path.to_owned(),
        }
    }
}

impl Tool for AppendNotes {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let text = |name: &str| input.get(name).and_then(Value::as_str);
            let (Some(path), Some(content)) = (text("path"), text("content")) else {
                return Err(ToolError::new("path and content must be strings"));
            };
            let place = cx.cancel.run(self.files.enter()).await.map_err(|_| ToolError::aborted())?;
            let target = self.place.resolve(&self.path, &*self.machine).await;
            if self.place.resolve(path, &*self.machine).await != target {
                return Err(ToolError::new(format!("Only {} can be written now, and only by appending", self.path)));
            }
            let turns = cx.cancel.run(place.turns(&[&target], &*self.machine)).await;
            let _turns = turns.map_err(|_| ToolError::aborted())?;
            let mut notes = match self.machine.read(&target, MAX_NOTES).await {
                Ok(notes) => notes.to_vec(),
                Err(error) if is_missing(&error) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
            if notes.last().is_some_and(|last| *last != b'\n') {
                notes.push(b'\n');
            }
            notes.extend_from_slice(content.as_bytes());
            cx.cancel.check().map_err(|_| ToolError::aborted())?;
            self.machine.write(&target, notes.into()).await?;
            Ok(ToolOutput::text(format!("Appended to {}", self.path)))
        })
    }
}

fn is_missing(error: &MachineError) -> bool {
    error.code == "ENOENT"
}

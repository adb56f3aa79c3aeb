//! `write`: creates a file, or replaces its content.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::json;

use super::file_queue::FileQueue;
use super::path::WorkingDirectory;
use super::{ToolParts, accept_file_path, text};
use crate::machine::Machine;

/// The `write` tool.
pub struct WriteTool {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
    files: FileQueue,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["path", "content"],
        "properties": {
            "path": {"type": "string", "description": "File to write, relative to the working directory or absolute"},
            "content": {"type": "string", "description": "The whole new content"},
        },
    }))
    .lenient();
    let about = "Writes a file as a whole: creates it together with its folders, or replaces what was there.";
    super::spec("write", about, parameters)
});

impl WriteTool {
    /// Creates the tool.
    pub fn new(parts: &ToolParts) -> Self {
        Self { machine: Arc::clone(&parts.machine), place: parts.place.clone(), files: parts.files.clone() }
    }
}

impl Tool for WriteTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        Ok(accept_file_path(raw))
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let path = text(&input, "path")?;
            let content = Bytes::copy_from_slice(text(&input, "content")?.as_bytes());
            let place = cx.cancel.run(self.files.enter()).await.map_err(|_| ToolError::aborted())?;
            let target = self.place.resolve(path, &*self.machine).await;
            let turns = cx.cancel.run(place.turns(&[&target], &*self.machine)).await;
            let _turns = turns.map_err(|_| ToolError::aborted())?;
            cx.cancel.check().map_err(|_| ToolError::aborted())?;
            // From here on the write is not cancelled: a file that reached the disk is never reported as aborted.
            self.machine.write(&target, content).await?;
            Ok(ToolOutput::text(format!("Successfully wrote to {path}")))
        })
    }
}

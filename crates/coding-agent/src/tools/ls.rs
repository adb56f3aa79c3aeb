//! `ls`: lists a directory.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolEffect, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::json;

use super::collate::collation_key;
use super::listing::{DirectoryListing, limit};
use super::path::WorkingDirectory;
use super::{ToolParts, folder_or_cwd, not_found, reading};
use crate::machine::{FileKind, Machine};

/// Maximum entries if no limit is given.
const DEFAULT_LIMIT: usize = 500;

/// The `ls` tool.
pub struct LsTool {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Folder to list (default: the working directory)"},
            "limit": {"type": "number", "description": "Most entries to return (default: 500)"},
        },
    }))
    .lenient();
    let about = "Lists what is in a folder, in alphabetical order and with hidden names. Folders end with /. \
                 Returns at most 500 entries or 50KB, whichever is less.";
    let mut spec = super::spec("ls", about, parameters);
    spec.effect = ToolEffect::Reads;
    spec
});

impl LsTool {
    /// Creates the tool.
    pub fn new(parts: &ToolParts) -> Self {
        Self { machine: Arc::clone(&parts.machine), place: parts.place.clone() }
    }
}

impl Tool for LsTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let work = async {
                let folder = self.place.resolve(folder_or_cwd(&input), &*self.machine).await;
                self.list(&folder, limit(&input, DEFAULT_LIMIT)).await
            };
            reading(cx, work).await
        })
    }
}

impl LsTool {
    async fn list(&self, folder: &Path, limit: usize) -> Result<ToolOutput, ToolError> {
        let stat = self.machine.stat(folder).await.map_err(|error| not_found(folder, error))?;
        if stat.kind != FileKind::Directory {
            return Err(ToolError::new(format!("Not a directory: {}", folder.display())));
        }
        let names = self.machine.list(folder).await;
        let mut names = names.map_err(|error| ToolError::new(format!("Cannot read directory: {error}")))?;
        names.sort_by_cached_key(|name| collation_key(name));
        let mut listing = DirectoryListing::default();
        let mut n_listed = 0;
        for name in names {
            let mark = match self.machine.stat(&folder.join(&name)).await {
                Ok(stat) if stat.kind == FileKind::Directory => "/",
                Ok(_) => "",
                // A dangling link.
                Err(error) if error.code == "ENOENT" || error.code == "ELOOP" => "@",
                Err(_) => continue,
            };
            if n_listed == limit {
                let more = limit.saturating_mul(2);
                let notice = format!("{limit} entries limit reached. Use limit={more} for more");
                listing.limit_reached("entryLimitReached", limit, notice);
                break;
            }
            listing.lines.push(&format!("{name}{mark}"));
            n_listed += 1;
        }
        Ok(listing.finish("(empty directory)"))
    }
}

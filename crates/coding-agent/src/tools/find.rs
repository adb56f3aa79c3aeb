//! `find`: finds paths by name.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolEffect, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::json;

use super::listing::{DirectoryListing, limit};
use super::path::WorkingDirectory;
use super::{ToolParts, folder_or_cwd, not_found, reading, text};
use crate::machine::search::{FindQuery, SearchItem};
use crate::machine::{FileKind, Machine};

/// Maximum paths if no limit is given.
const DEFAULT_LIMIT: usize = 1000;

/// The `find` tool.
pub struct FindTool {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["pattern"],
        "properties": {
            "pattern": {"type": "string", "description": "Glob for names, e.g. '*.rs', or for paths, e.g. 'src/**/*.rs'"},
            "path": {"type": "string", "description": "Folder to search (default: the working directory)"},
            "limit": {"type": "number", "description": "Most results to return (default: 1000)"},
        },
    })).lenient();
    let about = "Finds files and folders by a glob and returns their paths relative to the searched folder, sorted. \
                 Honours .gitignore; hidden names are found too. Returns at most 1000 results or 50KB, whichever is less.";
    let mut spec = super::spec("find", about, parameters);
    spec.effect = ToolEffect::Reads;
    spec
});

impl FindTool {
    /// Creates the tool.
    pub fn new(parts: &ToolParts) -> Self {
        Self { machine: Arc::clone(&parts.machine), place: parts.place.clone() }
    }
}

impl Tool for FindTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let work = async {
                let pattern = text(&input, "pattern")?;
                let root = self.place.resolve(folder_or_cwd(&input), &*self.machine).await;
                self.find(root, pattern, limit(&input, DEFAULT_LIMIT)).await
            };
            reading(cx, work).await
        })
    }
}

impl FindTool {
    async fn find(&self, root: PathBuf, pattern: &str, limit: usize) -> Result<ToolOutput, ToolError> {
        let stat = self.machine.stat(&root).await.map_err(|error| not_found(&root, error))?;
        if stat.kind != FileKind::Directory {
            return Err(ToolError::new(format!("Not a directory: {}", root.display())));
        }
        let mut listing = DirectoryListing::default();
        let (mut n_found, mut n_unreadable) = (0, 0);
        let mut found = self.machine.find(FindQuery::new(root, pattern));
        while let Some(seen) = found.next().await {
            let path = match seen? {
                SearchItem::Hit(path) => path,
                SearchItem::Unreadable(_) => {
                    n_unreadable += 1;
                    continue;
                }
            };
            if n_found == limit {
                let more = limit.saturating_mul(2);
                let notice = format!("{limit} results limit reached. Use limit={more} for more, or refine pattern");
                listing.limit_reached("resultLimitReached", limit, notice);
                break;
            }
            n_found += 1;
            let mark = if path.is_dir { "/" } else { "" };
            listing.lines.push(&format!("{}{mark}", path.path));
        }
        listing.unreadable(n_unreadable);
        Ok(listing.finish("No files found matching pattern"))
    }
}

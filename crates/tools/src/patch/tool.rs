//! The `apply_patch` tool.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolMode, ToolOutput, ToolSpec};
use pinch_coding_agent::tools::file_queue::FileQueue;
use pinch_llm::schema::Schema;
use pinch_machine::Machine;
use serde_json::{Value, json};

use super::journal::{JournalPlace, apply, finish_interrupted};
use super::parse::FilePatch;
use super::plan::{PatchPath, ResolvedFile, plan};
use crate::paths::PathRoot;

/// Where patches may be applied.
#[derive(Clone, Debug)]
pub struct PatchTarget {
    /// Base of relative paths.
    pub cwd: PathBuf,
    /// Expansion of `~`.
    pub home: Option<PathBuf>,
    /// Directory that must contain all changed files; `None` allows any.
    pub root: Option<PathBuf>,
    /// Directory for the journals of patches that may change any file; only this program may write to it. Without one, such patches have
    /// their journals in `cwd`, and only the files below it are completed after a crash.
    pub journals: Option<PathBuf>,
}

impl PatchTarget {
    /// Creates a place that only allows files in a workspace to change.
    pub fn workspace(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { cwd: root.clone(), home: None, root: Some(root), journals: None }
    }

    fn journals(&self) -> JournalPlace<'_> {
        match (&self.root, &self.journals) {
            (None, Some(journals)) => JournalPlace::private(journals),
            (root, _) => JournalPlace::within(root.as_ref().unwrap_or(&self.cwd)),
        }
    }

    async fn resolve(&self, path: &str, machine: &dyn Machine) -> Result<PatchPath, ToolError> {
        let root = PathRoot {
            root: self.root.clone().unwrap_or_else(|| PathBuf::from("/")),
            cwd: self.cwd.clone(),
            home: self.home.clone(),
        };
        let absolute = match &self.root {
            Some(_) => root.contain(path, machine).await?.path,
            None => root.absolute(path),
        };
        let shown = absolute.strip_prefix(&self.cwd).unwrap_or(&absolute).display().to_string();
        // Without a root, a path may lead through links: the target is changed and locked.
        let path = match &self.root {
            Some(_) => absolute,
            None => real_place(&absolute, machine).await,
        };
        Ok(PatchPath { path, shown })
    }
}

/// Resolves the real path; for a missing file, of its nearest existing directory with the rest appended.
async fn real_place(path: &Path, machine: &dyn Machine) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = machine.real_path(ancestor).await {
            return match path.strip_prefix(ancestor) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                _ => real,
            };
        }
    }
    path.to_owned()
}

/// Applies a patch to several files, completely or not at all.
pub struct ApplyPatchTool {
    machine: Arc<dyn Machine>,
    place: PatchTarget,
    files: FileQueue,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["input"],
        "properties": {
            "input": {"type": "string", "description": "The patch, from *** Begin Patch to *** End Patch"},
        },
    }));
    let about = "Applies a patch to one or more files: all of it, or nothing. A patch is '*** Begin Patch', then for each file \
                 '*** Add File: path' with its lines, each after '+'; '*** Delete File: path'; or '*** Update File: path', which may be followed by \
                 '*** Move to: path', and then by places: '@@' or '@@ line before the place', and lines after ' ' (kept), '-' (removed) or \
                 '+' (added), and '*** End of File' if the place is there; then '*** End Patch'.";
    let mut spec = ToolSpec::new("apply_patch", about, parameters);
    spec.mode = ToolMode::Sequential;
    spec
});

impl ApplyPatchTool {
    /// Creates the tool. Share `files` with the other tools that change files.
    pub fn new(machine: Arc<dyn Machine>, place: PatchTarget, files: FileQueue) -> Self {
        Self { machine, place, files }
    }

    async fn apply(&self, input: &JsonObject, cx: &ToolCx<'_>) -> Result<ToolOutput, ToolError> {
        let patch = input.get("input").and_then(Value::as_str).unwrap_or_default();
        if patch.trim().is_empty() {
            return Err(ToolError::new("Provide a patch input."));
        }
        let machine = &*self.machine;
        let files = FilePatch::parse(patch)?;
        if files.is_empty() {
            return Err(ToolError::new("No files were modified."));
        }
        let place = cx.cancel.run(self.files.enter()).await.map_err(|_| ToolError::aborted())?;
        let journals = self.place.journals();
        finish_interrupted(journals, machine).await?;
        let mut resolved = Vec::with_capacity(files.len());
        for file in files {
            let (path, move_to) = match &file {
                FilePatch::Add { path, .. } | FilePatch::Delete { path } => (path, None),
                FilePatch::Update { path, move_to, .. } => (path, move_to.as_ref()),
            };
            let path = self.place.resolve(path, machine).await?;
            let move_to = match move_to {
                Some(target) => Some(self.place.resolve(target, machine).await?),
                None => None,
            };
            resolved.push(ResolvedFile { file, path, move_to });
        }
        let paths = resolved.iter().flat_map(|file| [Some(&file.path), file.move_to.as_ref()]);
        let paths: Vec<&Path> = paths.flatten().map(|path| &*path.path).collect();
        let turns = cx.cancel.run(place.turns(&paths, machine)).await;
        let _turns = turns.map_err(|_| ToolError::aborted())?;
        let planned = cx.cancel.run(plan(&resolved, machine, cx.cancel)).await;
        let (changes, summary) = planned.map_err(|_| ToolError::aborted())??;
        cx.cancel.check().map_err(|_| ToolError::aborted())?;
        // From here on the patch is not cancelled.
        apply(&changes, journals, &cx.host.ids().uuid_v4(), machine).await?;
        Ok(ToolOutput { details: Some(summary.details()), ..ToolOutput::text(summary.text()) })
    }
}

impl Tool for ApplyPatchTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.apply(&input, cx).await })
    }
}

#[cfg(test)]
mod tests;

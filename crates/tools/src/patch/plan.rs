//! Computing in memory what a patch makes of the current files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pinch_agent_core::tool::ToolError;
use pinch_machine::{FileKind, Machine};
use pinch_stdx::cancel::Cancel;
use serde_json::{Value, json};

use super::lines::{PlaceError, patched};
use super::parse::{FilePatch, PatchChunk};
use super::search::{SearchStop, WorkLimit};

/// Maximum bytes of a file to update.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// A path in a patch, resolved and as displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatchPath {
    pub(super) path: PathBuf,
    pub(super) shown: String,
}

/// A file in a patch with its paths resolved.
pub(super) struct ResolvedFile {
    pub(super) file: FilePatch,
    pub(super) path: PatchPath,
    pub(super) move_to: Option<PatchPath>,
}

/// A file before and after; `None` where it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    pub(super) before: Option<Bytes>,
    pub(super) after: Option<Bytes>,
}

/// The names of the changed files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PatchSummary {
    added: Vec<String>,
    modified: Vec<String>,
    deleted: Vec<String>,
}

impl PatchSummary {
    fn note(list: &mut Vec<String>, path: &PatchPath) {
        if !list.contains(&path.shown) {
            list.push(path.shown.clone());
        }
    }

    /// Returns the text for the model.
    pub(super) fn text(&self) -> String {
        let groups = [("A", &self.added), ("M", &self.modified), ("D", &self.deleted)];
        let lines = groups.iter().flat_map(|(mark, paths)| paths.iter().map(move |path| format!("\n{mark} {path}")));
        format!("Success. Updated the following files:{}", lines.collect::<String>())
    }

    pub(super) fn details(&self) -> Value {
        json!({"summary": {"added": self.added, "modified": self.modified, "deleted": self.deleted}})
    }
}

/// The files of a plan, before and after.
#[derive(Default)]
struct PlannedFiles(BTreeMap<PathBuf, FileChange>);

impl PlannedFiles {
    /// Returns a file, reading it on first use. Anything other than a regular file is rejected.
    async fn open(&mut self, path: &Path, machine: &dyn Machine) -> Result<&mut FileChange, ToolError> {
        if !self.0.contains_key(path) {
            let before = match machine.stat(path).await {
                Ok(stat) if stat.kind == FileKind::File => Some(machine.read(path, MAX_FILE_BYTES).await?),
                Ok(_) => return Err(ToolError::new(format!("Not a regular file: {}", path.display()))),
                Err(error) if error.code == "ENOENT" => None,
                Err(error) => return Err(error.into()),
            };
            let change = FileChange { path: path.to_owned(), before: before.clone(), after: before };
            self.0.insert(path.to_owned(), change);
        }
        self.0.get_mut(path).ok_or_else(|| ToolError::new("the file is gone"))
    }
}

/// Computes the new contents of the files in a patch, one after another. Changes nothing.
pub(super) async fn plan(
    files: &[ResolvedFile],
    machine: &dyn Machine,
    cancel: &Cancel,
) -> Result<(Vec<FileChange>, PatchSummary), ToolError> {
    let mut planned = PlannedFiles::default();
    let mut summary = PatchSummary::default();
    let mut limit = WorkLimit::new(cancel.clone());
    for ResolvedFile { file, path, move_to } in files {
        let change = planned.open(&path.path, machine).await?;
        match file {
            FilePatch::Add { content, .. } => {
                if change.after.is_some() {
                    let text = format!(
                        "Cannot add {}: the file exists already. Use '*** Update File:', or delete it first.",
                        path.shown
                    );
                    return Err(ToolError::new(text));
                }
                change.after = Some(Bytes::copy_from_slice(content.as_bytes()));
                PatchSummary::note(&mut summary.added, path);
            }
            FilePatch::Delete { .. } => {
                if change.after.take().is_none() {
                    return Err(ToolError::new(format!("Failed to delete {}: no such file", path.path.display())));
                }
                PatchSummary::note(&mut summary.deleted, path);
            }
            FilePatch::Update { chunks, .. } => {
                let Some(content) = change.after.clone() else {
                    let text = format!("Failed to read file to update {}: no such file", path.path.display());
                    return Err(ToolError::new(text));
                };
                let new = update(content, chunks.clone(), &path.path, &mut limit).await?;
                let target = move_to.as_ref().filter(|target| target.path != path.path);
                match target {
                    None => change.after = Some(new),
                    Some(target) => {
                        change.after = None;
                        let moved = planned.open(&target.path, machine).await?;
                        if moved.after.is_some() {
                            let text = format!(
                                "Cannot move {} to {}: the file exists already. Delete it first in the patch to replace it.",
                                path.shown, target.shown
                            );
                            return Err(ToolError::new(text));
                        }
                        moved.after = Some(new);
                    }
                }
                PatchSummary::note(&mut summary.modified, target.unwrap_or(path));
            }
        }
    }
    let changes = planned.0.into_values().filter(|change| change.before != change.after).collect();
    Ok((changes, summary))
}

/// Computes the new text of a file, on a blocking thread because searching long files takes a while.
async fn update(
    content: Bytes,
    chunks: Vec<PatchChunk>,
    path: &Path,
    limit: &mut WorkLimit,
) -> Result<Bytes, ToolError> {
    let mut own = limit.clone();
    let work = tokio::task::spawn_blocking(move || match std::str::from_utf8(&content) {
        Ok(text) => (Some(patched(text, &chunks, &mut own)), own),
        Err(_) => (None, own),
    });
    let shown = path.display();
    let failed = |text: String| Err(ToolError::new(text));
    let Ok((patched, left)) = work.await else { return failed("The patch failed; nothing was changed.".to_owned()) };
    *limit = left;
    match patched {
        Some(Ok(new)) => Ok(new.into()),
        Some(Err(PlaceError::Context(context))) => failed(format!("Failed to find context '{context}' in {shown}")),
        Some(Err(PlaceError::Lines(lines))) => failed(format!("Failed to find expected lines in {shown}:\n{lines}")),
        Some(Err(PlaceError::Stopped(SearchStop::TooMuch))) => {
            failed(format!("The patch is too large for {shown}. Split it."))
        }
        Some(Err(PlaceError::Stopped(SearchStop::Cancelled))) => Err(ToolError::aborted()),
        None => failed(format!("{shown} is not UTF-8 text")),
    }
}

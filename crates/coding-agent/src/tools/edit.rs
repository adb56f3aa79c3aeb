//! `edit`: replaces text in a file.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use pinch_stdx::text::shortened;
use serde_json::{Value, json};

use super::file_queue::FileQueue;
use super::path::WorkingDirectory;
use super::{ToolParts, accept_file_path, text};
use crate::machine::{MAX_PATH, Machine};

mod mapped;
pub mod matching;
pub mod diff;

use diff::RenderedDiff;
use matching::TextReplacement;

/// Maximum bytes of a file to edit; it is held in memory several times.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The `edit` tool.
pub struct EditTool {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
    files: FileQueue,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let about = "Changes places in one file. Every oldText must match the file exactly and stand there once; \
                 edits must be small and must not overlap.";
    super::spec("edit", about, parameters())
});

impl EditTool {
    /// Creates the tool.
    pub fn new(parts: &ToolParts) -> Self {
        Self { machine: Arc::clone(&parts.machine), place: parts.place.clone(), files: parts.files.clone() }
    }
}

impl Tool for EditTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        Ok(prepare(raw))
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            cx.cancel.check().map_err(|_| ToolError::aborted())?;
            let path = text(&input, "path")?;
            let edits = edits(&input)?;
            let place = cx.cancel.run(self.files.enter()).await.map_err(|_| ToolError::aborted())?;
            let target = self.place.resolve(path, &*self.machine).await;
            let turns = cx.cancel.run(place.turns(&[&target], &*self.machine)).await;
            let _turns = turns.map_err(|_| ToolError::aborted())?;
            let refused = |code: &str| {
                ToolError::new(format!("Could not edit file: {}. Error code: {code}.", shortened(path, MAX_PATH)))
            };
            let content = self.machine.read(&target, MAX_FILE_BYTES).await.map_err(|error| refused(error.code))?;
            let (n_edits, name) = (edits.len(), path.to_owned());
            // Large files take a while, so use a blocking thread.
            let work = tokio::task::spawn_blocking(move || change(&content, &edits, &name));
            let changed = cx.cancel.run(work).await.map_err(|_| ToolError::aborted())?;
            let (new, shown) = changed.map_err(|_| ToolError::new("The edit failed; nothing was changed."))??;
            self.machine.write(&target, Bytes::from(new)).await.map_err(|error| refused(error.code))?;
            Ok(ToolOutput {
                details: Some(json!({
                    "diff": shown.diff,
                    "patch": shown.patch,
                    "firstChangedLine": shown.first_changed_line,
                })),
                ..ToolOutput::text(format!("Successfully replaced {n_edits} block(s) in {path}."))
            })
        })
    }
}

/// Returns the new text of a file, and the differences.
fn change(content: &[u8], edits: &[TextReplacement], path: &str) -> Result<(String, RenderedDiff), ToolError> {
    let old = std::str::from_utf8(content)
        .map_err(|_| ToolError::new(format!("{path} is not UTF-8 text; change it with bash instead.")))?;
    let new = matching::apply(old, edits, path).map_err(ToolError::new)?;
    let shown = diff::show(old, &new, path);
    Ok((new, shown))
}

fn parameters() -> Schema {
    let schema = json!({
        "type": "object",
        "required": ["path", "edits"],
        "properties": {
            "path": {"type": "string", "description": "File to change, relative to the working directory or absolute"},
            "edits": {
                "type": "array",
                "description": "Replacements. Each is matched against the file as it was before the call; they must not overlap",
                "items": {
                    "type": "object",
                    "required": ["oldText", "newText"],
                    "properties": {
                        "oldText": {"type": "string", "description": "Text to find; it must occur exactly once in the file"},
                        "newText": {"type": "string", "description": "Text to put in its place"},
                    },
                },
            },
        },
    });
    Schema::new(schema).lenient()
}

/// Accepts spellings that models learned elsewhere: a single pair at the top level, a list as JSON text, an object instead of a list.
fn prepare(raw: JsonObject) -> JsonObject {
    let mut raw = accept_file_path(raw);
    if let Some(Value::String(list)) = raw.get("edits")
        && let Ok(list @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(list)
    {
        raw.insert("edits".into(), list);
    }
    if let Some(Value::Object(_)) = raw.get("edits")
        && let Some(one) = raw.remove("edits")
    {
        raw.insert("edits".into(), Value::Array(vec![one]));
    }
    for (old, new) in [("oldText", "newText"), ("old_string", "new_string")] {
        if matches!((raw.get(old), raw.get(new)), (Some(Value::String(_)), Some(Value::String(_)))) {
            let pair = json!({"oldText": raw.remove(old), "newText": raw.remove(new)});
            match raw.get_mut("edits") {
                Some(Value::Array(list)) => list.push(pair),
                _ => drop(raw.insert("edits".into(), Value::Array(vec![pair]))),
            }
        }
    }
    if let Some(Value::Array(list)) = raw.get_mut("edits") {
        list.iter_mut().filter_map(Value::as_object_mut).for_each(tidy_edit);
    }
    raw.retain(|name, _| matches!(name.as_str(), "path" | "edits"));
    raw
}

/// Renames legacy members of an edit, and drops unknown ones.
fn tidy_edit(edit: &mut JsonObject) {
    for (other, name) in [("old_string", "oldText"), ("new_string", "newText")] {
        if !edit.contains_key(name)
            && let Some(value) = edit.remove(other)
        {
            edit.insert(name.into(), value);
        }
    }
    edit.retain(|name, _| matches!(name.as_str(), "oldText" | "newText"));
}

fn edits(input: &JsonObject) -> Result<Vec<TextReplacement>, ToolError> {
    let list = input.get("edits").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let text = |edit: &Value, name: &str| edit[name].as_str().unwrap_or_default().to_owned();
    let edits: Vec<TextReplacement> =
        list.iter().map(|edit| TextReplacement { old: text(edit, "oldText"), new: text(edit, "newText") }).collect();
    if edits.is_empty() {
        return Err(ToolError::new("Edit tool input is invalid. edits must contain at least one replacement."));
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superfluous_arguments_are_accepted() {
        let args = json!({"path": "f", "edits": [{"oldText": "a", "newText": "b", "why": "x"}], "note": 1});
        let args = args.as_object().unwrap();
        let checked = pinch_llm::schema::validate_tool_arguments("edit", &parameters(), args);
        assert_eq!(checked.map_err(|why| why.text), Ok(args.clone()));
    }

    #[track_caller]
    fn check(raw: Value, expected: Value) {
        assert_eq!(Value::Object(prepare(raw.as_object().unwrap().clone())), expected);
    }

    #[test]
    fn other_spellings_are_accepted() {
        let one = json!({"oldText": "a", "newText": "b"});
        check(json!({"path": "f", "oldText": "a", "newText": "b"}), json!({"path": "f", "edits": [one]}));
        check(json!({"file_path": "f", "old_string": "a", "new_string": "b"}), json!({"path": "f", "edits": [one]}));
        check(json!({"path": "f", "edits": one.to_string()}), json!({"path": "f", "edits": [one]}));
        check(
            json!({"path": "f", "edits": [{"old_string": "a", "new_string": "b", "why": "x"}], "note": 1}),
            json!({"path": "f", "edits": [one]}),
        );
    }
}

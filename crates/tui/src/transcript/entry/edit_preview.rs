//! What a call of `edit` is about to change, before its result shows what it has changed.

use std::time::Duration;

use pinch_agent_core::tool::JsonObject;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Time limit for comparing texts; then all old lines are removed and all new ones added.
const DEADLINE: Duration = Duration::from_millis(20);
/// Maximum size of the texts that are compared, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Returns the replacements of a call as a diff without line numbers; `None` if it names none.
pub(super) fn edit_preview(arguments: &JsonObject) -> Option<String> {
    let pair = |edit: &Value| {
        let text = |key: &str| edit.get(key).and_then(Value::as_str).map(str::to_owned);
        Some((text("oldText")?, text("newText")?))
    };
    let mut edits: Vec<(String, String)> =
        arguments.get("edits").and_then(Value::as_array).into_iter().flatten().filter_map(pair).collect();
    edits.extend(pair(&Value::Object(arguments.clone())));
    let size: usize = edits.iter().map(|(old, new)| old.len() + new.len()).sum();
    if edits.is_empty() || size > MAX_BYTES {
        return None;
    }
    let parts: Vec<String> = edits.iter().map(|(old, new)| compared(old, new)).collect();
    Some(parts.join("  ...\n"))
}

fn compared(old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DEADLINE).diff_lines(old, new);
    let mut text = String::new();
    for change in diff.iter_all_changes() {
        text.push_str(match change.tag() {
            ChangeTag::Equal => "  ",
            ChangeTag::Delete => "- ",
            ChangeTag::Insert => "+ ",
        });
        text.push_str(change.value().trim_end_matches(['\r', '\n']));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn preview(arguments: &Value) -> Option<String> {
        edit_preview(arguments.as_object()?)
    }

    #[test]
    fn replacements_are_compared_line_by_line() {
        let edit = json!({"oldText": "a\nb\nc", "newText": "a\nB\nc"});
        assert_eq!(preview(&edit).as_deref(), Some("  a\n- b\n+ B\n  c\n"));
        let both = json!({"path": "x", "edits": [edit, {"oldText": "", "newText": "new"}, {"oldText": 7}]});
        assert_eq!(preview(&both).as_deref(), Some("  a\n- b\n+ B\n  c\n  ...\n+ new\n"));
        assert_eq!(preview(&json!({"path": "x"})), None);
        assert_eq!(preview(&json!({"oldText": "x".repeat(MAX_BYTES), "newText": "y"})), None);
    }
}

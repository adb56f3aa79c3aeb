//! Repair of damaged session files.

use pinch_embed::ports::repair_session_file;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::super::only;
use super::check;

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    (area == "session-file-repair").then(|| repaired(given).and_then(|actual| check(expect, &actual)))
}

/// Repairs a file with the text of the case; a case without a text has no file.
fn repaired(given: &Value) -> Result<Value, String> {
    only(given, &["text"])?;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = dir.path().join("s.jsonl");
    let before = match &given["text"] {
        Value::Null => None,
        Value::String(text) => {
            std::fs::write(&path, text).map_err(|error| error.to_string())?;
            Some(text)
        }
        other => return Err(format!("given.text is no text: {other}")),
    };
    let mut report = repair_session_file(&path, &Host::builder().build()).map_err(|error| error.to_string())?.to_json();
    let backup = report["backupPath"].as_str().and_then(|path| std::fs::read_to_string(path).ok());
    report["backupEqualsOriginal"] = (backup.is_some() && backup.as_ref() == before).into();
    let after = std::fs::read_to_string(&path).ok();
    report["fileUnchanged"] = (after.as_ref() == before).into();
    report["text"] = json!(after);
    Ok(report)
}

//! Workspace files in the system prompt.

use pinch_embed::config::prompt::BootstrapLimits;
use pinch_embed::prompt::bootstrap::{WorkspaceFile, inject, is_for};
use serde_json::{Value, json};

use super::super::only;
use super::check;

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    (area == "bootstrap").then(|| match given.get("files") {
        Some(files) => kept(given, files).and_then(|kept| check(expect, &json!({"kept": kept}))),
        None => injected(given, expect),
    })
}

fn kept<'a>(given: &Value, files: &'a Value) -> Result<Vec<&'a str>, String> {
    only(given, &["sessionKey", "files"])?;
    let names = files.as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(names.filter(|name| is_for(given["sessionKey"].as_str(), name)).collect())
}

fn injected(given: &Value, expect: &Value) -> Result<(), String> {
    only(given, &["file", "limit"])?;
    only(expect, &["unchanged", "skipped", "content", "startsWith", "endsWith", "mentions"])?;
    let file = &given["file"];
    only(file, &["name", "path", "content", "missing"])?;
    let content = match &file["content"] {
        Value::Object(repeat) => {
            let (part, n) = (repeat["repeat"][0].as_str(), repeat["repeat"][1].as_u64());
            let n = n.and_then(|n| usize::try_from(n).ok());
            Some(part.zip(n).ok_or("repeat is no text and number")?).map(|(part, n)| part.repeat(n))
        }
        other => other.as_str().map(str::to_owned),
    };
    let name = file["name"].as_str().unwrap_or("AGENTS.md").to_owned();
    let path = file["path"].as_str().unwrap_or(&name).into();
    let text = content.clone().filter(|_| file["missing"] != true);
    let mut limits = BootstrapLimits::default();
    if let Some(limit) = given["limit"].as_u64().filter(|limit| *limit > 0) {
        limits.file = usize::try_from(limit).map_err(|error| error.to_string())?;
    }
    let injected = inject([WorkspaceFile { name, path, text }], limits);
    let Some(file) = injected.first() else {
        return check(expect, &json!({"skipped": true}));
    };
    let text = file.text.as_str();
    let is_unchanged = Some(text) == content.as_deref();
    let edge = |name: &str, holds: &dyn Fn(&str) -> bool| match &expect[name] {
        Value::String(part) if holds(part) => json!(part),
        _ => Value::Null,
    };
    let mentions = match &expect["mentions"] {
        Value::String(part) if text.contains(part.as_str()) => json!(part),
        Value::Array(parts) => {
            parts.iter().filter(|part| part.as_str().is_some_and(|part| text.contains(part))).cloned().collect()
        }
        _ => Value::Null,
    };
    check(
        expect,
        &json!({
            "unchanged": is_unchanged,
            "content": text,
            "startsWith": edge("startsWith", &|part| text.starts_with(part)),
            "endsWith": edge("endsWith", &|part| text.ends_with(part)),
            "mentions": mentions,
        }),
    )
}

//! `apply_patch`, `path-containment`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::{Progress, Tool as _, ToolCx};
use pinch_coding_agent::machine::LocalMachine;
use pinch_coding_agent::tools::file_queue::FileQueue;
use pinch_llm::message::Block;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_tools::patch::{ApplyPatchTool, PatchTarget};
use pinch_tools::paths::PathRoot;
use serde_json::{Map, Value, json};

use super::super::Case;
use super::{block_on, only};

pub(super) fn patch(input: &Value, expect: &Value) -> Result<(), String> {
    only(input, &["files", "patch", "workspaceOnly"])?;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    // In the form in which errors show it.
    let cwd = dir.path().canonicalize().map_err(|error| error.to_string())?.join("cwd");
    std::fs::create_dir(&cwd).map_err(|error| error.to_string())?;
    for (path, text) in input["files"].as_object().into_iter().flatten() {
        write(&cwd.join(path), text.as_str().unwrap_or_default())?;
    }
    let mut place = PatchTarget::workspace(&cwd);
    if input["workspaceOnly"] == false {
        place.root = None;
    }
    let tool = ApplyPatchTool::new(Arc::new(LocalMachine), place, FileQueue::default());
    let (cancel, host, progress) = (Cancel::new(), Host::system(), Progress::ignored());
    let call = "call-1".into();
    let cx = ToolCx { call: &call, cancel: &cancel, progress: &progress, host: &host };
    let arguments = match input.get("patch") {
        Some(patch) => Map::from_iter([("input".to_owned(), patch.clone())]),
        None => Map::new(),
    };
    let ran = block_on(tool.run(arguments, &cx))?;
    let named = |text: &str| text.replace(cwd.to_string_lossy().as_ref(), "<cwd>");
    let mut actual = match ran {
        Ok(output) => json!({
            "ok": !output.failed,
            "text": output.content.first().and_then(Block::as_text).map(named),
            "summary": output.details.unwrap_or_default()["summary"],
        }),
        Err(error) => json!({"ok": false, "error": named(&error.text)}),
    };
    actual["files"] = json!(tree(&cwd)?);
    super::check(expect, &actual)?;
    let extra = actual["files"]
        .as_object()
        .into_iter()
        .flatten()
        .find(|(path, _)| expect["files"].as_object().is_some_and(|files| !files.contains_key(*path)));
    extra.map_or(Ok(()), |(path, _)| Err(format!("there is a file {path} too many")))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    written.and_then(|()| std::fs::write(path, text)).map_err(|error| format!("{}: {error}", path.display()))
}

/// The files below a directory, with their texts.
fn tree(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read(&path).map_err(|error| error.to_string())?;
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.insert(name, String::from_utf8_lossy(&text).into_owned());
        }
    }
    Ok(files)
}

pub(super) fn contain(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["files", "symlinks", "path", "home"])?;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let root = dir.path().canonicalize().map_err(|error| error.to_string())?.join("root");
    std::fs::create_dir(&root).map_err(|error| error.to_string())?;
    let filled = |text: &str| text.replace("<root>", &root.to_string_lossy());
    for file in super::texts(&input["files"]) {
        write(&root.join(file), "")?;
    }
    for (link, target) in input["symlinks"].as_object().into_iter().flatten() {
        let link = root.join(link);
        let made = link.parent().map_or(Ok(()), std::fs::create_dir_all);
        let target = filled(target.as_str().unwrap_or_default());
        made.and_then(|()| std::os::unix::fs::symlink(target, &link)).map_err(|error| error.to_string())?;
    }
    let mut place = PathRoot::new(&root);
    place.home = Some(input["home"].as_str().map_or_else(|| "/home/u".into(), |home| filled(home).into()));
    let path = filled(input["path"].as_str().ok_or("no path")?);
    let found = block_on(place.contain(&path, &LocalMachine))?;
    Ok(match found {
        Ok(found) => json!({"ok": true, "relative": found.relative.to_string_lossy()}),
        Err(error) => {
            json!({"ok": false, "error": error.to_string().replace(root.to_string_lossy().as_ref(), "<root>")})
        }
    })
}

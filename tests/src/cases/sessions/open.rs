//! Opening and forking files.

use std::sync::Arc;

use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::session_log::{Context, EntryTree, NewSession, SessionLog};
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use serde_json::{Map, Value, json};

use super::{PROCESS_CWD, SessionWorld, block_on, parsed_lines};

/// Opens the file and returns everything about it.
pub(super) fn session_open(world: &SessionWorld) -> Result<Value, String> {
    let path = world.write_file()?;
    let before = std::fs::read(&path).ok();
    let result = show(world, &path);
    let rewritten = std::fs::read(&path).ok() != before;
    let mut shown = match result? {
        Ok(shown) => shown,
        Err(error) => Map::from_iter([("error".to_owned(), error.into())]),
    };
    shown.insert("fileRewritten".into(), rewritten.into());
    if rewritten {
        shown.insert("fileAfter".into(), parsed_lines(&path));
    }
    Ok(shown.into())
}

fn show(world: &SessionWorld, path: &std::path::Path) -> Result<Result<Map<String, Value>, String>, String> {
    let store = Arc::new(JsonlStore::flat(world.dir.path()));
    let at = SessionRef::Path(path.to_owned());
    let log = match block_on(SessionLog::open(&world.host, store, &at, PROCESS_CWD))? {
        Ok(log) => log,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let context = match world.input.get("contextLeafId") {
        None => Ok(log.context()),
        Some(leaf) => log.context_at(leaf.as_str().map(EntryId::new).as_ref()),
    };
    let context = match context {
        Ok(context) => context,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let shown = json!({
        "sessionId": log.id(),
        "cwd": log.cwd(),
        "leafId": log.leaf_id().map(EntryId::as_str),
        "entryIds": log.entry_ids().map(EntryId::as_str).collect::<Vec<_>>(),
        "context": context_value(&context),
        "tree": tree_value(&log.tree()),
        "sessionName": log.name(),
    });
    let Value::Object(shown) = shown else { return Err("not an object".into()) };
    Ok(Ok(shown))
}

fn context_value(context: &Context) -> Value {
    json!({
        "messages": context.messages.iter().map(|message| message.to_value()).collect::<Vec<_>>(),
        "thinkingLevel": context.thinking_level,
        "model": context.model.as_ref().map(|model| json!({ "provider": model.provider.as_str(), "modelId": model.model_id.as_str() })),
    })
}

fn tree_value(tree: &EntryTree) -> Value {
    fn node(tree: &EntryTree, at: usize) -> Value {
        let shown = &tree.nodes[at];
        let mut value = json!({
            "id": shown.id.as_str(),
            "type": shown.type_name,
            "children": shown.children.iter().map(|at| node(tree, *at)).collect::<Vec<_>>(),
        });
        if let Some(label) = &shown.label {
            value["label"] = label.text.as_str().into();
            value["labelTimestamp"] = label.timestamp.as_str().into();
        }
        value
    }
    tree.roots.iter().map(|at| node(tree, *at)).collect()
}

/// Copies the file into a new session of another working directory.
pub(super) fn session_fork_from(world: &SessionWorld) -> Result<Value, String> {
    let path = world.write_file()?;
    let store = Arc::new(JsonlStore::flat(world.dir.path()));
    let cwd = world.text("targetCwd")?;
    match block_on(SessionLog::fork_from(&world.host, store, &SessionRef::Path(path), NewSession::in_directory(cwd)))? {
        Err(error) => Ok(json!({ "error": error.to_string() })),
        Ok(log) => {
            let file = log.path().ok_or("no file")?;
            let roles: Vec<String> = log.context().messages.iter().map(|m| m.role().to_owned()).collect();
            Ok(json!({ "fileAfter": parsed_lines(file), "contextRoles": roles }))
        }
    }
}

/// Any error text is accepted; facts about the file are compared where given.
pub(super) fn forgive(expected: &Value, actual: &mut Value) {
    let (Some(wanted), Some(found)) = (expected.as_object(), actual.as_object_mut()) else { return };
    if let (Some(text), Some(_)) = (wanted.get("error"), found.get("error")) {
        found.insert("error".into(), text.clone());
        found.retain(|name, _| wanted.contains_key(name));
    }
    if !wanted.contains_key("contextRoles") {
        found.remove("contextRoles");
    }
}

//! Directory names and session lists.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pinch_coding_agent::entry::names;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::search::{self, NameFilter, SearchQuery, SearchToken, SortMode};
use pinch_coding_agent::store::{JsonlStore, ListScope, SessionStore as _, SessionSummary};
use pinch_stdx::host::{iso_from_ms, ms_from_iso};
use serde_json::{Map, Value, json};

use super::{SessionWorld, block_on};

/// The default working directory of listed sessions.
const CWD: &str = "/home/proj";

/// The directory name of each working directory.
pub(super) fn session_dir_name(world: &SessionWorld) -> Result<Value, String> {
    let cwds = world.input["cwds"].as_array().ok_or("input.cwds is no list")?;
    let named = cwds.iter().filter_map(Value::as_str).map(|cwd| (cwd.to_owned(), names::dir_name(cwd).into()));
    Ok(named.collect::<Map<_, _>>().into())
}

fn write_files(world: &SessionWorld) -> Result<(), String> {
    for file in world.input["files"].as_array().ok_or("input.files is no list")? {
        let path = world.path(file["name"].as_str().ok_or("a file without name")?);
        std::fs::write(&path, file["text"].as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
        let seconds = file["mtimeSeconds"].as_f64().unwrap_or_default();
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds);
        let open = File::options().write(true).open(&path).map_err(|e| e.to_string())?;
        open.set_times(FileTimes::new().set_modified(modified)).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn cwd(world: &SessionWorld) -> &str {
    world.input["cwd"].as_str().unwrap_or(CWD)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The entries of a directory's session list.
pub(super) fn session_list(world: &SessionWorld) -> Result<Value, String> {
    write_files(world)?;
    let store = JsonlStore::flat(world.dir.path());
    let found = block_on(store.list(ListScope::Cwd(cwd(world).to_owned())))?.map_err(|e| e.to_string())?;
    let shown = found.into_iter().map(|summary| {
        let cwd = if summary.cwd.len() > 100 { "<as in header>".to_owned() } else { summary.cwd };
        json!({
            "path": file_name(&summary.path),
            "id": summary.id,
            "cwd": cwd,
            "name": summary.name,
            "parentSessionPath": summary.parent_session,
            "created": summary.created.map(iso_from_ms),
            "modified": iso_from_ms(summary.modified),
            "messageCount": summary.message_count,
            "firstMessage": summary.first_message,
            "allMessagesText": summary.search_text,
        })
    });
    Ok(shown.collect())
}

/// The file that would be continued.
pub(super) fn session_most_recent(world: &SessionWorld) -> Result<Value, String> {
    write_files(world)?;
    let store = Arc::new(JsonlStore::flat(world.dir.path()));
    let log = block_on(SessionLog::continue_recent(&world.host, store, cwd(world)))?.map_err(|e| e.to_string())?;
    let picked = log.path().filter(|path| path.exists()).map(file_name);
    Ok(json!({ "picked": picked }))
}

/// The parsed form of each search query.
pub(super) fn session_search_parse(world: &SessionWorld) -> Result<Value, String> {
    let queries = world.input["queries"].as_array().ok_or("input.queries is no list")?;
    let shown = queries.iter().filter_map(Value::as_str).map(|query| match SearchQuery::parse(query) {
        SearchQuery::Tokens(tokens) => {
            let tokens: Vec<Value> = tokens.iter().map(token).collect();
            json!({ "mode": "tokens", "tokens": tokens, "regex": null, "hasError": false })
        }
        SearchQuery::Regex(pattern) => {
            json!({ "mode": "regex", "tokens": [], "regex": format!("{}/i", pattern.as_str()), "hasError": false })
        }
        SearchQuery::Broken(_) => json!({ "mode": "regex", "tokens": [], "regex": null, "hasError": true }),
    });
    Ok(shown.collect())
}

/// The sessions that a query finds, in order.
pub(super) fn session_search_filter(world: &SessionWorld) -> Result<Value, String> {
    let input = &world.input;
    let sessions = input["sessions"].as_array().ok_or("input.sessions is no list")?;
    let summaries: Vec<SessionSummary> = sessions.iter().map(summary).collect();
    let word = |names: &[&str]| names.iter().find_map(|name| input[*name].as_str()).unwrap_or_default();
    let sort = match word(&["sortMode", "sort"]) {
        "relevance" => SortMode::Relevance,
        _ => SortMode::Recent,
    };
    let names = match word(&["nameFilter", "filter", "names"]) {
        "named" => NameFilter::Named,
        _ => NameFilter::All,
    };
    let search = |query: &str| -> Value {
        search::search(summaries.clone(), query, sort, names)
            .into_iter()
            .map(|found| Value::from(found.id.as_str()))
            .collect()
    };
    match input["queries"].as_array() {
        Some(queries) => Ok(queries.iter().filter_map(Value::as_str).map(search).collect()),
        None => Ok(search(word(&["query"]))),
    }
}

/// A session as it would appear in a list.
fn summary(given: &Value) -> SessionSummary {
    let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    let time = |name: &str| given[name].as_str().and_then(ms_from_iso).or_else(|| given[name].as_i64());
    let name = given["name"].as_str().map(str::trim).filter(|name| !name.is_empty());
    SessionSummary {
        path: text("path").into(),
        id: text("id").into(),
        cwd: text("cwd"),
        name: name.map(str::to_owned),
        parent_session: given["parentSessionPath"].as_str().map(str::to_owned),
        created: time("created"),
        modified: time("modified").unwrap_or_default(),
        file_modified: time("modified").unwrap_or_default(),
        message_count: given["messageCount"].as_u64().and_then(|n| n.try_into().ok()).unwrap_or_default(),
        first_message: text("firstMessage"),
        search_text: text("allMessagesText").into(),
    }
}

fn token(token: &SearchToken) -> Value {
    match token {
        SearchToken::Fuzzy(word) => json!({ "kind": "fuzzy", "value": word }),
        SearchToken::Phrase(phrase) => json!({ "kind": "phrase", "value": phrase }),
    }
}

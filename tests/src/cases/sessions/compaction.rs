//! Estimates, cut points, preparations and texts of compaction.

use std::sync::Arc;

use pinch_coding_agent::compaction::{
    CompactError, CompactionMode, CompactionSettings, branch, cut, due, estimate, file_list, instructions, prepare,
    serialise,
};
use pinch_coding_agent::entry::{Entry, EntryId};
use pinch_coding_agent::session_log::{SessionLog, convert_to_llm, roles};
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use pinch_llm::message::{Content, Message};
use serde_json::{Value, json};

use super::{PROCESS_CWD, SessionWorld, block_on};

type CompactionCase = fn(&SessionWorld) -> Result<Value, String>;

/// The executor of a kind.
pub(super) fn executor(kind: &str) -> Option<CompactionCase> {
    Some(match kind {
        "estimate_tokens" => estimate_tokens,
        "estimate_context_tokens" => estimate_context_tokens,
        "should_compact" => should_compact,
        "find_cut_point" => find_cut_point,
        "prepare_compaction" => prepare_compaction,
        "collect_branch_entries" => collect_branch_entries,
        "prepare_branch_entries" => prepare_branch_entries,
        "serialize_conversation" => serialize_conversation,
        "format_file_operations" => format_file_operations,
        "convert_to_llm" => convert,
        _ => return None,
    })
}

/// Our wording, by the placeholder names that the cases use.
pub(crate) fn wording() -> Vec<(&'static str, &'static str)> {
    vec![
        ("{{COMPACTION_PREFIX}}", roles::COMPACTION_PREFIX),
        ("{{COMPACTION_SUFFIX}}", roles::COMPACTION_SUFFIX),
        ("{{BRANCH_PREFIX}}", roles::BRANCH_PREFIX),
        ("{{BRANCH_PREAMBLE}}", instructions::BRANCH_PREAMBLE),
        ("{{NO_HISTORY}}", instructions::NO_HISTORY),
        ("{{SPLIT_SEPARATOR}}", instructions::SPLIT_SEPARATOR),
        ("{{INSTRUCTIONS_INITIAL}}", instructions::INITIAL),
        ("{{INSTRUCTIONS_UPDATE}}", instructions::UPDATE),
        ("{{INSTRUCTIONS_TURN_PREFIX}}", instructions::TURN_PREFIX),
        ("{{INSTRUCTIONS_BRANCH}}", instructions::BRANCH),
    ]
}

/// Items that were recorded only as a role are compared as such.
pub(super) fn forgive(expected: &Value, actual: &mut Value) {
    for name in ["messagesToSummarize", "turnPrefixMessages"] {
        let wanted = expected[name].as_array().into_iter().flatten();
        let found = actual.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for (wanted, found) in wanted.zip(found) {
            let role = found.as_str().and_then(|text| text.split(':').next()).unwrap_or_default().to_owned();
            if wanted.as_str() == Some(role.as_str()) {
                *found = role.into();
            }
        }
    }
}

fn message(value: &Value) -> Result<Arc<Message>, String> {
    Message::from_value(value).map(Arc::new).map_err(|error| error.to_string())
}

fn messages(world: &SessionWorld) -> Result<Vec<Arc<Message>>, String> {
    world.input["messages"].as_array().ok_or("input.messages is no list")?.iter().map(message).collect()
}

fn entries(list: &Value) -> Result<Vec<Arc<Entry>>, String> {
    let entry = |value| Entry::from_value(value).map(Arc::new).ok_or_else(|| format!("no entry: {value}"));
    list.as_array().ok_or("no list of entries")?.iter().map(entry).collect()
}

fn number(value: &Value) -> u64 {
    value.as_f64().map_or(0, |number| number.max(0.0) as u64)
}

fn place(value: &Value) -> usize {
    usize::try_from(number(value)).unwrap_or(usize::MAX)
}

fn estimate_tokens(world: &SessionWorld) -> Result<Value, String> {
    Ok(estimate::message_tokens(&*message(&world.input["message"])?).into())
}

fn estimate_context_tokens(world: &SessionWorld) -> Result<Value, String> {
    let found = estimate::context_tokens(&messages(world)?);
    Ok(json!({
        "tokens": found.tokens,
        "usageTokens": found.usage_tokens,
        "trailingTokens": found.trailing_tokens,
        "lastUsageIndex": found.last_usage,
    }))
}

fn settings(value: &Value) -> CompactionSettings {
    let default = CompactionSettings::default();
    CompactionSettings {
        enabled: value["enabled"].as_bool().unwrap_or(default.enabled),
        mode: if value["mode"] == "overflow" { CompactionMode::Overflow } else { CompactionMode::Threshold },
        reserve_tokens: value.get("reserveTokens").map_or(default.reserve_tokens, number),
        keep_recent_tokens: value.get("keepRecentTokens").map_or(default.keep_recent_tokens, number),
    }
}

fn should_compact(world: &SessionWorld) -> Result<Value, String> {
    let row = |row: &Value| {
        let at = |place: usize, name: &str| row.get(place).or_else(|| row.get(name)).cloned().unwrap_or_default();
        let enabled = at(2, "enabled").as_bool().unwrap_or(true);
        let settings =
            CompactionSettings { enabled, reserve_tokens: number(&at(3, "reserveTokens")), ..Default::default() };
        Value::from(due(&settings, number(&at(0, "tokens")), number(&at(1, "contextWindow"))))
    };
    match world.input.get("rows").and_then(Value::as_array) {
        Some(rows) => Ok(rows.iter().map(row).collect()),
        None => {
            let mut flat = world.input.clone();
            for name in ["enabled", "reserveTokens"] {
                if let Some(value) = world.input["settings"].get(name) {
                    flat[name] = value.clone();
                }
            }
            Ok(row(&flat))
        }
    }
}

fn find_cut_point(world: &SessionWorld) -> Result<Value, String> {
    let input = &world.input;
    let path = entries(&input["entries"])?;
    let end = input.get("endIndex").map_or(path.len(), place).min(path.len());
    let found = cut::find(&path, place(&input["startIndex"])..end, number(&input["keepRecentTokens"]));
    Ok(json!({
        "firstKeptEntryIndex": found.first_kept,
        "turnStartIndex": found.turn_start.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)),
        "isSplitTurn": found.turn_start.is_some(),
    }))
}

fn file_lists(files: &file_list::FileList) -> Value {
    files.details()
}

fn prepare_compaction(world: &SessionWorld) -> Result<Value, String> {
    let path = entries(&world.input["pathEntries"])?;
    let prepared = match prepare(&path, &settings(&world.input["settings"])) {
        Ok(prepared) => prepared,
        Err(CompactError::AlreadyCompacted | CompactError::NothingToCompact) => return Ok(Value::Null),
        Err(error) => return Err(error.to_string()),
    };
    Ok(json!({
        "firstKeptEntryId": prepared.first_kept_entry_id.as_str(),
        "isSplitTurn": prepared.is_split_turn,
        "tokensBefore": prepared.tokens_before,
        "previousSummary": prepared.previous_summary,
        "messagesToSummarize": prepared.messages_to_summarise.iter().map(short).collect::<Vec<_>>(),
        "turnPrefixMessages": prepared.turn_prefix.iter().map(short).collect::<Vec<_>>(),
        "fileLists": file_lists(&prepared.files),
    }))
}

/// `ROLE:first 12 characters of the text`.
fn short(message: &Arc<Message>) -> String {
    let text = match &**message {
        Message::System(system) => system.content.text(""),
        Message::User(user) => user.content.text(""),
        Message::Assistant(assistant) => assistant.text(""),
        Message::ToolResult(result) => Content::Blocks(result.content.clone()).text(""),
        Message::Other(other) => match &other.raw.get("content").or_else(|| other.raw.get("summary")) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(blocks)) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            _ => String::new(),
        },
    };
    format!("{}:{}", message.role(), text.chars().take(12).collect::<String>())
}

fn collect_branch_entries(world: &SessionWorld) -> Result<Value, String> {
    let at = SessionRef::Path(world.write_file()?);
    let store = Arc::new(JsonlStore::flat(world.dir.path()));
    let log = block_on(SessionLog::open(&world.host, store, &at, PROCESS_CWD))?.map_err(|e| e.to_string())?;
    let old = world.input["oldLeafId"].as_str().map(EntryId::new);
    let left =
        branch::collect(&log, old.as_ref(), &EntryId::new(world.text("targetId")?)).map_err(|e| e.to_string())?;
    Ok(json!({
        "entryIds": left.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(),
        "commonAncestorId": left.common_ancestor.as_ref().map(EntryId::as_str),
    }))
}

fn prepare_branch_entries(world: &SessionWorld) -> Result<Value, String> {
    let prepared = branch::prepare(&entries(&world.input["entries"])?, number(&world.input["tokenBudget"]));
    Ok(json!({
        "roles": prepared.messages.iter().map(|message| message.role()).collect::<Vec<_>>(),
        "totalTokens": prepared.total_tokens,
        "fileLists": file_lists(&prepared.files),
    }))
}

fn serialize_conversation(world: &SessionWorld) -> Result<Value, String> {
    Ok(serialise::conversation(&messages(world)?).into())
}

fn format_file_operations(world: &SessionWorld) -> Result<Value, String> {
    let paths = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rows = world.input["rows"].as_array().ok_or("input.rows is no list")?;
    Ok(rows.iter().map(|row| Value::from(file_list::format(&paths(&row[0]), &paths(&row[1])))).collect())
}

fn convert(world: &SessionWorld) -> Result<Value, String> {
    Ok(convert_to_llm(&messages(world)?).iter().map(|message| message.to_value()).collect())
}

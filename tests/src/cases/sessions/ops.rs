//! A sequence of operations on one session.

use std::collections::HashMap;
use std::sync::Arc;

use pinch_coding_agent::entry::{BranchSummary, Compaction, CustomMessage, EntryBody, EntryId};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::{JsonlStore, SessionRef, StoreError};
use pinch_llm::message::{Content, Message};
use serde_json::{Value, json};

use super::{PROCESS_CWD, SessionWorld, block_on, parsed_lines};

/// Runs the operations and returns the file and leaf after each.
pub(super) fn session_ops(world: &SessionWorld) -> Result<Value, String> {
    block_on(run(world))?
}

async fn run(world: &SessionWorld) -> Result<Value, String> {
    let store = Arc::new(JsonlStore::flat(world.dir.path()));
    let mut work = OpState { world, store, log: None, names: HashMap::new() };
    let mut steps = Vec::new();
    for op in world.input["ops"].as_array().ok_or("input.ops is no list")? {
        let mut step = json!({ "op": op });
        match work.step(op).await? {
            Ok(Some(returned)) => step["returns"] = returned.into(),
            Ok(None) => {}
            Err(error) => step["error"] = error.to_string().into(),
        }
        let log = work.log.as_ref();
        let file = log.and_then(SessionLog::path);
        let text = file.and_then(|path| std::fs::read_to_string(path).ok());
        step["fileExists"] = text.is_some().into();
        step["fileLines"] = text.map_or(0, |text| text.lines().filter(|line| !line.trim().is_empty()).count()).into();
        step["leafId"] = log.and_then(SessionLog::leaf_id).map(EntryId::as_str).into();
        steps.push(step);
    }
    let log = work.log.as_ref().ok_or("no session was made")?;
    let roles: Vec<String> = log.context().messages.iter().map(|message| message.role().to_owned()).collect();
    Ok(json!({
        "steps": steps,
        "finalFile": log.path().map_or(Value::Null, parsed_lines),
        "finalFileName": log.path().map(super::show),
        "contextRoles": roles,
        "entries": log.entry_ids().len(),
    }))
}

struct OpState<'a> {
    world: &'a SessionWorld,
    store: Arc<JsonlStore>,
    log: Option<SessionLog>,
    names: HashMap<String, String>,
}

type OpResult = Result<Option<String>, StoreError>;

impl OpState<'_> {
    /// An ID in an operation: `$name` is the ID that an earlier operation returned.
    fn id(&self, op: &Value, key: &str) -> Option<EntryId> {
        let text = op[key].as_str()?;
        let named = text.strip_prefix('$').and_then(|name| self.names.get(name));
        Some(EntryId::new(named.map_or(text, String::as_str)))
    }

    async fn step(&mut self, op: &Value) -> Result<OpResult, String> {
        let done = self.make(op).await;
        let done = match done {
            Some(made) => made.map(|log| {
                self.log = Some(log);
                None
            }),
            None => self.change(op).await?,
        };
        if let (Ok(Some(returned)), Some(name)) = (&done, op["as"].as_str()) {
            self.names.insert(name.to_owned(), returned.clone());
        }
        Ok(done)
    }

    /// Operations that create a session.
    async fn make(&self, op: &Value) -> Option<Result<SessionLog, StoreError>> {
        let (host, store) = (&self.world.host, self.store.clone());
        let cwd = op["cwd"].as_str().unwrap_or(PROCESS_CWD);
        let file = self.world.path("s.jsonl");
        Some(match op["do"].as_str()? {
            "create" => SessionLog::create(host, store, NewSession::in_directory(cwd)).await,
            "inMemory" => Ok(SessionLog::in_memory(host, NewSession::in_directory(cwd))),
            "openFile" => {
                self.world.write_file().ok()?;
                SessionLog::open(host, store, &SessionRef::Path(file), PROCESS_CWD).await
            }
            "reopen" => {
                let path = self.log.as_ref()?.path()?.to_owned();
                SessionLog::open(host, store, &SessionRef::Path(path), PROCESS_CWD).await
            }
            "forkFrom" => {
                SessionLog::fork_from(host, store, &SessionRef::Path(file), NewSession::in_directory(cwd)).await
            }
            "continueRecent" => SessionLog::continue_recent(host, store, cwd).await,
            _ => return None,
        })
    }

    /// Operations on the current session.
    async fn change(&mut self, op: &Value) -> Result<OpResult, String> {
        let text = |key: &str| op[key].as_str().unwrap_or_default().to_owned();
        let target = self.id(op, "target");
        let required = || target.clone().ok_or_else(|| format!("{op}: no target"));
        let kept = self.id(op, "firstKept");
        let log = self.log.as_mut().ok_or("no session yet")?;
        let appended = |step: Result<EntryId, StoreError>| Ok(step.map(|id| Some(id.to_string())));
        let path = |log: &SessionLog| log.path().map(super::show);
        let what = op["do"].as_str().unwrap_or_default();
        let body = match what {
            "label" => return appended(log.append_label(&required()?, op["label"].as_str()).await),
            "name" => return appended(log.append_name(&text("name")).await),
            "branch" => return Ok(log.move_to(&required()?).map(|()| None)),
            "resetLeaf" => {
                log.reset_leaf();
                return Ok(Ok(None));
            }
            "branchWithSummary" => {
                return appended(log.branch_with_summary(target.as_ref(), branch_summary()).await);
            }
            "createBranchedSession" => {
                return Ok(log.create_branched_session(&required()?).await.map(|()| path(log)));
            }
            "newSession" => {
                let options = &op["options"];
                let new = NewSession {
                    cwd: log.cwd().to_owned(),
                    id: options["id"].as_str().map(Into::into),
                    parent_session: options["parentSession"].as_str().map(str::to_owned),
                };
                return Ok(log.new_session(new).await.map(|()| path(log)));
            }
            "user" => message(&json!({ "role": "user", "content": text("text"), "timestamp": 1 }))?,
            "assistant" => assistant(&text("text"), op["stop"].as_str().unwrap_or("stop"))?,
            "model" => EntryBody::ModelChange { provider: "p".into(), model_id: "m".into() },
            "thinking" => EntryBody::ThinkingLevelChange { thinking_level: "high".into() },
            "custom" => EntryBody::Custom { custom_type: "ct".into(), data: Some(json!({ "a": 1 })) },
            "customMessage" => EntryBody::CustomMessage(CustomMessage {
                custom_type: "ct".into(),
                content: Content::Text("body".into()),
                display: true,
                details: None,
            }),
            "compaction" => EntryBody::Compaction(Compaction {
                summary: "S".into(),
                first_kept_entry_id: kept,
                tokens_before: 10,
                ..Compaction::default()
            }),
            _ => return Err(format!("unknown operation {op}")),
        };
        appended(log.append(body).await)
    }
}

fn branch_summary() -> BranchSummary {
    BranchSummary {
        from_id: String::new(),
        summary: "BS".into(),
        details: Some(json!({ "readFiles": [], "modifiedFiles": [] })),
        from_hook: None,
        usage: None,
    }
}

fn message(value: &Value) -> Result<EntryBody, String> {
    Ok(EntryBody::Message(Arc::new(Message::from_value(value).map_err(|e| e.to_string())?)))
}

fn assistant(text: &str, stop: &str) -> Result<EntryBody, String> {
    let cost = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 });
    let usage = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": cost });
    message(&json!({
        "role": "assistant", "content": [{ "type": "text", "text": text }], "api": "x", "provider": "p", "model": "m",
        "usage": usage, "stopReason": stop, "timestamp": 2,
    }))
}

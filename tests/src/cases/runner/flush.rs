//! Which sessions save memories before their next turn.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use pinch_embed::engine::Engine;
use pinch_embed::run::RunError;
use pinch_embed::run::request::RunTrigger;
use pinch_embed::run::scope::RunScope;
use pinch_embed::runtime::scripted::ScriptedRuntime;
use pinch_embed::runtime::{AttemptRuntime, Attempts, Capabilities};
use pinch_llm::model::Model;
use serde_json::{Value, json};

use super::world::{self, write};
use super::{CaseOutcome, NOW, check};

/// The fields of a case.
const MEMBERS: [&str; 9] = [
    "totalTokens",
    "window",
    "compactionCount",
    "memoryFlushCompactionCount",
    "heartbeat",
    "isCli",
    "cli",
    "workspaceAccess",
    "sandboxed",
];

/// Plays answers, and records the trigger of each run.
struct NotesTriggers {
    script: ScriptedRuntime,
    triggers: Arc<Mutex<Vec<RunTrigger>>>,
    compacts: bool,
}

impl AttemptRuntime for NotesTriggers {
    fn id(&self) -> &str {
        "native"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL.compaction(self.compacts)
    }

    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        self.triggers.lock().unwrap_or_else(PoisonError::into_inner).push(scope.request.trigger.clone());
        self.script.open(scope, model)
    }
}

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    let done = || world::block_on(flushes(given)).and_then(|flushes| check(expect, &flushes.into()));
    (area == "memory-flush").then(|| CaseOutcome::from(done()))
}

/// Whether memories are saved before a turn of the case's session.
async fn flushes(given: &Value) -> Result<bool, String> {
    if let Some(unknown) =
        given.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| !MEMBERS.contains(&name.as_str()))
    {
        return Err(format!("the case gives {unknown}, which this executor does not know"));
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut document = json!({
        "agents": {"defaults": {"model": {"primary": "mock/mock-1"}, "workspace": "~/workspace"}},
        "models": {"providers": {"mock": {
            "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k",
            "models": [{"id": "mock-1", "contextWindow": given["window"], "maxTokens": 4_096}],
        }}},
    });
    let is_sandboxed = given["sandboxed"] == true;
    if is_sandboxed {
        document["agents"]["defaults"]["sandbox"] = json!({"mode": "all", "workspaceAccess": given.get("workspaceAccess").cloned().unwrap_or_else(|| "none".into())});
    }
    let mut entry = json!({"sessionId": "s1", "updatedAt": NOW});
    for name in ["totalTokens", "compactionCount", "memoryFlushCompactionCount"] {
        if let Some(number) = given.get(name) {
            entry[name] = number.clone();
        }
    }
    write(dir.path(), "state/agents/main/sessions/sessions.json", &json!({"agent:main:main": entry}))?;
    let triggers = Arc::default();
    let script = json!({"attempts": {"always": {"assistant": "NO_REPLY"}}});
    let runtime = NotesTriggers {
        script: world::scripted(script),
        triggers: Arc::clone(&triggers),
        compacts: given["isCli"] != true && given["cli"] != true,
    };
    let engine: Engine = world::builder(dir.path(), document)
        .builtin_tools(["read", "write"])
        .runtime("native", Arc::new(runtime))
        .build();
    let mut request = engine.request("s1", Some("agent:main:main"), None, "hi");
    if given["heartbeat"] == true {
        request.trigger = RunTrigger::Heartbeat;
    }
    let done = engine.run(request).finish().await;
    let triggers = triggers.lock().unwrap_or_else(PoisonError::into_inner);
    match done {
        Ok(_) => {}
        // The sandbox does not exist: the run does not start, so it does not save anything either.
        Err(RunError::Config(_)) if is_sandboxed && triggers.is_empty() => {}
        Err(error) => return Err(error.to_string()),
    }
    Ok(triggers.contains(&RunTrigger::Memory))
}

//! Kinds that run an engine: its registry of runs, session locks, how requests are resolved, and result payloads.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_agent_core::event::{AgentEvent, ToolStart};
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::ToolOutput;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::event::SessionEvent;
use pinch_embed::Engine;
use pinch_embed::engine::{QueueError, RunTarget};
use pinch_embed::replies::ReasoningLevel;
use pinch_embed::run::decide::{Repair, RepairOutcome};
use pinch_embed::run::scope::RunScope;
use pinch_embed::run::{AttemptEnd, AttemptOutcome, AttemptPlan, RunError, RunRequest};
use pinch_embed::runner::RunEvent;
use pinch_embed::runtime::{AttemptEvent, AttemptRuntime, Attempts, QueueRefusal, RunControl};
use pinch_embed::workspace::{self, WorkspaceRequest};
use pinch_llm::event::{BlockKind, StreamEvent};
use pinch_llm::message::{AssistantMessage, Block, Image, Message, StopReason, Thinking};
use pinch_llm::model::Model;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::iso_from_ms;
use pinch_stdx::process::start_ticks;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::anthropic;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::world::{self, block_on};
use super::{CaseOutcome, NOW, check, config};

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    Some(CaseOutcome::from(match area {
        "active-runs" => block_on(active_runs(given, expect)),
        "session-lock" => session_lock(given, expect),
        "payloads" => block_on(payloads(given)).and_then(|made| check_payloads(expect, &made)),
        "reserve-floor" => block_on(reserve_floor(given)).and_then(|tokens| check(expect, &tokens.into())),
        "prompt-override" => prompt_override(given, expect),
        "timeouts" => timeouts(given).and_then(|ms| check(expect, &ms.into())),
        "workspace" => {
            return workspace_of(given).map(|made| CaseOutcome::from(made.and_then(|made| check(expect, &made))));
        }
        _ => return None,
    }))
}

fn model() -> Value {
    let models = json!([{"id": "mock-1", "contextWindow": 200_000, "maxTokens": 4_096}]);
    json!({
        "agents": {"defaults": {"model": {"primary": "mock/mock-1"}, "workspace": "~/workspace", "maxConcurrent": 16}},
        "models": {"providers": {"mock": {
            "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k", "models": models,
        }}},
    })
}

/// A runtime whose only attempt yields events and then either ends or stays active.
struct FixedRuntime {
    events: Vec<SessionEvent>,
    /// The attempt continues until it is notified.
    held: Option<Arc<Held>>,
    last: Option<Arc<AssistantMessage>>,
    /// The reserve found in the run's scope.
    reserve_tokens: Arc<Mutex<Option<u64>>>,
}

/// An active attempt that can be inspected and steered.
struct Held {
    streaming: bool,
    compacting: bool,
    messages: Mutex<Vec<Message>>,
    changed: Notify,
    end: Notify,
    /// How often it was stopped.
    n_stopped: AtomicUsize,
}

impl AttemptRuntime for FixedRuntime {
    fn id(&self) -> &str {
        "fixed"
    }

    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        _: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        let tokens = scope.compaction.settings.reserve_tokens;
        *self.reserve_tokens.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
        Box::pin(async move {
            let attempts: Box<dyn Attempts + 'a> = Box::new(FixedAttempts(self));
            Ok(attempts)
        })
    }
}

struct FixedAttempts<'a>(&'a FixedRuntime);

impl Attempts for FixedAttempts<'_> {
    fn attempt<'a>(
        &'a mut self,
        _: &'a AttemptPlan,
        _: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        let mut outcome = AttemptOutcome::new(AttemptEnd::Good);
        outcome.last_assistant = self.0.last.clone();
        outcome.has_payload = true;
        let events = futures::stream::iter(self.0.events.clone().into_iter().map(AttemptEvent::Session));
        let held = self.0.held.clone();
        let rest = futures::stream::unfold(Some((held, outcome)), move |state| {
            let cancel = cancel.clone();
            async move {
                let (held, mut outcome) = state?;
                let Some(hold) = &held else { return Some((AttemptEvent::End(Box::new(outcome)), None)) };
                let entered = |message| {
                    let event = SessionEvent::Agent(AgentEvent::MessageStart(Arc::new(message)));
                    AttemptEvent::Session(event)
                };
                loop {
                    let queued = hold.messages.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    if let Some(message) = queued {
                        return Some((entered(message), Some((held, outcome))));
                    }
                    tokio::select! {
                        () = hold.changed.notified() => {}
                        () = hold.end.notified() => return Some((AttemptEvent::End(Box::new(outcome)), None)),
                        reason = cancel.cancelled() => {
                            hold.n_stopped.fetch_add(1, Ordering::Relaxed);
                            outcome.end = AttemptEnd::stopped(reason, false);
                            return Some((AttemptEvent::End(Box::new(outcome)), None));
                        }
                    }
                }
            }
        });
        Box::pin(events.chain(rest))
    }

    fn repair<'a>(&'a mut self, _: &'a Repair, _: Arc<dyn RequestAuth>, _: Cancel) -> BoxFuture<'a, RepairOutcome> {
        Box::pin(async { RepairOutcome::NotTruncated })
    }

    fn control(&self) -> Arc<dyn RunControl> {
        let idle = || Held::new(&Value::Null);
        Arc::new(HeldControl(self.0.held.clone().unwrap_or_else(idle)))
    }
}

impl Held {
    fn new(given: &Value) -> Arc<Self> {
        Arc::new(Self {
            streaming: given["streaming"] == true,
            compacting: given["compacting"] == true,
            messages: Mutex::default(),
            changed: Notify::new(),
            end: Notify::new(),
            n_stopped: AtomicUsize::new(0),
        })
    }
}

struct HeldControl(Arc<Held>);

impl RunControl for HeldControl {
    fn queue(&self, _: QueueKind, text: String, _: Vec<Image>) -> Result<(), QueueRefusal> {
        self.0.messages.lock().unwrap_or_else(PoisonError::into_inner).push(Message::user(text, NOW));
        self.0.changed.notify_one();
        Ok(())
    }

    fn is_streaming(&self) -> bool {
        self.0.streaming
    }

    fn is_compacting(&self) -> bool {
        self.0.compacting
    }
}

fn fixed(held: Option<Arc<Held>>) -> FixedRuntime {
    FixedRuntime { events: Vec::new(), held, last: None, reserve_tokens: Arc::default() }
}

/// Polls a run until its attempt is active.
async fn begin(run: &mut pinch_embed::engine::EngineRun) -> Result<(), String> {
    while let Some(event) = run.next().await {
        if matches!(event, RunEvent::Attempt(_)) {
            return Ok(());
        }
    }
    Err(format!("the run ended before its attempt: {:?}", run.result()))
}

async fn active_runs(given: &Value, expect: &Value) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let held = Held::new(given);
    let engine =
        world::builder(dir.path(), model()).runtime("native", Arc::new(fixed(Some(Arc::clone(&held))))).build();
    let request = |key: &str| engine.request("s1", Some(key), None, "hi");
    let target = RunTarget::Session("s1");
    if let Some(handles) = given["set"].as_array() {
        // Two runs of one session can only coexist if their keys, and therefore their lanes, differ.
        let mut runs = Vec::new();
        for handle in handles.iter().filter_map(Value::as_str) {
            let mut run = engine.run(request(&format!("agent:main:{handle}")).run_id(handle));
            begin(&mut run).await?;
            runs.push((handle, run));
        }
        runs.retain(|(handle, _)| given["clear"] != *handle);
        return check(expect, &json!({"active": !engine.active().is_empty()}));
    }
    let mut run = engine.run(request("agent:main:main"));
    if given["active"] == true {
        begin(&mut run).await?;
    }
    if expect.get("ended").is_some() {
        let limit = Duration::from_millis(given["timeoutMs"].as_u64().unwrap_or(15_000));
        let pulled = async {
            match given["endsAfterMs"].as_u64() {
                Some(ms) => {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    held.end.notify_one();
                    run.finish().await.map(drop).map_err(|error| error.to_string())
                }
                None => {
                    // Nothing ends it: it stays active until the wait is over.
                    tokio::time::sleep(limit * 2).await;
                    drop(run);
                    Ok(())
                }
            }
        };
        let (ended, pulled) = tokio::join!(engine.wait_for_end(target, limit), pulled);
        pulled?;
        return check(expect, &json!({"ended": ended}));
    }
    let pulled = async {
        match given["active"] == true {
            true => while run.next().await.is_some() {},
            false => std::future::pending().await,
        }
    };
    let queued = engine.queue_message(target, "hello", Vec::new(), QueueKind::Steering);
    let queued = tokio::select! {
        queued = queued => queued,
        () = pulled => return Err("the run ended".to_owned()),
    };
    check(expect, &json!({"queued": queued.is_ok(), "reason": queued.err().map(|error| error.as_str())}))
}

/// Waits for the compaction of a run that is stopped meanwhile, and then again. `events` are the session events of the run.
pub(in crate::cases) fn wait_after_stop(events: Vec<SessionEvent>, compacting: bool) -> Result<Value, String> {
    block_on(async move {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let n_events = events.len();
        let held = Held::new(&json!({"streaming": true, "compacting": compacting}));
        let runtime = FixedRuntime { events, ..fixed(Some(Arc::clone(&held))) };
        let engine = world::builder(dir.path(), model()).runtime("native", Arc::new(runtime)).build();
        let target = RunTarget::Session("s1");
        let mut run = engine.run(engine.request("s1", Some("agent:main:main"), None, "hi"));
        begin(&mut run).await?;
        for _ in 0..n_events {
            while !matches!(run.next().await, Some(RunEvent::Session(_)) | None) {}
        }
        let outcome = |wait: Result<(), QueueError>| match wait {
            Ok(()) => "resolves",
            Err(QueueError::RunEnded | QueueError::NoActiveRun) => "rejects AbortError",
            Err(other) => other.as_str(),
        };
        let mut wait = std::pin::pin!(engine.wait_for_compaction(target));
        let first = match futures::poll!(&mut wait) {
            std::task::Poll::Ready(done) => outcome(done),
            std::task::Poll::Pending => {
                engine.abort(target, CancelReason::User);
                outcome(wait.await)
            }
        };
        let second = outcome(engine.wait_for_compaction(target).await);
        while run.next().await.is_some() {}
        let after = outcome(engine.wait_for_compaction(target).await);
        let n_stopped = held.n_stopped.load(Ordering::Relaxed);
        if after != second {
            return Err(format!("a wait after the run {after}, one before its end {second}"));
        }
        Ok(
            json!({"wait": first, "second_wait": second, "session_abort_compaction_calls": if compacting { n_stopped } else { 0 }}),
        )
    })
}

/// Starts a run on a session file that has a lock file. The lock names one of our own processes.
fn session_lock(given: &Value, expect: &Value) -> Result<(), String> {
    if given.get("attempts").is_some() {
        return Err("pauses between looks are not visible from outside".to_owned());
    }
    let text = |error: std::io::Error| error.to_string();
    let dir = tempfile::tempdir().map_err(text)?;
    let file = dir.path().join("s1.jsonl");
    let lock = dir.path().join("s1.jsonl.lock");
    let mut other = std::process::Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().map_err(text)?;
    let pid = other.id();
    if given["pidAlive"] != true {
        other.kill().map_err(text)?;
        other.wait().map_err(text)?;
    }
    let locked = lock_and_run(&file, &lock, pid, given);
    // It may have ended already.
    drop(other.kill());
    drop(other.wait());
    let actual = match (locked?, expect.get("errorPrefix")) {
        (Err(RunError::Busy(text)), Some(prefix)) => {
            let prefix = prefix.as_str().unwrap_or("").replace("pid=4242", &format!("pid={pid}"));
            return match text.starts_with(&prefix) {
                true => Ok(()),
                false => Err(format!("/errorPrefix: expected {prefix:?}, got {text:?}")),
            };
        }
        (Err(RunError::Busy(_)), None) => "wait",
        (Ok(()), _) => "reclaim",
        (Err(error), _) => return Err(error.to_string()),
    };
    check(expect, &actual.into())
}

type LockedRun = Result<Result<(), RunError>, String>;

fn lock_and_run(file: &Path, lock: &Path, pid: u32, given: &Value) -> LockedRun {
    let text = |error: std::io::Error| error.to_string();
    let content = match &given["payload"] {
        Value::String(raw) => raw.clone(),
        payload => {
            let mut payload = payload.clone();
            payload["pid"] = pid.into();
            if let Some(ms) = payload["createdAt"].as_i64() {
                payload["createdAt"] = iso_from_ms(ms).into();
            }
            if let Some(then) = payload["starttime"].as_u64() {
                let real = start_ticks(pid).ok_or("the start of a process cannot be read here")?;
                let is_same = given["currentStarttime"].as_u64().is_none_or(|now| now == then);
                payload["starttime"] = if is_same { real } else { real + 1 }.into();
            }
            payload.to_string()
        }
    };
    std::fs::write(lock, content).map_err(text)?;
    let age = Duration::from_millis(given["mtimeAgeMs"].as_u64().unwrap_or(0));
    let then = SystemTime::UNIX_EPOCH + Duration::from_millis(NOW.unsigned_abs()) - age;
    std::fs::File::options().write(true).open(lock).and_then(|lock| lock.set_modified(then)).map_err(text)?;
    let dir = file.parent().unwrap_or(Path::new("."));
    let patience = Duration::from_millis(given["timeoutMs"].as_u64().unwrap_or(10_000));
    block_on(async {
        let server = Server::start().await.map_err(text)?;
        let reply = anthropic::AnthropicResponse::new("m1").text("ok").stop("end_turn").concat();
        server.reply(ServerReply::sse(reply));
        let mut document = model();
        document["models"]["providers"]["mock"]["baseUrl"] = server.url().into();
        document["models"]["providers"]["mock"]["api"] = "anthropic-messages".into();
        let engine = world::builder(dir, document).wait_limit(patience).build();
        let session = pinch_coding_agent::store::SessionRef::Path(file.to_owned());
        Ok(engine.run(RunRequest::new("s1", session, "hi")).finish().await.map(drop))
    })
}

/// The payloads of a run whose attempt ended as a case says, without those that the runner adds to an attempt without output.
async fn payloads(given: &Value) -> Result<Vec<Value>, String> {
    let agent = SessionEvent::Agent;
    let mut events = Vec::new();
    let error = &given["lastToolError"];
    if let Some(name) = error["toolName"].as_str() {
        let start = ToolStart { id: "call1".into(), name: name.to_owned(), args: Arc::default() };
        let text = error["error"].as_str().unwrap_or("");
        let output = Box::new(ToolOutput { failed: true, ..ToolOutput::text(text) });
        events.push(agent(AgentEvent::ToolStart(start.clone())));
        events.push(agent(AgentEvent::ToolEnd { start, output, duration_ms: Some(1) }));
    }
    let texts: Vec<&str> = given["assistantTexts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let failed = given["stopReason"] == "error";
    let mut last = None;
    for (index, text) in texts.iter().enumerate() {
        let is_last = index + 1 == texts.len();
        let mut answer = AssistantMessage::pending("api".into(), "mock".into(), "mock-1".into(), NOW);
        answer.stop_reason = if failed && is_last { StopReason::Error } else { StopReason::Stop };
        answer.error_message = given["errorMessage"].as_str().filter(|_| is_last).map(str::to_owned);
        let thinking = given["thinking"].as_str().filter(|_| is_last).map(|thinking| {
            Arc::new(Block::Thinking(Thinking { thinking: thinking.to_owned(), ..Thinking::default() }))
        });
        let start = Arc::new(Message::Assistant(Arc::new(answer.clone())));
        events.push(agent(AgentEvent::MessageStart(start)));
        let block = Arc::new(Block::text(*text));
        let at = usize::from(thinking.is_some());
        for update in [
            StreamEvent::BlockStart { index: at, kind: BlockKind::Text },
            StreamEvent::Delta { index: at, text: (*text).into() },
            StreamEvent::BlockEnd { index: at, block: Arc::clone(&block) },
        ] {
            events.push(agent(AgentEvent::MessageUpdate(update)));
        }
        answer.content = thinking.into_iter().chain([block]).collect();
        let answer = Arc::new(answer);
        let message = Arc::new(Message::Assistant(Arc::clone(&answer)));
        events.push(agent(AgentEvent::MessageEnd { message, error: None, queued: None }));
        last = Some(answer);
    }
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let runtime = FixedRuntime { events, last, ..fixed(None) };
    let engine = world::builder(dir.path(), model()).runtime("native", Arc::new(runtime)).build();
    let mut request = engine.request("s1", None, None, "hi");
    request.reasoning_level = match given["reasoningLevel"].as_str() {
        Some("on") => ReasoningLevel::On,
        Some("stream") => ReasoningLevel::Stream,
        _ => ReasoningLevel::Off,
    };
    let result = engine.run(request).finish().await.map_err(|error| error.to_string())?;
    Ok(result.into_json()["payloads"].as_array().cloned().unwrap_or_default())
}

fn check_payloads(expect: &Value, made: &[Value]) -> Result<(), String> {
    if expect.is_array() {
        return check(expect, &Value::Array(made.to_vec()));
    }
    let mut expect = expect.clone();
    let first = made.first().cloned().unwrap_or(Value::Null);
    if let Some(wanted) = expect.as_object_mut().and_then(|expect| expect.remove("textContains")) {
        let (text, wanted) = (first["text"].as_str().unwrap_or(""), wanted.as_str().unwrap_or(""));
        if !text.contains(wanted) {
            return Err(format!("/textContains: expected {wanted:?} in {text:?}"));
        }
    }
    let kind = |payload: &Value| match (&payload["isReasoning"], &payload["isError"]) {
        (Value::Bool(true), _) => "reasoning",
        (_, Value::Bool(true)) => "error",
        _ => "answer",
    };
    let media: Vec<&Value> = made.iter().filter(|payload| payload["mediaUrls"].is_array()).collect();
    let actual = json!({
        "count": made.len(),
        "isError": first["isError"] == true,
        "order": made.iter().map(kind).collect::<Vec<_>>(),
        "mediaItemsVoice": media.iter().all(|payload| payload["audioAsVoice"] == true),
        "mediaCount": media.iter().map(|payload| payload["mediaUrls"].as_array().map_or(0, Vec::len)).sum::<usize>(),
    });
    check(&expect, &actual)
}

/// The compaction reserve of a run, from settings and configuration.
async fn reserve_floor(given: &Value) -> Result<u64, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = json!({"compaction": {"reserveTokens": given["current"]}});
    world::write(dir.path(), "state/agents/main/agent/settings.json", &settings)?;
    let mut document = model();
    if let Some(floor) = given.get("floor") {
        document["agents"]["defaults"]["compaction"] = json!({"reserveTokensFloor": floor});
    }
    let runtime = fixed(None);
    let tokens = Arc::clone(&runtime.reserve_tokens);
    let engine = world::builder(dir.path(), document).runtime("native", Arc::new(runtime)).build();
    engine.run(engine.request("s1", None, None, "hi")).finish().await.map_err(|error| error.to_string())?;
    let tokens = *tokens.lock().unwrap_or_else(PoisonError::into_inner);
    tokens.ok_or_else(|| "the runtime was not asked".to_owned())
}

/// The system prompts that a server receives over several runs of one session; each run opens the session and builds its prompt again.
fn prompt_override(given: &Value, expect: &Value) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let server = Server::start().await.map_err(|error| error.to_string())?;
        let mut document = model();
        document["models"]["providers"]["mock"]["baseUrl"] = server.url().into();
        document["models"]["providers"]["mock"]["api"] = "anthropic-messages".into();
        let engine: Engine = world::builder(dir.path(), document).builtin_tools(["read"]).build();
        let text = given["override"].as_str().unwrap_or("");
        for n in 0..=given["rebuilds"].as_u64().unwrap_or(0) {
            server.reply(ServerReply::sse(
                anthropic::AnthropicResponse::new(&format!("m{n}")).text("ok").stop("end_turn").concat(),
            ));
            let request = engine.request("s1", None, None, "hi").system_prompt(text);
            engine.run(request).finish().await.map_err(|error| error.to_string())?;
        }
        let requests = server.requests();
        let system = requests.last().map(|request| request.json()["system"].clone()).unwrap_or_default();
        let blocks = system.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        check(expect, &json!({"prompt": blocks.collect::<Vec<_>>().join("\n\n")}))
    })
}

/// The time limit of a request in milliseconds; the maximum means no limit.
fn timeouts(given: &Value) -> Result<u64, String> {
    let document = match given.get("configSeconds") {
        Some(seconds) => json!({"agents": {"defaults": {"timeoutSeconds": seconds}}}),
        None => json!({}),
    };
    let defaults = config(document).agents.defaults;
    let seconds = || given["overrideSeconds"].as_i64().map(|seconds| seconds.saturating_mul(1000));
    let limit = defaults.timeout(given["overrideMs"].as_i64().or_else(seconds));
    limit.map_or(Ok(2_147_000_000), |limit| u64::try_from(limit.as_millis()).map_err(|error| error.to_string()))
}

/// The directory and agent of a request; `None` if our types cannot represent it.
fn workspace_of(given: &Value) -> Option<Result<Value, String>> {
    let dir = match given.get("workspaceDir") {
        None | Some(Value::Null) => None,
        Some(Value::String(dir)) => Some(Path::new(dir.as_str())),
        Some(_) => return None,
    };
    let agents = config(given["config"].clone()).agents;
    let home = Path::new("/home/user");
    let resolved = workspace::resolve(
        &agents,
        &WorkspaceRequest {
            dir,
            session_key: given["sessionKey"].as_str(),
            agent_id: given["agentId"].as_str(),
            home: Some(home),
            default_dir: &home.join(".openclaw/workspace"),
        },
    );
    Some(Ok(match resolved {
        Ok(found) => json!({
            "workspaceDir": found.dir,
            "usedFallback": found.fallback.is_some(),
            "fallbackReason": found.fallback.map(|reason| reason.as_str()),
            "agentId": found.agent_id.as_str(),
            "agentIdSource": found.agent_source.as_str(),
        }),
        Err(error) => json!({"error": error.to_string()}),
    }))
}

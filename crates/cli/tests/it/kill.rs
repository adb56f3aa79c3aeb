//! A run killed at any moment leaves a session that opens, has a result for every call, and can be continued.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use pinch_embed::coding_agent::prompt::PromptSections as SystemPrompt;
use pinch_embed::coding_agent::session::{AgentSession, Prompt, SessionParts};
use pinch_embed::coding_agent::session_log::SessionLog;
use pinch_embed::coding_agent::store::{JsonlStore, SessionRef, SessionStore};
use pinch_embed::llm::message::Message;
use pinch_embed::llm::model::Model;
use pinch_embed::llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_embed::stdx::host::Host;
use serde_json::{Value, json};

/// Number of kills at random moments of the demo's run.
const KILLS: u32 = 200;
/// Concurrent runs: few, because the test is about timing, not about load.
const WORKERS: u32 = 2;
/// After this many kills the same command resumes the session and finishes the job.
const FINISHED_EVERY: u32 = 10;

#[test]
fn sessions_survive_two_hundred_kills() {
    let pinch = PathBuf::from(env!("CARGO_BIN_EXE_pinch"));
    let whole = time_of_a_whole_run(&pinch);
    let reopened: u32 = std::thread::scope(|scope| {
        let pinch = &pinch;
        let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || work(pinch, whole, worker))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    // Most moments are after the prompt was written, so the test must not pass on empty directories.
    assert!(reopened > KILLS / 2, "only {reopened} sessions had anything in them");
}

fn work(pinch: &Path, whole: Duration, worker: u32) -> u32 {
    let mut reopened = 0;
    for n in (worker..KILLS).step_by(WORKERS as usize) {
        let dir = tempfile::tempdir().unwrap();
        // All moments of the run are equally likely, in a pseudorandom order that is the same each time.
        let moment = whole.mul_f64(f64::from((n * 79) % KILLS) / f64::from(KILLS));
        kill_after(pinch, dir.path(), moment);
        let file = dir.path().join("state/agents/main/sessions/demo.jsonl");
        if file.exists() {
            reopened += 1;
            check_lines(&file);
            runtime().block_on(go_on(&file, n));
        }
        if n % FINISHED_EVERY == 0 {
            finish(pinch, dir.path());
        }
    }
    reopened
}

fn demo(pinch: &Path, dir: &Path) -> Command {
    let mut command = Command::new(pinch);
    command.args(["demo", "--json", "--pace", "2", "--dir"]).arg(dir).stdin(Stdio::null());
    command
}

fn time_of_a_whole_run(pinch: &Path) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let output = demo(pinch, dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    began.elapsed()
}

fn kill_after(pinch: &Path, dir: &Path, moment: Duration) {
    let mut child = demo(pinch, dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Checks that every line except a torn last one is an entry.
fn check_lines(file: &Path) {
    let bytes = std::fs::read(file).unwrap();
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let value: Value = serde_json::from_slice(line).expect("a whole line is JSON");
        assert!(value["type"].is_string(), "{value}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn open(file: &Path) -> SessionLog {
    let store: Arc<dyn SessionStore> = Arc::new(JsonlStore::flat(file.parent().unwrap()));
    SessionLog::open(&Host::system(), store, &SessionRef::Path(file.to_owned()), "/").await.unwrap()
}

/// Opens a copy of the session, sends one more prompt, and opens it again.
async fn go_on(file: &Path, n: u32) {
    let record = json!({"id": "m", "provider": "p", "api": "scripted", "baseUrl": "http://x"});
    let provider = Arc::new(ScriptedProvider::new([ScriptedReply::text("fine")]));
    let copy = file.with_extension(format!("{n}.jsonl"));
    // An empty file would get the id of a new session, and the demo would refuse it.
    std::fs::copy(file, &copy).unwrap();
    let model = Arc::new(Model::from_record(&record).unwrap());
    let mut parts = SessionParts::new(Host::system(), open(&copy).await, model, provider.clone());
    parts.system = SystemPrompt::text("test");
    let mut session = AgentSession::start(parts).await.unwrap();
    let mut run = session.prompt(Prompt::text("And now?"));
    while let Some(event) = run.next().await {
        event.unwrap();
    }
    drop(run);
    assert_eq!(session.last_text().as_deref(), Some("fine"));
    // The conversation sent to the model is complete, and so is the file.
    check_pairs(&provider.requests()[0].messages);
    check_pairs(&open(&copy).await.context().messages);
    std::fs::remove_file(copy).unwrap();
}

/// Checks that every call of a valid answer has exactly one result, before the next answer.
fn check_pairs(messages: &[Arc<Message>]) {
    let mut awaited: Vec<String> = Vec::new();
    for message in messages {
        match &**message {
            Message::Assistant(answer) => {
                assert!(awaited.is_empty(), "calls without results: {awaited:?}");
                if !answer.stop_reason.is_failure() {
                    awaited = answer.tool_calls().map(|call| call.id.to_string()).collect();
                }
            }
            Message::ToolResult(result) => {
                let at = awaited.iter().position(|id| result.tool_call_id == id.as_str());
                awaited.remove(at.expect("a result has its call"));
            }
            _ => {}
        }
    }
    assert!(awaited.is_empty(), "calls without results: {awaited:?}");
}

/// The same command resumes the session and does the job.
fn finish(pinch: &Path, dir: &Path) {
    let output = demo(pinch, dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let saved: PathBuf = dir.join("Desktop/meeting-summary.md");
    assert!(std::fs::read_to_string(saved).unwrap().contains("Product sync"));
}

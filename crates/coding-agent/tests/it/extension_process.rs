//! Extensions as separate processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::tool::JsonObject;
use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::process::{ProcessExtension, ProcessSpec};
use pinch_coding_agent::extension::ui::{Dialog, DialogReply, Ui, UiUpdate};
use pinch_coding_agent::extension::{Extension, ExtensionError, Extensions};
use pinch_coding_agent::session::Prompt;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use pinch_stdx::cancel::CancelReason;
use pinch_stdx::host::Host;
use pinch_stdx::process::is_alive;
use serde_json::{Value, json};

use crate::extension_actions::tool;
use crate::extension_hooks::{failures, pull};
use crate::session::{SessionScene, in_memory, scene_with};
use pinch_testing::logs::text_of;

/// Finds a program on the `PATH` or in the directory of the interop tests; reports if it is missing.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/interop");
    let found = found.or_else(|| in_folder(&root, name, 8));
    if found.is_none() {
        std::io::Write::write_all(&mut std::io::stderr(), format!("skipped: {name} is not installed\n").as_bytes())
            .unwrap();
    }
    found
}

fn in_folder(folder: &Path, name: &str, depth: usize) -> Option<PathBuf> {
    let program = folder.join("bin").join(name);
    if program.is_file() {
        return Some(program);
    }
    let folders =
        std::fs::read_dir(folder).ok()?.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    depth.checked_sub(1).and_then(|depth| folders.iter().find_map(|folder| in_folder(folder, name, depth)))
}

fn spec(command: Vec<String>) -> ProcessSpec {
    let folder = std::env::temp_dir();
    ProcessSpec { name: "ext".into(), command, cwd: folder.clone(), agent_dir: folder, has_ui: false }
}

fn words(command: &[&str]) -> Vec<String> {
    command.iter().map(|word| (*word).to_owned()).collect()
}

/// A session with a process extension.
pub(crate) struct ProcessFixture {
    pub(crate) scene: SessionScene,
    pub(crate) extensions: Extensions,
    notes: PathBuf,
    _folder: tempfile::TempDir,
}

impl ProcessFixture {
    async fn of(mood: &str, points: &str, replies: impl IntoIterator<Item = Reply>) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/extension_process.py");
        let python = program("python3")?;
        let command = words(&[python.to_str().unwrap(), script.to_str().unwrap(), mood, points]);
        Some(Self::running(command, replies).await)
    }

    pub(crate) async fn running(command: Vec<String>, replies: impl IntoIterator<Item = Reply>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        std::fs::write(&notes, "").unwrap();
        let env = Host::system().env().with([("NOTES", notes.to_str().unwrap())]);
        let host = Host::builder().clock(1_750_000_000_000, 1000).env(env).build();
        let extension = ProcessExtension::start(spec(command), &host).await.unwrap();
        let extensions = Extensions::load(&host, [Arc::new(extension) as Arc<dyn Extension>]);
        let theirs = extensions.clone();
        let tools = [tool("bash", "ran")].into_iter().collect();
        let scene = scene_with(in_memory(), replies, |mut parts| {
            parts.extensions = theirs;
            parts.tools = tools;
            parts
        })
        .await;
        Self { scene, extensions, notes, _folder: folder }
    }

    pub(crate) async fn ask(&mut self, text: &str) -> Vec<SessionEvent> {
        pull(self.scene.session.prompt(Prompt::text(text))).await
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.scene.session.messages().iter().map(|message| text_of(message)).collect()
    }

    /// Returns the text of a call's first result, and whether it failed.
    fn result(&self) -> (String, bool) {
        let results = self.scene.session.messages().iter().filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result),
            _ => None,
        });
        let first = results.into_iter().next().unwrap();
        (first.content[0].as_text().unwrap().to_owned(), first.is_error)
    }

    /// Waits until the program has recorded a text.
    async fn noted(&self, text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let notes = std::fs::read_to_string(&self.notes).unwrap();
            if notes.contains(text) {
                return notes;
            }
            assert!(Instant::now() < until, "never noted: {text}; there is {notes}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn bash(command: &str) -> Reply {
    Reply::call("c1", "bash", JsonObject::from_iter([("command".to_owned(), Value::from(command))]))
}

#[tokio::test]
async fn a_program_that_cannot_start_reports_why() {
    let host = Host::system();
    let start = async |command: &[&str]| ProcessExtension::start(spec(words(command)), &host).await.err().unwrap();
    let missing = start(&["/no/such/program"]).await.to_string();
    assert!(missing.starts_with("cannot start /no/such/program: "), "{missing}");
    let failed = start(&["/bin/sh", "-c", "echo oops >&2; exit 7"]).await;
    let why = "The extension's process is not running: it exited (exit code 7): oops";
    assert_eq!(failed.to_string(), why);
    assert_eq!(start(&[]).await.to_string(), "The command is empty");
    let odd = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"subscriptions":7}}'; sleep 60"#;
    assert!(start(&["/bin/sh", "-c", odd]).await.to_string().starts_with("Invalid \"subscriptions\""));
}

#[tokio::test(start_paused = true)]
async fn a_silent_program_times_out() {
    let failed =
        ProcessExtension::start(spec(words(&["/bin/sh", "-c", "sleep 600"])), &Host::system()).await.err().unwrap();
    assert!(matches!(failed, ExtensionError::TimedOut { .. }), "{failed}");
}

#[tokio::test]
async fn a_program_sees_and_changes_the_same_as_a_value() {
    let points = "input,context,context_with_system,before_agent_start,tool_result,message_end,agent_start,turn_start,message_update,\
        agent_before_settle,agent_settled,frob";
    let replies = [bash("ls"), Reply::text("done"), Reply::text("again")];
    let Some(mut stage) = ProcessFixture::of("good", points, replies).await else { return };
    let problem = stage.extensions.take_failures();
    assert_eq!(problem[0].error, "Unknown event: frob");
    let events = stage.ask("hi").await;
    assert_eq!(failures(&events), []);
    let system = "system";
    let texts = [system, "hi+py", "custom", "mine", "custom", "mine"];
    assert_eq!(stage.texts(), texts, "a replaced answer has no calls any more, and one more was asked for");
    let Message::System(first) = &*stage.scene.session.messages()[0] else { panic!() };
    assert_eq!(first.sections[0].1.as_deref(), Some("sys"));
    let Message::System(asked) = &*stage.scene.provider.requests()[0].messages[0] else { panic!() };
    assert_eq!(asked.content.text(""), "sys+py");
    assert_eq!(first.tools_added[0].name, "bash");
    let sent: Vec<String> =
        stage.scene.provider.requests()[0].messages.iter().map(|message| text_of(message)).collect();
    assert_eq!(sent[0], "system");
    assert_eq!(sent[sent.len() - 2..], ["more", "most"]);
    let notes = stage.noted("agent_settled").await;
    let types: Vec<Value> =
        notes.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert!(types.contains(&json!("agent_start")) && types.contains(&json!("message_update")), "{types:?}");
    assert!(!types.contains(&json!("message_start")), "it did not want that");
}

#[tokio::test]
async fn requests_at_the_end_of_a_run_are_answered_before_it_settles() {
    let replies = [Reply::text("one"), Reply::text("two")];
    let Some(mut stage) = ProcessFixture::of("good", "agent_end", replies).await else { return };
    let events = stage.ask("hi").await;
    assert_eq!(failures(&events), []);
    assert_eq!(stage.texts()[1..], ["hi", "one", "go on", "two"]);
    let text: Vec<_> = stage.scene.session.messages().iter().filter(|message| message.role() == "user").collect();
    assert!(
        text.iter().all(|message| serde_json::to_value(message).unwrap()["content"][0]["type"] == "text"),
        "{text:?}"
    );
    let word = |event: &SessionEvent| match event {
        SessionEvent::EntryAppended(_) => Some("entry"),
        SessionEvent::QueueUpdate { .. } => Some("queues"),
        SessionEvent::RunEnd { .. } => Some("end"),
        SessionEvent::Settled { .. } => Some("settled"),
        _ => None,
    };
    let kinds: Vec<&str> = events.iter().filter_map(word).collect();
    assert_eq!(kinds, ["entry", "queues", "end", "queues", "end", "settled"]);
}

#[tokio::test]
async fn its_tools_run_and_report_progress() {
    let Some(mut stage) = ProcessFixture::of("good", "", [bash("ls"), Reply::text("done")]).await else { return };
    let events = stage.ask("hi").await;
    assert_eq!(stage.result(), (r#"ran {"command": "ls"}"#.to_owned(), false));
    let halves = events.iter().filter(|event| match event {
        SessionEvent::Agent(AgentEvent::ToolUpdate { so_far, .. }) => so_far.content[0].as_text() == Some("half"),
        _ => false,
    });
    assert_eq!(halves.count(), 1);
}

#[tokio::test]
async fn its_commands_can_do_the_same_as_a_values() {
    let Some(mut stage) = ProcessFixture::of("good", "", [Reply::text("1")]).await else { return };
    let events = stage.ask("/act").await;
    assert_eq!(failures(&events), []);
    let data = stage.scene.session.log().entries().find_map(|entry| match &entry.body {
        EntryBody::Custom { data, .. } => data.clone(),
        _ => None,
    });
    let seen = json!({
        "idle": true, "entries": 2, "usage": 100_000, "level": "off", "flag": true, "confirmed": false,
        "unknown": "Unknown method: frob", "exec": {"stdout": "out\n", "stderr": "", "code": 4, "killed": false},
        "stale": -32001, "fresh": true,
    });
    assert_eq!(data, Some(seen));
    let tools: Vec<String> = stage.extensions.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(tools, ["bash", "late"]);
    let (found, _) = stage.extensions.find_command("/act").unwrap();
    let completed = found.command.complete("ab").await;
    assert_eq!((completed[0].value.as_str(), completed[0].label.as_deref()), ("ab1", Some("one")));
    assert_eq!(stage.extensions.shortcuts(&[], &[]).0.len(), 1);
    assert_eq!(stage.extensions.take_provider_changes().len(), 1);
}

#[tokio::test]
async fn handlers_may_not_replace_the_session_that_called_them() {
    let Some(mut stage) = ProcessFixture::of("command_only", "tool_call", [bash("ls"), Reply::text("1")]).await else {
        return;
    };
    stage.ask("hi").await;
    assert_eq!(stage.result(), ("new can be used by commands only".to_owned(), true));
}

#[tokio::test]
async fn a_crash_is_reported_once_and_blocks_guarded_calls() {
    let replies = [bash("ls"), bash("ls"), Reply::text("done")];
    let Some(mut stage) = ProcessFixture::of("dies", "tool_call,input,agent_settled", replies).await else { return };
    let mut events = stage.ask("hi").await;
    events.extend(stage.ask("again").await);
    let why = "The extension's process is not running: it exited (exit code 9): my last words";
    assert_eq!(stage.result(), (format!("Extension failed, blocking execution: {why}"), true));
    let failed = failures(&events);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!((failed[0].event.as_str(), failed[0].error.as_str()), ("process", why));
    assert!(stage.texts().contains(&"again".to_owned()), "what it said is no longer changed");
}

#[tokio::test]
async fn invalid_messages_are_skipped_up_to_a_limit() {
    let Some(mut stage) = ProcessFixture::of("chatty", "", [bash("ls"), Reply::text("done")]).await else { return };
    let failed = failures(&stage.ask("hi").await);
    assert_eq!(failed[0].error, "stdout is for messages only, but it wrote: one line too many");
    assert!(!stage.result().1);
    for (mood, why) in [("garbage", "it sent 100 invalid lines"), ("huge", "it sent a line longer than 16 MiB")] {
        let mut stage = ProcessFixture::of(mood, "", [bash("ls"), Reply::text("done")]).await.unwrap();
        stage.ask("hi").await;
        let (text, failed) = stage.result();
        assert!(failed && text.starts_with(&format!("The extension's process is not running: {why}")), "{text}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_in_the_program_too() {
    for (mood, points) in [("slow", "tool_call"), ("waits", "")] {
        let Some(mut stage) = ProcessFixture::of(mood, points, [bash("ls")]).await else { return };
        cancelled(&mut stage).await;
        if mood == "waits" {
            stage.noted("cancelled").await;
        }
    }
}

/// Starts a call, cancels it, and checks the end.
async fn cancelled(stage: &mut ProcessFixture) {
    let control = stage.scene.session.control();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        control.cancel(CancelReason::User);
    };
    let begun = Instant::now();
    let (events, ()) = tokio::join!(pull(stage.scene.session.prompt(Prompt::text("hi"))), stop);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(matches!(events.last(), Some(SessionEvent::Settled { aborted: true })));
}

#[tokio::test]
async fn the_whole_process_tree_ends_with_the_session() {
    let Some(mut stage) = ProcessFixture::of("tree", "", [bash("ls"), Reply::text("done")]).await else { return };
    stage.ask("hi").await;
    let (text, _) = stage.result();
    let ids: Vec<u32> = text.split(' ').map(|id| id.parse().unwrap()).collect();
    assert!(ids.iter().all(|id| is_alive(*id)));
    drop(stage);
    gone(&ids).await;
}

#[tokio::test]
async fn closing_is_orderly_and_bounded() {
    for mood in ["tree", "stubborn"] {
        let Some(mut stage) = ProcessFixture::of(mood, "", [bash("ls"), Reply::text("done")]).await else { return };
        stage.ask("hi").await;
        let begun = Instant::now();
        stage.extensions.close().await;
        assert!(begun.elapsed() < Duration::from_secs(15), "{mood}");
        let events = stage.ask("more").await;
        assert_eq!(failures(&events), [], "an end that was wanted is no failure");
    }
}

async fn gone(ids: &[u32]) {
    let until = Instant::now() + Duration::from_secs(20);
    while ids.iter().any(|id| is_alive(*id)) {
        assert!(Instant::now() < until, "still alive: {ids:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A user who says yes, and records what was shown.
#[derive(Default)]
pub(crate) struct RecordingUi(std::sync::Mutex<Vec<UiUpdate>>);

impl Ui for RecordingUi {
    fn ask<'a>(&'a self, _: &'a Dialog) -> futures::future::BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async { Some(DialogReply::Yes(true)) })
    }

    fn show(&self, show: UiUpdate) {
        self.0.lock().unwrap().push(show);
    }
}

#[tokio::test]
async fn a_programs_handler_may_ask_the_user() {
    let Some(mut stage) = ProcessFixture::of("dialog", "tool_call", [bash("ls"), Reply::text("1")]).await else {
        return;
    };
    stage.extensions.set_ui(Arc::new(RecordingUi::default()));
    stage.ask("hi").await;
    assert!(!stage.result().1);
}

/// One example runs in the JavaScript host, the other without a host: both behave the same.
#[tokio::test]
async fn the_examples_guard_a_session() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions");
    let at = |path: &str| root.join(path).to_str().unwrap().to_owned();
    let node = program("node").map(|node| {
        let host = concat!(env!("CARGO_MANIFEST_DIR"), "/extension-host/pinch-extension-host.mjs").to_owned();
        (vec![node.to_str().unwrap().to_owned(), host, at("examples/guard.js")], "count_words", "guard")
    });
    let python = program("python3").map(|python| {
        (vec![python.to_str().unwrap().to_owned(), at("examples/guard.py")], "count_words_py", "guard-py")
    });
    for (command, counts, slash) in node.into_iter().chain(python) {
        let text = JsonObject::from_iter([("text".to_owned(), Value::from("one two  three"))]);
        let replies =
            [bash("rm -rf /tmp/x"), bash("sudo rm -rf /"), Reply::call("c2", counts, text), Reply::text("done")];
        let mut stage = ProcessFixture::running(command, replies).await;
        assert_eq!(stage.extensions.take_failures(), []);
        let person = Arc::new(RecordingUi::default());
        let events = stage.ask("hi").await;
        assert_eq!(failures(&events), []);
        let results: Vec<(String, bool)> = stage
            .scene
            .session
            .messages()
            .iter()
            .filter_map(|message| match &**message {
                Message::ToolResult(result) => Some((result.content[0].as_text().unwrap().to_owned(), result.is_error)),
                _ => None,
            })
            .collect();
        let result = |text: &str, failed| (text.to_owned(), failed);
        let blocked = result("guard: \"sudo rm -rf /\" removes too much", true);
        assert_eq!(results, [result("ran", false), blocked, result("3 words", false)]);
        stage.extensions.set_ui(Arc::clone(&person) as Arc<dyn Ui>);
        assert_eq!(failures(&stage.ask(&format!("/{slash}")).await), []);
        assert!(matches!(&person.0.lock().unwrap()[0], UiUpdate::Note { message, .. } if message.contains("guard")));
        stage.extensions.close().await;
    }
}

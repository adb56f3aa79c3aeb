//! A session with a scripted model.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::BoxFuture;
use http::StatusCode;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::compaction::{CompactError, CompactionReason};
use pinch_coding_agent::entry::{CustomMessage, EntryBody};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::prompt::PromptSections as SystemPrompt;
use pinch_coding_agent::protocol::{EventNames, EventWriter};
use pinch_coding_agent::session::{
    AgentSession, Change, CompactRequest, CycleDirection, Prompt, ScopedModel, SessionControl, SessionParts, SessionRun,
};
use pinch_coding_agent::session_log::roles::BashExecution;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::message::{Content, Message};
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_llm::schema::Schema;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::CancelReason;
use serde_json::json;

use pinch_testing::logs::{self, answer, append, file, host, store, user};

/// Creates a model with or without thinking.
pub(crate) fn model(id: &str, reasoning: bool) -> Arc<Model> {
    let record = json!({
        "id": id, "provider": "p", "api": "scripted", "reasoning": reasoning, "contextWindow": 100_000, "maxTokens": 100,
    });
    Arc::new(Model::from_record(&record).unwrap())
}

pub(crate) struct SessionScene {
    pub(crate) session: AgentSession,
    pub(crate) provider: Arc<ScriptedProvider>,
}

pub(crate) async fn scene(log: SessionLog, replies: impl IntoIterator<Item = ScriptedReply>) -> SessionScene {
    scene_with(log, replies, |parts| parts).await
}

pub(crate) async fn scene_with(
    log: SessionLog,
    replies: impl IntoIterator<Item = ScriptedReply>,
    change: impl FnOnce(SessionParts) -> SessionParts,
) -> SessionScene {
    let provider = Arc::new(ScriptedProvider::new(replies));
    let mut parts = SessionParts::new(host(), log, model("m", true), provider.clone());
    parts.system = SystemPrompt::text("sys");
    let session = AgentSession::start(change(parts)).await.unwrap();
    SessionScene { session, provider }
}

pub(crate) fn in_memory() -> SessionLog {
    SessionLog::in_memory(&host(), NewSession::in_directory("/w"))
}

/// Polls a run to the end and returns its events in a word each, passing each of them to `see`.
pub(crate) async fn follow(mut run: SessionRun<'_>, mut see: impl FnMut(&str)) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        let Some(word) = word(&event.unwrap()) else { continue };
        see(&word);
        seen.push(word);
    }
    seen
}

fn word(event: &SessionEvent) -> Option<String> {
    let role = |message: &Message| message.role().to_owned();
    Some(match event {
        SessionEvent::Agent(AgentEvent::MessageUpdate(_) | AgentEvent::MessageStart(_)) => return None,
        SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) => role(message),
        SessionEvent::Agent(AgentEvent::ToolStart(_)) => "tool".into(),
        SessionEvent::Agent(_) => return None,
        SessionEvent::QueueUpdate { steering, follow_up } => format!("queues {} {}", steering.len(), follow_up.len()),
        SessionEvent::ThinkingLevelChanged { level } => format!("level {}", level.as_str()),
        SessionEvent::InfoChanged { name } => format!("name {}", name.as_deref().unwrap_or("none")),
        SessionEvent::EntryAppended(entry) => format!("entry {}", entry.body.type_name()),
        other => {
            let line = EventWriter::new().line(other).map(<[u8]>::to_vec).unwrap_or_default();
            let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
            line["type"].as_str().unwrap().to_owned()
        }
    })
}

/// Returns the types of the log's entries, or the roles of messages.
pub(crate) fn entries(session: &AgentSession) -> Vec<String> {
    let word = |body: &EntryBody| match body.as_message() {
        Some(message) => message.role().to_owned(),
        None => body.type_name().to_owned(),
    };
    session.log().entries().map(|entry| word(&entry.body)).collect()
}

fn custom(text: &str) -> CustomMessage {
    CustomMessage { custom_type: "c".into(), content: Content::Text(text.into()), display: true, details: None }
}

/// A tool that acts on the session that calls it.
struct Acts {
    spec: ToolSpec,
    act: Box<dyn Fn() + Send + Sync>,
}

impl Acts {
    fn tool(act: impl Fn() + Send + Sync + 'static) -> Arc<dyn Tool> {
        let spec = ToolSpec::new("act", "", Schema::new(json!({"type": "object"})));
        Arc::new(Self { spec, act: Box::new(act) })
    }
}

impl Tool for Acts {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.act)();
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }
}

/// Creates a session whose tool acts on its control in the first turn.
async fn acting(replies: Vec<ScriptedReply>, act: impl Fn(&SessionControl) + Send + Sync + 'static) -> SessionScene {
    let slot: Arc<Mutex<Option<SessionControl>>> = Arc::default();
    let theirs = Arc::clone(&slot);
    let tool = Acts::tool(move || act(theirs.lock().unwrap().as_ref().unwrap()));
    let scene = scene_with(in_memory(), replies, |mut parts| {
        parts.tools = [tool].into_iter().collect();
        parts
    });
    let scene = scene.await;
    *slot.lock().unwrap() = Some(scene.session.control());
    scene
}

fn call() -> ScriptedReply {
    ScriptedReply::call("c1", "act", JsonObject::new())
}

#[tokio::test]
async fn changes_during_a_run_apply_to_its_next_request() {
    let mut scene = acting(vec![call(), ScriptedReply::text("ok")], |control| {
        control.change(Change::Model(model("other", true)));
        control.change(Change::Thinking(ThinkingLevel::High));
        control.change(Change::Name("new\nname".into()));
        control.change(Change::Entry(EntryBody::Custom { custom_type: "x".into(), data: None }));
    })
    .await;
    let seen = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    let expected = ["system", "user", "assistant", "tool", "level high", "name new name", "entry custom"];
    assert_eq!(seen[..7], expected, "{seen:?}");
    assert_eq!(seen[7..], ["toolResult", "assistant", "agent_end", "agent_settled"]);
    let asked: Vec<(String, ThinkingLevel)> = (scene.provider.requests().iter())
        .map(|request| match request.options.thinking {
            pinch_llm::request::ThinkingChoice::Level(level) => (request.model.id.to_string(), level),
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(asked, [("m".into(), ThinkingLevel::Off), ("other".into(), ThinkingLevel::High)]);
    assert_eq!((scene.session.model().id.as_str(), scene.session.thinking()), ("other", ThinkingLevel::High));
    let kinds = entries(&scene.session);
    let place = |kind: &str| kinds.iter().rposition(|other| other == kind).unwrap();
    assert!(place("model_change") > place("user") && place("session_info") < place("toolResult"), "{kinds:?}");
}

/// Watched from another thread, since a spinning run would block its own.
#[test]
fn a_session_can_be_observed_while_the_model_is_silent() {
    let (tx, rx) = std::sync::mpsc::sync_channel(1024);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = runtime.block_on(async {
            let silent = ScriptedReply { steps: vec![ScriptedStep::Hang], ..ScriptedReply::default() };
            let mut scene = scene(in_memory(), [silent]).await;
            let control = scene.session.control();
            let seen: Arc<Mutex<Vec<String>>> = Arc::default();
            let looks = async {
                while scene.provider.n_calls() == 0 {
                    tokio::task::yield_now().await;
                }
                control.change(Change::Model(model("other", true)));
                let (saw, theirs) = (tokio::sync::oneshot::channel(), Arc::clone(&seen));
                control.observe(move |view| {
                    theirs.lock().unwrap().push(format!("{} {}", view.model.id, view.messages().len()));
                    assert!(saw.0.send(()).is_ok());
                });
                saw.1.await.unwrap();
                control.cancel(CancelReason::User);
            };
            tokio::join!(follow(scene.session.prompt(Prompt::text("go")), |_| {}), looks);
            seen.lock().unwrap().clone()
        });
        tx.send(seen).unwrap();
    });
    let seen = rx.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(seen, ["other 2"], "the change that came first, the prompt and its system message");
}

#[tokio::test]
async fn changes_of_tools_and_prompt_are_sent_in_one_message() {
    let mut scene = acting(vec![call(), ScriptedReply::text("ok"), ScriptedReply::text("again")], |control| {
        control.change(Change::Tools([].into_iter().collect(), SystemPrompt::text("other")));
    })
    .await;
    let seen = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    let expected = ["system", "user", "assistant", "tool", "toolResult", "system", "assistant"];
    assert_eq!(seen[..7], expected, "{seen:?}");
    let change = scene.session.messages()[4].clone();
    let Message::System(change) = &*change else { panic!("{change:?}") };
    assert_eq!(change.sections, [("preamble".into(), Some("other".into()))]);
    assert_eq!(change.tools_removed, ["act"]);
    let seen = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    assert_eq!(seen[..2], ["user", "assistant"], "nothing is said twice: {seen:?}");
}

#[tokio::test]
async fn a_user_command_waits_for_the_end_of_the_run() {
    let ran = || BashExecution { command: "ls".into(), output: "x".into(), exit_code: Some(0), ..Default::default() };
    let mut scene = acting(vec![call(), ScriptedReply::text("ok"), ScriptedReply::text("again")], move |control| {
        control.change(Change::Bash(ran()));
    })
    .await;
    follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    assert_eq!(
        entries(&scene.session)[2..],
        ["system", "user", "assistant", "toolResult", "assistant", "bashExecution"]
    );
    assert_eq!(scene.session.messages().last().unwrap().role(), "bashExecution");
    scene.session.record_bash(ran()).await.unwrap();
    follow(scene.session.prompt(Prompt::text("and?")), |_| {}).await;
    let sent = &scene.provider.requests()[2].messages;
    let texts: Vec<String> = sent.iter().map(|message| logs::text_of(message)).collect();
    assert_eq!(texts.iter().filter(|text| text.contains("Ran `ls`")).count(), 2, "{texts:?}");
}

#[tokio::test]
async fn displayed_queues_contain_only_user_messages() {
    let mut scene = acting(vec![call(), ScriptedReply::text("a"), ScriptedReply::text("b")], |control| {
        control.queue_custom(QueueKind::Steering, &custom("aside"));
        control.prompt("later", Vec::new(), Some(QueueKind::FollowUp)).unwrap();
        control.prompt("never", Vec::new(), None).unwrap_err();
    })
    .await;
    let seen = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    assert!(seen.contains(&"queues 0 1".to_owned()), "{seen:?}");
    let kinds = entries(&scene.session);
    assert_eq!(kinds[6..], ["custom_message", "assistant", "user", "assistant"], "{kinds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_transient_summary_failure_is_retried() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let busy = || ScriptedReply::refused(StatusCode::SERVICE_UNAVAILABLE, "503 busy");
    let replies =
        [busy(), ScriptedReply::text("SUMMARY"), ScriptedReply::text("PREFIX"), busy(), busy(), busy(), busy()];
    let mut scene = scene(log, replies).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let events: Mutex<Vec<String>> = Mutex::default();
    let tell = |event: SessionEvent| events.lock().unwrap().extend(word(&event));
    let done = scene.session.compact(CompactRequest::manual(None), &tell).await.unwrap();
    assert!(done.summary.starts_with("SUMMARY"));
    let retry = |n: usize| {
        let step = ["summarization_retry_scheduled", "summarization_retry_attempt_start"];
        std::iter::repeat_n(step, n).flatten().chain(["summarization_retry_finished"]).collect::<Vec<_>>()
    };
    let wanted = [vec!["compaction_start"], retry(1), vec!["compaction_end"]].concat();
    assert_eq!(std::mem::take(&mut *events.lock().unwrap()), wanted);
    append(scene.session.log_mut(), [user("q3"), answer("a3", &[]), user("q4"), answer("a4", &[])]).await;
    let failed = scene.session.compact(CompactRequest::manual(None), &tell).await.unwrap_err();
    assert!(failed.to_string().contains("503 busy"), "{failed}");
    assert_eq!(*events.lock().unwrap(), [vec!["compaction_start"], retry(3), vec!["compaction_end"]].concat());
}

#[tokio::test(start_paused = true)]
async fn a_compaction_can_be_cancelled_during_a_delay() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let mut scene = scene(log, [ScriptedReply::refused(StatusCode::SERVICE_UNAVAILABLE, "503 busy")]).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let n_before = scene.session.log().entry_ids().len();
    let control = scene.session.control();
    let events: Mutex<Vec<String>> = Mutex::default();
    let tell = |event: SessionEvent| {
        if matches!(event, SessionEvent::SummaryRetryScheduled { .. }) {
            control.cancel(CancelReason::User);
        }
        events.lock().unwrap().extend(word(&event));
    };
    let failed = scene.session.compact(CompactRequest::manual(None), &tell).await.unwrap_err();
    assert!(matches!(failed, CompactError::Cancelled));
    assert_eq!(events.lock().unwrap().last().unwrap(), "compaction_end");
    assert_eq!(scene.session.log().entry_ids().len(), n_before);
    assert!(!control.is_running());
}

#[tokio::test(start_paused = true)]
async fn an_automatic_compaction_with_nothing_to_summarise_is_silent() {
    let mut log = in_memory();
    append(&mut log, [user(&"x".repeat(400_000))]).await;
    let too_long =
        || ScriptedReply::refused(StatusCode::BAD_REQUEST, "400 prompt is too long: 100001 tokens > 100000 maximum");
    let mut scene = scene(log, [ScriptedReply::text("near the window"), too_long()]).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1_000_000;
    let of_threshold = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    assert_eq!(of_threshold, ["system", "user", "assistant", "agent_end", "agent_settled"]);
    let of_overflow = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    assert_eq!(of_overflow, ["user", "assistant", "agent_end", "entry context_edit", "agent_settled"]);
    let events: Mutex<Vec<String>> = Mutex::default();
    let tell = |event: SessionEvent| events.lock().unwrap().extend(word(&event));
    let asked = scene.session.compact(CompactRequest::manual(None), &tell).await.unwrap_err();
    assert!(matches!(asked, CompactError::NothingToCompact), "{asked}");
    assert_eq!(*events.lock().unwrap(), ["compaction_start", "compaction_end"]);
}

#[tokio::test]
async fn models_and_levels_cycle() {
    let mut scene = scene_with(in_memory(), [], |mut parts| {
        parts.model = model("dumb", false);
        parts.usual_thinking = Some(ThinkingLevel::Medium);
        parts
    })
    .await;
    let scoped = |id: &str, reasoning, thinking| ScopedModel { model: model(id, reasoning), thinking };
    let all = [scoped("dumb", false, None), scoped("m", true, None), scoped("n", true, Some(ThinkingLevel::Low))];
    let mut seen = Vec::new();
    for direction in
        [CycleDirection::Forward, CycleDirection::Forward, CycleDirection::Forward, CycleDirection::Backward]
    {
        let now = scene.session.cycle_model(&all, direction).await.unwrap().unwrap();
        seen.push(format!("{} {}", now.model.id, now.thinking.unwrap().as_str()));
    }
    assert_eq!(seen, ["m medium", "n low", "dumb off", "n low"]);
    assert!(scene.session.cycle_model(&all[..1], CycleDirection::Forward).await.unwrap().is_none());
    let mut levels = Vec::new();
    for _ in 0..4 {
        levels.push(scene.session.cycle_thinking().await.unwrap().unwrap().as_str());
    }
    assert_eq!(levels, ["medium", "high", "off", "minimal"]);
}

#[tokio::test]
async fn foreign_writes_during_a_run_are_reported_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_directory("/w")).await.unwrap();
    let mut scene = scene(log, [ScriptedReply::text("one"), ScriptedReply::text("two")]).await;
    follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    let mut other = logs::open(&file(scene.session.log())).await.unwrap();
    append(&mut other, [user("from elsewhere")]).await;
    let seen = follow(scene.session.prompt(Prompt::text("more")), |_| {}).await;
    assert!(seen.contains(&"session_conflict".to_owned()), "{seen:?}");
    let texts: Vec<String> = scene.session.log().context().messages.iter().map(|m| logs::text_of(m)).collect();
    assert_eq!(texts[1..], ["go", "one", "from elsewhere", "more", "two"]);
}

#[test]
fn old_event_names_are_for_events_of_the_old_version() {
    let mut old = EventWriter::with_names(EventNames::Pi049);
    let mut line = |event: &SessionEvent| old.line(event).map(|line| String::from_utf8_lossy(line).into_owned());
    let start = |reason| SessionEvent::CompactionStart { reason };
    assert_eq!(
        line(&start(CompactionReason::Threshold)).unwrap(),
        "{\"type\":\"auto_compaction_start\",\"reason\":\"threshold\"}\n"
    );
    assert_eq!(line(&start(CompactionReason::Manual)), None);
    assert_eq!(line(&SessionEvent::Settled { aborted: false }), None);
    let end = SessionEvent::CompactionEnd {
        reason: CompactionReason::Overflow,
        result: None,
        aborted: true,
        will_retry: false,
        error_message: None,
    };
    assert!(line(&end).unwrap().contains("auto_compaction_end"));
}

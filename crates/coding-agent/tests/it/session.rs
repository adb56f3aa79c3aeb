//! A session to talk to, with a scripted model behind it.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::BoxFuture;
use http::StatusCode;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::compaction::hooks::{BeforeCompaction, BeforeMove, CompactionAhead, MoveAhead, MoveChanges};
use pinch_coding_agent::compaction::{ByExtension, CompactError, CompactionReason, Summarised, SummaryHooks};
use pinch_coding_agent::entry::{CustomMessage, EntryBody, EntryId};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::prompt::Prompt as SystemPrompt;
use pinch_coding_agent::protocol::{EventNames, EventWriter};
use pinch_coding_agent::session::{
    AgentSession, Change, CompactRequest, Direction, ForkAt, Navigation, Prompt, ScopedModel, SessionControl,
    SessionParts, SessionRun,
};
use pinch_coding_agent::session_log::roles::BashExecution;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::JsonlStore;
use pinch_llm::message::{Content, Message};
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{Reply, ScriptedProvider};
use pinch_llm::schema::Schema;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::{Cancel, CancelReason};
use serde_json::json;

use crate::help::{self, answer, append, file, host, store, user};

/// A model that thinks, or one that does not.
fn model(id: &str, reasoning: bool) -> Arc<Model> {
    let record = json!({
        "id": id, "provider": "p", "api": "scripted", "reasoning": reasoning, "contextWindow": 100_000, "maxTokens": 100,
    });
    Arc::new(Model::from_record(&record).unwrap())
}

struct Scene {
    session: AgentSession,
    provider: Arc<ScriptedProvider>,
}

async fn scene(log: SessionLog, replies: impl IntoIterator<Item = Reply>) -> Scene {
    scene_with(log, replies, |parts| parts).await
}

async fn scene_with(
    log: SessionLog,
    replies: impl IntoIterator<Item = Reply>,
    change: impl FnOnce(SessionParts) -> SessionParts,
) -> Scene {
    let provider = Arc::new(ScriptedProvider::new(replies));
    let parts = SessionParts::new(host(), log, model("m", true), provider.clone());
    let session =
        AgentSession::start(change(SessionParts { system: SystemPrompt::text("sys"), ..parts })).await.unwrap();
    Scene { session, provider }
}

fn in_memory() -> SessionLog {
    SessionLog::in_memory(&host(), NewSession::in_folder("/w"))
}

/// Pulls a run to its end and tells its events in a word each; `see` looks at every one.
async fn follow(mut run: SessionRun<'_>, mut see: impl FnMut(&str)) -> Vec<String> {
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

/// The types of the log's entries; of messages their roles.
fn entries(session: &AgentSession) -> Vec<String> {
    let word = |body: &EntryBody| match body.as_message() {
        Some(message) => message.role().to_owned(),
        None => body.type_name().to_owned(),
    };
    session.log().entries().map(|entry| word(&entry.body)).collect()
}

fn custom(text: &str) -> CustomMessage {
    CustomMessage { custom_type: "c".into(), content: Content::Text(text.into()), display: true, details: None }
}

/// A tool that does something to the session that calls it.
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

/// A session whose tool acts on its control in the first turn.
async fn acting(replies: Vec<Reply>, act: impl Fn(&SessionControl) + Send + Sync + 'static) -> Scene {
    let slot: Arc<Mutex<Option<SessionControl>>> = Arc::default();
    let theirs = Arc::clone(&slot);
    let tool = Acts::tool(move || act(theirs.lock().unwrap().as_ref().unwrap()));
    let scene = scene_with(in_memory(), replies, |parts| SessionParts { tools: [tool].into_iter().collect(), ..parts });
    let scene = scene.await;
    *slot.lock().unwrap() = Some(scene.session.control());
    scene
}

fn call() -> Reply {
    Reply::call("c1", "act", JsonObject::new())
}

#[tokio::test]
async fn changes_during_a_run_reach_its_next_request() {
    let mut scene = acting(vec![call(), Reply::text("ok")], |control| {
        control.change(Change::Model(model("other", true)));
        control.change(Change::Thinking(ThinkingLevel::High));
        control.change(Change::Name("new\nname".into()));
        control.change(Change::Entry(EntryBody::Custom { custom_type: "x".into(), data: None }));
    })
    .await;
    let seen = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    let told = ["system", "user", "assistant", "tool", "level high", "name new name", "entry custom"];
    assert_eq!(seen[..7], told, "{seen:?}");
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

#[tokio::test]
async fn tools_and_prompt_of_the_next_request_are_told_in_one_message() {
    let mut scene = acting(vec![call(), Reply::text("ok"), Reply::text("again")], |control| {
        control.change(Change::Tools([].into_iter().collect(), SystemPrompt::text("other")));
    })
    .await;
    let seen = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    let told = ["system", "user", "assistant", "tool", "toolResult", "system", "assistant"];
    assert_eq!(seen[..7], told, "{seen:?}");
    let change = scene.session.messages()[4].clone();
    let Message::System(change) = &*change else { panic!("{change:?}") };
    assert_eq!(change.sections, [("preamble".to_owned(), Some("other".to_owned()))]);
    assert_eq!(change.tools_removed, ["act"]);
    let seen = follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    assert_eq!(seen[..2], ["user", "assistant"], "nothing is said twice: {seen:?}");
}

#[tokio::test]
async fn a_command_of_the_user_waits_for_the_end_of_the_run() {
    let ran = || BashExecution { command: "ls".into(), output: "x".into(), exit_code: Some(0), ..Default::default() };
    let mut scene = acting(vec![call(), Reply::text("ok"), Reply::text("again")], move |control| {
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
    let texts: Vec<String> = sent.iter().map(|message| help::text_of(message)).collect();
    assert_eq!(texts.iter().filter(|text| text.contains("Ran `ls`")).count(), 2, "{texts:?}");
}

#[tokio::test]
async fn only_what_the_user_says_stands_in_the_queues_that_are_shown() {
    let mut scene = acting(vec![call(), Reply::text("a"), Reply::text("b")], |control| {
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
async fn a_summary_that_fails_for_a_while_is_asked_for_again() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let busy = || Reply::refused(StatusCode::SERVICE_UNAVAILABLE, "503 busy");
    let replies = [busy(), Reply::text("SUMMARY"), Reply::text("PREFIX"), busy(), busy(), busy(), busy()];
    let mut scene = scene(log, replies).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let told: Mutex<Vec<String>> = Mutex::default();
    let tell = |event: SessionEvent| told.lock().unwrap().extend(word(&event));
    let done = scene.session.compact(CompactRequest::manual(None), &tell).await.unwrap();
    assert!(done.summary.starts_with("SUMMARY"));
    let retry = |n: usize| {
        let step = ["summarization_retry_scheduled", "summarization_retry_attempt_start"];
        std::iter::repeat_n(step, n).flatten().chain(["summarization_retry_finished"]).collect::<Vec<_>>()
    };
    let wanted = [vec!["compaction_start"], retry(1), vec!["compaction_end"]].concat();
    assert_eq!(std::mem::take(&mut *told.lock().unwrap()), wanted);
    append(scene.session.log_mut(), [user("q3"), answer("a3", &[]), user("q4"), answer("a4", &[])]).await;
    let failed = scene.session.compact(CompactRequest::manual(None), &tell).await.unwrap_err();
    assert!(failed.to_string().contains("503 busy"), "{failed}");
    assert_eq!(*told.lock().unwrap(), [vec!["compaction_start"], retry(3), vec!["compaction_end"]].concat());
}

#[tokio::test(start_paused = true)]
async fn a_compaction_can_be_stopped_while_it_waits() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let mut scene = scene(log, [Reply::refused(StatusCode::SERVICE_UNAVAILABLE, "503 busy")]).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let n_before = scene.session.log().entry_ids().len();
    let control = scene.session.control();
    let told: Mutex<Vec<String>> = Mutex::default();
    let tell = |event: SessionEvent| {
        if matches!(event, SessionEvent::SummaryRetryScheduled { .. }) {
            control.cancel(CancelReason::User);
        }
        told.lock().unwrap().extend(word(&event));
    };
    let failed = scene.session.compact(CompactRequest::manual(None), &tell).await.unwrap_err();
    assert!(matches!(failed, CompactError::Cancelled));
    assert_eq!(told.lock().unwrap().last().unwrap(), "compaction_end");
    assert_eq!(scene.session.log().entry_ids().len(), n_before);
    assert!(!control.is_running());
}

/// Answers for compactions and moves as told.
struct Hooked {
    compaction: BeforeCompaction,
    moving: BeforeMove,
    told: Mutex<Vec<String>>,
}

impl Hooked {
    fn new(compaction: BeforeCompaction, moving: BeforeMove) -> Arc<Self> {
        Arc::new(Self { compaction, moving, told: Mutex::default() })
    }

    fn tell(&self, what: impl Into<String>) {
        self.told.lock().unwrap().push(what.into());
    }
}

impl SummaryHooks for Hooked {
    fn before_compaction<'a>(
        &'a self,
        ahead: &'a CompactionAhead<'a>,
        _: &'a Cancel,
    ) -> BoxFuture<'a, BeforeCompaction> {
        self.tell(format!("before {} {:?}", ahead.reason.as_str(), ahead.focus));
        Box::pin(async { self.compaction.clone() })
    }

    fn compacted(&self, done: &pinch_coding_agent::compaction::Compacted) {
        self.tell(format!("done {}", done.summary));
    }

    fn compaction_failed(&self, reason: CompactionReason, error: &CompactError) {
        self.tell(format!("failed {} {error}", reason.as_str()));
    }

    fn before_move<'a>(&'a self, ahead: &'a MoveAhead, _: &'a Cancel) -> BoxFuture<'a, BeforeMove> {
        self.tell(format!("leaves {}", ahead.left.len()));
        Box::pin(async { self.moving.clone() })
    }

    fn moved(&self, moved: &pinch_coding_agent::compaction::hooks::Moved) {
        self.tell(format!("moved, hook's {}", moved.from_hook));
    }
}

async fn hooked(hooks: &Arc<Hooked>) -> Scene {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let hooks: Arc<dyn SummaryHooks> = hooks.clone();
    scene_with(log, [], |parts| SessionParts { summaries: hooks, ..parts }).await
}

fn first(session: &AgentSession) -> EntryId {
    session.log().entry_ids().next().unwrap().clone()
}

#[tokio::test]
async fn an_owner_can_make_the_summary_or_forbid_it() {
    let own = Summarised {
        summary: "OWN".into(),
        usage: None,
        by_extension: Some(ByExtension { details: Some(json!({"x": 1})), ..Default::default() }),
    };
    let hooks = Hooked::new(BeforeCompaction::Instead(Box::new(own)), BeforeMove::Cancel);
    let mut scene = hooked(&hooks).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let done = scene.session.compact(CompactRequest::manual(Some("tests".into())), &|_| {}).await.unwrap();
    assert_eq!((done.summary.as_str(), done.from_extension, done.details), ("OWN", true, Some(json!({"x": 1}))));
    assert_eq!(*hooks.told.lock().unwrap(), ["before manual Some(\"tests\")", "done OWN"]);
    let to = Navigation::to(first(&scene.session));
    assert!(scene.session.navigate(to, &|_| {}).await.unwrap().cancelled);
    let hooks = Hooked::new(BeforeCompaction::Cancel, BeforeMove::Cancel);
    let mut scene = hooked(&hooks).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let failed = scene.session.compact(CompactRequest::manual(None), &|_| {}).await.unwrap_err();
    assert_eq!(failed.to_string(), "Compaction cancelled");
    assert_eq!(*hooks.told.lock().unwrap(), ["before manual None", "failed manual Compaction cancelled"]);
}

#[tokio::test]
async fn an_owner_can_summarise_the_branch_that_is_left() {
    let changes =
        MoveChanges { summary: Some(("LEFT".into(), None)), label: Some("mark".into()), ..MoveChanges::default() };
    let hooks = Hooked::new(BeforeCompaction::GoOn, BeforeMove::GoOn(changes));
    let mut scene = hooked(&hooks).await;
    let old_leaf = scene.session.log().leaf_id().cloned().unwrap();
    let to = Navigation { summarise: true, ..Navigation::to(first(&scene.session)) };
    let done = scene.session.navigate(to, &|_| {}).await.unwrap();
    assert_eq!(done.editor_text.as_deref(), Some("q1"));
    let id = done.summary.unwrap();
    let EntryBody::BranchSummary(branch) = scene.session.log().entry(&id).unwrap().body.clone() else {
        panic!("no summary")
    };
    assert_eq!((branch.summary.as_str(), branch.from_hook), ("LEFT", Some(true)));
    assert_eq!(branch.from_id, old_leaf.as_str(), "it names the leaf that was left");
    assert_eq!(scene.session.log().label(&id).unwrap().text, "mark");
    assert_eq!(scene.session.messages().len(), 1);
    assert_eq!(*hooks.told.lock().unwrap(), ["leaves 4", "moved, hook's true"]);
}

#[tokio::test]
async fn going_to_a_branch_takes_over_its_model_and_level() {
    let find: pinch_coding_agent::session::FindModel = Arc::new(|_, id| Some(model(id.as_str(), true)));
    let replies = [Reply::text("a1"), Reply::text("a2")];
    let mut scene = scene_with(in_memory(), replies, |parts| SessionParts { find_model: Some(find), ..parts }).await;
    scene.session.set_thinking(ThinkingLevel::Low).await.unwrap();
    follow(scene.session.prompt(Prompt::text("q1")), |_| {}).await;
    let there = scene.session.log().leaf_id().cloned().unwrap();
    scene.session.set_model(model("second", true)).await.unwrap();
    scene.session.set_thinking(ThinkingLevel::High).await.unwrap();
    follow(scene.session.prompt(Prompt::text("q2")), |_| {}).await;
    let n_entries = scene.session.log().entry_ids().len();
    scene.session.navigate(Navigation::to(there), &|_| {}).await.unwrap();
    assert_eq!((scene.session.model().id.as_str(), scene.session.thinking()), ("m", ThinkingLevel::Low));
    assert_eq!(scene.session.log().entry_ids().len(), n_entries, "going somewhere writes nothing");
    let unknown = Navigation::to(EntryId::new("ffffffff"));
    let failed = scene.session.navigate(unknown, &|_| {}).await.unwrap_err();
    assert_eq!(failed.to_string(), "Entry ffffffff not found");
    let texts: Vec<String> = scene.session.fork_points().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["q1", "q2"]);
}

#[tokio::test]
async fn models_and_levels_go_round() {
    let mut scene = scene_with(in_memory(), [], |parts| SessionParts {
        model: model("dumb", false),
        usual_thinking: Some(ThinkingLevel::Medium),
        ..parts
    })
    .await;
    let scoped = |id: &str, reasoning, thinking| ScopedModel { model: model(id, reasoning), thinking };
    let all = [scoped("dumb", false, None), scoped("m", true, None), scoped("n", true, Some(ThinkingLevel::Low))];
    let mut seen = Vec::new();
    for direction in [Direction::Forward, Direction::Forward, Direction::Forward, Direction::Backward] {
        let now = scene.session.cycle_model(&all, direction).await.unwrap().unwrap();
        seen.push(format!("{} {}", now.model.id, now.thinking.unwrap().as_str()));
    }
    assert_eq!(seen, ["m medium", "n low", "dumb off", "n low"]);
    assert!(scene.session.cycle_model(&all[..1], Direction::Forward).await.unwrap().is_none());
    let mut levels = Vec::new();
    for _ in 0..4 {
        levels.push(scene.session.cycle_thinking().await.unwrap().unwrap().as_str());
    }
    assert_eq!(levels, ["medium", "high", "off", "minimal"]);
}

#[tokio::test]
async fn what_another_program_writes_during_a_run_is_told_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_folder("/w")).await.unwrap();
    let mut scene = scene(log, [Reply::text("one"), Reply::text("two")]).await;
    follow(scene.session.prompt(Prompt::text("go")), |_| {}).await;
    let mut other = help::open(&file(scene.session.log())).await.unwrap();
    append(&mut other, [user("from elsewhere")]).await;
    let seen = follow(scene.session.prompt(Prompt::text("more")), |_| {}).await;
    assert!(seen.contains(&"session_conflict".to_owned()), "{seen:?}");
    let texts: Vec<String> = scene.session.log().context().messages.iter().map(|m| help::text_of(m)).collect();
    assert_eq!(texts[1..], ["go", "one", "from elsewhere", "more", "two"]);
}

#[tokio::test]
async fn a_fork_begins_before_what_is_said_anew() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_folder("/w")).await.unwrap();
    let mut scene = scene(log, ["a1", "a2", "b2", "c1"].map(Reply::text)).await;
    let early = EntryId::new("00000000");
    let failed = scene.session.fork(&early, ForkAt::Entry).await.unwrap_err();
    assert!(failed.to_string().starts_with("This session has not been saved yet."), "{failed}");
    for text in ["q1", "q2"] {
        follow(scene.session.prompt(Prompt::text(text)), |_| {}).await;
    }
    let (first_file, points) = (file(scene.session.log()), scene.session.fork_points());
    let answer_id = scene.session.log().leaf_id().cloned().unwrap();
    let failed = scene.session.fork(&answer_id, ForkAt::Before).await.unwrap_err();
    assert_eq!(failed.to_string(), "Invalid entry ID for forking");
    let text = scene.session.fork(&points[1].0, ForkAt::Before).await.unwrap();
    assert_eq!(text.as_deref(), Some("q2"));
    assert_ne!(file(scene.session.log()), first_file);
    assert_eq!(scene.session.log().header().parent_session.as_deref(), first_file.to_str());
    follow(scene.session.prompt(Prompt::text("other")), |_| {}).await;
    let texts: Vec<String> = scene.session.messages().iter().map(|m| help::text_of(m)).collect();
    assert_eq!(texts[1..], ["q1", "a1", "other", "b2"]);
    let ids = scene.provider.requests().into_iter().map(|request| request.options.session_id).collect::<Vec<_>>();
    assert_eq!(ids[2].as_deref(), Some(scene.session.log().id()), "requests name the session they belong to");
    assert_ne!(ids[1], ids[2]);
    let (_, first) = (scene.session.fork(&points[0].0, ForkAt::Before).await.unwrap(), &points[0].1);
    assert_eq!(first, "q1");
    assert_eq!(entries(&scene.session), ["model_change", "thinking_level_change", "system"]);
    let old = help::open(&first_file).await.unwrap();
    scene.session.switch_to(old).await.unwrap();
    assert_eq!(scene.session.messages().len(), 5);
    scene.session.begin_new(Some("parent".into())).await.unwrap();
    assert_eq!(entries(&scene.session), ["model_change", "thinking_level_change"]);
    follow(scene.session.prompt(Prompt::text("new")), |_| {}).await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "an empty fork leaves no file");
}

#[tokio::test]
async fn an_import_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("s.jsonl");
    let text =
        "{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"timestamp\":\"2025-06-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n";
    std::fs::write(&source, text).unwrap();
    let folder = dir.path().join("sessions");
    let store = JsonlStore::flat(&folder);
    assert_eq!(store.import(&source, "/w").unwrap(), folder.join("s.jsonl"));
    assert_eq!(store.import(&source, "/w").unwrap(), folder.join("s.jsonl"), "the same again is the same");
    std::fs::write(folder.join("s.jsonl"), "another one").unwrap();
    assert_eq!(store.import(&source, "/w").unwrap(), folder.join("s-1.jsonl"));
    assert_eq!(std::fs::read_to_string(folder.join("s.jsonl")).unwrap(), "another one");
    let none = store.import(&dir.path().join("none.jsonl"), "/w").unwrap_err();
    assert!(none.is_not_found(), "{none}");
    std::fs::write(&source, "no session").unwrap();
    assert!(store.import(&source, "/w").unwrap_err().to_string().contains("not a valid pi session"));
}

#[test]
fn old_names_are_for_what_old_programs_knew() {
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

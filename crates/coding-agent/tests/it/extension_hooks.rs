//! What extensions see and change at each point.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use http::HeaderMap;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::compaction::hooks::{BeforeCompaction, BeforeMove, CompactionAhead, MoveAhead, MoveChanges};
use pinch_coding_agent::compaction::{ByExtension, Summarised};
use pinch_coding_agent::entry::{CustomMessage, EntryId};
use pinch_coding_agent::event::{ExtensionFailure, SessionEvent};
use pinch_coding_agent::extension::ui::{Dialog, DialogKind, Reply, Show, Ui};
use pinch_coding_agent::extension::{
    AgentStartAction, Answer, BeforeAgentStart, BeforeFork, BeforeSwitch, Boundary, BoundaryAction, ContextAction,
    Extension, ExtensionCx, ExtensionError, Extensions, HeaderChanges, Input, InputAction, InputSource, Leave,
    MessageAction, PayloadAction, Point, Points, Resources, ResourcesDiscover, SessionReason, Told, TurnEnd, UserBash,
    UserBashAction,
};
use pinch_coding_agent::prompt::Prompt as SystemPrompt;
use pinch_coding_agent::session::{AgentSession, CompactRequest, ForkAt, ForkError, Navigation, Prompt, SessionError};
use pinch_coding_agent::session::{SessionParts, SessionRun};
use pinch_coding_agent::session_log::NewSession;
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::tools::bash::UserCommand;
use pinch_llm::message::{Block, Content, Message};
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::Reply as Says;
use pinch_llm::schema::Schema;
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Value, json};

use crate::help::{answer, append, host, store, text_of, user};
use crate::session::{Scene, in_memory, model, scene_with};

/// What all extensions of a test note, in order.
pub(crate) type Notes = Arc<Mutex<Vec<String>>>;

/// How an extension behaves at one point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Works,
    Fails,
    Panics,
    Sleeps,
    Asks,
}

/// Notes what it is asked, and changes what can be changed in a way that shows its name.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) points: Points,
    pub(crate) notes: Notes,
    pub(crate) mood: Mood,
}

impl Probe {
    fn note(&self, text: impl AsRef<str>) {
        self.notes.lock().unwrap().push(format!("{} {}", self.name, text.as_ref()));
    }

    /// Behaves as its mood is, then answers.
    fn answer<'a, T: Send + 'a>(&'a self, answer: T, cx: &'a ExtensionCx) -> Answer<'a, T> {
        Box::pin(async move {
            match self.mood {
                Mood::Works => {}
                Mood::Fails => return Err(ExtensionError::new("no")),
                Mood::Panics => panic!("boom"),
                Mood::Sleeps => tokio::time::sleep(Duration::from_secs(600)).await,
                Mood::Asks => {
                    let yes = cx.ui().confirm("Really?", "", None).await;
                    self.note(format!("answered {yes}"));
                }
            }
            Ok(answer)
        })
    }
}

fn tagged(text: &str, name: &str) -> String {
    format!("{text}+{name}")
}

impl Extension for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn points(&self) -> Points {
        self.points
    }

    fn told<'a>(&'a self, told: Told<'a>, cx: &'a ExtensionCx) -> Answer<'a, ()> {
        self.note(match told {
            Told::SessionStart { reason, previous } => format!("start {} {}", reason.as_str(), previous.is_some()),
            Told::SessionShutdown { reason, target } => format!("shutdown {} {}", reason.as_str(), target.is_some()),
            Told::Model { model, previous, source } => {
                format!("model {} {} {}", model.id, previous.id, source.as_str())
            }
            Told::Thinking { level, previous } => format!("level {} {}", level.as_str(), previous.as_str()),
            Told::TurnStart { turn_index, .. } => format!("turn_start {turn_index}"),
            Told::Response { status, .. } => format!("response {status}"),
            Told::Compacted(done) => format!("compacted {}", done.from_extension),
            Told::CompactFailed { error, .. } => format!("compact failed {error}"),
            Told::Event(SessionEvent::InfoChanged { name }) => format!("name {name:?}"),
            other => other.point().unwrap().name().to_owned(),
        });
        self.answer((), cx)
    }

    fn resources_discover<'a>(&'a self, ask: ResourcesDiscover, cx: &'a ExtensionCx) -> Answer<'a, Resources> {
        self.note(format!("resources {}", ask.reason.as_str()));
        self.answer(Resources { skills: vec![self.name.into()], ..Resources::default() }, cx)
    }

    fn session_before_switch<'a>(&'a self, to: &'a BeforeSwitch, cx: &'a ExtensionCx) -> Answer<'a, Leave> {
        self.note(format!("before_switch {}", to.reason.as_str()));
        self.answer(Leave::Stay, cx)
    }

    fn session_before_fork<'a>(&'a self, fork: &'a BeforeFork, cx: &'a ExtensionCx) -> Answer<'a, Leave> {
        self.note(format!("before_fork {}", fork.before));
        self.answer(Leave::Stay, cx)
    }

    fn session_before_compact<'a>(
        &'a self,
        _: &'a CompactionAhead<'a>,
        cx: &'a ExtensionCx,
    ) -> Answer<'a, BeforeCompaction> {
        self.note("before_compact");
        let by_extension = Some(ByExtension::default());
        let made = Summarised { summary: self.name.to_owned(), by_extension, ..Summarised::default() };
        self.answer(BeforeCompaction::Instead(Box::new(made)), cx)
    }

    fn session_before_tree<'a>(&'a self, ahead: &'a MoveAhead, cx: &'a ExtensionCx) -> Answer<'a, BeforeMove> {
        self.note(format!("before_tree {}", ahead.left.len()));
        let changes = MoveChanges { label: Some(self.name.to_owned()), ..MoveChanges::default() };
        self.answer(BeforeMove::GoOn(changes), cx)
    }

    fn context<'a>(&'a self, messages: &'a [Arc<Message>], cx: &'a ExtensionCx) -> Answer<'a, ContextAction> {
        let roles: Vec<&str> = messages.iter().map(|message| message.role()).collect();
        self.note(format!("context {}", roles.join(",")));
        let more = Arc::new(Message::user(self.name, 0));
        self.answer(ContextAction::Replace(messages.iter().cloned().chain([more]).collect()), cx)
    }

    fn before_provider_request<'a>(
        &'a self,
        body: &'a Value,
        _: &'a Model,
        cx: &'a ExtensionCx,
    ) -> Answer<'a, PayloadAction> {
        self.answer(PayloadAction::Replace(json!([body, self.name])), cx)
    }

    fn before_provider_headers<'a>(
        &'a self,
        headers: &'a [(String, String)],
        _: &'a Model,
        cx: &'a ExtensionCx,
    ) -> Answer<'a, HeaderChanges> {
        let n = headers.len().to_string();
        self.answer(vec![(format!("x-{}", self.name), Some(n)), ("gone".into(), None), ("b d".into(), None)], cx)
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a BeforeAgentStart,
        cx: &'a ExtensionCx,
    ) -> Answer<'a, AgentStartAction> {
        self.note(format!("before_start {} {:?}", start.prompt, start.message_type));
        let text: Vec<&str> = start.system.sections().map(|(_, text)| text).collect();
        let system = Some(SystemPrompt::text(tagged(&text.join("\n"), self.name)));
        self.answer(AgentStartAction { messages: vec![custom(self.name)], system }, cx)
    }

    fn turn_end<'a>(&'a self, turn: TurnEnd<'a>, _: &'a Boundary, cx: &'a ExtensionCx) -> Answer<'a, BoundaryAction> {
        self.note(format!("turn_end {} {}", turn.turn_index, turn.results.len()));
        let again = turn.turn_index == 0 && turn.results.is_empty();
        self.answer(if again { BoundaryAction::go_on() } else { BoundaryAction::default() }, cx)
    }

    fn message_end<'a>(&'a self, message: &'a Arc<Message>, cx: &'a ExtensionCx) -> Answer<'a, MessageAction> {
        let mut message = (**message).clone();
        match &mut message {
            Message::User(user) => user.content = Content::Text(tagged(&user.content.text(""), self.name)),
            Message::Assistant(_) => message = Message::user("x", 0),
            Message::ToolResult(result) => result.tool_call_id = "other".into(),
            _ => {}
        }
        self.answer(MessageAction::Replace(Arc::new(message)), cx)
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> Answer<'a, BeforeTool> {
        let text = call.input.get("text").and_then(Value::as_str).unwrap_or_default();
        let deny = text.contains("stop");
        let input = JsonObject::from_iter([("text".to_owned(), Value::from(tagged(text, self.name)))]);
        let reason = format!("not with {}", self.name);
        self.note("tool_call");
        self.answer(if deny { BeforeTool::Deny { reason, end_run: false } } else { BeforeTool::Rewrite(input) }, cx)
    }

    fn tool_result<'a>(&'a self, done: &'a FinishedCall, cx: &'a ExtensionCx) -> Answer<'a, ToolPatch> {
        let text = tagged(done.output.content[0].as_text().unwrap_or_default(), self.name);
        self.answer(ToolPatch { content: Some(vec![Block::text(text)]), ..ToolPatch::default() }, cx)
    }

    fn user_bash<'a>(&'a self, command: &'a UserBash, cx: &'a ExtensionCx) -> Answer<'a, UserBashAction> {
        self.note(format!("bash {}", command.command));
        self.answer(UserBashAction::Instead(UserCommand { output: self.name.into(), ..UserCommand::default() }), cx)
    }

    fn input<'a>(&'a self, input: &'a Input, cx: &'a ExtensionCx) -> Answer<'a, InputAction> {
        self.note(format!("input {} {}", input.source.as_str(), input.queue.is_some()));
        let action = match input.text.as_str() {
            "mine" => InputAction::Handled,
            text => InputAction::Transform { text: tagged(text, self.name), images: None },
        };
        self.answer(action, cx)
    }
}

pub(crate) fn custom(text: &str) -> CustomMessage {
    CustomMessage { custom_type: "c".into(), content: Content::Text(text.into()), display: true, details: None }
}

/// Gives its text back.
struct Echo(ToolSpec);

impl Echo {
    fn tool() -> Arc<dyn Tool> {
        Arc::new(Self(ToolSpec::new("echo", "", Schema::new(json!({"type": "object"})))))
    }
}

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, input: JsonObject, _: &'a ToolCx<'a>) -> Answer2<'a> {
        let text = input.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        Box::pin(async move { Ok(ToolOutput::text(text)) })
    }
}

type Answer2<'a> = futures::future::BoxFuture<'a, Result<ToolOutput, ToolError>>;

fn echo(text: &str) -> Says {
    Says::call("c1", "echo", JsonObject::from_iter([("text".to_owned(), Value::from(text))]))
}

struct Stage {
    scene: Scene,
    extensions: Extensions,
    notes: Notes,
}

impl Stage {
    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    async fn ask(&mut self, text: &str) -> Vec<SessionEvent> {
        pull(self.scene.session.prompt(Prompt::text(text))).await
    }

    fn texts(&self) -> Vec<String> {
        self.scene.session.messages().iter().map(|message| text_of(message)).collect()
    }
}

pub(crate) async fn pull(run: SessionRun<'_>) -> Vec<SessionEvent> {
    run.map(|event| event.unwrap()).collect().await
}

pub(crate) fn failures(events: &[SessionEvent]) -> Vec<ExtensionFailure> {
    let failure = |event: &SessionEvent| match event {
        SessionEvent::ExtensionError(failure) => Some(failure.clone()),
        _ => None,
    };
    events.iter().filter_map(failure).collect()
}

/// A session with extensions of these names and moods at some points.
async fn stage(
    log: SessionLog,
    replies: impl IntoIterator<Item = Says>,
    points: &[Point],
    moods: &[(&'static str, Mood)],
) -> Stage {
    let notes = Notes::default();
    let probes = moods.iter().map(|(name, mood)| {
        let (points, notes) = (Points::of(points.iter().copied()), Arc::clone(&notes));
        Arc::new(Probe { name, points, notes, mood: *mood }) as Arc<dyn Extension>
    });
    let extensions = Extensions::load(&host(), probes);
    let theirs = extensions.clone();
    let scene = scene_with(log, replies, |parts| SessionParts {
        extensions: theirs,
        tools: [Echo::tool()].into_iter().collect(),
        ..parts
    });
    Stage { scene: scene.await, extensions, notes }
}

const TWO: [(&str, Mood); 2] = [("a", Mood::Works), ("b", Mood::Works)];
/// One that works around one that does not.
fn around(mood: Mood) -> [(&'static str, Mood); 3] {
    [("a", Mood::Works), ("bad", mood), ("z", Mood::Works)]
}

#[tokio::test]
async fn they_are_told_in_the_order_they_were_loaded_in() {
    let points = [
        Point::SessionStart,
        Point::AgentStart,
        Point::TurnStart,
        Point::MessageStart,
        Point::ToolExecutionStart,
        Point::ToolExecutionEnd,
        Point::AgentEnd,
        Point::AgentSettled,
        Point::ResourcesDiscover,
        Point::AfterProviderResponse,
    ];
    let mut stage = stage(in_memory(), [echo("x"), Says::text("done")], &points, &TWO).await;
    assert_eq!(
        stage.notes(),
        ["a start startup false", "b start startup false", "a resources startup", "b resources startup"]
    );
    let found: Vec<(&str, &[std::path::PathBuf])> =
        stage.scene.session.discovered().iter().map(|one| (one.extension.as_str(), one.skills.as_slice())).collect();
    assert_eq!(found, [("a", &["a".into()][..]), ("b", &["b".into()])]);
    stage.ask("go").await;
    let of_a: Vec<String> =
        stage.notes().into_iter().filter_map(|note| Some(note.strip_prefix("a ")?.to_owned())).collect();
    let expected = [
        "agent_start",
        "turn_start 0",
        "message_start",
        "message_start",
        "response 200",
        "message_start",
        "tool_execution_start",
        "tool_execution_end",
        "message_start",
        "turn_start 1",
        "response 200",
        "message_start",
        "agent_end",
        "agent_settled",
    ];
    assert_eq!(of_a, expected);
}

#[tokio::test]
async fn they_are_told_before_the_reader_and_before_the_log() {
    let mut stage =
        stage(in_memory(), [Says::text("done")], &[Point::MessageStart, Point::MessageUpdate], &TWO[..1]).await;
    let notes = Arc::clone(&stage.notes);
    let mut run = stage.scene.session.prompt(Prompt::text("go"));
    let mut n_starts = 0;
    while let Some(event) = run.next().await {
        if let SessionEvent::Agent(AgentEvent::MessageStart(_)) = event.unwrap() {
            n_starts += 1;
            let told = notes.lock().unwrap().iter().filter(|note| note.ends_with("message_start")).count();
            assert_eq!(told, n_starts);
        }
    }
    assert_eq!(n_starts, 3);
}

#[tokio::test]
async fn what_is_said_can_be_changed_or_dealt_with() {
    let mut stage = stage(in_memory(), [Says::text("1")], &[Point::Input], &TWO).await;
    stage.ask("hi").await;
    assert_eq!(stage.texts()[1], "hi+a+b");
    assert_eq!(stage.notes(), ["a input interactive false", "b input interactive false"]);
    let events = stage.ask("mine").await;
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(stage.notes(), ["a input interactive false"], "who deals with it is the last to see it");
    let control = stage.scene.session.control();
    assert!(control.say(QueueKind::Steering, "later", Vec::new(), InputSource::Rpc).await);
    assert!(!control.say(QueueKind::FollowUp, "mine", Vec::new(), InputSource::Rpc).await);
    assert_eq!(control.waiting(), (vec!["later+a+b".to_owned()], Vec::new()));
    assert_eq!(stage.notes()[0], "a input rpc true");
}

#[tokio::test]
async fn messages_and_prompts_come_before_the_answer() {
    let mut stage = stage(in_memory(), [Says::text("1"), Says::text("2")], &[Point::BeforeAgentStart], &TWO).await;
    stage.ask("hi").await;
    assert_eq!(stage.notes(), ["a before_start hi None", "b before_start hi None"]);
    assert_eq!(stage.texts(), ["system", "hi", "custom", "custom", "1"]);
    let Message::System(system) = &*stage.scene.session.messages()[0] else { panic!() };
    assert_eq!(system.sections[0].1.as_deref(), Some("sys"), "the conversation keeps its own");
    let Message::System(asked) = &*stage.scene.provider.requests()[0].messages[0] else { panic!() };
    assert_eq!((asked.content.text(""), &asked.sections[..]), ("sys+a+b".to_owned(), &[][..]));
    assert_eq!(asked.tools_added, system.tools_added);
    pull(stage.scene.session.prompt_custom(&custom("x"), &pinch_stdx::cancel::Cancel::new())).await;
    assert_eq!(stage.notes()[0], "a before_start x Some(\"c\")");
}

#[tokio::test]
async fn a_request_can_have_other_messages() {
    let mut stage = stage(in_memory(), [Says::text("1"), Says::text("2")], &[Point::Context], &TWO).await;
    stage.ask("hi").await;
    stage.ask("and").await;
    assert_eq!(stage.notes()[..2], ["a context user", "b context user,user"], "messages of the system are not shown");
    let sent = stage.scene.provider.requests();
    let texts: Vec<String> = sent[1].messages.iter().map(|message| text_of(message)).collect();
    assert_eq!(texts, ["system", "hi", "1", "and", "a", "b"]);
    assert_eq!(stage.texts(), ["system", "hi", "1", "and", "2"], "the conversation stays as it is");
}

#[tokio::test]
async fn whole_messages_can_be_replaced_by_others_of_their_role() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_folder("/w")).await.unwrap();
    let mut stage = stage(log, [Says::text("1")], &[Point::MessageEnd], &TWO).await;
    let events = stage.ask("hi").await;
    assert_eq!(stage.texts(), ["system", "hi+a+b", "1"]);
    let file = std::fs::read_to_string(stage.scene.session.path().unwrap()).unwrap();
    assert!(file.contains("hi+a+b") && !file.contains("\"hi\""));
    let told = events.iter().any(|event| match event {
        SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) => text_of(message) == "hi+a+b",
        _ => false,
    });
    assert!(told);
    let failed = failures(&events);
    let error = "message_end handlers must return a message with the same role";
    let expected = ["a", "b"].map(|name| ExtensionFailure {
        extension: name.into(),
        event: "message_end".into(),
        error: error.into(),
    });
    assert_eq!(failed, expected);
}

#[tokio::test]
async fn a_result_goes_on_answering_its_call() {
    let mut stage = stage(in_memory(), [echo("x"), Says::text("1")], &[Point::MessageEnd], &TWO[..1]).await;
    let events = stage.ask("hi").await;
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!(result.tool_call_id.as_str(), "c1");
    assert_eq!(failures(&events).len(), 3, "two answers and a result were refused");
}

#[tokio::test]
async fn calls_and_results_go_through_all() {
    let mut stage = stage(in_memory(), [echo("x"), Says::text("1")], &[Point::ToolCall, Point::ToolResult], &TWO).await;
    stage.ask("hi").await;
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!(result.content[0].as_text(), Some("x+a+b+a+b"));
    let call = stage.scene.session.messages()[2].as_assistant().unwrap().tool_calls().next().unwrap().clone();
    assert_eq!(call.arguments["text"], "x", "what the model said is not rewritten");
}

#[tokio::test]
async fn the_first_to_block_a_call_is_the_last_to_see_it() {
    let mut stage = stage(in_memory(), [echo("stop"), Says::text("1")], &[Point::ToolCall], &TWO).await;
    stage.ask("hi").await;
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!((result.content[0].as_text(), result.is_error), (Some("not with a"), true));
    assert_eq!(stage.notes(), ["a tool_call"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_handler_blocks_a_call() {
    for (mood, why) in [
        (Mood::Fails, "no"),
        (Mood::Panics, "The handler panicked: boom"),
        (Mood::Sleeps, "The handler took longer than 30 s"),
    ] {
        let mut stage = stage(in_memory(), [echo("x"), Says::text("1")], &[Point::ToolCall], &around(mood)).await;
        let events = stage.ask("hi").await;
        let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
        let text = format!("Extension failed, blocking execution: {why}");
        assert_eq!((result.content[0].as_text(), result.is_error), (Some(text.as_str()), true));
        assert_eq!(failures(&events).len(), 1);
        assert_eq!(stage.notes(), ["a tool_call", "bad tool_call"]);
        let blocked = stage.scene.session.control().before_bash("ls", false).await;
        assert!(matches!(blocked, UserBashAction::Run), "it does not ask for these");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_handler_is_reported_and_passed_over() {
    for mood in [Mood::Fails, Mood::Panics, Mood::Sleeps] {
        let points = [Point::AgentStart, Point::Input, Point::Context, Point::ToolResult, Point::BeforeAgentStart];
        let mut stage = stage(in_memory(), [echo("x"), Says::text("1")], &points, &around(mood)).await;
        let events = stage.ask("hi").await;
        assert_eq!(stage.texts()[..2], ["system", "hi+a+z"]);
        let Message::ToolResult(result) = &*stage.scene.session.messages()[5] else { panic!() };
        assert_eq!(result.content[0].as_text(), Some("x+a+z"));
        let failed: Vec<(String, String)> =
            failures(&events).into_iter().map(|failure| (failure.extension, failure.event)).collect();
        let bad = |event: &str| ("bad".to_owned(), event.to_owned());
        let expected = ["input", "before_agent_start", "agent_start", "context", "tool_result", "context"].map(bad);
        assert_eq!(failed, expected);
        assert!(matches!(events.last(), Some(SessionEvent::Settled { aborted: false })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_of_the_user_goes_through_all_and_fails_closed() {
    let works = stage(in_memory(), [], &[Point::UserBash], &TWO).await;
    let answer = works.scene.session.control().before_bash("ls", true).await;
    assert!(matches!(answer, UserBashAction::Instead(ran) if ran.output == "a"));
    assert_eq!(works.notes(), ["a bash ls"]);
    for mood in [Mood::Fails, Mood::Panics, Mood::Sleeps] {
        let broken = stage(in_memory(), [], &[Point::UserBash], &[("bad", mood)]).await;
        let answer = broken.scene.session.control().before_bash("ls", true).await;
        assert!(matches!(answer, UserBashAction::Block { .. }));
        assert_eq!(broken.extensions.take_failures().len(), 1);
    }
}

/// A person who takes a while, and then says yes.
#[derive(Default)]
struct Slow {
    open: Mutex<(usize, usize)>,
    shown: Mutex<Vec<Show>>,
}

impl Ui for Slow {
    fn ask<'a>(&'a self, dialog: &'a Dialog) -> futures::future::BoxFuture<'a, Option<Reply>> {
        Box::pin(async move {
            {
                let mut open = self.open.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
            }
            let _closed = Closed(self);
            tokio::time::sleep(Duration::from_secs(100)).await;
            Some(match &dialog.kind {
                DialogKind::Confirm { .. } => Reply::Yes(true),
                DialogKind::Select { options } => Reply::Text(options[0].clone()),
                _ => Reply::Text("t".into()),
            })
        })
    }

    fn show(&self, show: Show) {
        self.shown.lock().unwrap().push(show);
    }
}

struct Closed<'a>(&'a Slow);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.open.lock().unwrap().0 -= 1;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dialog_stops_the_clock() {
    let mut stage = stage(in_memory(), [echo("x"), Says::text("1")], &[Point::ToolCall], &[("a", Mood::Asks)]).await;
    stage.extensions.set_ui(Arc::new(Slow::default()));
    let events = stage.ask("hi").await;
    assert!(failures(&events).is_empty());
    assert_eq!(stage.notes(), ["a tool_call", "a answered true"]);
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!(result.content[0].as_text(), Some("x+a"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_prompt_takes_the_dialog_away() {
    let mut stage = stage(in_memory(), [echo("x")], &[Point::ToolCall], &[("a", Mood::Asks)]).await;
    let ui = Arc::new(Slow::default());
    stage.extensions.set_ui(Arc::clone(&ui) as Arc<dyn Ui>);
    let control = stage.scene.session.control();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        control.cancel(pinch_stdx::cancel::CancelReason::User);
    };
    let (events, ()) = tokio::join!(pull(stage.scene.session.prompt(Prompt::text("hi"))), stop);
    assert!(matches!(events.last(), Some(SessionEvent::Settled { aborted: true })));
    assert_eq!(*ui.open.lock().unwrap(), (0, 1));
}

#[tokio::test]
async fn without_people_every_question_is_left_unanswered() {
    let mut stage = stage(in_memory(), [echo("x"), Says::text("1")], &[Point::ToolCall], &[("a", Mood::Asks)]).await;
    stage.ask("hi").await;
    assert_eq!(stage.notes(), ["a tool_call", "a answered false"]);
}

#[tokio::test]
async fn a_turn_can_be_made_to_go_on() {
    let mut stage = stage(in_memory(), [Says::text("1"), Says::text("2")], &[Point::TurnEnd], &TWO[..1]).await;
    stage.ask("hi").await;
    assert_eq!(stage.notes(), ["a turn_end 0 0", "a turn_end 1 0"]);
    assert_eq!(stage.scene.provider.requests().len(), 2);
}

#[tokio::test]
async fn bodies_and_headers_of_requests_can_be_changed() {
    let points = [Point::BeforeProviderRequest, Point::BeforeProviderHeaders];
    let mut stage = stage(in_memory(), [Says::text("1")], &points, &around(Mood::Fails)).await;
    stage.ask("hi").await;
    let request = stage.scene.provider.requests().remove(0);
    let observer = request.options.observer.unwrap();
    let body = observer.on_payload(&json!("body"), &request.model).await.unwrap();
    assert_eq!(body, Some(json!([["body", "a"], "z"])));
    let mut headers = HeaderMap::new();
    headers.insert("gone", "x".parse().unwrap());
    observer.on_headers(&mut headers, &request.model).await.unwrap();
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!((header("x-a"), header("x-z"), header("gone")), (Some("1".into()), Some("1".into()), None));
    let failed: Vec<String> = stage.extensions.take_failures().into_iter().map(|failure| failure.error).collect();
    assert_eq!(failed, ["no", "Invalid header: b d", "no", "Invalid header: b d"]);
}

#[tokio::test]
async fn changes_of_model_level_and_name_are_told() {
    let points = [Point::ModelSelect, Point::ThinkingLevelSelect, Point::SessionInfoChanged];
    let mut stage = stage(in_memory(), [], &points, &TWO[..1]).await;
    stage.scene.session.set_model(model("other", true)).await.unwrap();
    stage.scene.session.set_model(model("other", true)).await.unwrap();
    stage.scene.session.set_thinking(ThinkingLevel::High).await.unwrap();
    stage.scene.session.set_name("n").await.unwrap();
    assert_eq!(stage.notes(), ["a model other m set", "a level high off", "a name Some(\"n\")"]);
}

#[tokio::test]
async fn compaction_and_the_tree_ask_first() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let points = [
        Point::SessionBeforeCompact,
        Point::SessionCompact,
        Point::SessionCompactFailed,
        Point::SessionBeforeTree,
        Point::SessionTree,
    ];
    let mut stage = stage(log, [], &points, &around(Mood::Fails)).await;
    stage.scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let first = stage.scene.session.log().entry_ids().next().cloned().unwrap();
    let done = stage.scene.session.compact(CompactRequest::manual(None), &|_| {}).await.unwrap();
    assert_eq!((done.summary.as_str(), done.from_extension), ("a", true));
    stage.scene.session.compact(CompactRequest::manual(None), &|_| {}).await.unwrap_err();
    let expected = ["a before_compact", "a compacted true", "bad compacted true", "z compacted true"];
    let notes = stage.notes();
    assert_eq!(notes[..4], expected);
    assert_eq!(notes[4], "a compact failed Already compacted");
    stage.scene.session.navigate(Navigation::to(first.clone()), &|_| {}).await.unwrap();
    let notes = stage.notes();
    assert_eq!(notes[0], "a before_tree 5", "{notes:?}");
    assert!(notes.contains(&"z session_tree".to_owned()));
    assert_eq!(stage.scene.session.log().label(&first).unwrap().text, "z", "the last label counts");
}

#[tokio::test]
async fn a_session_is_left_only_when_nobody_minds() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_folder("/w")).await.unwrap();
    let all = [Point::SessionBeforeSwitch, Point::SessionBeforeFork, Point::SessionStart, Point::SessionShutdown];
    let mut minds = stage(log, [Says::text("1")], &all, &TWO).await;
    minds.ask("q").await;
    minds.notes();
    let id = minds.scene.session.log().id().to_owned();
    assert!(matches!(minds.scene.session.begin_new(None).await, Err(SessionError::Stayed)));
    assert!(matches!(minds.scene.session.switch_to(in_memory()).await, Err(SessionError::Stayed)));
    let point: EntryId = minds.scene.session.fork_points()[0].0.clone();
    let forked = minds.scene.session.fork(&point, ForkAt::Before).await;
    assert!(matches!(forked, Err(ForkError::Session(SessionError::Stayed))));
    assert_eq!(minds.scene.session.log().id(), id);
    assert_eq!(minds.notes(), ["a before_switch new", "a before_switch resume", "a before_fork true"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);

    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_folder("/w")).await.unwrap();
    let mut goes = stage(log, [Says::text("1")], &all[2..], &TWO[..1]).await;
    goes.ask("q").await;
    goes.notes();
    let point: EntryId = goes.scene.session.fork_points()[0].0.clone();
    goes.scene.session.fork(&point, ForkAt::Before).await.unwrap();
    goes.scene.session.begin_new(None).await.unwrap();
    goes.scene.session.switch_to(in_memory()).await.unwrap();
    goes.scene.session.shut_down(SessionReason::Quit).await;
    goes.scene.session.shut_down(SessionReason::Quit).await;
    let expected = [
        "a shutdown fork true",
        "a start fork true",
        "a shutdown new true",
        "a start new true",
        "a shutdown resume false",
        "a start resume true",
        "a shutdown quit false",
    ];
    assert_eq!(goes.notes(), expected);
}

/// Fails while it is registered, after it has brought something along.
struct Broken(bool);

impl Extension for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn points(&self) -> Points {
        Points::of([Point::Input])
    }

    fn register(
        &self,
        to: &mut pinch_coding_agent::extension::Registrations,
        _: &pinch_coding_agent::extension::ExtensionHandle,
    ) -> Result<(), ExtensionError> {
        to.tool(Echo::tool());
        assert!(!self.0, "as wished");
        Err(ExtensionError::new("no"))
    }
}

#[test]
fn what_fails_while_loading_leaves_nothing() {
    for panics in [false, true] {
        let extensions = Extensions::load(&host(), [Arc::new(Broken(panics)) as Arc<dyn Extension>]);
        assert!(extensions.is_empty() && extensions.tools().is_empty() && !extensions.wants(Point::Input));
        let failed = extensions.take_failures();
        assert_eq!((failed[0].extension.as_str(), failed[0].event.as_str()), ("broken", "load"));
        assert!(failed[0].error.starts_with("Failed to load extension: "), "{failed:?}");
    }
}

#[tokio::test]
async fn points_that_nobody_wants_cost_nothing() {
    let mut stage = stage(in_memory(), [Says::text("1")], &[], &TWO).await;
    stage.ask("hi").await;
    assert!(stage.notes().is_empty());
    assert!(stage.scene.provider.requests()[0].options.observer.is_none());
    assert_eq!(stage.texts(), ["system", "hi", "1"]);
}

#[expect(dead_code, reason = "holds the session by its type, so that it stays Send")]
fn sessions_can_move_between_threads(session: AgentSession) -> impl Send {
    session
}

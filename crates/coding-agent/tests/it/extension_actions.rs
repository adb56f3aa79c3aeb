//! What extensions bring along, and what they do to the session.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{Tool, ToolCx, ToolError};
use pinch_coding_agent::event::{ExtensionFailure, SessionEvent};
use pinch_coding_agent::extension::actions::{Delivery, NavigateTree};
use pinch_coding_agent::extension::ui::{Dialog, Reply, Show, Ui};
use pinch_coding_agent::extension::{
    Answer, Command, CommandCx, ExecOptions, Extension, ExtensionCx, ExtensionError, ExtensionHandle, Extensions, Flag,
    FlagKind, FlagValue, Point, Points, ProviderChange, Registrations, Told,
};
use pinch_coding_agent::prompt::Prompt as SystemPrompt;
use pinch_coding_agent::session::{Prompt, SessionParts, Wish};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::message::{Content, Message};
use pinch_llm::provider::scripted::Reply as Says;
use pinch_llm::schema::Schema;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::json;

use crate::extension_hooks::{custom, failures, pull};
use crate::help::{answer, append, host, open, store, text_of, user};
use crate::session::{Scene, entries, in_memory, model, scene_with};

type Runs = Box<dyn for<'a> Fn(&'a str, &'a CommandCx) -> Work<'a> + Send + Sync>;
type Bring = Box<dyn Fn(&mut Registrations, &ExtensionHandle) + Send + Sync>;
type Work<'a> = BoxFuture<'a, Result<(), ExtensionError>>;

/// A command that does what it is told.
struct Does {
    name: &'static str,
    work: Runs,
}

impl Command for Does {
    fn name(&self) -> &str {
        self.name
    }

    fn run<'a>(&'a self, args: &'a str, cx: &'a CommandCx) -> Work<'a> {
        (self.work)(args, cx)
    }
}

fn does(
    name: &'static str,
    work: impl for<'a> Fn(&'a str, &'a CommandCx) -> Work<'a> + Send + Sync + 'static,
) -> Arc<dyn Command> {
    Arc::new(Does { name, work: Box::new(work) })
}

/// An extension that brings along what it is given.
struct Brings {
    name: &'static str,
    points: Points,
    bring: Bring,
    told: Box<dyn for<'a> Fn(&'a ExtensionCx) -> Work<'a> + Send + Sync>,
}

impl Brings {
    fn of(name: &'static str, bring: impl Fn(&mut Registrations, &ExtensionHandle) + Send + Sync + 'static) -> Self {
        Self { name, points: Points::NONE, bring: Box::new(bring), told: Box::new(nothing) }
    }

    fn at(self, point: Point, told: impl for<'a> Fn(&'a ExtensionCx) -> Work<'a> + Send + Sync + 'static) -> Self {
        Self { points: self.points.with(point), told: Box::new(told), ..self }
    }
}

impl Extension for Brings {
    fn name(&self) -> &str {
        self.name
    }

    fn points(&self) -> Points {
        self.points
    }

    fn register(&self, to: &mut Registrations, handle: &ExtensionHandle) -> Result<(), ExtensionError> {
        (self.bring)(to, handle);
        Ok(())
    }

    fn told<'a>(&'a self, _: Told<'a>, cx: &'a ExtensionCx) -> Answer<'a, ()> {
        (self.told)(cx)
    }
}

fn nothing(_: &ExtensionCx) -> Work<'_> {
    Box::pin(async { Ok(()) })
}

struct Named(ToolSpec);

impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text(self.0.description.clone())) })
    }
}

pub(crate) fn tool(name: &str, description: &str) -> Arc<dyn Tool> {
    Arc::new(Named(ToolSpec::new(name, description, Schema::new(json!({"type": "object"})))))
}

fn load(extensions: Vec<Brings>) -> Extensions {
    Extensions::load(&host(), extensions.into_iter().map(|one| Arc::new(one) as Arc<dyn Extension>))
}

async fn with(log: SessionLog, replies: impl IntoIterator<Item = Says>, extensions: &Extensions) -> Scene {
    let extensions = extensions.clone();
    let find: pinch_coding_agent::session::FindModel =
        Arc::new(|_, id| (id.as_str() != "none").then(|| model(id.as_str(), true)));
    scene_with(log, replies, |parts| SessionParts { extensions, find_model: Some(find), ..parts }).await
}

fn texts(scene: &Scene) -> Vec<String> {
    scene.session.messages().iter().map(|message| text_of(message)).collect()
}

fn names(scene: &Scene) -> Vec<String> {
    let requests = scene.provider.requests();
    let last = requests.last().unwrap();
    let mut names: Vec<String> = Vec::new();
    for message in &last.messages {
        if let Message::System(system) = &**message {
            names.retain(|name| !system.tools_removed.contains(name));
            names.extend(system.tools_added.iter().map(|tool| tool.name.clone()));
        }
    }
    names
}

#[tokio::test]
async fn commands_run_and_their_failures_are_told() {
    let ran: Arc<Mutex<Vec<String>>> = Arc::default();
    let theirs = Arc::clone(&ran);
    let bring = move |to: &mut Registrations, _: &ExtensionHandle| {
        let ran = Arc::clone(&theirs);
        to.command(does("good", move |args, _| {
            ran.lock().unwrap().push(args.to_owned());
            Box::pin(async { Ok(()) })
        }));
        to.command(does("boom", |_, _| Box::pin(async { Err(ExtensionError::new("kaput")) })));
        to.command(does("panics", |_, _| panic!("oh")));
    };
    let extensions = load(vec![Brings::of("x", bring)]);
    let mut scene = with(in_memory(), [Says::text("1")], &extensions).await;
    assert!(pull(scene.session.prompt(Prompt::text("/good a  b"))).await.is_empty());
    assert_eq!(*ran.lock().unwrap(), ["a  b"]);
    let failed = failures(&pull(scene.session.prompt(Prompt::text("/boom"))).await);
    let failure = |name: &str, error: &str| ExtensionFailure {
        extension: format!("command:{name}"),
        event: "command".into(),
        error: error.into(),
    };
    assert_eq!(failed, [failure("boom", "kaput")]);
    let failed = failures(&pull(scene.session.prompt(Prompt::text("/panics"))).await);
    assert_eq!(failed, [failure("panics", "The handler panicked: oh")]);
    pull(scene.session.prompt(Prompt { verbatim: true, ..Prompt::text("/good") })).await;
    assert_eq!(texts(&scene)[1], "/good", "a verbatim prompt is no command");
}

#[tokio::test]
async fn commands_of_one_name_get_numbers() {
    let one = |name| Brings::of(name, |to, _| to.command(does("same", |_, _| Box::pin(async { Ok(()) }))));
    let extensions = load(vec![
        one("x"),
        one("y"),
        Brings::of("z", |to, _| to.command(does("own", |_, _| Box::pin(async { Ok(()) })))),
    ]);
    let found: Vec<(String, String)> =
        extensions.commands().into_iter().map(|found| (found.name, found.extension.to_string())).collect();
    let pair = |name: &str, of: &str| (name.to_owned(), of.to_owned());
    assert_eq!(found, [pair("same:1", "x"), pair("same:2", "y"), pair("own", "z")]);
    assert!(extensions.find_command("/same").is_none());
    assert_eq!(extensions.find_command("/own  a b").unwrap().1, " a b");
}

#[tokio::test]
async fn a_command_speaks_to_the_session_at_rest() {
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.command(does("all", |_, cx| {
            Box::pin(async move {
                cx.send_message(custom("note"), Delivery::Steer, false).await?;
                cx.append_entry("state", Some(json!(1))).await?;
                cx.set_session_name("named").await?;
                cx.set_thinking(ThinkingLevel::High).await?;
                assert!(!cx.set_model("p".into(), "none".into()).await?);
                assert!(cx.set_model("p".into(), "other".into()).await?);
                assert!(cx.is_idle()?);
                cx.send_user_message(Content::Text("asked".into()), Delivery::Steer).await?;
                assert!(!cx.is_idle()?);
                cx.wait_for_idle().await?;
                let said: Vec<String> =
                    cx.branch().await?.iter().map(|entry| entry.body.type_name().to_owned()).collect();
                assert_eq!(said.last().unwrap(), "message");
                assert_eq!(cx.context_usage().await?.unwrap().context_window, 100_000);
                cx.send_message(custom("ask"), Delivery::Steer, true).await?;
                cx.shutdown().await
            })
        }));
    };
    let extensions = load(vec![Brings::of("x", bring)]);
    let mut scene = with(in_memory(), [Says::text("1"), Says::text("2")], &extensions).await;
    let events = pull(scene.session.prompt(Prompt::text("/all"))).await;
    assert_eq!(failures(&events), []);
    assert_eq!(texts(&scene), ["custom", "system", "asked", "1", "custom", "2"]);
    assert_eq!(scene.session.log().name().as_deref(), Some("named"));
    assert_eq!((scene.session.model().id.as_str(), scene.session.thinking()), ("other", ThinkingLevel::High));
    assert!(entries(&scene.session).contains(&"custom".to_owned()));
    assert_eq!(events.iter().filter(|event| matches!(event, SessionEvent::Settled { .. })).count(), 2);
    assert_eq!(scene.session.control().take_wish(), Some(Wish::Shutdown));
    assert_eq!(scene.session.control().take_wish(), None);
}

#[tokio::test]
async fn what_is_asked_for_between_prompts_is_done_by_attending() {
    let kept: Arc<Mutex<Option<ExtensionHandle>>> = Arc::default();
    let theirs = Arc::clone(&kept);
    let extensions = load(vec![Brings::of("x", move |_, handle| *theirs.lock().unwrap() = Some(handle.clone()))]);
    let handle = kept.lock().unwrap().clone().unwrap();
    assert_eq!(handle.cx().unwrap_err(), ExtensionError::Stale, "there is no session yet");
    let mut scene = with(in_memory(), [Says::text("1")], &extensions).await;
    let cx = handle.cx().unwrap();
    cx.send_user_message(Content::Text("hello".into()), Delivery::Steer).await.unwrap();
    cx.send_message(custom("later"), Delivery::NextPrompt, true).await.unwrap();
    scene.session.control().wants_attention().await;
    pull(scene.session.attend(&Cancel::new())).await;
    assert_eq!(texts(&scene), ["system", "hello", "custom", "1"]);
    drop(scene);
    assert_eq!(cx.session().unwrap_err(), ExtensionError::Stale);
    assert_eq!(cx.entries().await.unwrap_err(), ExtensionError::Stale);
}

/// Counts the entries of the log.
fn counts(seen: Arc<Mutex<Vec<usize>>>) -> impl for<'a> Fn(&'a ExtensionCx) -> Work<'a> + Send + Sync {
    move |cx| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let n = cx.entries().await?.len();
            seen.lock().unwrap().push(n);
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_handler_may_ask_for_what_is_in_the_log() {
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (first, second) = (Arc::clone(&seen), Arc::clone(&seen));
    let extensions = load(vec![
        Brings::of("x", |_, _| {}).at(Point::SessionStart, counts(first)),
        Brings::of("y", |_, _| {}).at(Point::TurnStart, counts(second)),
    ]);
    let mut scene = with(in_memory(), [Says::text("1")], &extensions).await;
    assert_eq!(failures(&pull(scene.session.prompt(Prompt::text("hi"))).await), []);
    assert_eq!(*seen.lock().unwrap(), [2, 2]);
}

#[tokio::test]
async fn a_command_replaces_the_session_and_its_context_is_stale_then() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_folder("/w")).await.unwrap();
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.command(does("fresh", |_, cx| {
            Box::pin(async move {
                let old = cx.session()?.session_file.clone();
                let left = cx.new_session(Some("parent".into())).await?;
                assert!(!left.cancelled);
                assert_eq!(cx.is_idle().unwrap_err(), ExtensionError::Stale);
                assert_eq!(cx.set_session_name("x").await.unwrap_err(), ExtensionError::Stale);
                left.cx.set_session_name("fresh").await?;
                assert_ne!(left.cx.session()?.session_file, old);
                let back = left.cx.switch_session(old.unwrap()).await?;
                let target = back.cx.branch().await?[2].id.clone();
                let tree =
                    NavigateTree { target, summarise: false, focus: None, replace_instructions: false, label: None };
                assert_eq!(back.cx.navigate_tree(tree).await?.text, None);
                let point = back.cx.entries().await?[3].id.clone();
                let forked = back.cx.fork(point, true).await?;
                assert_eq!(forked.text.as_deref(), Some("q"));
                let error = forked.cx.compact(None).await.unwrap_err();
                assert!(matches!(error, ExtensionError::Refused { .. }), "{error:?}");
                Err(ExtensionError::new("reached the end"))
            })
        }));
    };
    let extensions = load(vec![Brings::of("x", bring)]);
    let mut scene = with(log, [Says::text("1")], &extensions).await;
    pull(scene.session.prompt(Prompt::text("q"))).await;
    let failed = failures(&pull(scene.session.prompt(Prompt::text("/fresh"))).await);
    assert_eq!(failed.iter().map(|failure| failure.error.as_str()).collect::<Vec<_>>(), ["reached the end"]);
    assert_eq!(texts(&scene), ["system"]);
}

#[tokio::test]
async fn a_command_may_run_beside_a_run() {
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.command(does("steer", |args, cx| {
            Box::pin(async move {
                assert!(!cx.is_idle()?);
                cx.send_message(custom(args), Delivery::Steer, true).await?;
                cx.wait_for_idle().await?;
                assert!(cx.new_session(None).await?.cx.is_idle()?);
                Ok(())
            })
        }));
        to.tool(tool("x", "done"));
    };
    let extensions = load(vec![Brings::of("x", bring)]);
    let mut scene = with(in_memory(), [Says::call("c", "x", JsonObject::new()), Says::text("2")], &extensions).await;
    let control = scene.session.control();
    let (found, args) = control.find_command("/steer now").unwrap();
    let session = async {
        let mut events = pull(scene.session.prompt(Prompt::text("hi"))).await;
        // What the command asks for after the run waits for somebody who looks after it.
        control.wants_attention().await;
        events.extend(pull(scene.session.attend(&Cancel::new())).await);
        events
    };
    let command = async {
        while !control.is_running() {
            tokio::task::yield_now().await;
        }
        control.run_command(&found, &args).await;
    };
    let (events, ()) = tokio::join!(session, command);
    assert_eq!(failures(&events), []);
    assert!(entries(&scene.session).iter().all(|entry| entry != "user"), "the command went over to a new session");
    let sent = scene.provider.requests();
    assert_eq!(sent.len(), 2);
    assert!(sent[1].messages.iter().any(|message| text_of(message) == "now"));
}

#[tokio::test]
async fn tools_come_over_built_in_ones_and_at_once() {
    let bring = |to: &mut Registrations, handle: &ExtensionHandle| {
        to.tool(tool("read", "theirs"));
        to.tool(tool("more", "more"));
        let _ = handle;
        to.command(does("late", |_, cx| Box::pin(async move { cx.register_tool(tool("late", "late")).await })));
        to.command(does("only", |_, cx| {
            Box::pin(async move { cx.set_active_tools(vec!["late".into(), "frob".into()]).await })
        }));
    };
    let second = |to: &mut Registrations, _: &ExtensionHandle| to.tool(tool("more", "again"));
    let extensions = load(vec![Brings::of("x", bring), Brings::of("y", second)]);
    let problem = extensions.take_failures();
    assert_eq!((problem[0].extension.as_str(), problem[0].error.as_str()), ("y", "Tool \"more\" conflicts with x"));
    let theirs = extensions.clone();
    let replies = (0..3).map(|n| Says::text(n.to_string()));
    let mut scene = scene_with(in_memory(), replies, |parts| SessionParts {
        extensions: theirs,
        tools: [tool("read", "own"), tool("bash", "own")].into_iter().collect(),
        prompt_for: Some(Arc::new(|tools| {
            SystemPrompt::text(tools.iter().map(|tool| tool.spec().name.clone()).collect::<Vec<_>>().join(" "))
        })),
        ..parts
    })
    .await;
    pull(scene.session.prompt(Prompt::text("a"))).await;
    assert_eq!(names(&scene), ["read", "bash", "more"]);
    let Message::System(system) = &*scene.session.messages()[0] else { panic!() };
    assert_eq!(system.tools_added[0].description, "theirs");
    assert_eq!(system.sections[0].1.as_deref(), Some("read bash more"));
    pull(scene.session.prompt(Prompt::text("/late"))).await;
    pull(scene.session.prompt(Prompt::text("b"))).await;
    assert_eq!(names(&scene), ["read", "bash", "more", "late"]);
    pull(scene.session.prompt(Prompt::text("/only"))).await;
    pull(scene.session.prompt(Prompt::text("c"))).await;
    assert_eq!(names(&scene), ["late"]);
}

#[tokio::test]
async fn a_list_of_allowed_tools_holds_for_extensions_too() {
    let extensions = load(vec![Brings::of("x", |to, _| {
        to.tool(tool("yes", ""));
        to.tool(tool("no", ""));
    })]);
    let theirs = extensions.clone();
    let mut scene = scene_with(in_memory(), [Says::text("1")], |parts| SessionParts {
        extensions: theirs,
        tools: [tool("read", ""), tool("bash", "")].into_iter().collect(),
        allowed_tools: Some(vec!["yes".into(), "read".into()]),
        ..parts
    })
    .await;
    pull(scene.session.prompt(Prompt::text("a"))).await;
    assert_eq!(names(&scene), ["read", "yes"]);
}

#[tokio::test]
async fn a_conversation_gets_back_the_tools_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_folder("/w")).await.unwrap();
    let off = |to: &mut Registrations, _: &ExtensionHandle| {
        to.tool(tool("off", ""));
        to.command(does("ls", |_, cx| {
            Box::pin(async move { cx.set_active_tools(vec!["ls".into(), "read".into()]).await })
        }));
    };
    let own =
        || [tool("read", ""), tool("bash", ""), tool("ls", "")].into_iter().collect::<pinch_agent_core::ToolSet>();
    let few = || own().filter(|tool| tool.spec().name != "ls");
    let begin = |extensions: Extensions| {
        move |parts| SessionParts { extensions, tools: few(), all_tools: Some(own()), ..parts }
    };
    let extensions = load(vec![Brings::of("x", off)]);
    let mut scene = scene_with(log, [Says::text("1"), Says::text("2")], begin(extensions)).await;
    pull(scene.session.prompt(Prompt::text("a"))).await;
    assert_eq!(names(&scene), ["read", "bash", "off"]);
    pull(scene.session.prompt(Prompt::text("/ls"))).await;
    pull(scene.session.prompt(Prompt::text("b"))).await;
    let file = scene.session.path().unwrap();
    drop(scene);
    let new = |to: &mut Registrations, _: &ExtensionHandle| to.tool(tool("new", ""));
    let extensions = load(vec![Brings::of("x", off), Brings::of("y", new)]);
    let mut scene = scene_with(open(&file).await.unwrap(), [Says::text("3")], begin(extensions)).await;
    pull(scene.session.prompt(Prompt::text("c"))).await;
    let mut found = names(&scene);
    found.sort_unstable();
    assert_eq!(found, ["ls", "new", "read"], "what was turned off stays off, what is new comes in");
}

#[test]
fn flags_are_checked_and_belong_to_their_extension() {
    let flag = |name: &str, kind| Flag { name: name.into(), description: None, kind };
    let text = FlagKind::Text { default: Some("d".into()) };
    let kept: Arc<Mutex<Option<ExtensionHandle>>> = Arc::default();
    let theirs = Arc::clone(&kept);
    let extensions = load(vec![
        Brings::of("x", move |to, handle| {
            to.flag(flag("plan", FlagKind::Boolean { default: Some(false) }));
            to.flag(flag("level", text.clone()));
            *theirs.lock().unwrap() = Some(handle.clone());
        }),
        Brings::of("y", move |to, _| to.flag(flag("plan", FlagKind::Boolean { default: None }))),
    ]);
    assert_eq!(extensions.take_failures()[0].error, "Flag \"--plan\" conflicts with x");
    let given = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    let wrong =
        extensions.set_flags(&[given("level", None), given("a", None), given("plan", None), given("b", Some("1"))]);
    assert_eq!(wrong, ["Extension flag \"--level\" requires a value", "Unknown options: --a, --b"]);
    assert_eq!(extensions.set_flags(&[given("a", None)]), ["Unknown option: --a"]);
    assert_eq!(extensions.flags().len(), 2);
}

#[tokio::test]
async fn flags_shortcuts_providers_and_events_reach_whom_they_are_for() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let theirs = Arc::clone(&heard);
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.flag(Flag { name: "plan".into(), description: None, kind: FlagKind::Boolean { default: None } });
        to.shortcut("ctrl+x", does("first", |_, _| Box::pin(async { Ok(()) })));
        to.shortcut("ctrl+c", does("never", |_, _| Box::pin(async { Ok(()) })));
        to.message_renderer("c");
        to.provider("mine", JsonObject::new());
    };
    let listens = Brings::of("z", |to, _| {
        to.shortcut("Ctrl+X", does("second", |_, _| Box::pin(async { Ok(()) })));
        to.message_renderer("c");
    })
    .at(Point::SessionStart, move |cx| {
        let heard = Arc::clone(&theirs);
        cx.on("topic", Arc::new(|_| panic!("bad listener")));
        cx.on("topic", Arc::new(move |data| heard.lock().unwrap().push(data.to_string())));
        Box::pin(async { Ok(()) })
    });
    let emits = Brings::of("x", bring).at(Point::AgentStart, |cx| {
        assert_eq!(cx.flag("plan"), Some(FlagValue::Boolean(true)));
        assert_eq!(cx.flag("other"), None);
        cx.emit("topic", &json!({"a": 1}));
        cx.unregister_provider("mine");
        Box::pin(async { Ok(()) })
    });
    let extensions = load(vec![emits, listens]);
    assert!(extensions.set_flags(&[("plan".into(), None)]).is_empty());
    let (held, problems) = extensions.shortcuts(&["ctrl+c"], &["ctrl+x"]);
    assert_eq!(held.iter().map(|shortcut| shortcut.command.name()).collect::<Vec<_>>(), ["second"]);
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert_eq!(extensions.message_renderers(), [("c".to_owned(), "x".to_owned())]);
    let mut scene = with(in_memory(), [Says::text("1")], &extensions).await;
    let failed = failures(&pull(scene.session.prompt(Prompt::text("a"))).await);
    assert_eq!(failed.iter().map(|failure| failure.event.as_str()).collect::<Vec<_>>(), ["topic"]);
    assert_eq!(*heard.lock().unwrap(), ["{\"a\":1}"]);
    let changes = extensions.take_provider_changes();
    assert!(matches!(&changes[0].1, ProviderChange::Register { name, .. } if name == "mine"));
    assert!(matches!(&changes[1].1, ProviderChange::Unregister { name } if name == "mine"));
    assert!(extensions.take_provider_changes().is_empty());
}

/// Answers after a second, and remembers how many dialogs were open at once.
#[derive(Default)]
struct Person {
    open: Mutex<(usize, usize)>,
    shown: Mutex<Vec<Show>>,
}

impl Ui for Person {
    fn ask<'a>(&'a self, dialog: &'a Dialog) -> BoxFuture<'a, Option<Reply>> {
        Box::pin(async move {
            let n = {
                let mut open = self.open.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
                open.0
            };
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.open.lock().unwrap().0 -= 1;
            Some(Reply::Text(format!("{} {n}", dialog.title)))
        })
    }

    fn show(&self, show: Show) {
        self.shown.lock().unwrap().push(show);
    }
}

#[tokio::test(start_paused = true)]
async fn dialogs_wait_for_each_other_and_then_have_their_own_time() {
    let kept: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let theirs = Arc::clone(&kept);
    let bring = move |to: &mut Registrations, _: &ExtensionHandle| {
        let kept = Arc::clone(&theirs);
        to.command(does("ask", move |_, cx| {
            let kept = Arc::clone(&kept);
            Box::pin(async move {
                let ui = cx.ui();
                let (enough, little) = (Some(Duration::from_millis(1500)), Some(Duration::from_millis(500)));
                let (a, b, c) =
                    tokio::join!(ui.input("a", None, enough), ui.input("b", None, enough), ui.editor("c", None));
                let late = ui.input("late", None, little).await;
                ui.set_title("t");
                kept.lock().unwrap().extend([a, b, c, late]);
                Ok(())
            })
        }));
    };
    let extensions = load(vec![Brings::of("x", bring)]);
    let person = Arc::new(Person::default());
    extensions.set_ui(Arc::clone(&person) as Arc<dyn Ui>);
    let mut scene = with(in_memory(), [], &extensions).await;
    assert_eq!(failures(&pull(scene.session.prompt(Prompt::text("/ask"))).await), []);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(*kept.lock().unwrap(), [text("a 1"), text("b 1"), text("c 1"), None]);
    assert_eq!(*person.shown.lock().unwrap(), [Show::Title("t".into())]);
}

#[tokio::test]
async fn programs_are_run_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.command(does("run", |_, cx| {
            Box::pin(async move {
                let args = |script: &str| vec!["-c".to_owned(), script.to_owned()];
                let ran = cx.exec("/bin/sh", &args("pwd; echo err >&2; exit 3"), ExecOptions::default()).await?;
                assert_eq!(
                    (ran.stdout.trim_end(), ran.stderr.as_str(), ran.code, ran.killed),
                    (cx.cwd()?.to_str().unwrap(), "err\n", 3, false)
                );
                let short = ExecOptions { timeout: Some(Duration::from_millis(50)), ..ExecOptions::default() };
                let ran = cx.exec("/bin/sh", &args("echo begun; sleep 60 & wait"), short).await?;
                assert_eq!((ran.stdout.as_str(), ran.killed), ("begun\n", true));
                let missing = cx.exec("/no/such/program", &[], ExecOptions::default()).await.unwrap_err();
                assert!(missing.to_string().contains("cannot start"), "{missing}");
                let elsewhere = ExecOptions { cwd: Some(PathBuf::from("/")), ..ExecOptions::default() };
                assert_eq!(cx.exec("/bin/sh", &args("pwd"), elsewhere).await?.stdout, "/\n");
                Ok(())
            })
        }));
    };
    let system = Host::system();
    let one: Arc<dyn Extension> = Arc::new(Brings::of("x", bring));
    let extensions = Extensions::load(&system, [one]);
    let log = SessionLog::in_memory(&host(), NewSession::in_folder(cwd.to_str().unwrap()));
    let mut scene = with(log, [], &extensions).await;
    assert_eq!(failures(&pull(scene.session.prompt(Prompt::text("/run"))).await), []);
}

#[tokio::test]
async fn a_compaction_is_asked_for_and_done_at_rest() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let asks = Brings::of("x", |_, _| {}).at(Point::AgentStart, |cx| Box::pin(cx.request_compaction(Some("f".into()))));
    let extensions = load(vec![asks]);
    let mut scene = with(log, [Says::text("1"), Says::text("SUMMARY"), Says::text("S2")], &extensions).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let events = pull(scene.session.prompt(Prompt::text("q3"))).await;
    let settled = events.iter().position(|event| matches!(event, SessionEvent::Settled { .. })).unwrap();
    let compacted =
        events.iter().position(|event| matches!(event, SessionEvent::CompactionEnd { result: Some(_), .. }));
    assert!(compacted.unwrap() > settled);
}

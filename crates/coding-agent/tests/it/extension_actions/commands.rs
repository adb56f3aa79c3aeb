//! Commands registered by extensions.

use std::sync::{Arc, Mutex};

use pinch_agent_core::tool::JsonObject;
use pinch_coding_agent::event::{ExtensionFailure, SessionEvent};
use pinch_coding_agent::extension::actions::{DeliverAs, NavigateTree};
use pinch_coding_agent::extension::{ExtensionCx, ExtensionError, ExtensionHandle, Point, Registrations};
use pinch_coding_agent::session::{HostRequest, Prompt};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::message::Content;
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use serde_json::json;

use super::{ActionFuture, Brings, does, load, texts, tool, with};
use crate::extension_hooks::{custom, failures, pull};
use crate::session::{entries, in_memory};
use pinch_testing::logs::{host, store, text_of};

#[tokio::test]
async fn commands_run_and_their_failures_are_reported() {
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
    let mut scene = with(in_memory(), [Reply::text("1")], &extensions).await;
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
async fn commands_with_the_same_name_get_numbers() {
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
async fn a_command_may_use_the_idle_session() {
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.command(does("all", |_, cx| {
            Box::pin(async move {
                cx.send_message(custom("note"), DeliverAs::Steer, false).await?;
                cx.append_entry("state", Some(json!(1))).await?;
                cx.set_session_name("named").await?;
                cx.set_thinking(ThinkingLevel::High).await?;
                assert!(!cx.set_model("p".into(), "none".into()).await?);
                assert!(cx.set_model("p".into(), "other".into()).await?);
                assert!(cx.is_idle()?);
                cx.send_user_message(Content::Text("asked".into()), DeliverAs::Steer).await?;
                assert!(!cx.is_idle()?);
                cx.wait_for_idle().await?;
                let roles: Vec<String> =
                    cx.branch().await?.iter().map(|entry| entry.body.type_name().to_owned()).collect();
                assert_eq!(roles.last().unwrap(), "message");
                assert_eq!(cx.context_usage().await?.unwrap().context_window, 100_000);
                cx.send_message(custom("ask"), DeliverAs::Steer, true).await?;
                cx.shutdown().await
            })
        }));
    };
    let extensions = load(vec![Brings::of("x", bring)]);
    let mut scene = with(in_memory(), [Reply::text("1"), Reply::text("2")], &extensions).await;
    let events = pull(scene.session.prompt(Prompt::text("/all"))).await;
    assert_eq!(failures(&events), []);
    assert_eq!(texts(&scene), ["custom", "system", "asked", "1", "custom", "2"]);
    assert_eq!(scene.session.log().name().as_deref(), Some("named"));
    assert_eq!((scene.session.model().id.as_str(), scene.session.thinking()), ("other", ThinkingLevel::High));
    assert!(entries(&scene.session).contains(&"custom".to_owned()));
    assert_eq!(events.iter().filter(|event| matches!(event, SessionEvent::Settled { .. })).count(), 2);
    assert_eq!(scene.session.control().take_host_request(), Some(HostRequest::Shutdown));
    assert_eq!(scene.session.control().take_host_request(), None);
}

#[tokio::test]
async fn requests_between_prompts_are_performed_by_running_them() {
    let kept: Arc<Mutex<Option<ExtensionHandle>>> = Arc::default();
    let theirs = Arc::clone(&kept);
    let extensions = load(vec![Brings::of("x", move |_, handle| *theirs.lock().unwrap() = Some(handle.clone()))]);
    let handle = kept.lock().unwrap().clone().unwrap();
    assert_eq!(handle.cx().unwrap_err(), ExtensionError::Stale, "there is no session yet");
    let mut scene = with(in_memory(), [Reply::text("1")], &extensions).await;
    let cx = handle.cx().unwrap();
    cx.send_user_message(Content::Text("hello".into()), DeliverAs::Steer).await.unwrap();
    cx.send_message(custom("later"), DeliverAs::NextPrompt, true).await.unwrap();
    scene.session.control().has_requests().await;
    pull(scene.session.run_requests(&Cancel::new())).await;
    assert_eq!(texts(&scene), ["system", "hello", "custom", "1"]);
    drop(scene);
    assert_eq!(cx.session().unwrap_err(), ExtensionError::Stale);
    assert_eq!(cx.entries().await.unwrap_err(), ExtensionError::Stale);
}

/// Counts the entries of the log.
fn count_entries(seen: Arc<Mutex<Vec<usize>>>) -> impl for<'a> Fn(&'a ExtensionCx) -> ActionFuture<'a> + Send + Sync {
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
async fn a_handler_may_query_the_log() {
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (first, second) = (Arc::clone(&seen), Arc::clone(&seen));
    let extensions = load(vec![
        Brings::of("x", |_, _| {}).at(Point::SessionStart, count_entries(first)),
        Brings::of("y", |_, _| {}).at(Point::TurnStart, count_entries(second)),
    ]);
    let mut scene = with(in_memory(), [Reply::text("1")], &extensions).await;
    assert_eq!(failures(&pull(scene.session.prompt(Prompt::text("hi"))).await), []);
    assert_eq!(*seen.lock().unwrap(), [2, 2]);
}

#[tokio::test]
async fn a_command_replaces_the_session_and_its_context_becomes_stale() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_directory("/w")).await.unwrap();
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
    let mut scene = with(log, [Reply::text("1")], &extensions).await;
    pull(scene.session.prompt(Prompt::text("q"))).await;
    let failed = failures(&pull(scene.session.prompt(Prompt::text("/fresh"))).await);
    assert_eq!(failed.iter().map(|failure| failure.error.as_str()).collect::<Vec<_>>(), ["reached the end"]);
    assert_eq!(texts(&scene), ["system"]);
}

#[tokio::test]
async fn a_command_may_run_during_a_run() {
    let bring = |to: &mut Registrations, _: &ExtensionHandle| {
        to.command(does("steer", |args, cx| {
            Box::pin(async move {
                assert!(!cx.is_idle()?);
                cx.send_message(custom(args), DeliverAs::Steer, true).await?;
                cx.wait_for_idle().await?;
                assert!(cx.new_session(None).await?.cx.is_idle()?);
                Ok(())
            })
        }));
        to.tool(tool("x", "done"));
    };
    let extensions = load(vec![Brings::of("x", bring)]);
    let mut scene = with(in_memory(), [Reply::call("c", "x", JsonObject::new()), Reply::text("2")], &extensions).await;
    let control = scene.session.control();
    let (found, args) = control.find_command("/steer now").unwrap();
    let session = async {
        let mut events = pull(scene.session.prompt(Prompt::text("hi"))).await;
        // The command's request is performed after the run, once someone runs the requests.
        control.has_requests().await;
        events.extend(pull(scene.session.run_requests(&Cancel::new())).await);
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

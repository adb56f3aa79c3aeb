//! Entries that extensions append after turns and runs, changes to whole requests, and observing the dialogs of others.

use std::sync::{Arc, Mutex};

use pinch_agent_core::tool::JsonObject;
use pinch_coding_agent::entry::{EntryBody, EntryId};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::ui::{Dialog, DialogReply, Ui, UiUpdate};
use pinch_coding_agent::extension::{
    BeforeSettle, Boundary, BoundaryAction, Command, CommandCx, ContextAction, Draft, Extension, ExtensionCx,
    ExtensionError, ExtensionHandle, Extensions, HandlerFuture, Notification, Point, Points, Registrations, TurnEnd,
};
use pinch_coding_agent::session::Prompt;
use pinch_llm::message::{Content, Message};
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use serde_json::json;

use crate::extension_actions::tool;
use crate::extension_hooks::{custom, failures, pull};
use crate::session::{SessionScene, entries, in_memory, scene_with};
use pinch_testing::logs::{host, text_of};

type BoundaryHandler = Box<dyn Fn(&TurnEnd<'_>, &Boundary) -> BoundaryAction + Send + Sync>;
type Settle = Box<dyn Fn(u32, &Boundary) -> BoundaryAction + Send + Sync>;
type Sends = Box<dyn Fn(&[Arc<Message>]) -> ContextAction + Send + Sync>;

/// A command that performs a given action.
struct BoundaryCommand {
    points: Points,
    turn: BoundaryHandler,
    settle: Settle,
    sends: Sends,
    n_settled: Mutex<u32>,
}

impl BoundaryCommand {
    fn nothing() -> Self {
        Self {
            points: Points::NONE,
            turn: Box::new(|_, _| BoundaryAction::default()),
            settle: Box::new(|_, _| BoundaryAction::default()),
            sends: Box::new(|_| ContextAction::Keep),
            n_settled: Mutex::default(),
        }
    }

    fn at_turns(turn: impl Fn(&TurnEnd<'_>, &Boundary) -> BoundaryAction + Send + Sync + 'static) -> Self {
        Self { points: Points::of([Point::TurnEnd]), turn: Box::new(turn), ..Self::nothing() }
    }

    /// Calls `settle` with the number of earlier calls.
    fn at_rest(settle: impl Fn(u32, &Boundary) -> BoundaryAction + Send + Sync + 'static) -> Self {
        Self { points: Points::of([Point::AgentBeforeSettle]), settle: Box::new(settle), ..Self::nothing() }
    }

    fn in_requests(sends: impl Fn(&[Arc<Message>]) -> ContextAction + Send + Sync + 'static) -> Self {
        Self { points: Points::of([Point::ContextWithSystem]), sends: Box::new(sends), ..Self::nothing() }
    }
}

impl Extension for BoundaryCommand {
    fn name(&self) -> &str {
        "does"
    }

    fn points(&self) -> Points {
        self.points
    }

    fn turn_end<'a>(
        &'a self,
        turn: TurnEnd<'a>,
        so_far: &'a Boundary,
        _: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        Box::pin(async move { Ok((self.turn)(&turn, so_far)) })
    }

    fn agent_before_settle<'a>(
        &'a self,
        _: BeforeSettle,
        so_far: &'a Boundary,
        _: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        Box::pin(async move {
            let mut n = self.n_settled.lock().unwrap();
            *n += 1;
            Ok((self.settle)(*n - 1, so_far))
        })
    }

    fn context_with_system<'a>(
        &'a self,
        messages: &'a [Arc<Message>],
        _: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ContextAction> {
        Box::pin(async move { Ok((self.sends)(messages)) })
    }
}

async fn stage(
    replies: impl IntoIterator<Item = Reply>,
    all: impl IntoIterator<Item = BoundaryCommand>,
) -> SessionScene {
    let all: Vec<Arc<dyn Extension>> = all.into_iter().map(|one| Arc::new(one) as Arc<dyn Extension>).collect();
    let extensions = Extensions::load(&host(), all);
    let tools = [tool("echo", "a long result")].into_iter().collect();
    scene_with(in_memory(), replies, |mut parts| {
        parts.extensions = extensions;
        parts.tools = tools;
        parts
    })
    .await
}

async fn ask(scene: &mut SessionScene, text: &str) -> Vec<SessionEvent> {
    pull(scene.session.prompt(Prompt::text(text))).await
}

fn call() -> Reply {
    Reply::call("c1", "echo", JsonObject::new())
}

fn appended(events: &[SessionEvent]) -> Vec<String> {
    let word = |event: &SessionEvent| match event {
        SessionEvent::EntryAppended(entry) => Some(entry.body.type_name().to_owned()),
        _ => None,
    };
    events.iter().filter_map(word).collect()
}

fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    let text = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => result.content[0].as_text().unwrap().to_owned(),
        message => text_of(message),
    };
    messages.iter().map(text).collect()
}

fn append(drafts: Vec<Draft>) -> BoundaryAction {
    BoundaryAction { drafts: Some(drafts), continues: None }
}

fn state() -> Draft {
    Draft::Custom { custom_type: "s".into(), data: Some(json!(1)) }
}

#[tokio::test]
async fn an_extension_can_call_the_model_again_before_settling() {
    let again = BoundaryCommand::at_rest(|n, _| match n {
        0 => BoundaryAction { drafts: Some(vec![state(), Draft::Message(custom("go on"))]), continues: Some(true) },
        _ => BoundaryAction::default(),
    });
    let sees = BoundaryCommand::at_rest(|n, so_far| {
        assert_eq!((so_far.drafts.len(), so_far.continues), if n == 0 { (2, true) } else { (0, false) });
        BoundaryAction::default()
    });
    let mut scene = stage([Reply::text("1"), Reply::text("2")], [again, sees]).await;
    let events = ask(&mut scene, "hi").await;
    assert_eq!(failures(&events), []);
    assert_eq!(appended(&events), ["custom", "custom_message"]);
    assert_eq!(texts(scene.session.messages()), ["system", "hi", "1", "custom", "2"]);
    let settled = events.iter().filter(|event| matches!(event, SessionEvent::Settled { .. }));
    assert_eq!(settled.count(), 1);
    let last = scene.provider.requests().last().unwrap().messages.last().cloned().unwrap();
    assert_eq!(text_of(&last), "go on");
}

#[tokio::test]
async fn invalid_requests_are_not_performed() {
    let drafts = |target: &str| vec![state(), Draft::Edit { target: EntryId::new(target), replacement: None }];
    for (action, why) in [
        (append(drafts("none")), "Invalid boundary entries: Entry none is not on the branch"),
        (BoundaryAction::continue_run(), "agent_before_settle requested continuation without runnable model context"),
    ] {
        let mut scene = stage([Reply::text("1")], [BoundaryCommand::at_rest(move |_, _| action.clone())]).await;
        let events = ask(&mut scene, "hi").await;
        let failed = failures(&events);
        assert_eq!((failed.len(), failed[0].extension.as_str(), failed[0].error.as_str()), (1, "<boundary>", why));
        assert_eq!(appended(&events), [""; 0]);
        assert_eq!(scene.provider.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_turn_can_change_what_the_next_one_sees() {
    let shortens = BoundaryCommand::at_turns(|turn, _| match turn.result_entries {
        [] => BoundaryAction::default(),
        [first, ..] => {
            assert!(turn.message_entry.is_some() && turn.result_entries.len() == 1);
            let replacement = Some(Content::Text("short".into()));
            append(vec![Draft::Edit { target: first.clone(), replacement }, state()])
        }
    });
    let mut scene = stage([call(), Reply::text("done")], [shortens]).await;
    let events = ask(&mut scene, "hi").await;
    assert_eq!(failures(&events), []);
    let sent = texts(&scene.provider.requests()[1].messages);
    assert_eq!(sent.last().unwrap(), "short");
    let at = |is_it: fn(&SessionEvent) -> bool| events.iter().position(is_it).unwrap();
    let end = at(|event| matches!(event, SessionEvent::Agent(pinch_agent_core::event::AgentEvent::TurnEnd { .. })));
    assert!(at(|event| matches!(event, SessionEvent::EntryAppended(_))) < end);
    let kept = entries(&scene.session);
    assert!(kept.ends_with(&["toolResult", "context_edit", "custom", "assistant"].map(str::to_owned)), "{kept:?}");
}

#[tokio::test]
async fn entries_appended_after_the_last_turn_are_kept() {
    let replies = BoundaryCommand::at_turns(|_, _| append(vec![Draft::Message(custom("note"))]));
    let mut scene = stage([Reply::text("1"), Reply::text("2")], [replies]).await;
    ask(&mut scene, "hi").await;
    assert_eq!(texts(scene.session.messages()), ["system", "hi", "1", "custom"]);
    ask(&mut scene, "more").await;
    assert_eq!(texts(scene.session.messages()), ["system", "hi", "1", "custom", "more", "2", "custom"]);
}

#[tokio::test]
async fn a_turn_with_invalid_drafts_does_not_continue() {
    let wrong = BoundaryCommand::at_turns(|turn, _| BoundaryAction {
        drafts: Some(vec![Draft::Compaction {
            summary: "s".into(),
            first_kept: Some(EntryId::new("none")),
            details: None,
            usage: None,
        }]),
        continues: Some(turn.turn_index == 0),
    });
    let mut scene = stage([Reply::text("1")], [wrong]).await;
    let failed = failures(&ask(&mut scene, "hi").await);
    assert_eq!(failed[0].error, "Invalid boundary entries: Entry none is not on the branch");
    assert_eq!(scene.provider.requests().len(), 1);
}

#[tokio::test]
async fn a_summary_can_replace_the_whole_conversation() {
    let forgets = BoundaryCommand::at_rest(|n, _| match n {
        0 => append(vec![Draft::Compaction { summary: "S".into(), first_kept: None, details: None, usage: None }]),
        _ => BoundaryAction::default(),
    });
    let mut scene = stage([Reply::text("1")], [forgets]).await;
    assert_eq!(failures(&ask(&mut scene, "hi").await), []);
    let entry = scene.session.log().entries().next_back().unwrap();
    let EntryBody::Compaction(made) = &entry.body else { panic!("{entry:?}") };
    assert_eq!((made.first_kept_entry_id.as_ref(), made.from_hook), (Some(&entry.id), Some(true)));
    let roles: Vec<&str> = scene.session.messages().iter().map(|message| message.role()).collect();
    assert_eq!(roles, ["system", "compactionSummary"]);
}

#[tokio::test]
async fn whole_requests_can_be_changed_if_a_system_message_comes_first() {
    let adds = BoundaryCommand::in_requests(|messages| {
        assert_eq!(messages[0].role(), "system");
        let more = Arc::new(Message::user("more", 0));
        ContextAction::Replace(messages.iter().cloned().chain([more]).collect())
    });
    let spoils = BoundaryCommand::in_requests(|messages| ContextAction::Replace(messages[1..].to_vec()));
    let mut scene = stage([Reply::text("1")], [adds, spoils]).await;
    let failed = failures(&ask(&mut scene, "hi").await);
    assert_eq!(failed[0].error, "The first message must be a system message");
    assert_eq!(texts(&scene.provider.requests()[0].messages), ["system", "hi", "more"]);
    assert_eq!(texts(scene.session.messages()), ["system", "hi", "1"]);
}

/// Records dialogs, and opens one itself when one starts.
struct DialogRecorder(Arc<Mutex<Vec<String>>>);

impl Extension for DialogRecorder {
    fn name(&self) -> &str {
        "hears"
    }

    fn points(&self) -> Points {
        Points::of([Point::UiPromptStart, Point::UiPromptEnd])
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        to.command(Arc::new(AskingCommand));
        Ok(())
    }

    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let (word, dialog) = match notification {
                Notification::DialogStart(dialog) => ("start", dialog),
                Notification::DialogEnd(dialog) => ("end", dialog),
                _ => return Ok(()),
            };
            self.0.lock().unwrap().push(format!("{word} {} {}", dialog.kind.as_str(), dialog.title));
            if word == "start" {
                cx.ui().input("own", None, None).await;
            }
            Ok(())
        })
    }
}

struct AskingCommand;

impl Command for AskingCommand {
    fn name(&self) -> &str {
        "ask"
    }

    fn run<'a>(
        &'a self,
        args: &'a str,
        cx: &'a CommandCx,
    ) -> futures::future::BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(async move {
            cx.ui().confirm(args, "", None).await;
            Ok(())
        })
    }
}

/// A user who says yes.
struct ConfirmingUi;

impl Ui for ConfirmingUi {
    fn ask<'a>(&'a self, _: &'a Dialog) -> futures::future::BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async {
            tokio::task::yield_now().await;
            Some(DialogReply::Yes(true))
        })
    }

    fn show(&self, _: UiUpdate) {}
}

#[tokio::test]
async fn dialogs_are_reported_except_those_of_the_listener() {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let extensions = Extensions::load(&host(), [Arc::new(DialogRecorder(Arc::clone(&recorded))) as Arc<dyn Extension>]);
    let theirs = extensions.clone();
    let mut scene = scene_with(in_memory(), [], |mut parts| {
        parts.extensions = theirs;
        parts
    })
    .await;
    ask(&mut scene, "/ask nobody").await;
    assert_eq!(*recorded.lock().unwrap(), [""; 0], "where nobody is, nobody is asked");
    extensions.set_ui(Arc::new(ConfirmingUi));
    assert_eq!(failures(&ask(&mut scene, "/ask one").await), []);
    assert_eq!(*recorded.lock().unwrap(), ["start confirm one", "end confirm one"]);
}

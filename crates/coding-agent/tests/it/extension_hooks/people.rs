//! Extensions that ask the user.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::Point;
use pinch_coding_agent::extension::ui::{Dialog, DialogKind, DialogReply, Ui, UiUpdate};
use pinch_coding_agent::session::Prompt;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::ScriptedReply as Reply;

use super::probe::Mood;
use super::{echo, failures, pull, stage};
use crate::session::in_memory;

/// A user who takes a while, and then says yes.
#[derive(Default)]
struct Slow {
    open: Mutex<(usize, usize)>,
    shown: Mutex<Vec<UiUpdate>>,
}

impl Ui for Slow {
    fn ask<'a>(&'a self, dialog: &'a Dialog) -> futures::future::BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async move {
            {
                let mut open = self.open.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
            }
            let _closed = Closed(self);
            tokio::time::sleep(Duration::from_secs(100)).await;
            Some(match &dialog.kind {
                DialogKind::Confirm { .. } => DialogReply::Yes(true),
                DialogKind::Select { options } => DialogReply::Text(options[0].clone()),
                _ => DialogReply::Text("t".into()),
            })
        })
    }

    fn show(&self, show: UiUpdate) {
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
async fn a_dialog_pauses_the_time_limit() {
    let mut stage = stage(in_memory(), [echo("x"), Reply::text("1")], &[Point::ToolCall], &[("a", Mood::Asks)]).await;
    stage.extensions.set_ui(Arc::new(Slow::default()));
    let events = stage.ask("hi").await;
    assert!(failures(&events).is_empty());
    assert_eq!(stage.notes(), ["a tool_call", "a answered true"]);
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!(result.content[0].as_text(), Some("x+a"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_prompt_closes_the_dialog() {
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
async fn without_a_user_every_question_is_unanswered() {
    let mut stage = stage(in_memory(), [echo("x"), Reply::text("1")], &[Point::ToolCall], &[("a", Mood::Asks)]).await;
    stage.ask("hi").await;
    assert_eq!(stage.notes(), ["a tool_call", "a answered false"]);
}

//! Requests of extensions to people, programs and the session.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::ui::{Dialog, DialogReply, Ui, UiUpdate};
use pinch_coding_agent::extension::{ExecOptions, Extension, ExtensionHandle, Extensions, Point, Registrations};
use pinch_coding_agent::session::Prompt;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use pinch_stdx::host::Host;

use super::{Brings, does, load, with};
use crate::extension_hooks::{failures, pull};
use crate::session::in_memory;
use pinch_testing::logs::{answer, append, host, user};

/// Answers after a second, and records how many dialogs were open at the same time.
#[derive(Default)]
struct SlowUi {
    open: Mutex<(usize, usize)>,
    shown: Mutex<Vec<UiUpdate>>,
}

impl Ui for SlowUi {
    fn ask<'a>(&'a self, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async move {
            let n = {
                let mut open = self.open.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
                open.0
            };
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.open.lock().unwrap().0 -= 1;
            Some(DialogReply::Text(format!("{} {n}", dialog.title)))
        })
    }

    fn show(&self, show: UiUpdate) {
        self.shown.lock().unwrap().push(show);
    }
}

#[tokio::test(start_paused = true)]
async fn dialogs_wait_for_each_other_before_their_time_limits_start() {
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
    let person = Arc::new(SlowUi::default());
    extensions.set_ui(Arc::clone(&person) as Arc<dyn Ui>);
    let mut scene = with(in_memory(), [], &extensions).await;
    assert_eq!(failures(&pull(scene.session.prompt(Prompt::text("/ask"))).await), []);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(*kept.lock().unwrap(), [text("a 1"), text("b 1"), text("c 1"), None]);
    assert_eq!(*person.shown.lock().unwrap(), [UiUpdate::Reset, UiUpdate::Title("t".into())]);
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
    let log = SessionLog::in_memory(&host(), NewSession::in_directory(cwd.to_str().unwrap()));
    let mut scene = with(log, [], &extensions).await;
    assert_eq!(failures(&pull(scene.session.prompt(Prompt::text("/run"))).await), []);
}

#[tokio::test]
async fn a_requested_compaction_runs_once_idle() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let asks = Brings::of("x", |_, _| {}).at(Point::AgentStart, |cx| Box::pin(cx.request_compaction(Some("f".into()))));
    let extensions = load(vec![asks]);
    let mut scene = with(log, [Reply::text("1"), Reply::text("SUMMARY"), Reply::text("S2")], &extensions).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let events = pull(scene.session.prompt(Prompt::text("q3"))).await;
    let settled = events.iter().position(|event| matches!(event, SessionEvent::Settled { .. })).unwrap();
    let compacted =
        events.iter().position(|event| matches!(event, SessionEvent::CompactionEnd { result: Some(_), .. }));
    assert!(compacted.unwrap() > settled);
}

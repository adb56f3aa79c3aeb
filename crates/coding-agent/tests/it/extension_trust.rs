//! Extensions that decide whether to trust a project.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_coding_agent::extension::ui::{Dialog, DialogReply as Answered, Dialogs, Ui, UiUpdate};
use pinch_coding_agent::extension::{
    Extension, ExtensionError, HandlerFuture, Point, Points, ProjectTrust, TrustAction,
};
use pinch_coding_agent::resources::trust::TrustDecision;
use pinch_coding_agent::runtime::{AgentSessionOptions, SessionRuntime, SessionTarget, create_agent_session};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_stdx::host::Host;
use tempfile::TempDir;

use crate::extension_process::program;

/// Returns a given decision, and records that it was asked.
struct DecidingExtension {
    name: &'static str,
    answer: Result<TrustAction, &'static str>,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl Extension for DecidingExtension {
    fn name(&self) -> &str {
        self.name
    }

    fn points(&self) -> Points {
        Points::of([Point::ProjectTrust])
    }

    fn project_trust<'a>(&'a self, ask: &'a ProjectTrust, ui: &'a Dialogs) -> HandlerFuture<'a, TrustAction> {
        Box::pin(async move {
            assert!(ask.cwd.is_dir() && !ui.are_present());
            self.asked.lock().unwrap().push(self.name);
            self.answer.map_err(ExtensionError::new)
        })
    }
}

/// Creates a project with a prompt and an extension.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("w/.pi/prompts")).unwrap();
    std::fs::write(folder.path().join("w/.pi/prompts/own.md"), "Own.").unwrap();
    folder
}

async fn runtime(
    folder: &Path,
    extensions: Vec<Arc<dyn Extension>>,
    change: impl FnOnce(&mut AgentSessionOptions),
) -> SessionRuntime {
    let env = Host::system().env().clone();
    let host = Host::builder().seed(1).env(env).home(folder).temp(folder).build();
    let mut options = AgentSessionOptions::new(host, folder.join("w"), folder.join("agent"))
        .open(SessionTarget::InMemory)
        .model(ScriptedProvider::model("scripted"))
        .provider(Arc::new(ScriptedProvider::new([ScriptedReply::text("x")])));
    options.session.extensions = extensions;
    change(&mut options);
    create_agent_session(options).await.unwrap()
}

/// Returns the loaded templates, whether the project is trusted, and the recorded questions and notes.
async fn check(
    answers: &[(&'static str, Result<TrustAction, &'static str>)],
    given: Option<bool>,
    templates: &[&str],
    asked: &[&str],
) -> (TempDir, Vec<String>) {
    let folder = project();
    let notes: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let extensions = answers.iter().map(|(name, answer)| {
        Arc::new(DecidingExtension { name, answer: *answer, asked: Arc::clone(&notes) }) as Arc<dyn Extension>
    });
    let mut runtime = runtime(folder.path(), extensions.collect(), |options| options.services.trust = given).await;
    let resources = runtime.services().resources();
    let found: Vec<&str> = resources.commands.templates.iter().map(|template| template.name.as_str()).collect();
    assert_eq!((found.as_slice(), notes.lock().unwrap().as_slice()), (templates, asked));
    assert_eq!(runtime.services().trust().is_trusted(), !templates.is_empty());
    (folder, runtime.take_notes())
}

fn decided(trusted: bool, remember: bool) -> Result<TrustAction, &'static str> {
    Ok(TrustAction::Decided { trusted, remember })
}

#[tokio::test]
async fn the_first_extension_that_decides_wins() {
    let undecided = Ok(TrustAction::Undecided);
    let answers = [("a", undecided), ("bad", Err("no")), ("b", decided(true, false)), ("c", decided(false, true))];
    let (folder, notes) = check(&answers, None, &["own"], &["a", "bad", "b"]).await;
    let expected = ["Extension bad failed at project_trust: no", "Extension b trusts this project"];
    assert!(expected.iter().all(|expected| notes.iter().any(|note| note == expected)), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("not trusted")), "{notes:?}");
    assert!(!folder.path().join("agent/trust.json").exists());
    // No extension decides, or the command line has decided.
    let (_folder, notes) = check(&[("a", undecided)], None, &[], &["a"]).await;
    assert!(notes.iter().any(|note| note.contains("This project is not trusted")), "{notes:?}");
    check(&[("a", decided(true, true))], Some(false), &[], &[]).await;
    check(&[("a", decided(false, true))], Some(true), &["own"], &[]).await;
}

#[tokio::test]
async fn a_decision_can_be_stored_and_overrides_a_stored_one() {
    let (folder, _) = check(&[("a", decided(true, true))], None, &["own"], &["a"]).await;
    let later = runtime(folder.path(), Vec::new(), |_| {}).await;
    assert_eq!(later.services().trust(), TrustDecision::Decided(true));
    let no = DecidingExtension { name: "a", answer: decided(false, false), asked: Arc::default() };
    let other = runtime(folder.path(), vec![Arc::new(no)], |_| {}).await;
    assert_eq!(other.services().trust(), TrustDecision::Decided(false));
    assert_eq!(other.services().resources().commands.templates.iter().count(), 0);
}

/// A user who says yes to a question with this title.
struct TrustingUi;

impl Ui for TrustingUi {
    fn ask<'a>(&'a self, dialog: &'a Dialog) -> BoxFuture<'a, Option<Answered>> {
        Box::pin(async { Some(Answered::Yes(dialog.title == "Trust it?")) })
    }

    fn show(&self, _: UiUpdate) {}
}

#[tokio::test]
async fn a_user_script_is_asked_and_project_scripts_start_afterwards() {
    if program("node").is_none() {
        return;
    }
    let folder = project();
    let command = |name: &str| format!(r#"pi.registerCommand("{name}", {{ handler() {{}} }});"#);
    let trusts = r#"
        pi.on("project_trust", () => ({ trusted: "undecided" }));
        pi.on("project_trust", async (event, ctx) => {
          if (!ctx.hasUI || event.cwd !== ctx.cwd) return { trusted: "no" };
          return { trusted: (await ctx.ui.confirm("Trust it?", event.cwd)) ? "yes" : "no", remember: true };
        });"#;
    for (path, text) in [
        ("agent/extensions/z.js", format!("export default function (pi) {{ {} {trusts} }}", command("of-user"))),
        (
            "w/.pi/extensions/a.js",
            format!(
                r#"export default function (pi) {{ {} pi.on("project_trust", () => ({{ trusted: "no" }})); }}"#,
                command("of-project")
            ),
        ),
        ("w/package.json", r#"{"type": "module"}"#.to_owned()),
        ("agent/package.json", r#"{"type": "module"}"#.to_owned()),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let names = |runtime: &SessionRuntime| -> Vec<String> {
        runtime.session().control().extensions().commands().into_iter().map(|found| found.name).collect()
    };
    let mut alone = runtime(folder.path(), Vec::new(), |_| {}).await;
    assert_eq!(names(&alone), ["of-user"]);
    assert!(alone.take_notes().iter().any(|note| note.ends_with("z.js does not trust this project")));
    alone.close().await;
    let mut asked = runtime(folder.path(), Vec::new(), |options| options.session.ui = Some(Arc::new(TrustingUi))).await;
    assert_eq!(asked.take_notes().len(), 1);
    assert_eq!(names(&asked), ["of-project", "of-user"], "the project's come before the user's");
    let kept = std::fs::read_to_string(folder.path().join("agent/trust.json")).unwrap();
    assert!(kept.contains("true"), "{kept}");
    asked.close().await;
}

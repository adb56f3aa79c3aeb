//! Stored sessions whose working directory no longer exists.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinch_coding_agent::extension::{
    BeforeSwitch, Extension, ExtensionCx, HandlerFuture, Point, Points, SwitchDecision,
};
use pinch_coding_agent::runtime::{RuntimeError, SessionRuntime, SessionTarget};
use pinch_coding_agent::session_log::NewSession;
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use pinch_coding_agent::{AgentSessionOptions, create_agent_session};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_stdx::host::Host;
use pinch_testing::logs::{answer, append, host, user};

/// Objects to leaving the session, if set.
#[derive(Default)]
struct Objection(AtomicBool);

impl Extension for Objection {
    fn name(&self) -> &str {
        "objection"
    }

    fn points(&self) -> Points {
        Points::of([Point::SessionBeforeSwitch])
    }

    fn session_before_switch<'a>(
        &'a self,
        _: &'a BeforeSwitch,
        _: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        let objects = self.0.load(Ordering::Relaxed);
        Box::pin(async move { Ok(if objects { SwitchDecision::Cancel } else { SwitchDecision::Proceed }) })
    }
}

struct Scene {
    dir: tempfile::TempDir,
    /// A session that records a directory which does not exist.
    stored: PathBuf,
    objection: Arc<Objection>,
}

impl Scene {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("here")).unwrap();
        let elsewhere = Arc::new(JsonlStore::flat(dir.path().join("elsewhere")));
        let new = NewSession::in_directory("/no/such/dir");
        let mut log = pinch_coding_agent::session_log::SessionLog::create(&host(), elsewhere, new).await.unwrap();
        append(&mut log, [user("stored question"), answer("stored answer", &[])]).await;
        let stored = log.path().unwrap().to_owned();
        Self { dir, stored, objection: Arc::default() }
    }

    fn here(&self) -> PathBuf {
        self.dir.path().join("here")
    }

    async fn open(&self, target: SessionTarget) -> Result<SessionRuntime, RuntimeError> {
        let host = Host::builder().home(self.dir.path()).build();
        let provider = Arc::new(ScriptedProvider::new([ScriptedReply::text("here now")]));
        let options = AgentSessionOptions::new(host, self.here(), self.dir.path().join("agent"))
            .model(ScriptedProvider::model("m"))
            .provider(provider)
            .extension(Arc::clone(&self.objection) as Arc<_>)
            .open(target);
        create_agent_session(options).await
    }

    fn target(&self) -> SessionRef {
        SessionRef::Path(self.stored.clone())
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.stored).unwrap()
    }

    /// Returns the sessions of the current directory.
    fn sessions(&self) -> Vec<PathBuf> {
        let dirs = std::fs::read_dir(self.dir.path().join("agent/sessions")).into_iter().flatten();
        let files = dirs.flat_map(|dir| std::fs::read_dir(dir.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }
}

fn is_gone(error: &RuntimeError, stored: &Path) -> bool {
    matches!(error, RuntimeError::DirectoryGone { cwd, file: Some(file) } if cwd == "/no/such/dir" && file == stored)
}

#[tokio::test]
async fn it_is_opened_in_the_current_directory_on_request() {
    let scene = Scene::new().await;
    let before = scene.text();
    let gone = scene.open(SessionTarget::Open(scene.target())).await.err().unwrap();
    assert!(is_gone(&gone, &scene.stored), "{gone:?}");
    let mut runtime = scene.open(SessionTarget::OpenHere(scene.target())).await.unwrap();
    assert_eq!(runtime.services().cwd(), scene.here());
    assert_eq!(runtime.ask("where?").await.unwrap(), "here now");
    runtime.reload().await.unwrap();
    assert_eq!(runtime.services().cwd(), scene.here(), "also after a reload");
    runtime.close().await;
    let after = scene.text();
    assert!(after.starts_with(&before) && after.contains("here now"), "{after}");
    let gone = scene.open(SessionTarget::Open(scene.target())).await.err().unwrap();
    assert!(is_gone(&gone, &scene.stored), "{gone:?}");
}

#[tokio::test]
async fn a_switch_fails_unless_the_current_directory_is_chosen() {
    let scene = Scene::new().await;
    let mut runtime = scene.open(SessionTarget::New).await.unwrap();
    let first = runtime.session().log().id().clone();
    let gone = runtime.switch_session(&scene.target()).await.unwrap_err();
    assert!(is_gone(&gone, &scene.stored), "{gone:?}");
    assert_eq!(*runtime.session().log().id(), first);
    assert!(runtime.switch_session_here(&scene.target()).await.unwrap());
    assert_eq!(runtime.session().path(), Some(scene.stored.clone()));
    assert_eq!(
        (runtime.session().log().cwd(), runtime.services().cwd()),
        (&*scene.here().to_string_lossy(), &*scene.here())
    );
    runtime.close().await;
}

#[tokio::test]
async fn a_copy_belongs_to_the_current_directory_and_is_removed_if_an_extension_objects() {
    let scene = Scene::new().await;
    let before = scene.text();
    let mut runtime = scene.open(SessionTarget::New).await.unwrap();
    scene.objection.0.store(true, Ordering::Relaxed);
    assert!(!runtime.switch_to_copy(&scene.target()).await.unwrap());
    assert_eq!(scene.sessions(), Vec::<PathBuf>::new());
    scene.objection.0.store(false, Ordering::Relaxed);
    assert!(runtime.switch_to_copy(&scene.target()).await.unwrap());
    assert_eq!(scene.sessions(), [runtime.session().path().unwrap()]);
    let header = runtime.session().log().header().clone();
    assert_eq!(header.cwd.as_deref(), Some(&*scene.here().to_string_lossy()));
    assert_eq!(header.parent_session.as_deref(), Some(&*scene.stored.to_string_lossy()));
    assert_eq!((runtime.session().messages().len(), scene.text()), (2, before));
    runtime.close().await;
}

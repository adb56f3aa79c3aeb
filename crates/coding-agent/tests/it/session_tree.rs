//! Summaries and moves in the tree with owner hooks, forks, and replaced sessions.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_coding_agent::compaction::hooks::{
    BeforeCompaction, BeforeMove, MoveChanges, PendingCompaction, PendingMove,
};
use pinch_coding_agent::compaction::{ByExtension, CompactError, CompactionReason, Summarised, SummaryHooks};
use pinch_coding_agent::entry::{EntryBody, EntryId};
use pinch_coding_agent::session::{AgentSession, CompactRequest, ForkAt, Navigation, Prompt};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::JsonlStore;
use pinch_llm::provider::scripted::ScriptedReply;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use serde_json::json;

use crate::session::{SessionScene, entries, follow, in_memory, model, scene, scene_with};
use pinch_testing::logs::{self, answer, append, file, host, store, user};

/// Returns given decisions for compactions and moves.
struct Hooked {
    compaction: BeforeCompaction,
    moving: BeforeMove,
    calls: Mutex<Vec<String>>,
}

impl Hooked {
    fn new(compaction: BeforeCompaction, moving: BeforeMove) -> Arc<Self> {
        Arc::new(Self { compaction, moving, calls: Mutex::default() })
    }

    fn record(&self, what: impl Into<String>) {
        self.calls.lock().unwrap().push(what.into());
    }
}

impl SummaryHooks for Hooked {
    fn before_compaction<'a>(
        &'a self,
        ahead: &'a PendingCompaction<'a>,
        _: &'a Cancel,
    ) -> BoxFuture<'a, BeforeCompaction> {
        self.record(format!("before {} {:?}", ahead.reason.as_str(), ahead.focus));
        Box::pin(async { self.compaction.clone() })
    }

    fn compacted(&self, done: &pinch_coding_agent::compaction::Compacted) {
        self.record(format!("done {}", done.summary));
    }

    fn compaction_failed(&self, reason: CompactionReason, error: &CompactError) {
        self.record(format!("failed {} {error}", reason.as_str()));
    }

    fn before_move<'a>(&'a self, ahead: &'a PendingMove, _: &'a Cancel) -> BoxFuture<'a, BeforeMove> {
        self.record(format!("leaves {}", ahead.left.len()));
        Box::pin(async { self.moving.clone() })
    }

    fn moved(&self, moved: &pinch_coding_agent::compaction::hooks::MovedLeaf) {
        self.record(format!("moved, hook's {}", moved.from_hook));
    }
}

async fn hooked(hooks: &Arc<Hooked>) -> SessionScene {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let hooks: Arc<dyn SummaryHooks> = hooks.clone();
    scene_with(log, [], |mut parts| {
        parts.summaries = hooks;
        parts
    })
    .await
}

fn first(session: &AgentSession) -> EntryId {
    session.log().entry_ids().next().unwrap().clone()
}

#[tokio::test]
async fn an_owner_can_supply_or_cancel_the_summary() {
    let own =
        Summarised::new("OWN").with_extension(ByExtension { details: Some(json!({"x": 1})), ..Default::default() });
    let hooks = Hooked::new(BeforeCompaction::Instead(Box::new(own)), BeforeMove::Cancel);
    let mut scene = hooked(&hooks).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let done = scene.session.compact(CompactRequest::manual(Some("tests".into())), &|_| {}).await.unwrap();
    assert_eq!((done.summary.as_str(), done.from_extension, done.details), ("OWN", true, Some(json!({"x": 1}))));
    assert_eq!(*hooks.calls.lock().unwrap(), ["before manual Some(\"tests\")", "done OWN"]);
    let to = Navigation::to(first(&scene.session));
    assert!(scene.session.navigate(to, &|_| {}).await.unwrap().cancelled);
    let hooks = Hooked::new(BeforeCompaction::Cancel, BeforeMove::Cancel);
    let mut scene = hooked(&hooks).await;
    scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let failed = scene.session.compact(CompactRequest::manual(None), &|_| {}).await.unwrap_err();
    assert_eq!(failed.to_string(), "Compaction cancelled");
    assert_eq!(*hooks.calls.lock().unwrap(), ["before manual None", "failed manual Compaction cancelled"]);
}

#[tokio::test]
async fn an_owner_can_summarise_the_abandoned_branch() {
    let changes =
        MoveChanges { summary: Some(("LEFT".into(), None)), label: Some("mark".into()), ..MoveChanges::default() };
    let hooks = Hooked::new(BeforeCompaction::Continue, BeforeMove::Continue(changes));
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
    assert_eq!(*hooks.calls.lock().unwrap(), ["leaves 4", "moved, hook's true"]);
}

#[tokio::test]
async fn moving_to_a_branch_restores_its_model_and_level() {
    let find: pinch_coding_agent::session::FindModel = Arc::new(|_, id| Some(model(id.as_str(), true)));
    let replies = [ScriptedReply::text("a1"), ScriptedReply::text("a2")];
    let mut scene = scene_with(in_memory(), replies, |mut parts| {
        parts.find_model = Some(find);
        parts
    })
    .await;
    scene.session.set_thinking(ThinkingLevel::Low).await.unwrap();
    follow(scene.session.prompt(Prompt::text("q1")), |_| {}).await;
    let leaf = scene.session.log().leaf_id().cloned().unwrap();
    scene.session.set_model(model("second", true)).await.unwrap();
    scene.session.set_thinking(ThinkingLevel::High).await.unwrap();
    follow(scene.session.prompt(Prompt::text("q2")), |_| {}).await;
    let n_entries = scene.session.log().entry_ids().len();
    scene.session.navigate(Navigation::to(leaf), &|_| {}).await.unwrap();
    assert_eq!((scene.session.model().id.as_str(), scene.session.thinking()), ("m", ThinkingLevel::Low));
    assert_eq!(scene.session.log().entry_ids().len(), n_entries, "going somewhere writes nothing");
    let unknown = Navigation::to(EntryId::new("ffffffff"));
    let failed = scene.session.navigate(unknown, &|_| {}).await.unwrap_err();
    assert_eq!(failed.to_string(), "Entry ffffffff not found");
    let texts: Vec<String> = scene.session.fork_points().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["q1", "q2"]);
}

#[tokio::test]
async fn a_fork_starts_before_the_message_to_edit() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_directory("/w")).await.unwrap();
    let mut scene = scene(log, ["a1", "a2", "b2", "c1"].map(ScriptedReply::text)).await;
    let early = scene.session.log().leaf_id().cloned().unwrap();
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
    let texts: Vec<String> = scene.session.messages().iter().map(|m| logs::text_of(m)).collect();
    assert_eq!(texts[1..], ["q1", "a1", "other", "b2"]);
    let ids = scene.provider.requests().into_iter().map(|request| request.options.session_id).collect::<Vec<_>>();
    assert_eq!(ids[2].as_deref(), Some(scene.session.log().id().as_str()), "requests name the session they belong to");
    assert_ne!(ids[1], ids[2]);
    let (_, first) = (scene.session.fork(&points[0].0, ForkAt::Before).await.unwrap(), &points[0].1);
    assert_eq!(first, "q1");
    assert_eq!(entries(&scene.session), ["model_change", "thinking_level_change", "system"]);
    let old = logs::open(&first_file).await.unwrap();
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
    assert_eq!(none.to_string(), format!("File not found: {}", dir.path().join("none.jsonl").display()));
    std::fs::write(&source, "no session").unwrap();
    assert!(store.import(&source, "/w").unwrap_err().to_string().contains("not a valid pi session"));
}

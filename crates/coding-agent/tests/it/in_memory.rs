//! Sessions with every part supplied by the caller.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_coding_agent::auth::AuthStorage;
use pinch_coding_agent::llm::ids::ProviderId;
use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::resources::templates::Template;
use pinch_coding_agent::resources::{ContextFile, ResourceLoader, Resources};
use pinch_coding_agent::runtime::{AskError, RuntimeError};
use pinch_coding_agent::settings::SettingsManager;
use pinch_coding_agent::store::{ListScope, MemoryStore, SessionRef, SessionStore, StoreError};
use pinch_coding_agent::{AgentSessionOptions, create_agent_session};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_llm::schema::Schema;
use pinch_stdx::host::Host;
use serde_json::json;

struct CountTool(ToolSpec, Arc<AtomicUsize>);

impl Tool for CountTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::text(self.1.fetch_add(1, Ordering::Relaxed).to_string())) })
    }
}

/// Returns every path below a directory, with the contents of the files.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_session_in_memory_neither_reads_nor_writes_files() {
    let dir = tempfile::tempdir().unwrap();
    let (home, cwd) = (dir.path().join("home"), dir.path().join("home/project"));
    // Everything that a session with an agent directory would read contains the word "trap".
    write(&cwd.join("AGENTS.md"), "trap");
    write(&home.join("AGENTS.md"), "trap");
    write(&cwd.join(".pi/SYSTEM.md"), "trap");
    write(&cwd.join(".pi/settings.json"), r#"{"defaultModel": "trap", "defaultTools": ["trap"]}"#);
    write(&home.join(".pinch/agent/settings.json"), r#"{"defaultModel": "trap", "compaction": {"enabled": true}}"#);
    write(&home.join(".pinch/agent/auth.json"), "{trap");
    write(&home.join(".agents/skills/trap/SKILL.md"), "---\nname: trap\ndescription: trap\n---\ntrap");
    let before = files(dir.path());

    let host = Host::builder().home(&home).temp(dir.path().join("temp")).build();
    let object = |value: serde_json::Value| value.as_object().unwrap().clone();
    let settings =
        SettingsManager::in_memory(object(json!({"compaction": {"enabled": false}})), object(json!({})), &host);
    let resources = Resources {
        context_files: vec![ContextFile { path: "/notes".into(), text: "Be kind.".into() }],
        commands: pinch_coding_agent::resources::Commands {
            templates: [Template::parse("greet", "Say hello to $1", Path::new("/greet")).unwrap()]
                .into_iter()
                .collect(),
            ..Default::default()
        },
        system_prompt: Some("You count.".into()),
        ..Resources::default()
    };
    let model = Arc::new(ScriptedProvider::model("scripted"));
    let provider = Arc::new(ScriptedProvider::new([
        ScriptedReply::call("c1", "count", JsonObject::new()),
        ScriptedReply::text("nineteen"),
        ScriptedReply::text("hello"),
        ScriptedReply::text("back again"),
    ]));
    let counted = Arc::new(AtomicUsize::new(0));
    let tool =
        CountTool(ToolSpec::new("count", "Counts", Schema::new(json!({"type": "object"}))), Arc::clone(&counted));
    let store = Arc::new(MemoryStore::new());
    let options = AgentSessionOptions::in_memory(host, &cwd)
        .auth(AuthStorage::in_memory(object(json!({"faux": {"type": "api_key", "key": "k"}}))))
        .models(ModelRegistry::of_models([model]))
        .settings(settings.clone())
        .resources(ResourceLoader::in_memory(resources))
        .store(Arc::clone(&store) as Arc<dyn SessionStore>)
        .provider(Arc::clone(&provider) as Arc<_>)
        .tool(tool);
    let mut agent = create_agent_session(options).await.unwrap();
    assert_eq!(agent.take_notes(), Vec::<String>::new());
    assert_eq!(agent.session().model().id.as_str(), "faux-1");
    assert!(!agent.session().auto_compaction());
    assert!(agent.services().auth().is_configured(&ProviderId::new("faux")));
    assert_eq!(agent.ask("count").await.unwrap(), "nineteen");
    assert_eq!(counted.load(Ordering::Relaxed), 1);
    let request = format!("{:?}", provider.requests()[0]);
    assert!(request.contains("You count.") && request.contains("Be kind.") && !request.contains("trap"), "{request}");

    // To a new session, and back by its id.
    let first = agent.session().log().id().to_owned();
    agent.new_session(None).await.unwrap();
    assert_eq!(agent.ask("/greet me").await.unwrap(), "hello");
    let asked = serde_json::to_string(&provider.requests()[2].messages).unwrap();
    assert!(asked.contains("Say hello to me") && !asked.contains("nineteen"), "{asked}");
    let mut ids: Vec<pinch_llm::ids::SessionId> =
        store.list(ListScope::All).await.unwrap().into_iter().map(|one| one.id).collect();
    ids.sort_by_key(|id| *id != first);
    assert_eq!((ids.len(), &ids[0]), (2, &first));
    assert!(agent.switch_session(&SessionRef::Id(first.clone())).await.unwrap());
    assert_eq!(*agent.session().log().id(), first);
    assert_eq!(agent.ask("more").await.unwrap(), "back again");
    let asked = serde_json::to_string(&provider.requests()[3].messages).unwrap();
    assert!(asked.contains("nineteen"), "{asked}");

    // Settings are the caller's, and a reload keeps the session.
    settings.set("compaction.enabled", json!(true)).unwrap();
    agent.reload().await.unwrap();
    assert!(agent.session().auto_compaction());
    assert_eq!(*agent.session().log().id(), first);
    agent.close().await;
    assert_eq!(files(dir.path()), before);
}

#[tokio::test]
async fn switching_to_a_session_missing_from_the_store_keeps_the_current_one() {
    let provider =
        Arc::new(ScriptedProvider::new([ScriptedReply::text("still here"), ScriptedReply::error("no such model")]));
    let options = AgentSessionOptions::in_memory(Host::builder().build(), "/nowhere")
        .model(ScriptedProvider::model("scripted"))
        .provider(provider);
    let mut agent = create_agent_session(options).await.unwrap();
    let id = agent.session().log().id().to_owned();
    let error = agent.switch_session(&SessionRef::Id("none".into())).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Store(StoreError::NotFound { name }) if name == "none"));
    assert_eq!(*agent.session().log().id(), id);
    assert_eq!(agent.ask("there?").await.unwrap(), "still here");
    let error = agent.ask("there?").await.unwrap_err();
    assert!(matches!(&error, AskError::Failed(why) if why == "no such model"), "{error}");
}

#[tokio::test]
async fn without_a_model_the_error_includes_problems_in_documents() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("agent/models.json"), "{broken");
    let host = Host::builder().home(dir.path()).temp(dir.path()).build();
    let error = create_agent_session(AgentSessionOptions::new(host, dir.path(), dir.path().join("agent"))).await;
    let Err(RuntimeError::Create { problems, .. }) = error else { panic!("there is no model") };
    assert!(problems.iter().any(|problem| problem.contains("models.json")), "{problems:?}");
}

//! Skills, prompt templates and themes found by extensions.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_coding_agent::extension::{
    Command, CommandCx, Extension, ExtensionCx, ExtensionError, ExtensionHandle, HandlerFuture, Point, Points,
    Registrations, ResourcePaths, ResourcesDiscover,
};
use pinch_coding_agent::runtime::SessionTarget;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rpc::RpcTestClient;
use pinch_testing::logs::text_of;

/// Reports everything in a directory, and requests a reload on command.
struct Finds {
    name: String,
    folder: PathBuf,
}

impl Extension for Finds {
    fn name(&self) -> &str {
        &self.name
    }

    fn points(&self) -> Points {
        Points::of([Point::ResourcesDiscover])
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        to.command(Arc::new(Anew));
        Ok(())
    }

    fn resources_discover<'a>(&'a self, _: ResourcesDiscover, _: &'a ExtensionCx) -> HandlerFuture<'a, ResourcePaths> {
        let path = |name: &str| vec![self.folder.join(name)];
        Box::pin(async move {
            Ok(ResourcePaths { skills: path("skills"), prompts: path("prompts"), themes: path("themes") })
        })
    }
}

struct Anew;

impl Command for Anew {
    fn name(&self) -> &str {
        "anew"
    }

    fn run<'a>(&'a self, _: &'a str, cx: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(cx.reload())
    }
}

/// Creates a directory with resources, and an extension that reports them.
fn folder() -> (TempDir, Arc<dyn Extension>) {
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("theirs");
    for (path, text) in [
        ("skills/sing/SKILL.md", "---\ndescription: Sings a song.\n---\n\nLa la.\n"),
        ("prompts/greet.md", "Greet $1 kindly."),
        ("themes/none.txt", ""),
    ] {
        std::fs::create_dir_all(theirs.join(path).parent().unwrap()).unwrap();
        std::fs::write(theirs.join(path), text).unwrap();
    }
    let name = theirs.join("finder.js").to_string_lossy().into_owned();
    (folder, Arc::new(Finds { name, folder: theirs }))
}

/// Returns the slash commands with their sources.
async fn commands(client: &mut RpcTestClient) -> Vec<(String, String)> {
    let answer = client.ask(json!({"id": "c", "type": "get_commands"})).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let commands = answer["data"]["commands"].as_array().unwrap();
    commands.iter().map(|command| (text(&command["name"]), text(&command["sourceInfo"]["source"]))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect()
}

/// Returns the skills in the last request's system prompt, and its last user message.
fn asked(model: &ScriptedProvider) -> (String, String) {
    let requests = model.requests();
    let messages = &requests.last().unwrap().messages;
    let mut skills = String::new();
    for message in messages {
        let Message::System(system) = &**message else { continue };
        for (name, text) in &system.sections {
            if **name == *"skills" {
                skills = text.as_deref().unwrap_or_default().to_owned();
            }
        }
    }
    (skills, text_of(messages.last().unwrap()))
}

async fn prompt(client: &mut RpcTestClient, text: &str) -> (String, String) {
    client.ask(json!({"id": text, "type": "prompt", "message": text})).await;
    client.event("agent_settled").await;
    asked(&client.model)
}

#[tokio::test]
async fn resources_found_by_extensions_are_loaded() {
    let (folder, finds) = folder();
    let mut client =
        RpcTestClient::at(folder, (0..3).map(|_| ScriptedReply::text("ok")), SessionTarget::InMemory, vec![finds])
            .await;
    let own = ("anew", "sdk");
    let found = [own, ("greet", "extension:finder"), ("skill:sing", "extension:finder")];
    assert_eq!(commands(&mut client).await, pairs(&found));
    let (skills, prompted) = prompt(&mut client, "/greet Ann").await;
    assert!(skills.contains("<name>sing</name>"), "{skills}");
    assert_eq!(prompted, "Greet Ann kindly.");
    let (_, prompted) = prompt(&mut client, "/skill:sing now").await;
    assert!(prompted.starts_with("<skill name=\"sing\"") && prompted.ends_with("</skill>\n\nnow"), "{prompted}");
    // Another session finds them again.
    client.ask(json!({"id": 1, "type": "new_session"})).await;
    assert_eq!(commands(&mut client).await, pairs(&found));
    let (skills, _) = prompt(&mut client, "hi").await;
    assert!(skills.contains("<name>sing</name>"), "{skills}");
    client.leave().await.0.unwrap();
}

#[tokio::test]
async fn a_session_continues_after_a_reload_wherever_it_is_stored() {
    for log in [SessionTarget::InMemory, SessionTarget::New] {
        let (folder, finds) = folder();
        let theirs = folder.path().join("theirs");
        let mut client =
            RpcTestClient::at(folder, (0..3).map(|_| ScriptedReply::text("ok")), log.clone(), vec![finds]).await;
        let state = client.ask(json!({"id": 0, "type": "get_state"})).await;
        // There is no message yet, so nothing is on disk.
        std::fs::write(theirs.join("prompts/one.md"), "One.").unwrap();
        client.ask(json!({"id": 1, "type": "prompt", "message": "/anew"})).await;
        let (_, prompted) = prompt(&mut client, "/one").await;
        assert_eq!(prompted, "One.");
        let before = client.ask(json!({"id": 2, "type": "get_entries"})).await;
        std::fs::write(theirs.join("prompts/two.md"), "Two.").unwrap();
        client.ask(json!({"id": 3, "type": "prompt", "message": "/anew"})).await;
        let after = client.ask(json!({"id": 2, "type": "get_entries"})).await;
        assert_eq!(before, after, "the same entries, and the same leaf");
        let (_, prompted) = prompt(&mut client, "/two").await;
        assert_eq!(prompted, "Two.");
        let sent: Vec<String> =
            client.model.requests().last().unwrap().messages.iter().map(|message| text_of(message)).collect();
        assert!(sent.contains(&"One.".to_owned()), "{sent:?}");
        let now = client.ask(json!({"id": 0, "type": "get_state"})).await;
        let member = |state: &Value, name: &str| state["data"][name].clone();
        for name in ["sessionId", "sessionFile"] {
            assert_eq!(member(&now, name), member(&state, name));
        }
        if let Some(file) = member(&now, "sessionFile").as_str() {
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text.lines().filter(|line| line.contains("\"type\":\"session\"")).count(), 1);
        }
        assert_eq!(member(&now, "sessionFile").is_null(), log == SessionTarget::InMemory);
        let (done, received) = client.leave().await;
        done.unwrap();
        assert!(received.iter().all(|line| line["type"] != "session_error"));
    }
}

#[tokio::test]
async fn a_reload_finds_new_resources_and_drops_removed_ones() {
    let (folder, finds) = folder();
    let theirs = folder.path().join("theirs");
    let mut client =
        RpcTestClient::at(folder, (0..3).map(|_| ScriptedReply::text("ok")), SessionTarget::New, vec![finds]).await;
    prompt(&mut client, "hi").await;
    std::fs::remove_file(theirs.join("prompts/greet.md")).unwrap();
    std::fs::write(theirs.join("prompts/bye.md"), "Bye.").unwrap();
    std::fs::create_dir(theirs.join("skills/hum")).unwrap();
    std::fs::write(theirs.join("skills/hum/SKILL.md"), "---\ndescription: Hums.\n---\n").unwrap();
    client.ask(json!({"id": 1, "type": "prompt", "message": "/anew"})).await;
    let source = "extension:finder";
    let found = [("anew", "sdk"), ("bye", source), ("skill:hum", source), ("skill:sing", source)];
    assert_eq!(commands(&mut client).await, pairs(&found));
    let (skills, prompted) = prompt(&mut client, "/bye").await;
    assert!(skills.contains("<name>hum</name>") && skills.contains("<name>sing</name>"), "{skills}");
    assert_eq!(prompted, "Bye.");
    client.leave().await.0.unwrap();
}

//! RPC mode: what another session does not inherit, paths of clients, and prompts that extensions handle.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_coding_agent::entry::CustomMessage;
use pinch_coding_agent::extension::actions::DeliverAs;
use pinch_coding_agent::extension::{
    Command, CommandCx, Extension, ExtensionCx, ExtensionError, ExtensionHandle, HandlerFuture, Notification, Point,
    Points, Registrations,
};
use pinch_coding_agent::runtime::SessionTarget;
use pinch_llm::message::Content;
use pinch_llm::provider::scripted::ScriptedReply;
use serde_json::{Value, json};

use crate::rpc::{RpcTestClient, gated};

/// Records what it is notified of; its command changes the session.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Extension for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn points(&self) -> Points {
        Points::of([Point::SessionStart, Point::SessionShutdown, Point::ModelSelect, Point::ThinkingLevelSelect])
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        self.note("load".to_owned());
        to.command(Arc::new(self.clone()));
        Ok(())
    }

    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        let text = match notification {
            Notification::SessionStart { reason, previous } => {
                let n_tools = cx.active_tools().unwrap().iter().count();
                format!("start {reason:?} {} {n_tools}", previous.is_some())
            }
            Notification::SessionShutdown { reason, target } => format!("shutdown {reason:?} {}", target.is_some()),
            other => other.point().map_or("none", Point::name).to_owned(),
        };
        self.note(text);
        Box::pin(async { Ok(()) })
    }
}

impl Command for Recorder {
    fn name(&self) -> &str {
        "change"
    }

    fn run<'a>(&'a self, _: &'a str, cx: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(async move {
            cx.set_session_name("named").await?;
            cx.set_active_tools(vec!["read".to_owned()]).await?;
            let message = |text: &str| CustomMessage {
                custom_type: "c".to_owned(),
                content: Content::Text(text.to_owned()),
                display: true,
                details: None,
            };
            cx.send_message(message("now"), DeliverAs::Steer, false).await?;
            cx.send_message(message("later"), DeliverAs::NextPrompt, false).await?;
            cx.ui().set_title("done".to_owned());
            Ok(())
        })
    }
}

/// Sends a command that replaces the session, and returns its answer.
async fn replace(client: &mut RpcTestClient, how: &str) -> Value {
    let points = client.ask(json!({"id": "points", "type": "get_fork_messages"})).await["data"]["messages"].clone();
    client.ask(json!({"id": how, "type": how, "entryId": points[0]["entryId"]})).await
}

/// Returns the user's and extensions' messages of the last request.
fn texts(client: &RpcTestClient) -> Vec<String> {
    client
        .model
        .requests()
        .last()
        .unwrap()
        .messages
        .iter()
        .map(|message| pinch_testing::logs::text_of(message))
        .collect()
}

async fn settle(client: &mut RpcTestClient, text: &str) {
    client.ask(json!({"id": text, "type": "prompt", "message": text})).await;
    client.event("agent_settled").await;
}

#[tokio::test]
async fn queued_messages_stay_behind() {
    for how in ["new_session", "fork", "clone"] {
        let mut client = RpcTestClient::with([ScriptedReply::text("r0")], SessionTarget::New, Vec::new()).await;
        settle(&mut client, "first").await;
        let _open = gated(&client.model, "never");
        client.ask(json!({"id": 1, "type": "prompt", "message": "go"})).await;
        client.ask(json!({"id": 2, "type": "steer", "message": "STEER"})).await;
        client.ask(json!({"id": 3, "type": "follow_up", "message": "FOLLOW"})).await;
        assert_eq!(replace(&mut client, how).await["data"]["cancelled"], false, "{how}");
        let state = client.ask(json!({"id": 4, "type": "get_state"})).await;
        assert_eq!(state["data"]["pendingMessageCount"], 0, "{how}");
        client.model.push(ScriptedReply::text("r1"));
        settle(&mut client, "q").await;
        let texts = texts(&client);
        assert!(!texts.iter().any(|text| text.contains("STEER") || text.contains("FOLLOW")), "{how}: {texts:?}");
    }
}

#[tokio::test]
async fn extensions_start_anew_with_the_next_session() {
    for (how, reason) in [("new_session", "New"), ("fork", "Fork"), ("clone", "Fork")] {
        let recorder = Recorder::default();
        let replies = ["r0", "r1"].map(ScriptedReply::text);
        let mut client = RpcTestClient::with(replies, SessionTarget::New, vec![Arc::new(recorder.clone())]).await;
        settle(&mut client, "first").await;
        client.ask(json!({"id": 1, "type": "prompt", "message": "/change"})).await;
        client.ask(json!({"id": 2, "type": "set_thinking_level", "level": "high"})).await;
        recorder.take();
        assert_eq!(replace(&mut client, how).await["data"]["cancelled"], false, "{how}");
        let expected = [format!("shutdown {reason} true"), format!("start {reason} true 4")];
        assert_eq!(recorder.take(), expected, "{how}");
        settle(&mut client, "q").await;
        let texts = texts(&client);
        assert!(!texts.iter().any(|text| text.contains("later")), "{how}: {texts:?}");
    }
}

#[tokio::test]
async fn an_extensions_command_is_handled_whatever_it_causes() {
    let extension = Arc::new(Recorder::default());
    let mut client = RpcTestClient::with([], SessionTarget::InMemory, vec![extension]).await;
    let answer = client.ask(json!({"id": 1, "type": "prompt", "message": "/change"})).await;
    assert_eq!(answer["data"]["disposition"], "handled", "{answer}");
    let has_ended = client.received.iter().any(|line| line["method"] == "setTitle");
    let is_told = client.received.iter().any(|line| line["type"] == "session_info_changed");
    assert!(has_ended && is_told, "{:#?}", client.received);
}

#[tokio::test]
async fn paths_of_clients_are_resolved() {
    let replies = [ScriptedReply::text("r0")];
    let mut client = RpcTestClient::with(replies, SessionTarget::New, Vec::new()).await;
    settle(&mut client, "first").await;
    let home = client.folder.path().to_owned();
    let file = client.ask(json!({"id": 1, "type": "get_state"})).await["data"]["sessionFile"].clone();
    let relative = std::path::Path::new(file.as_str().unwrap()).strip_prefix(&home).unwrap().display().to_string();
    let spaced = home.join("a b.html");
    let url = format!("file://{}", spaced.display()).replace(' ', "%20");
    for (given, expected) in [("~/h.html", home.join("h.html")), (url.as_str(), spaced)] {
        let answer = client.ask(json!({"id": given, "type": "export_html", "outputPath": given})).await;
        assert_eq!(answer["data"]["path"], expected.display().to_string(), "{given}: {answer}");
        assert!(expected.is_file(), "{given}");
    }
    for given in
        [format!("~/{relative}"), format!("file://{}", file.as_str().unwrap()), format!("./agent/../{relative}")]
    {
        client.ask(json!({"id": "new", "type": "new_session"})).await;
        let answer = client.ask(json!({"id": given, "type": "switch_session", "sessionPath": given})).await;
        assert_eq!(answer["data"], json!({"cancelled": false}), "{given}: {answer}");
        let state = client.ask(json!({"id": "state", "type": "get_state"})).await;
        assert_eq!(state["data"]["sessionFile"], file, "{given}");
    }
}

//! RPC mode: what a client sees, line by line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_coding_agent::extension::{
    BeforeSwitch, Command, CommandCx, Extension, ExtensionCx, ExtensionError, ExtensionHandle, HandlerFuture,
    Notification, Point, Points, Registrations, SwitchDecision,
};
use pinch_coding_agent::modes::rpc::{self, ClientUi, IncomingLine, LineChannel, RpcError};
use pinch_coding_agent::runtime::{AgentSessionOptions, SessionTarget, create_agent_session};
use pinch_coding_agent::session::create::ModelChoice;
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// A client and the session it controls.
pub(crate) struct RpcTestClient {
    pub(crate) folder: TempDir,
    pub(crate) model: Arc<ScriptedProvider>,
    to: Option<mpsc::Sender<IncomingLine>>,
    from: mpsc::Receiver<Bytes>,
    pub(crate) received: Vec<Value>,
    /// Cancelled when the client stops writing, although not all of its lines may have arrived.
    pub(crate) hung_up: Cancel,
    pub(crate) served: JoinSet<Result<(), RpcError>>,
}

impl RpcTestClient {
    pub(crate) async fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::with(replies, SessionTarget::InMemory, Vec::new()).await
    }

    pub(crate) async fn with(
        replies: impl IntoIterator<Item = ScriptedReply>,
        target: SessionTarget,
        extensions: Vec<Arc<dyn Extension>>,
    ) -> Self {
        Self::at(tempfile::tempdir().unwrap(), replies, target, extensions).await
    }

    /// Creates a client of a session in a directory.
    pub(crate) async fn at(
        folder: TempDir,
        replies: impl IntoIterator<Item = ScriptedReply>,
        target: SessionTarget,
        extensions: Vec<Arc<dyn Extension>>,
    ) -> Self {
        Self::of(ScriptedProvider::model("scripted"), folder, replies, target, extensions).await
    }

    /// Creates a client of a session with its own model.
    pub(crate) async fn of(
        asked: Model,
        folder: TempDir,
        replies: impl IntoIterator<Item = ScriptedReply>,
        target: SessionTarget,
        extensions: Vec<Arc<dyn Extension>>,
    ) -> Self {
        Self::adjusted(folder, replies, target, |options| {
            options.session.model = ModelChoice::Exact(Arc::new(asked));
            options.session.extensions = extensions;
        })
    }

    /// Creates a client of a session whose model is selected this way.
    pub(crate) async fn choosing(
        model: ModelChoice,
        folder: TempDir,
        replies: impl IntoIterator<Item = ScriptedReply>,
        target: SessionTarget,
    ) -> Self {
        Self::adjusted(folder, replies, target, |options| options.session.model = model)
    }

    /// Creates a client of a session with adjusted options.
    pub(crate) fn adjusted(
        folder: TempDir,
        replies: impl IntoIterator<Item = ScriptedReply>,
        target: SessionTarget,
        adjust: impl FnOnce(&mut AgentSessionOptions),
    ) -> Self {
        let model = Arc::new(ScriptedProvider::new(replies));
        let host = Host::builder().seed(1).home(folder.path()).temp(folder.path()).build();
        let ui = ClientUi::new(&host);
        let mut options = AgentSessionOptions::new(host, folder.path(), folder.path().join("agent"))
            .open(target)
            .provider(Arc::clone(&model) as Arc<_>);
        options.session.ui = Some(Arc::new(ui.clone()));
        adjust(&mut options);
        let (to, incoming) = mpsc::channel(16);
        let (outgoing, from) = mpsc::channel(16);
        let hung_up = Cancel::new();
        let mut served = JoinSet::new();
        served.spawn(serve(options, ui, LineChannel { incoming, outgoing, hung_up: hung_up.clone() }));
        Self { folder, model, to: Some(to), from, received: Vec::new(), hung_up, served }
    }

    pub(crate) async fn say(&self, line: Value) {
        self.to.as_ref().unwrap().send(IncomingLine::Line(line.to_string().into())).await.unwrap();
    }

    /// Returns the next line that matches.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = tokio::time::timeout(Duration::from_secs(20), self.from.recv()).await;
            let line = line.unwrap_or_else(|_| panic!("nothing more comes after {:#?}", self.received.last()));
            let line: Value = serde_json::from_slice(&line.unwrap()).unwrap();
            self.received.push(line.clone());
            if is_it(&line) {
                return line;
            }
        }
    }

    pub(crate) async fn event(&mut self, kind: &str) -> Value {
        self.until(|line| line["type"] == kind).await
    }

    /// Sends a command and waits for the answer.
    pub(crate) async fn ask(&mut self, command: Value) -> Value {
        let id = command["id"].clone();
        self.say(command).await;
        self.until(|line| line["type"] == "response" && line["id"] == id).await
    }

    /// Closes the client's output and returns the result, and every line received.
    pub(crate) async fn leave(mut self) -> (Result<(), RpcError>, Vec<Value>) {
        self.to = None;
        while let Some(line) = self.from.recv().await {
            self.received.push(serde_json::from_slice(&line).unwrap());
        }
        (self.served.join_next().await.unwrap().unwrap(), self.received)
    }
}

async fn serve(options: AgentSessionOptions, ui: ClientUi, lines: LineChannel) -> Result<(), RpcError> {
    let mut client = rpc::RpcClient::new(&ui, lines, &Cancel::new()).unwrap();
    let mut runtime = client.wait_for(create_agent_session(options)).await.unwrap();
    let done = client.serve(&mut runtime).await;
    runtime.close().await;
    done
}

/// Adds an answer that is sent when the gate opens.
pub(crate) fn gated(model: &ScriptedProvider, text: &'static str) -> oneshot::Sender<()> {
    let (open, gate) = oneshot::channel();
    let gate = std::sync::Mutex::new(Some(gate));
    model.push_with(move |_, _| {
        let gate = gate.lock().unwrap().take();
        async move {
            if let Some(gate) = gate {
                drop(gate.await);
            }
            Ok(ScriptedReply::text(text))
        }
    });
    open
}

fn kinds(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_prompt_after_the_end_of_a_run_does_not_count_as_busy() {
    let mut client = RpcTestClient::new((0..20).map(|n| ScriptedReply::text(format!("answer {n}")))).await;
    for n in 0..20 {
        let answer = client.ask(json!({"id": n, "type": "prompt", "message": "x"})).await;
        assert_eq!(answer["success"], true, "{answer}");
        client.event("agent_settled").await;
    }
    let (done, _) = client.leave().await;
    assert!(done.is_ok());
}

#[tokio::test]
async fn a_busy_session_answers_and_accepts_changes() {
    let mut client = RpcTestClient::new([]).await;
    let open = gated(&client.model, "done");
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    client.event("message_end").await;
    let state = client.ask(json!({"id": 2, "type": "get_state"})).await;
    assert_eq!((&state["data"]["isStreaming"], &state["data"]["isCompacting"]), (&json!(true), &json!(false)));
    let refused = client.ask(json!({"id": 3, "type": "prompt", "message": "y"})).await;
    assert!(refused["error"].as_str().unwrap().starts_with("Agent is already processing."), "{refused}");
    for (id, command) in [
        (4, json!({"type": "get_messages"})),
        (5, json!({"type": "get_entries"})),
        (6, json!({"type": "get_tree"})),
        (7, json!({"type": "get_session_stats"})),
        (8, json!({"type": "set_session_name", "name": "n"})),
        (9, json!({"type": "set_auto_retry", "enabled": false})),
        (10, json!({"type": "bash", "command": "echo beside"})),
    ] {
        let mut command = command;
        command["id"] = id.into();
        let answer = client.ask(command).await;
        assert_eq!(answer["success"], true, "{answer}");
    }
    client.ask(json!({"id": 11, "type": "steer", "message": "more"})).await;
    client.model.push(ScriptedReply::text("and more"));
    open.send(()).unwrap();
    client.event("agent_settled").await;
    let text = client.ask(json!({"id": 12, "type": "get_last_assistant_text"})).await;
    assert_eq!(text["data"]["text"], "and more");
    let shown = client.ask(json!({"id": 13, "type": "get_messages"})).await;
    let roles: Vec<&str> =
        shown["data"]["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "bashExecution"]);
    let state = client.ask(json!({"id": 14, "type": "get_state"})).await;
    assert_eq!(state["data"]["sessionName"], "n");
    let (done, received) = client.leave().await;
    assert!(done.is_ok());
    for id in 1..=14 {
        let n = received.iter().filter(|line| line["type"] == "response" && line["id"] == id).count();
        assert_eq!(n, 1, "answers to {id}");
    }
}

#[tokio::test]
async fn every_command_has_one_answer_whatever_its_members() {
    let names = "hello prompt steer follow_up abort abort_retry abort_bash clear_queue new_session switch_session fork clone \
         get_state get_messages get_entries get_tree get_fork_messages get_last_assistant_text get_session_stats \
         get_commands get_available_models get_available_thinking_levels set_model cycle_model set_thinking_level \
         cycle_thinking_level set_steering_mode set_follow_up_mode compact set_auto_compaction set_auto_retry bash \
         export_html set_session_name nonsense";
    let members = [
        json!({}),
        json!({"message": 5, "level": 1, "name": [], "enabled": "x", "provider": {}, "mode": "odd", "images": 3}),
        json!({
            "message": "m", "sessionPath": "/none.jsonl", "entryId": "ffffffff", "since": "ffffffff", "provider": "p", "modelId": "m",
            "level": "odd", "mode": "all", "enabled": true, "command": "true", "name": "n", "outputPath": "/dev/null/x.html",
        }),
    ];
    let mut client = RpcTestClient::new((0..3).map(|_| ScriptedReply::text("a"))).await;
    let mut id = 0;
    for members in members {
        for name in names.split_whitespace() {
            id += 1;
            let mut command = members.clone();
            command["id"] = id.into();
            command["type"] = name.into();
            let answer = client.ask(command).await;
            assert_eq!(answer["command"], name);
            assert_eq!(answer["success"] == false, answer["error"].is_string(), "{answer}");
            if name == "prompt" && answer["success"] == true {
                client.event("agent_settled").await;
            }
        }
    }
    let (done, received) = client.leave().await;
    assert!(done.is_ok());
    for id in 1..=id {
        assert_eq!(received.iter().filter(|line| line["type"] == "response" && line["id"] == id).count(), 1);
    }
}

#[tokio::test]
async fn commands_that_replace_the_session_end_the_run_first() {
    let mut client = RpcTestClient::with([], SessionTarget::New, Vec::new()).await;
    let _never = gated(&client.model, "never");
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    let old = client.ask(json!({"id": 2, "type": "get_state"})).await["data"]["sessionFile"].clone();
    let answer = client.ask(json!({"id": 3, "type": "new_session"})).await;
    assert_eq!(answer["data"], json!({"cancelled": false}));
    let kinds = kinds(&client.received);
    let settled = kinds.iter().position(|kind| kind == "agent_settled").unwrap();
    assert!(settled < kinds.len() - 1);
    let state = client.ask(json!({"id": 4, "type": "get_state"})).await;
    assert_ne!(state["data"]["sessionFile"], old);
    assert_eq!(state["data"]["messageCount"], 0);
    let text = std::fs::read_to_string(old.as_str().unwrap()).unwrap();
    assert!(text.contains("\"stopReason\":\"aborted\""), "{text}");
    // And back again.
    let answer = client.ask(json!({"id": 5, "type": "switch_session", "sessionPath": old})).await;
    assert_eq!(answer["data"], json!({"cancelled": false}));
    let state = client.ask(json!({"id": 6, "type": "get_state"})).await;
    assert_eq!((&state["data"]["sessionFile"], &state["data"]["messageCount"]), (&old, &json!(3)));
    assert!(client.folder.path().join("agent/sessions").is_dir());
    let (done, _) = client.leave().await;
    assert!(done.is_ok());
}

#[tokio::test]
async fn invalid_lines_are_answered_and_end_nothing() {
    let mut client = RpcTestClient::new([]).await;
    for line in ["{oops", "null", "[]", "5", "\"x\"", "", "{}", "{\"type\": 3}", "\u{2028}"] {
        client.to.as_ref().unwrap().send(IncomingLine::Line(line.to_owned().into())).await.unwrap();
        let answer = client.event("response").await;
        assert_eq!((&answer["command"], &answer["success"]), (&json!("parse"), &json!(false)), "{line}: {answer}");
    }
    client.to.as_ref().unwrap().send(IncomingLine::TooLong).await.unwrap();
    assert!(client.event("response").await["error"].as_str().unwrap().contains("256 MiB"));
    assert_eq!(client.ask(json!({"id": "x", "type": "get_state"})).await["success"], true);
    let (done, _) = client.leave().await;
    assert!(done.is_ok());
}

#[tokio::test]
async fn a_client_that_stops_reading_ends_everything() {
    let mut client = RpcTestClient::new([]).await;
    let open = gated(&client.model, "never");
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    client.from.close();
    while client.from.recv().await.is_some() {}
    let done = tokio::time::timeout(Duration::from_secs(20), client.served.join_next()).await.unwrap().unwrap();
    assert!(matches!(done.unwrap(), Err(RpcError::NobodyReads)));
    assert!(open.is_closed() || open.send(()).is_err(), "the request was given up");
}

#[tokio::test]
async fn running_work_is_cancelled_when_the_client_closes() {
    let mut client = RpcTestClient::new([]).await;
    let open = gated(&client.model, "never");
    client.say(json!({"id": 1, "type": "bash", "command": "sleep 60"})).await;
    client.ask(json!({"id": 2, "type": "prompt", "message": "x"})).await;
    let left = Instant::now();
    let (done, received) = client.leave().await;
    assert!(done.is_ok());
    assert!(left.elapsed() < Duration::from_secs(10));
    assert!(open.is_closed() || open.send(()).is_err(), "the request was given up");
    assert_eq!(received.iter().find(|line| line["type"] == "agent_settled").unwrap()["aborted"], true);
    let bash = received.iter().find(|line| line["id"] == 1 && line["type"] == "response").unwrap();
    assert_eq!(bash["data"]["cancelled"], true);
}

#[tokio::test]
async fn the_end_of_input_is_noticed_while_output_is_blocked() {
    let mut client = RpcTestClient::new([]).await;
    let open = gated(&client.model, "never");
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    // Far more than fits into the client's buffers.
    client.say(json!({"id": 2, "type": "bash", "command": "for i in $(seq 100); do echo $i; sleep 0.01; done"})).await;
    client.to = None;
    let closed = tokio::time::timeout(Duration::from_secs(5), async {
        let mut open = open;
        open.closed().await;
    });
    assert!(closed.await.is_ok(), "the request goes on");
    assert!(client.leave().await.0.is_ok());
}

#[tokio::test]
async fn unread_output_is_bounded() {
    let mut client = RpcTestClient::new([]).await;
    let spilled = || {
        let files = std::fs::read_dir(client.folder.path()).unwrap().map(|entry| entry.unwrap());
        files
            .filter(|file| file.file_name().to_string_lossy().starts_with("pinch-bash-"))
            .map(|file| file.metadata().unwrap().len())
            .sum::<u64>()
    };
    client.say(json!({"id": 1, "type": "bash", "command": "yes"})).await;
    let mut before = spilled();
    // The command is paused once there is no more room for its output.
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = spilled();
        if now == before && now > 0 {
            break;
        }
        assert!(now < 64 << 20, "{now} bytes are printed to nobody");
        before = now;
    }
    let stopped = client.ask(json!({"id": 2, "type": "abort_bash"})).await;
    assert_eq!(stopped["success"], true);
    let ran = client.until(|line| line["id"] == 1 && line["type"] == "response").await;
    assert_eq!(ran["data"]["cancelled"], true);
    let updates = client.received.iter().filter(|line| line["type"] == "bash_execution_update");
    assert!(updates.clone().all(|line| line["delta"].as_str().unwrap().len() <= 64 * 1024));
    assert!(updates.count() > 1);
}

/// An extension with a command that opens dialogs.
struct AskingExtension;

impl Extension for AskingExtension {
    fn name(&self) -> &str {
        "asks"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        to.command(Arc::new(Self));
        Ok(())
    }
}

impl Command for AskingExtension {
    fn name(&self) -> &str {
        "ask"
    }

    fn run<'a>(&'a self, args: &'a str, cx: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>> {
        Box::pin(async move {
            let answer = cx.ui().input(args, None, None).await;
            cx.ui().set_title(format!("{args}: {answer:?}"));
            Ok(())
        })
    }
}

#[tokio::test]
async fn dialogs_are_shown_one_after_another_even_during_a_run() {
    let mut client = RpcTestClient::with([], SessionTarget::InMemory, vec![Arc::new(AskingExtension)]).await;
    let open = gated(&client.model, "done");
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    client.say(json!({"id": 2, "type": "prompt", "message": "/ask one"})).await;
    client.say(json!({"id": 3, "type": "prompt", "message": "/ask two"})).await;
    let first = client.event("extension_ui_request").await;
    assert_eq!((&first["method"], &first["title"]), (&json!("input"), &json!("one")));
    let queued = client.ask(json!({"id": 4, "type": "steer", "message": "/ask three"})).await;
    assert!(queued["error"].as_str().unwrap().contains("\"/ask\" cannot be queued"), "{queued}");
    assert!(!kinds(&client.received[3..]).iter().skip(1).any(|kind| kind == "extension_ui_response"));
    client.say(json!({"type": "extension_ui_response", "id": "nobody's", "value": "?"})).await;
    client.say(json!({"type": "extension_ui_response", "id": first["id"], "value": "a"})).await;
    let title = client.until(|line| line["method"] == "setTitle").await;
    assert_eq!(title["title"], "one: Some(\"a\")");
    let second = client.until(|line| line["method"] == "input").await;
    client.say(json!({"type": "extension_ui_response", "id": second["id"], "cancelled": true})).await;
    let title = client.until(|line| line["method"] == "setTitle").await;
    assert_eq!(title["title"], "two: None");
    open.send(()).unwrap();
    client.event("agent_settled").await;
    let (done, _) = client.leave().await;
    assert!(done.is_ok());
}

/// Asks the user whenever the session is created, left or changed.
pub(crate) struct AsksAlways;

impl Extension for AsksAlways {
    fn name(&self) -> &str {
        "always"
    }

    fn points(&self) -> Points {
        Points::of([
            Point::SessionStart,
            Point::SessionBeforeSwitch,
            Point::ThinkingLevelSelect,
            Point::SessionInfoChanged,
        ])
    }

    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let point = notification.point().map_or("none", Point::name);
            cx.ui().confirm(point, "", None).await;
            Ok(())
        })
    }

    fn session_before_switch<'a>(
        &'a self,
        _: &'a BeforeSwitch,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        Box::pin(async move {
            Ok(if cx.ui().confirm("leave", "", None).await { SwitchDecision::Proceed } else { SwitchDecision::Cancel })
        })
    }
}

/// Answers dialogs with yes until the response with this id; returns the titles of the dialogs, and the response.
pub(crate) async fn yes_until(client: &mut RpcTestClient, id: impl Into<Value>) -> (Vec<String>, Value) {
    let (mut titles, id) = (Vec::new(), id.into());
    loop {
        let line = client.until(|line| line["type"] == "extension_ui_request" || line["id"] == id).await;
        if line["type"] == "response" {
            return (titles, line);
        }
        titles.push(line["title"].as_str().unwrap().to_owned());
        client.say(json!({"type": "extension_ui_response", "id": line["id"], "confirmed": true})).await;
    }
}

#[tokio::test]
async fn extensions_may_ask_while_the_session_is_created_left_or_changed() {
    let mut client = RpcTestClient::with([], SessionTarget::InMemory, vec![Arc::new(AsksAlways)]).await;
    let mut titles = Vec::new();
    for (id, command) in [
        (1, json!({"type": "get_state"})),
        (2, json!({"type": "new_session"})),
        (3, json!({"type": "set_session_name", "name": "n"})),
    ] {
        let mut command = command;
        command["id"] = id.into();
        client.say(command).await;
        let (asked, answer) = yes_until(&mut client, id).await;
        assert_eq!(answer["success"], true, "{answer}");
        titles.extend(asked);
    }
    assert_eq!(titles, ["session_start", "leave", "session_start", "session_info_changed"]);
    // Meanwhile, other commands wait, and closing the client closes the dialog.
    client.say(json!({"id": 4, "type": "new_session"})).await;
    let leave = client.event("extension_ui_request").await;
    client.say(json!({"id": 5, "type": "get_state"})).await;
    client.say(json!({"type": "extension_ui_response", "id": leave["id"], "cancelled": true})).await;
    let answer = client.until(|line| line["id"] == 4).await;
    assert_eq!(answer["data"]["cancelled"], true);
    assert_eq!(client.until(|line| line["id"] == 5).await["success"], true);
    client.say(json!({"id": 7, "type": "new_session"})).await;
    client.event("extension_ui_request").await;
    client.say(json!({"id": 8, "type": "abort"})).await;
    assert_eq!(client.until(|line| line["id"] == 7).await["data"]["cancelled"], true);
    assert_eq!(client.until(|line| line["id"] == 8).await["success"], true);
    client.say(json!({"id": 6, "type": "new_session"})).await;
    client.event("extension_ui_request").await;
    let (done, received) = client.leave().await;
    assert!(done.is_ok());
    assert!(received.iter().any(|line| line["id"] == 6 && line["data"]["cancelled"] == true));
}

#[tokio::test]
async fn a_dialog_that_can_no_longer_be_answered_is_closed() {
    let mut client = RpcTestClient::with([], SessionTarget::InMemory, vec![Arc::new(AskingExtension)]).await;
    client.say(json!({"id": 1, "type": "prompt", "message": "/ask one"})).await;
    client.event("extension_ui_request").await;
    let (done, received) = client.leave().await;
    assert!(done.is_ok());
    assert!(received.iter().any(|line| line["title"] == "one: None"), "{received:#?}");
    assert!(received.iter().any(|line| line["id"] == 1 && line["data"]["disposition"] == "handled"));
}

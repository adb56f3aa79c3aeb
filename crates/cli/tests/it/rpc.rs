//! RPC mode from the perspective of clients.

use std::time::Duration;

use pinch_testing::server::{Gate, ServerReply};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::help::TestUser;

/// A client.
pub(crate) struct PinchClient {
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    /// Ends with this value.
    child: Child,
}

impl PinchClient {
    pub(crate) fn of(user: &TestUser) -> Self {
        Self::start(user.command(&["--mode", "rpc", "--model", "local/m1"]))
    }

    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), output, child }
    }

    /// Sends a command and returns everything up to its response.
    pub(crate) async fn ask(&mut self, command: &Value) -> Vec<Value> {
        self.say(command).await;
        self.until(|line| line["type"] == "response").await
    }

    /// Sends a line.
    pub(crate) async fn say(&mut self, line: &Value) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Closes standard input.
    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Returns everything up to a matching line.
    pub(crate) async fn until(&mut self, is: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.output.next_line().await.unwrap().unwrap();
            lines.push(serde_json::from_str::<Value>(&line).unwrap());
            if is(&lines[lines.len() - 1]) {
                return lines;
            }
        }
    }
}

#[tokio::test]
async fn retries_that_are_switched_on_keep_the_limit_of_the_settings() {
    let user = TestUser::new().await;
    user.write("agent/settings.json", r#"{"retry": {"enabled": false, "maxRetries": 2, "baseDelayMs": 1}}"#);
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    user.server.reply(ServerReply::json(503, &overloaded)).repeat_last();
    let mut client = PinchClient::of(&user);
    client.ask(&json!({"type": "set_auto_retry", "enabled": true})).await;
    client.ask(&json!({"type": "prompt", "message": "x"})).await;
    let lines = client.until(|line| line["type"] == "agent_settled").await;
    let retries = lines.iter().filter(|line| line["type"] == "auto_retry_start");
    let retries: Vec<(Value, Value)> =
        retries.map(|line| (line["attempt"].clone(), line["maxAttempts"].clone())).collect();
    assert_eq!(retries, [(json!(1), json!(2)), (json!(2), json!(2))]);
    assert_eq!(user.server.requests().len(), 3);
}

#[tokio::test]
async fn clearing_empty_queues_reports_them_as_empty() {
    let user = TestUser::new().await;
    let mut client = PinchClient::of(&user);
    let lines = client.ask(&json!({"type": "clear_queue"})).await;
    assert_eq!(lines[0], json!({"type": "queue_update", "steering": [], "followUp": []}));
    assert_eq!(lines[1]["data"], json!({"steering": [], "followUp": []}));
}

#[tokio::test]
async fn a_missing_entry_is_reported_before_an_unsaved_session() {
    let user = TestUser::new().await;
    let mut client = PinchClient::of(&user);
    let lines = client.ask(&json!({"type": "fork", "entryId": "nobody"})).await;
    assert_eq!(lines[0]["error"], "Invalid entry ID for forking");
}

#[tokio::test]
async fn stats_count_messages_on_every_branch() {
    let user = TestUser::new().await;
    user.write("agent/settings.json", r#"{"compaction": {"keepRecentTokens": 1}}"#);
    let mut client = PinchClient::of(&user);
    for n in 1..=3 {
        user.answer("Hello.");
        client.ask(&json!({"type": "prompt", "message": format!("prompt {n}")})).await;
        client.until(|line| line["type"] == "agent_settled").await;
    }
    // One for the earlier part, one for the start of the turn that is kept.
    user.answer("## Goal\nA summary.");
    user.answer("The beginning of a turn.");
    let compacted = client.ask(&json!({"type": "compact"})).await;
    assert_eq!(compacted[compacted.len() - 1]["success"], true, "{compacted:?}");
    let lines = client.ask(&json!({"type": "get_session_stats"})).await;
    let stats = &lines[lines.len() - 1]["data"];
    let counts = ["userMessages", "assistantMessages", "totalMessages"].map(|name| stats[name].clone());
    assert_eq!(counts, [json!(3), json!(3), json!(7)]);
}

#[tokio::test]
async fn commands_use_the_current_session_and_model() {
    let user = TestUser::new().await;
    let mut client = PinchClient::of(&user);
    let shown = async |client: &mut PinchClient| {
        let command = "echo $PI_SESSION_ID $PI_PROVIDER $PI_MODEL $PI_REASONING_LEVEL";
        let ran = client.ask(&json!({"type": "bash", "command": command})).await;
        let state = client.ask(&json!({"type": "get_state"})).await;
        let [ran, state] = [ran, state].map(|lines| lines[lines.len() - 1]["data"].clone());
        let expected = format!(
            "{} {} {} {}\n",
            state["sessionId"].as_str().unwrap(),
            state["model"]["provider"].as_str().unwrap(),
            state["model"]["id"].as_str().unwrap(),
            state["thinkingLevel"].as_str().unwrap()
        );
        assert_eq!(ran["output"], expected);
        expected
    };
    let first = shown(&mut client).await;
    client.ask(&json!({"type": "set_model", "provider": "nowhere", "modelId": "m1"})).await;
    let other = shown(&mut client).await;
    client.ask(&json!({"type": "new_session"})).await;
    let newest = shown(&mut client).await;
    assert!(first.contains(" local m1 off") && other.contains(" nowhere m1 off"), "{first}{other}");
    assert_ne!(other, newest);
}

#[tokio::test]
async fn aborting_a_retry_aborts_the_run() {
    let user = TestUser::new().await;
    user.write("agent/settings.json", r#"{"retry": {"baseDelayMs": 600000}}"#);
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    user.server.reply(ServerReply::json(503, &overloaded));
    let mut client = PinchClient::of(&user);
    client.ask(&json!({"type": "prompt", "message": "x"})).await;
    client.until(|line| line["type"] == "auto_retry_start").await;
    client.say(&json!({"type": "abort"})).await;
    let lines = client.until(|line| line["type"] == "agent_settled").await;
    assert_eq!(lines[lines.len() - 1], json!({"type": "agent_settled", "aborted": true}));
}

/// Creates a client whose prompt was accepted by a server that stays silent.
#[cfg(unix)]
async fn stalled(user: &TestUser) -> PinchClient {
    user.server.reply(ServerReply::events().gate(&Gate::new()));
    let mut client = PinchClient::of(user);
    client.ask(&json!({"type": "prompt", "message": "x"})).await;
    client.until(|line| line["type"] == "message_end").await;
    while user.server.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client
}

#[cfg(unix)]
#[tokio::test]
async fn a_disconnected_client_ends_the_program_while_the_server_is_silent() {
    let user = TestUser::new().await;
    let mut client = stalled(&user).await;
    client.hang_up();
    let ended = tokio::time::timeout(Duration::from_secs(5), client.child.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));

    // Another process keeps standard input open.
    let mut client = stalled(&user).await;
    drop(client.output);
    let ended = tokio::time::timeout(Duration::from_secs(5), client.child.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[tokio::test]
async fn a_client_that_hangs_up_and_reads_nothing_ends_the_program() {
    let user = TestUser::new().await;
    let mut client = PinchClient::of(&user);
    // The responses exceed the buffers of the program and the pipe.
    for _ in 0..1500 {
        client.say(&json!({"type": "get_state"})).await;
    }
    client.hang_up();
    let ended = tokio::time::timeout(Duration::from_secs(40), client.child.wait()).await;
    assert_eq!(ended.expect("the program goes on").unwrap().code(), Some(0));
}

#[cfg(unix)]
#[tokio::test]
async fn commands_of_a_client_that_hangs_up_early_are_all_answered() {
    let user = TestUser::new().await;
    let mut client = PinchClient::of(&user);
    for id in 0..1500 {
        client.say(&json!({"id": id, "type": "get_last_assistant_text"})).await;
    }
    client.hang_up();
    for id in 0..1500 {
        client.until(|line| line["id"] == id).await;
    }
}

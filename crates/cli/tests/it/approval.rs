//! A client that approves tool calls.

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::TestUser;
use crate::rpc::PinchClient;

/// Makes the model call `bash`, and answer once it has the result.
fn call(user: &TestUser, command: &str) {
    let arguments = json!({"command": command}).to_string();
    user.server.reply(ServerReply::sse(
        AnthropicResponse::new("msg_1").tool_call("toolu_1", "bash", &arguments).stop("tool_use").concat(),
    ));
    user.answer("Done.");
}

/// Returns the result that the model gets for its call: the text, and whether it failed.
fn result(user: &TestUser) -> (String, bool) {
    let asked = user.asked().unwrap();
    let block = &asked.as_array().unwrap().last().unwrap()["content"][0];
    let text = block["content"].as_str().map_or_else(|| block["content"][0]["text"].clone(), Value::from);
    (text.as_str().unwrap().to_owned(), block["is_error"] == true)
}

/// Creates a client that approves tool calls.
async fn asked(user: &TestUser, hello: Value) -> PinchClient {
    let mut client = PinchClient::of(user);
    let answer = client.ask(&hello).await.pop().unwrap();
    let known = answer["data"]["capabilities"].as_array().unwrap();
    assert!(known.contains(&json!("tool_approval")), "{answer}");
    client
}

fn hello() -> Value {
    json!({"type": "hello", "capabilities": ["tool_approval", "something else"]})
}

async fn until(client: &mut PinchClient, kind: &str) -> Vec<Value> {
    client.until(|line| line["type"] == kind).await
}

/// Sends a prompt, and waits for the approval request.
async fn request(client: &mut PinchClient) -> Value {
    client.say(&json!({"type": "prompt", "message": "x"})).await;
    until(client, "tool_approval_request").await.pop().unwrap()
}

async fn reply(client: &mut PinchClient, request: &Value, members: Value) {
    let mut line = members;
    line["type"] = "tool_approval_response".into();
    line["id"] = request["id"].clone();
    client.say(&line).await;
}

#[tokio::test]
async fn clients_are_not_asked_unless_they_opt_in() {
    let user = TestUser::new().await;
    call(&user, "touch ran");
    let mut client = asked(&user, json!({"type": "hello"})).await;
    client.say(&json!({"type": "prompt", "message": "x"})).await;
    let lines = until(&mut client, "agent_settled").await;
    assert!(lines.iter().all(|line| line["type"] != "tool_approval_request"));
    assert!(user.path("ran").exists());
}

#[tokio::test]
async fn a_call_runs_when_it_is_approved_and_not_otherwise() {
    let user = TestUser::new().await;
    let mut client = asked(&user, hello()).await;
    call(&user, "touch ran");
    let wanted = request(&mut client).await;
    assert_eq!(
        (&wanted["toolCallId"], &wanted["toolName"], &wanted["args"], &wanted["timeout"]),
        (&json!("toolu_1"), &json!("bash"), &json!({"command": "touch ran"}), &json!(600_000))
    );
    reply(&mut client, &wanted, json!({"decision": "perhaps"})).await;
    let refused = until(&mut client, "response").await.pop().unwrap();
    let why = "Invalid command: decision: must be approve, approve_for_session or deny";
    assert_eq!((&refused["success"], &refused["error"]), (&json!(false), &json!(why)));
    reply(&mut client, &json!({"id": "another"}), json!({"decision": "approve"})).await;
    reply(&mut client, &wanted, json!({"decision": "deny", "reason": "not today"})).await;
    let lines = until(&mut client, "agent_settled").await;
    assert!(lines.iter().all(|line| line["type"] != "tool_approval_end"), "it was answered");
    assert_eq!(result(&user), ("not today".to_owned(), true));
    assert!(!user.path("ran").exists());

    call(&user, "touch ran");
    let wanted = request(&mut client).await;
    reply(&mut client, &wanted, json!({"decision": "approve"})).await;
    until(&mut client, "agent_settled").await;
    assert!(user.path("ran").exists());
}

#[tokio::test]
async fn an_approval_for_the_session_ends_with_it() {
    let user = TestUser::new().await;
    let mut client = asked(&user, hello()).await;
    call(&user, "touch one");
    let wanted = request(&mut client).await;
    reply(&mut client, &wanted, json!({"decision": "approve_for_session"})).await;
    until(&mut client, "agent_settled").await;
    call(&user, "touch two");
    client.say(&json!({"type": "prompt", "message": "x"})).await;
    let lines = until(&mut client, "agent_settled").await;
    assert!(lines.iter().all(|line| line["type"] != "tool_approval_request"));
    assert!(user.path("one").exists() && user.path("two").exists());
    client.ask(&json!({"type": "new_session"})).await;
    call(&user, "touch three");
    let wanted = request(&mut client).await;
    reply(&mut client, &wanted, json!({"decision": "deny"})).await;
    until(&mut client, "agent_settled").await;
    assert_eq!(result(&user), ("The user did not allow this call.".to_owned(), true));
    // A client that opts out is not asked any more.
    client.ask(&json!({"type": "hello", "capabilities": []})).await;
    call(&user, "touch three");
    client.say(&json!({"type": "prompt", "message": "x"})).await;
    until(&mut client, "agent_settled").await;
    assert!(user.path("three").exists());
}

#[tokio::test]
async fn an_unanswered_call_does_not_run() {
    let user = TestUser::new().await;
    let mut members = hello();
    members["toolApprovalTimeout"] = 100.into();
    let mut client = asked(&user, members).await;
    call(&user, "touch ran");
    let wanted = request(&mut client).await;
    let end = until(&mut client, "tool_approval_end").await.pop().unwrap();
    assert_eq!((&end["id"], &end["reason"]), (&wanted["id"], &json!("timeout")));
    reply(&mut client, &wanted, json!({"decision": "approve"})).await;
    until(&mut client, "agent_settled").await;
    assert_eq!(result(&user), ("Nobody allowed this call in time.".to_owned(), true));

    // A disconnected client allows nothing, including later calls.
    let mut client = asked(&user, hello()).await;
    call(&user, "touch ran");
    request(&mut client).await;
    client.hang_up();
    let end = until(&mut client, "agent_settled").await.pop().unwrap();
    assert_eq!(end["aborted"], true);
    assert!(!user.path("ran").exists());
}

#[tokio::test]
async fn an_abort_answers_the_request() {
    let user = TestUser::new().await;
    let mut client = asked(&user, hello()).await;
    call(&user, "touch ran");
    let wanted = request(&mut client).await;
    client.say(&json!({"type": "abort"})).await;
    let lines = client.until(|line| line["command"] == "abort").await;
    let end = lines.iter().find(|line| line["type"] == "tool_approval_end").unwrap();
    assert_eq!((&end["id"], &end["reason"]), (&wanted["id"], &json!("aborted")));
    let ended = lines.iter().find(|line| line["type"] == "tool_execution_end").unwrap();
    assert_eq!(ended["isError"], true);
    assert!(!user.path("ran").exists());
}

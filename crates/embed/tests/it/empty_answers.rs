//! Models that stop without an answer.

use pinch_embed::run::request::RunTrigger;
use pinch_embed::run::{FailureKind, RunResult};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::world::{FALLBACK, World, answer, attempts, call, fallback_answer, payload_texts, stream, within};

fn empty() -> Vec<String> {
    AnthropicResponse::new("e").text(" ").stop("end_turn")
}

fn reasoning() -> Vec<String> {
    AnthropicResponse::new("t").thinking("Let me see.", "sig").stop("end_turn")
}

fn cut_off() -> Vec<String> {
    AnthropicResponse::new("c").thinking("Let me see.", "sig").stop("max_tokens")
}

/// Runs a prompt against these replies of the model, after which it always answers `More.`
async fn run(replies: Vec<Vec<String>>, is_required: bool) -> (World, RunResult) {
    let world = World::new().await;
    for reply in replies {
        world.server.reply(stream(reply));
    }
    world.server.answer_with(|_| Some(stream(answer("m9", "More."))));
    let request = world.request("s1", "go");
    let request = if is_required { request.require_reply() } else { request };
    let result = within(world.engine.run(request).finish()).await.unwrap();
    (world, result)
}

#[tokio::test]
async fn a_model_that_says_nothing_is_asked_to_go_on_with_its_tools() {
    let write = call("w1", "write", &json!({"path": "made.txt", "content": "x"}));
    let (world, result) = run(vec![empty(), write, answer("m1", "Done.")], false).await;
    assert_eq!(payload_texts(&result), ["One moment.", "Done."]);
    assert_eq!(result.failure(), None);
    assert!(world.path("workspace/made.txt").is_file());
    let lines = ["first anthropic/claude-sonnet-4-5 ok attempt", "first anthropic/claude-sonnet-4-5 ok finish"];
    assert_eq!(attempts(&result), lines);
    let second = world.server.requests()[1].json();
    assert!(second.get("tool_choice").is_none());
    let messages = second["messages"].as_array().unwrap();
    assert!(messages.last().unwrap().to_string().contains("without any text"), "{messages:?}");
    let prompts = world.transcript("s1").messages().iter().filter(|line| line.starts_with("user: ")).count();
    assert_eq!(prompts, 1, "the prompt is not repeated");
}

#[tokio::test]
async fn a_model_without_an_answer_is_asked_a_limited_number_of_times() {
    for is_required in [false, true] {
        for (reply, n_requests) in [(empty(), 2), (reasoning(), 3), (cut_off(), 1)] {
            let (world, result) = run(vec![reply; n_requests], is_required).await;
            assert_eq!(world.server.requests().len(), n_requests);
            assert_eq!(result.failure().map(|failure| failure.kind), Some(FailureKind::Empty));
            let texts = payload_texts(&result);
            assert!(matches!(&texts[..], [text] if text.starts_with('!')), "{texts:?}");
            let meta = &result.into_json()["meta"];
            assert_eq!(
                (&meta["error"]["kind"], &meta["livenessState"]),
                (&json!("incomplete_turn"), &json!("abandoned"))
            );
        }
    }
}

#[tokio::test]
async fn an_answer_after_two_turns_of_reasoning_is_delivered() {
    let (world, result) = run(vec![reasoning(), reasoning(), answer("m1", "So it is.")], false).await;
    assert_eq!(payload_texts(&result), ["So it is."]);
    assert_eq!(world.server.requests().len(), 3);
    assert_eq!(world.health()["first"]["errorCount"].as_u64().unwrap_or(0), 0);
}

#[tokio::test]
async fn silence_on_purpose_is_not_questioned() {
    let (world, result) = run(vec![answer("m1", "NO_REPLY")], false).await;
    assert_eq!((world.server.requests().len(), result.failure()), (1, None));
}

#[tokio::test]
async fn a_heartbeat_may_say_nothing() {
    let world = World::new().await;
    world.server.reply(stream(empty()));
    let request = world.request("s1", "Anything to do?").trigger(RunTrigger::Heartbeat);
    let result = within(world.engine.run(request).finish()).await.unwrap();
    assert_eq!((world.server.requests().len(), result.failure()), (1, None));
}

#[tokio::test]
async fn the_next_model_goes_on_from_an_empty_answer() {
    for (first, n_requests) in [(empty(), 2), (reasoning(), 3)] {
        for is_required in [false, true] {
            let world = World::with(|config| {
                config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
            })
            .await;
            for _ in 0..n_requests {
                world.server.reply(stream(first.clone()));
            }
            world.server.reply(stream(fallback_answer("From the other.")));
            let request = world.request("s1", "go");
            let request = if is_required { request.require_reply() } else { request };
            let result = within(world.engine.run(request).finish()).await.unwrap();
            assert_eq!(payload_texts(&result), ["From the other."]);
            assert_eq!(result.failure(), None);
            let failed = &result.into_json()["meta"]["agentMeta"]["fallbackAttempts"];
            assert_eq!(
                (&failed[0]["reason"], &failed[0]["code"]),
                (&json!("empty_response"), &json!("incomplete_result"))
            );
            let last = world.server.requests().last().unwrap().json();
            let last = last["messages"].as_array().unwrap().last().unwrap().clone();
            assert_eq!(last["role"], "user");
            assert!(last.to_string().contains("without any text"), "{last}");
            let prompts = world.transcript("s1").messages().iter().filter(|line| line.starts_with("user: go")).count();
            assert_eq!(prompts, 1, "the prompt is not repeated");
        }
    }
}

#[tokio::test]
async fn no_other_model_follows_an_empty_answer_after_a_change() {
    let world = World::with(|config| config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK])).await;
    world.server.reply(stream(
        AnthropicResponse::new("w")
            .tool_call("w1", "write", &json!({"path": "a.txt", "content": "x"}).to_string())
            .stop("tool_use"),
    ));
    world.server.answer_with(|_| Some(stream(empty())));
    let result = within(world.engine.run(world.request("s1", "go")).finish()).await.unwrap();
    assert_eq!(result.failure().map(|failure| failure.kind), Some(FailureKind::Empty));
    assert!(payload_texts(&result)[0].contains("verify what was done"), "{:?}", payload_texts(&result));
    assert_eq!(world.server.requests().len(), 3);
}

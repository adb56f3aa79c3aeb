//! Rotation: the next profile is used when one is refused, and the outcomes of both are recorded.

use futures::StreamExt;
use pinch_embed::delivery::ReplyEvent;
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::run::request::BlockReplies;
use pinch_embed::runner::RunEvent;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::world::{FALLBACK, World, answer, attempts, fallback_answer, payload_texts, refusal, stream, within};

/// Returns a rate-limit refusal for that long.
pub(crate) fn too_many(retry_after: &str) -> ServerReply {
    refusal(429, "rate_limit_error", "Number of requests has exceeded your per-minute limit")
        .header("retry-after", retry_after)
}

#[tokio::test]
async fn a_rate_limit_leads_to_the_next_profile() {
    let world = World::new().await;
    world.server.reply(too_many("30")).reply(stream(answer("m1", "Here it is.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert_eq!(payload_texts(&result), ["Here it is."]);
    assert_eq!(world.keys(), ["key-1", "key-2"]);
    assert_eq!(
        attempts(&result),
        ["first anthropic/claude-sonnet-4-5 rate_limit attempt", "second anthropic/claude-sonnet-4-5 ok finish"]
    );

    let health = world.health();
    assert_eq!(health["first"]["errorCount"], 1);
    assert_eq!(health["first"]["cooldownReason"], "rate_limit");
    assert_eq!(health["first"]["lastWindowMs"], 30_000, "{health}");
    let rest = health["first"]["cooldownUntil"].as_i64().zip(health["first"]["lastFailureAt"].as_i64());
    assert_eq!(rest.map(|(until, from)| until - from), Some(30_000), "{health}");
    assert_eq!(health["second"]["errorCount"], 0);
    assert!(health["second"]["lastUsed"].is_number() && health["second"].get("cooldownUntil").is_none(), "{health}");

    // The prompt is in the file once, although it was sent twice.
    let transcript = world.transcript("s1");
    let prompts = transcript.messages().iter().filter(|line| *line == "user: go").count();
    assert_eq!(prompts, 1, "{:?}", transcript.messages());
}

#[tokio::test]
async fn a_profile_in_cooldown_is_skipped_after_a_restart() {
    let world = World::new().await;
    world.server.reply(too_many("600")).reply(stream(answer("m1", "One.")));
    world.ask("s1", "go").await.unwrap();
    world.server.reply(stream(answer("m2", "Two.")));
    let engine = world.restarted();
    let result = within(engine.run(engine.request("s2", None, None, "again")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Two."]);
    assert_eq!(world.keys(), ["key-1", "key-2", "key-2"]);
}

#[tokio::test]
async fn a_refused_key_is_marked_and_the_next_one_used() {
    let world = World::new().await;
    world.server.reply(refusal(401, "authentication_error", "invalid x-api-key"));
    world.server.reply(stream(answer("m1", "Here.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert_eq!(payload_texts(&result), ["Here."]);
    assert_eq!(world.keys(), ["key-1", "key-2"]);
    assert_eq!(world.health()["first"]["errorCount"], 1);
}

#[tokio::test]
async fn a_profile_without_credit_is_probed_by_the_next_run() {
    let world = World::with(|config| {
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    world.server.reply(refusal(402, "billing_error", "Your credit balance is too low"));
    world.ask("s1", "go").await.unwrap_err();
    assert_eq!(world.health()["first"]["disabledReason"], "billing");
    world.server.reply(refusal(402, "billing_error", "Your credit balance is too low"));
    world.ask("s2", "go").await.unwrap_err();
    assert_eq!(world.keys(), ["key-1", "key-1"]);
    world.ask("s3", "go").await.unwrap_err();
    assert_eq!(world.keys().len(), 2, "one probe in 30 seconds");
    world.server.reply(stream(answer("m1", "Paid.")));
    let result = within(world.restarted().run(world.request("s4", "go")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Paid."]);
    assert_eq!(world.health()["first"].get("disabledUntil"), None);
}

#[tokio::test]
async fn a_missing_credential_is_reported_with_its_provider_and_a_remedy() {
    let world = World::with(|config| config["auth"] = json!({})).await;
    let error = world.ask("s1", "go").await.unwrap_err().to_string();
    assert_eq!(world.keys(), Vec::<String>::new());
    assert_eq!(
        error,
        "No API key found for anthropic. Set ANTHROPIC_API_KEY, or give the key as \"apiKey\" of a profile under auth.profiles \
         in pinch.json."
    );
    assert!(!world.session_file("s1").exists(), "a run without a request leaves no session");
}

#[tokio::test]
async fn a_missing_model_and_credential_are_reported_with_a_remedy() {
    let world = World::with(|config| {
        config["auth"] = json!({});
        config["models"] = json!({});
        config["agents"]["defaults"]["model"] = json!({});
    })
    .await;
    let error = world.ask("s1", "go").await.unwrap_err().to_string();
    assert!(error.contains("ANTHROPIC_API_KEY") && error.contains("agents.defaults.model.primary"), "{error}");
}

/// Returns an answer that breaks off because of a rate limit.
fn broken_off(text: &str) -> ServerReply {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let error = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "Too many requests"}});
    stream(AnthropicResponse::new("m1").event(start).event(delta).event(error).frames())
}

#[tokio::test]
async fn an_interrupted_answer_is_not_repeated() {
    let world = World::new().await;
    world.server.reply(broken_off("Half of")).reply(stream(answer("m2", "The whole answer.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert_eq!(payload_texts(&result), ["The whole answer."]);
    assert_eq!(world.keys(), ["key-1", "key-2"]);
    let messages = world.transcript("s1").messages();
    assert_eq!(messages, ["user: go", "assistant(error): Half of", "assistant(stop): The whole answer."]);
    let sent = world.server.requests()[1].json()["messages"].to_string();
    assert!(!sent.contains("Half of") && sent.contains("interrupted by an error"), "{sent}");
}

#[tokio::test]
async fn a_model_is_told_once_that_its_answer_broke_off() {
    let world = World::with(|config| config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK])).await;
    world.server.reply(broken_off("Half of")).reply(broken_off("Half again")).reply(stream(fallback_answer("All.")));
    assert_eq!(payload_texts(&world.ask("s1", "go").await.unwrap()), ["All."]);
    let sent = world.server.requests().pop().unwrap().json()["messages"].to_string();
    assert!(!sent.contains("Half") && sent.matches("interrupted by an error").count() == 1, "{sent}");
}

#[tokio::test]
async fn delivered_blocks_are_not_repeated() {
    let world = World::new().await;
    world.server.reply(broken_off("First part.\n\nSecond pa"));
    world.server.reply(stream(answer("m2", "First part.\n\nSecond part.")));
    let replies = BlockReplies { break_at: BlockBreak::Paragraph, ..BlockReplies::default() };
    let mut run = world.engine.run(world.request("s1", "go").block_replies(replies));
    let mut blocks = Vec::new();
    while let Some(event) = within(run.next()).await {
        if let RunEvent::Reply(ReplyEvent::BlockReply(block)) = event {
            blocks.push(block.text);
        }
    }
    assert_eq!(blocks, ["First part.", "Second part."]);
    assert_eq!(payload_texts(&run.result().unwrap()), blocks);
}

#[tokio::test]
async fn the_last_interrupted_answer_is_kept_when_the_run_is_stopped() {
    let world = World::new().await;
    world.server.reply(broken_off("Half of")).reply(broken_off("Half of it"));
    // The run waits after the last profile.
    let cancel = Cancel::new();
    let mut run = world.engine.run(world.request("s1", "go").cancel(cancel.clone()));
    while let Some(event) = within(run.next()).await {
        if matches!(event, RunEvent::Wait(_)) {
            cancel.cancel(CancelReason::User);
        }
    }
    assert_eq!(payload_texts(&run.result().unwrap()), ["Half of it"]);
}

#[tokio::test]
async fn the_only_profile_is_retried_after_the_requested_delay() {
    let world = World::with(|config| {
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    world.server.reply(refusal(503, "api_error", "Internal server error").header("retry-after", "0"));
    world.server.reply(stream(answer("m1", "Here.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert_eq!(payload_texts(&result), ["Here."]);
    assert_eq!(world.keys(), ["key-1", "key-1"]);
    assert_eq!(world.health()["first"]["errorCount"], 0, "a success forgets what was before");
}

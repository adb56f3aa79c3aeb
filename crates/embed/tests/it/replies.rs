//! How replies are processed in a whole run: tokens, tags and threads.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_embed::delivery::{OutgoingBlock, PartialReply, Receipt, ReplySink, SendFailure};
use pinch_embed::replies::directives::threading::ReplyToMode;
use pinch_embed::run::RunRequest;
use pinch_embed::run::request::BlockReplies;
use pinch_stdx::host::Host;
use pinch_testing::wires::anthropic::AnthropicResponse;
use pinch_testing::wires::completions::CompletionsResponse;
use serde_json::{Value, json};

use crate::world::{World, answer, payload_texts, stream, within};

/// A chat that records what it receives.
#[derive(Default)]
struct Log {
    partials: Mutex<Vec<String>>,
    blocks: Mutex<Vec<(String, Option<String>)>>,
}

impl ReplySink for Log {
    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        self.blocks.lock().unwrap().push((block.reply.text.clone(), block.reply.reply_to_id.clone()));
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }

    fn partial<'a>(&'a self, reply: PartialReply<'a>) -> BoxFuture<'a, ()> {
        self.partials.lock().unwrap().push(reply.text.to_owned());
        Box::pin(std::future::ready(()))
    }
}

/// Returns the texts of the payloads of an answer.
async fn payloads(text: &str) -> Vec<String> {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", text)));
    payload_texts(&world.ask("s1", "go").await.unwrap())
}

async fn delivered(world: &World, request: RunRequest) -> Arc<Log> {
    let log = Arc::new(Log::default());
    let request = request.block_replies(BlockReplies::default());
    let run = within(world.engine.run(request).deliver(Arc::clone(&log) as Arc<dyn ReplySink>)).await;
    assert!(run.result.is_ok(), "{:?}", run.result);
    log
}

#[tokio::test]
async fn the_silent_token_is_never_shown_not_even_partially() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "NO_REPLY")));
    let log = delivered(&world, world.request("s1", "go")).await;
    assert_eq!(log.partials.lock().unwrap().len() + log.blocks.lock().unwrap().len(), 0);
    // Text that only begins like the token is shown in full.
    world.server.reply(stream(answer("m2", "NO_RETURN is a flag.")));
    let log = delivered(&world, world.request("s1", "go")).await;
    assert_eq!(log.partials.lock().unwrap().last().map(String::as_str), Some("NO_RETURN is a flag."));
}

#[tokio::test]
async fn tokens_at_the_end_of_an_answer_are_removed() {
    assert_eq!(payloads("Done.\n\nNO_REPLY").await, ["Done."]);
    assert_eq!(payloads("HEARTBEAT_OK").await, [""; 0]);
    assert_eq!(payloads("All is well. HEARTBEAT_OK").await, ["All is well."]);
}

#[tokio::test]
async fn an_answer_inside_an_unclosed_thinking_tag_is_delivered() {
    assert_eq!(payloads("<think>It is forty-two.").await, ["It is forty-two."]);
    assert_eq!(payloads("<think>Hm.</think>It is forty-two.").await, ["It is forty-two."]);
}

/// Chat Completions ends all blocks of an answer only with the answer, and servers alternate between them.
#[tokio::test]
async fn text_before_a_tool_call_or_between_reasoning_is_shown_once() {
    let world = World::new().await;
    let call = CompletionsResponse::new("c1", "small").text("Let me look.").tool_call(
        "call_1",
        "read",
        r#"{"path": "a.txt"}"#,
    );
    world.server.reply(stream(call.finish("tool_calls").done()));
    let answer =
        CompletionsResponse::new("c2", "small").text("Alpha. ").thinking("reasoning_content", "Hm.").text("Beta.");
    world.server.reply(stream(answer.finish("stop").done()));
    let log = delivered(&world, world.request("s1", "go").model("local", "small")).await;
    let blocks: Vec<String> = log.blocks.lock().unwrap().iter().map(|(text, _)| text.clone()).collect();
    assert_eq!(blocks, ["Let me look.", "Alpha. Beta."]);
    assert_eq!(log.partials.lock().unwrap().last().map(String::as_str), Some("Alpha. Beta."));
}

#[tokio::test]
async fn leaked_markup_is_shown_neither_in_blocks_nor_partially() {
    let call = format!("<tool_call>{{\"name\": \"x\", \"arguments\": \"{}\"}}</tool_call>", "secret ".repeat(200));
    let text = format!("Hello {call} there. <relevant-memories>secret</relevant-memories>Bye.");
    let world = World::new().await;
    world.server.reply(stream(answer("m1", &text)));
    let log = delivered(&world, world.request("s1", "go")).await;
    assert!(log.partials.lock().unwrap().iter().all(|partial| !partial.contains(['<', '{'])), "{:?}", log.partials);
    let blocks: Vec<String> = log.blocks.lock().unwrap().iter().map(|(text, _)| text.clone()).collect();
    assert_eq!(blocks.concat(), "Hello there. Bye.");
}

#[tokio::test]
async fn an_answer_of_markup_alone_is_not_shown() {
    for text in
        ["[Tool Call: exec (ID: 1)]\nArguments: {}", "<|channel|>analysis<|message|>I plan.<|end|>", "🛠️ Exec: ls -la"]
    {
        let shown = payloads(text).await;
        assert!(shown.iter().all(|shown| !shown.contains(text)), "{shown:?}");
    }
}

#[tokio::test]
async fn tagged_reasoning_is_stored_as_thinking_and_not_replayed_as_text() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "<think>secret plan</think>Hi there")));
    world.server.reply(stream(answer("m2", "Bye")));
    assert_eq!(payload_texts(&world.ask("s1", "go").await.unwrap()), ["Hi there"]);
    let stored = world.transcript("s1").of_type("message").last().unwrap()["message"]["content"].clone();
    let expected = json!([{"type": "thinking", "thinking": "secret plan"}, {"type": "text", "text": "Hi there"}]);
    assert_eq!(stored, expected);
    world.ask("s1", "again").await.unwrap();
    let replayed = world.server.requests().last().unwrap().json()["messages"].clone();
    assert_eq!(replayed[1], json!({"role": "assistant", "content": [{"type": "text", "text": "Hi there"}]}));
}

#[tokio::test]
async fn blocks_reply_to_the_message_that_started_the_run_according_to_the_mode() {
    let text = "[[reply_to_current]] One.\n\n[[reply_to_current]] Two.";
    for (mode, threads) in [
        (ReplyToMode::All, [true, true]),
        (ReplyToMode::First, [true, false]),
        (ReplyToMode::Off { tags_allowed: false }, [false, false]),
    ] {
        let world = World::new().await;
        world.server.reply(stream(answer("m1", text)));
        let mut request = world.request("s1", "go").reply_to_mode(mode);
        request.caller.message_id = Some("77".to_owned());
        request.block_replies = None;
        let by_paragraph =
            BlockReplies { break_at: pinch_embed::replies::blocks::BlockBreak::Paragraph, ..BlockReplies::default() };
        let log = Arc::new(Log::default());
        let run = world.engine.run(request.clone().block_replies(by_paragraph));
        within(run.deliver(Arc::clone(&log) as Arc<dyn ReplySink>)).await.result.unwrap();
        let blocks = log.blocks.lock().unwrap().clone();
        let expected = ["One.", "Two."]
            .iter()
            .zip(threads)
            .map(|(text, is_reply)| ((*text).to_owned(), is_reply.then(|| "77".to_owned())));
        assert_eq!(blocks, expected.collect::<Vec<_>>(), "{mode:?}");
    }
}

#[tokio::test]
async fn short_reply_tags_are_text_if_disabled() {
    let text = "[[voice]] Hi [[reply:7]]";
    for (is_on, shown, thread) in [(true, "Hi", Some("7")), (false, text, None)] {
        let world = World::with(|config| config["replies"] = json!({"shortTags": is_on})).await;
        for in_blocks in [true, false] {
            world.server.reply(stream(answer("m1", text)));
            let request = world.request("s1", "go");
            if in_blocks {
                let log = delivered(&world, request).await;
                let blocks = log.blocks.lock().unwrap().clone();
                assert_eq!(blocks, [(shown.to_owned(), thread.map(str::to_owned))]);
                assert_eq!(log.partials.lock().unwrap().last().map(String::as_str), Some(shown));
            } else {
                let result = within(world.engine.run(request).finish()).await.unwrap();
                assert_eq!(payload_texts(&result), [shown]);
                assert_eq!(result.payloads[0].reply.reply_to_id.as_deref(), thread);
            }
        }
    }
}

#[tokio::test]
async fn the_raw_stream_is_logged_if_asked_for() {
    let world = World::new().await;
    let call = AnthropicResponse::new("m1").with_chunks(2).thinking("Hm.", "c2ln").text("<final>Hi</final> NO_REPLY");
    world.server.reply(stream(call.stop("end_turn")));
    let env = [("PINCH_RAW_STREAM", "1")];
    let engine = world
        .built(|builder| builder.host(Host::builder().home(world.path("")).env(env.into_iter().collect()).build()));
    within(engine.run(engine.request("s1", None, None, "go").run_id("r1")).finish()).await.unwrap();
    let log = std::fs::read_to_string(world.path("state/logs/raw-stream.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines.iter().all(|line| line["runId"] == "r1" && line["sessionId"] == "s1" && line["ts"].is_i64()),
        "{log}"
    );
    let of = |kind: &str| lines.iter().filter(|line| line["evtType"] == kind).collect::<Vec<_>>();
    let deltas = |kind: &str| of(kind).iter().map(|line| line["delta"].as_str().unwrap()).collect::<String>();
    assert_eq!(deltas("text_delta"), "<final>Hi</final> NO_REPLY");
    assert_eq!(deltas("thinking_delta"), "Hm.");
    assert_eq!(of("text_end")[0]["content"], "<final>Hi</final> NO_REPLY");
    let end = lines.last().unwrap();
    assert_eq!(end["event"], "assistant_message_end");
    assert_eq!((&end["rawText"], &end["rawThinking"]), (&json!("<final>Hi</final> NO_REPLY"), &json!("Hm.")));

    let world = World::new().await;
    world.server.reply(stream(answer("m1", "Hi")));
    world.ask("s1", "go").await.unwrap();
    assert!(!world.path("state/logs").exists(), "the log is off by default");
}

#[tokio::test]
async fn a_failed_tool_without_side_effects_is_reported_unless_suppressed() {
    for is_suppressed in [false, true] {
        let world = World::with(|config| config["messages"] = json!({"suppressToolErrors": is_suppressed})).await;
        let call = AnthropicResponse::new("m1").tool_call("toolu_1", "read", &json!({"path": "gone.txt"}).to_string());
        world.server.reply(stream(call.stop("tool_use")));
        world.server.reply(stream(answer("m2", "")));
        let shown = payload_texts(&world.ask("s1", "go").await.unwrap());
        assert_eq!(shown.iter().any(|text| text.contains("gone.txt")), !is_suppressed, "{shown:?}");
    }
}

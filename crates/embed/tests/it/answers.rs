//! Which part of a model's output is the answer: final tags, reasoning, and commentary.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_embed::delivery::{OutgoingBlock, PartialReply, Receipt, ReplySink, SendFailure};
use pinch_embed::replies::ReasoningLevel;
use pinch_embed::run::request::BlockReplies;
use pinch_embed::run::{RunRequest, RunResult};
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::wires::anthropic::AnthropicResponse;
use pinch_testing::wires::responses::ResponsesResponse;
use serde_json::{Value, json};

use crate::world::{World, answer, fallback_answer, payload_texts, refusal, stream, within};

/// A chat that records what it receives.
#[derive(Default)]
struct AnswerLog {
    blocks: Mutex<Vec<String>>,
    partials: Mutex<Vec<String>>,
}

impl ReplySink for AnswerLog {
    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        self.blocks.lock().unwrap().push(block.reply.text.clone());
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }

    fn partial<'a>(&'a self, reply: PartialReply<'a>) -> BoxFuture<'a, ()> {
        self.partials.lock().unwrap().push(reply.text.to_owned());
        Box::pin(std::future::ready(()))
    }
}

/// Runs a request, and returns the blocks sent during the run, the partial replies, and the result.
async fn delivered(world: &World, request: RunRequest) -> (Vec<String>, Vec<String>, RunResult) {
    let log = Arc::new(AnswerLog::default());
    let request = request.block_replies(BlockReplies::default());
    let run = within(world.engine.run(request).deliver(Arc::clone(&log) as Arc<dyn ReplySink>)).await;
    let (blocks, partials) = (log.blocks.lock().unwrap().clone(), log.partials.lock().unwrap().clone());
    (blocks, partials, run.result.unwrap())
}

/// Creates a world with a model of the provider `ollama`; `more` are members of its record.
async fn with_ollama(more: Value) -> World {
    World::with(|config| {
        let providers = config["models"]["providers"].as_object_mut().unwrap();
        let local = providers.remove("local").unwrap();
        providers.insert("ollama".to_owned(), local);
        let record = providers["ollama"]["models"][0].as_object_mut().unwrap();
        record.extend(more.as_object().unwrap().clone());
    })
    .await
}

fn system_prompt(world: &World) -> String {
    world.server.requests().last().unwrap().json()["messages"][0]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_model_that_reasons_in_its_text_is_asked_for_final_tags_and_only_their_content_is_shown() {
    let text = "They want a greeting. <final>Hello there.</final> That was easy.";
    for (more, is_asked) in [
        (json!({}), true),
        (json!({"reasoning": true}), false),
        (json!({"compat": {"requiresFinalTags": false}}), false),
        (json!({"reasoning": true, "compat": {"requiresFinalTags": true}}), true),
    ] {
        let world = with_ollama(more.clone()).await;
        world.server.reply(stream(fallback_answer(text)));
        let (blocks, partials, _) = delivered(&world, world.request("s1", "go").model("ollama", "small")).await;
        let expected = if is_asked { "Hello there." } else { "They want a greeting. Hello there. That was easy." };
        assert_eq!(blocks, [expected], "{more}");
        assert_eq!(partials.last().map(String::as_str), Some(expected), "{more}");
        assert_eq!(system_prompt(&world).contains("<final>"), is_asked, "{more}");
    }
}

#[tokio::test]
async fn an_answer_that_ignores_final_tags_is_delivered_at_the_end() {
    let world = with_ollama(json!({})).await;
    world.server.reply(stream(fallback_answer("<think>Hm.</think>It is forty-two.")));
    let (blocks, partials, result) = delivered(&world, world.request("s1", "go").model("ollama", "small")).await;
    assert_eq!((blocks, partials), (Vec::new(), Vec::new()));
    assert_eq!(payload_texts(&result), ["It is forty-two."]);
    // An empty answer between final tags is empty on purpose.
    world.server.reply(stream(fallback_answer("Nothing to say. <final></final>")));
    let (_, _, result) = delivered(&world, world.request("s1", "go").model("ollama", "small")).await;
    assert!(payload_texts(&result).iter().all(|text| !text.contains("Nothing to say")), "{result:?}");
}

#[tokio::test]
async fn final_tags_are_enforced_per_model_of_a_run() {
    let world = World::with(|config| {
        let providers = &mut config["models"]["providers"];
        providers["local"]["models"][0]["compat"] = json!({"requiresFinalTags": true});
        config["agents"]["defaults"]["model"]["fallbacks"] = json!(["local/small"]);
    })
    .await;
    // Once for each profile.
    for _ in 0..2 {
        world.server.reply(refusal(404, "not_found_error", "model: claude-sonnet-4-5"));
    }
    world.server.reply(stream(fallback_answer("Hm. <final>Hello.</final>")));
    let (blocks, _, _) = delivered(&world, world.request("s1", "go")).await;
    assert_eq!(blocks, ["Hello."]);
    world.server.reply(stream(answer("m1", "Hm. <final>Hello.</final>")));
    let (blocks, _, _) = delivered(&world, world.request("s2", "go")).await;
    assert_eq!(blocks, ["Hm. Hello."]);
}

#[tokio::test]
async fn a_prompt_of_the_request_does_not_ask_for_final_tags() {
    let world = with_ollama(json!({})).await;
    world.server.reply(stream(fallback_answer("Hello.")));
    let mut request = world.request("s1", "go").model("ollama", "small");
    request.system_prompt = Some("You are terse.".to_owned());
    let (_, partials, _) = delivered(&world, request).await;
    assert_eq!(partials.last().map(String::as_str), Some("Hello."));
}

#[tokio::test]
async fn native_reasoning_is_hidden_when_thinking_is_off() {
    for (level, is_shown) in [(None, true), (Some(ThinkingLevel::Low), true), (Some(ThinkingLevel::Off), false)] {
        let world = World::new().await;
        let thought = AnthropicResponse::new("m1").thinking("Hm.", "c2ln").text("Hello.").stop("end_turn");
        world.server.reply(stream(thought));
        let mut request = world.request("s1", "go");
        (request.reasoning_level, request.think_level) = (ReasoningLevel::On, level);
        let (blocks, _, result) = delivered(&world, request).await;
        let reasoning: Vec<&str> = if is_shown { vec!["Reasoning:\n_Hm._"] } else { Vec::new() };
        assert_eq!(blocks, [vec!["Hello."], reasoning.clone()].concat(), "{level:?}");
        assert_eq!(payload_texts(&result), [reasoning, vec!["Hello."]].concat(), "{level:?}");
    }
}

#[tokio::test]
async fn tagged_reasoning_is_shown_when_thinking_is_off() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "<think>Hm.</think>Hello.")));
    let mut request = world.request("s1", "go").think_level(ThinkingLevel::Off);
    request.reasoning_level = ReasoningLevel::On;
    assert_eq!(delivered(&world, request).await.0, ["Hello.", "Reasoning:\n_Hm._"]);
}

#[tokio::test]
async fn commentary_is_not_part_of_the_answer() {
    let world = World::with(|config| {
        let local = &mut config["models"]["providers"]["local"];
        local["api"] = json!("openai-responses");
    })
    .await;
    let message = |id: &str, phase: &str, text: &str| {
        let item = |content: Value| json!({"type": "message", "id": id, "role": "assistant", "phase": phase, "content": content});
        let delta = json!({"type": "response.output_text.delta", "item_id": id, "delta": text});
        let whole = json!([{"type": "output_text", "text": text}]);
        (item(json!([])), vec![delta], item(whole))
    };
    let mut response = ResponsesResponse::new("r1", "small");
    for (start, events, whole) in
        [message("a", "commentary", "I look at the files."), message("b", "final_answer", "All is well.")]
    {
        response = response.item(&start, events, &whole);
    }
    world.server.reply(stream(response.completed()));
    let (blocks, partials, result) = delivered(&world, world.request("s1", "go").model("local", "small")).await;
    assert_eq!(blocks, ["All is well."]);
    assert!(partials.iter().all(|partial| !partial.contains("look")), "{partials:?}");
    assert_eq!(payload_texts(&result), ["All is well."]);
}

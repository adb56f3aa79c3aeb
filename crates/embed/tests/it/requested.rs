//! Options of a single request that take precedence over the configuration, or have no counterpart in it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::tool::Tool;
use pinch_embed::delivery::{OutgoingBlock, Receipt, ReplyEvent, ReplySink, SendFailure};
use pinch_embed::replies::chunk::{BreakPreference, Chunking};
use pinch_embed::replies::coalesce::Coalescing;
use pinch_embed::replies::preview::{Preview, PreviewMode};
use pinch_embed::replies::tool_notes::{ToolFormat, Verbose};
use pinch_embed::run::request::BlockReplies;
use pinch_embed::runner::RunEvent;
use pinch_embed::{Caller, Sender};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::host::tool;
use crate::world::{World, answer, call, payload_texts, stream, within};

/// A chat that records blocks and drafts.
#[derive(Default)]
struct DraftChat {
    blocks: Mutex<Vec<String>>,
    drafts: Mutex<Vec<String>>,
}

impl ReplySink for DraftChat {
    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        self.blocks.lock().unwrap().push(block.reply.text.clone());
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }

    fn draft<'a>(&'a self, text: &'a str) -> BoxFuture<'a, ()> {
        self.drafts.lock().unwrap().push(text.to_owned());
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn only_text_in_final_tags_is_shown_if_enforced() {
    let world = World::new().await;
    for is_enforced in [false, true] {
        world.server.reply(stream(answer("m1", "Let me see. <final>It is noon.</final>")));
        let request = world.request(&format!("s{is_enforced}"), "go");
        let request = if is_enforced { request.enforce_final_tag() } else { request };
        let result = within(world.engine.run(request).finish()).await.unwrap();
        let shown = if is_enforced { "It is noon." } else { "Let me see. It is noon." };
        assert_eq!(payload_texts(&result), [shown]);
        let system = world.server.requests().last().unwrap().json()["system"].to_string();
        assert_eq!(system.contains("<final>"), is_enforced, "the model is told to use the tags: {system}");
    }
}

#[tokio::test]
async fn a_run_waits_only_for_others_in_its_lane() {
    let world = World::with(|config| config["agents"]["defaults"]["maxConcurrent"] = 1.into()).await;
    let (gate, outer) = world.answering(world.request("outer", "go")).await;
    let mut same = world.start("same", "go");
    let waits = within(same.next()).await;
    assert!(matches!(waits, Some(RunEvent::Waiting(_))), "the slot of the main lane is taken: {waits:?}");
    world.server.reply(stream(answer("m1", "In the other lane.")));
    let other = world.engine.run(world.request("other", "go").lane(" cron "));
    assert_eq!(payload_texts(&within(other.finish()).await.unwrap()), ["In the other lane."]);
    world.server.reply(stream(answer("m2", "In the same lane.")));
    gate.open_times(100);
    within(outer.finish()).await.unwrap();
    assert_eq!(payload_texts(&within(same.finish()).await.unwrap()), ["In the same lane."]);
}

#[tokio::test]
async fn media_may_come_from_the_directories_of_the_request() {
    let world = World::new().await;
    world.write("pictures/cat.png", "cat");
    let file = world.path("pictures/cat.png").display().to_string();
    for is_allowed in [false, true] {
        world.server.reply(stream(answer("m1", &format!("Here.\nMEDIA:{file}"))));
        let request = world.request(&format!("s{is_allowed}"), "go");
        let request = if is_allowed { request.media_roots(vec![world.path("pictures")]) } else { request };
        let result = within(world.engine.run(request).finish()).await.unwrap();
        let expect = if is_allowed { vec![file.clone()] } else { vec![] };
        assert_eq!(result.payloads[0].reply.media_urls, expect);
    }
}

#[tokio::test]
async fn the_draft_of_a_request_replaces_that_of_its_channel() {
    for (configured, requested, has_draft) in
        [("off", PreviewMode::Partial, true), ("partial", PreviewMode::Off, false)]
    {
        let world = World::with(|config| config["channels"]["telegram"]["streaming"]["mode"] = configured.into()).await;
        world.server.reply(stream(answer("m1", "One. Two. Three.")));
        let chat = Arc::new(DraftChat::default());
        let preview = Preview { mode: requested, ..Preview::default() };
        let request = world.request("s1", "go").caller(Caller::new().channel("telegram")).preview(preview);
        within(world.engine.run(request).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await.result.unwrap();
        let shown = chat.drafts.lock().unwrap().last().cloned();
        assert_eq!(shown, has_draft.then(|| "One. Two. Three.".to_owned()), "{configured}");
    }
}

#[tokio::test]
async fn blocks_are_joined_as_requested() {
    let text = "One two three. Four five six. Seven eight nine.";
    let small = |config: &mut Value| {
        config["channels"]["telegram"]["streaming"]["block"]["coalesce"] = json!({"maxChars": 20});
    };
    let chunking = Chunking { min_chars: 12, max_chars: 20, preference: BreakPreference::Sentence, ..Preview::CHUNK };
    let pair = Coalescing { min_chars: 20, max_chars: 35, joiner: " + ".to_owned(), ..Coalescing::default() };
    for (coalescing, expect) in [
        (None, vec!["One two three.", "Four five six.", "Seven eight nine."]),
        (Some(pair), vec!["One two three. + Four five six.", "Seven eight nine."]),
    ] {
        let world = World::with(small).await;
        world.server.reply(stream(answer("m1", text)));
        let chat = Arc::new(DraftChat::default());
        let blocks = BlockReplies { chunking: Some(chunking), coalescing, ..BlockReplies::default() };
        let request = world.request("s1", "go").caller(Caller::new().channel("telegram")).block_replies(blocks);
        within(world.engine.run(request).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await.result.unwrap();
        assert_eq!(*chat.blocks.lock().unwrap(), expect);
    }
}

#[tokio::test]
async fn failed_tools_are_not_reported_if_the_request_says_so() {
    let world = World::new().await;
    for is_suppressed in [false, true] {
        let call = AnthropicResponse::new("m1").tool_call("toolu_1", "read", &json!({"path": "gone.txt"}).to_string());
        world.server.reply(stream(call.stop("tool_use"))).reply(stream(answer("m2", "")));
        let request = world.request(&format!("s{is_suppressed}"), "go");
        let request = if is_suppressed { request.suppress_tool_error_warnings() } else { request };
        let shown = payload_texts(&within(world.engine.run(request).finish()).await.unwrap());
        assert_eq!(shown.iter().any(|text| text.contains("gone.txt")), !is_suppressed, "{shown:?}");
    }
}

#[tokio::test]
async fn messages_about_tools_have_the_requested_format() {
    let world = World::new().await;
    world.write("workspace/note.txt", "x");
    for (channel, format) in [("telegram", ToolFormat::Plain), ("sms", ToolFormat::Markdown)] {
        world.server.reply(stream(call(channel, "read", &json!({"path": "note.txt"}))));
        world.server.reply(stream(answer("m", "Read.")));
        let request = world.request(channel, "read it").caller(Caller::new().channel(channel));
        let mut run = world.engine.run(request.verbose_level(Verbose::On).tool_result_format(format));
        let mut notes = Vec::new();
        while let Some(event) = within(run.next()).await {
            if let RunEvent::Reply(ReplyEvent::ToolResult(note)) = event {
                notes.push(note.text.contains('`'));
            }
        }
        assert_eq!(notes, [format == ToolFormat::Markdown], "{channel}");
    }
}

#[tokio::test]
async fn a_run_without_tools_offers_none() {
    let world = World::new().await;
    let engine = world.built(|builder| builder.builtin_tools(["read"]).tool(tool("time", "noon")));
    world.server.reply(stream(answer("m1", "Hello.")));
    within(engine.run(world.request("s1", "hello").without_tools()).finish()).await.unwrap();
    assert_eq!(world.server.requests()[0].json().get("tools"), None);
}

#[tokio::test]
async fn tools_made_for_a_run_know_the_whole_caller() {
    let world = World::new().await;
    let seen = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&seen);
    let engine = world.built(|builder| {
        builder.tools_for(move |request| {
            *slot.lock().unwrap() = Some(request.caller.clone());
            Vec::<Arc<dyn Tool>>::new()
        })
    });
    let sender = Sender::new("42").name("Ada").user_name("ada").phone("+15550100");
    let caller = Caller::new()
        .channel("discord")
        .account("work")
        .group("guild-room")
        .group_label("#room")
        .space("guild")
        .thread("t1")
        .message_id("m7")
        .sender(sender)
        .owner()
        .capability("inlineButtons")
        .spawned_by("agent:main:main");
    world.server.reply(stream(answer("m1", "Hello.")));
    let request = engine.request("s1", Some("agent:main:discord:group:room"), None, "hi").caller(caller.clone());
    within(engine.run(request).finish()).await.unwrap();
    let mut expect = caller;
    expect.agent = Some("main".to_owned());
    expect.session_key = Some("agent:main:discord:group:room".into());
    assert_eq!(seen.lock().unwrap().take(), Some(expect));
}

#[tokio::test]
async fn the_result_tells_what_tools_sent_and_scheduled() {
    let world = World::new().await;
    let engine = world.built(|builder| builder.tool(tool("message", "sent")).tool(tool("cron", "added")));
    let message = json!({"action": "send", "channel": "telegram", "to": "123", "message": "The report is ready.", "mediaUrl": "./a.png"});
    world.server.reply(stream(call("c1", "message", &message)));
    world.server.reply(stream(call("c2", "cron", &json!({"action": "add", "job": {}}))));
    world.server.reply(stream(answer("m1", "The report is ready.")));
    let request = world.request("s1", "go").caller(Caller::new().owner());
    let result = within(engine.run(request).finish()).await.unwrap().into_json();
    let flags =
        ["didSendViaMessagingTool", "messagingToolSentTexts", "messagingToolSentMediaUrls", "successfulCronAdds"];
    let shown = flags.map(|flag| result[flag].clone());
    assert_eq!(shown, [json!(true), json!(["The report is ready."]), json!(["./a.png"]), json!(1)]);
    let target = json!([{"tool": "message", "provider": "telegram", "to": "123"}]);
    assert_eq!(result["messagingToolSentTargets"], target);
    // The answer repeats what was sent: only what was said before the calls is left to say.
    let texts: Vec<_> = result["payloads"].as_array().unwrap().iter().map(|payload| payload["text"].clone()).collect();
    assert_eq!(texts, ["One moment.", "One moment."]);
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[tokio::test]
async fn commands_leave_the_sandbox_at_the_requested_level() {
    use pinch_stdx::host::{Env, Host};
    use pinch_tools::process::ElevatedLevel;

    let Some(world) = crate::modes::sandboxed().await else { return };
    let host = Host::builder().home(world.path("")).env(Env::from_iter([("PATH", "/usr/bin:/bin")])).build();
    let engine = world.built(|builder| builder.host(host).builtin_tools(["exec", "process"]));
    let command = format!("cat {}", world.path("secret.txt").display());
    // Nobody is there to approve: only the level that needs no approval lets a command out.
    for (n, (level, leaves)) in
        [(None, false), (Some(ElevatedLevel::Off), false), (Some(ElevatedLevel::Full), true)].into_iter().enumerate()
    {
        let input = json!({"command": command, "elevated": true});
        world.server.reply(stream(call("c1", "exec", &input))).reply(stream(answer("m1", "Done.")));
        let from = Caller::new().channel("telegram").sender(Sender::new("7"));
        let request = engine.request(format!("s{n}").as_str(), None, None, "go").caller(from);
        let request = if let Some(level) = level { request.elevated_level(level) } else { request };
        within(engine.run(request.timeout(Some(Duration::from_secs(60)))).finish()).await.unwrap();
        let body = world.server.requests().last().unwrap().json();
        let result = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert_eq!(result.contains("hush"), leaves, "{level:?}: {result}");
    }
}

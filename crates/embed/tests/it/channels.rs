//! The channel of a run determines how its reply is delivered: limits, blocks, pauses, threads, media, drafts.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use pinch_embed::Caller;
use pinch_embed::delivery::{OutgoingBlock, Receipt, ReplySink, SendFailure};
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::run::RunRequest;
use pinch_embed::run::request::{BlockReplies, Budget};
use serde_json::{Value, json};

use crate::world::{FALLBACK, World, answer, call, fallback_answer, payload_texts, refusal, stream, within};

/// A chat that records what it receives, and when.
#[derive(Default)]
struct Clocked {
    blocks: Mutex<Vec<(Instant, OutgoingBlock)>>,
    drafts: Mutex<Vec<String>>,
}

impl Clocked {
    fn texts(&self) -> Vec<String> {
        self.blocks.lock().unwrap().iter().map(|(_, block)| block.reply.text.clone()).collect()
    }
}

impl ReplySink for Clocked {
    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        self.blocks.lock().unwrap().push((Instant::now(), block.clone()));
        Box::pin(std::future::ready(Ok(Receipt::default())))
    }

    fn draft<'a>(&'a self, text: &'a str) -> BoxFuture<'a, ()> {
        self.drafts.lock().unwrap().push(text.to_owned());
        Box::pin(std::future::ready(()))
    }
}

/// Delivers an answer to a channel with a changed configuration.
async fn delivered(
    text: &str,
    channel: &str,
    change: impl FnOnce(&mut Value),
    ask: impl FnOnce(RunRequest) -> RunRequest,
) -> (World, Arc<Clocked>, Vec<String>) {
    let world = World::with(change).await;
    world.server.reply(stream(answer("m1", text)));
    let chat = Arc::new(Clocked::default());
    let request = world.request("s1", "go").caller(Caller::new().channel(channel).account("Work").message_id("7"));
    let run = within(world.engine.run(ask(request)).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await;
    assert!(run.result.is_ok(), "{:?}", run.result);
    let left = run.still_to_send().into_iter().map(|payload| payload.reply.text).collect();
    (world, chat, left)
}

fn by_paragraph(request: RunRequest) -> RunRequest {
    request.block_replies(BlockReplies { break_at: BlockBreak::Paragraph, ..BlockReplies::default() })
}

#[tokio::test]
async fn messages_respect_the_limit_of_their_channel_in_its_unit() {
    let text = "Grüße an alle, die das hier lesen. ".repeat(30);
    let (_world, chat, left) = delivered(&text, "irc", |_| {}, by_paragraph).await;
    let texts = chat.texts();
    assert!(texts.len() > 2 && texts.iter().all(|text| text.len() <= 350), "{texts:?}");
    assert_eq!(texts.join(" ").split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
    assert_eq!(left, [""; 0]);

    let limit = |config: &mut Value| {
        config["channels"]["irc"] = json!({"textChunkLimit": 200, "accounts": {"work": {"textChunkLimit": 100}}});
    };
    let (_world, chat, _) = delivered(&text, "irc", limit, by_paragraph).await;
    assert!(chat.texts().iter().all(|text| text.len() <= 100), "{:?}", chat.texts());
}

#[tokio::test]
async fn blocks_are_delivered_if_the_channel_enables_them() {
    let on = |config: &mut Value| config["agents"]["defaults"]["blockStreamingDefault"] = "on".into();
    let (_world, chat, left) = delivered("Hello.", "telegram", on, |request| request).await;
    assert_eq!((chat.texts(), left), (vec!["Hello.".to_owned()], vec![]));
    let (_world, chat, left) = delivered("Hello.", "discord", on, |request| request).await;
    assert_eq!((chat.texts(), left), (vec![], vec!["Hello.".to_owned()]));
    let both = |config: &mut Value| {
        on(config);
        config["channels"]["discord"]["streaming"]["block"]["enabled"] = true.into();
    };
    let (_world, chat, left) = delivered("Hello.", "discord", both, |request| request).await;
    assert_eq!((chat.texts(), left), (vec!["Hello.".to_owned()], vec![]));
}

#[tokio::test]
async fn paragraphs_are_separate_messages_if_configured() {
    let by_line = |config: &mut Value| {
        config["agents"]["defaults"]["blockStreamingDefault"] = "on".into();
        config["channels"]["telegram"]["streaming"]["chunkMode"] = "newline".into();
    };
    let (_world, chat, _) = delivered("One.\n\nTwo.\n\nThree.", "telegram", by_line, |request| request).await;
    assert_eq!(chat.texts(), ["One.", "Two.", "Three."]);
}

#[tokio::test]
async fn a_human_delay_precedes_every_block_but_the_first() {
    let slow = |config: &mut Value| {
        config["agents"]["defaults"]["humanDelay"] = json!({"mode": "custom", "minMs": 80, "maxMs": 90});
    };
    let began = Instant::now();
    let (_world, chat, _) = delivered("One.\n\nTwo.\n\nThree.", "telegram", slow, by_paragraph).await;
    let blocks = chat.blocks.lock().unwrap();
    let gaps: Vec<Duration> = blocks.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps.len() == 2 && gaps.iter().all(|gap| *gap >= Duration::from_millis(80)), "{gaps:?}");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn threads_follow_the_mode_of_the_channel() {
    let text = "[[reply_to_current]] One.\n\n[[reply_to:9]] Two.";
    let (all, first, none) = ([Some("7"), Some("9")], [Some("7"), None], [None, None]);
    for (channel, mode, expect) in [
        ("telegram", json!("all"), all),
        ("telegram", json!("first"), first),
        ("telegram", json!("off"), none),
        ("slack", json!("first"), first),
        // The usual modes.
        ("telegram", json!(null), first),
        ("discord", json!(null), none),
        ("googlechat", json!(null), none),
        ("slack", json!(null), all),
        ("whatsapp", json!(null), all),
    ] {
        let threads = |config: &mut Value| {
            if !mode.is_null() {
                config["channels"][channel]["replyToMode"] = mode.clone();
            }
        };
        let (_world, chat, _) = delivered(text, channel, threads, by_paragraph).await;
        let blocks = chat.blocks.lock().unwrap();
        assert_eq!(
            blocks.iter().map(|(_, block)| block.reply.reply_to_id.as_deref()).collect::<Vec<_>>(),
            expect,
            "{channel} {mode}"
        );
    }
}

#[tokio::test]
async fn files_of_the_workspace_may_be_named_and_large_ones_are_not_sent() {
    let world = World::with(|config| config["channels"]["telegram"]["mediaMaxMb"] = json!(0.001)).await;
    let workspace = world.path("workspace");
    world.write("workspace/small.png", "small");
    world.write("workspace/large.png", &"x".repeat(4_000));
    let [small, large] = ["small.png", "large.png"].map(|name| workspace.join(name).display().to_string());
    world.server.reply(stream(answer("m1", &format!("Here.\nMEDIA:{small}\nMEDIA:{large}\nMEDIA:/etc/passwd"))));
    let chat = Arc::new(Clocked::default());
    let request = by_paragraph(world.request("s1", "go").caller(Caller::new().channel("telegram")));
    let run = within(world.engine.run(request).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await;
    assert!(run.result.is_ok(), "{:?}", run.result);
    let blocks = chat.blocks.lock().unwrap();
    let reply = &blocks[0].1.reply;
    assert_eq!(reply.media_urls, [small]);
    let note = "⚠️ large.png is larger than 0.01 MB and was not sent.";
    assert_eq!(reply.text, format!("Here.\nMEDIA:/etc/passwd\n\n{note}"));
}

#[tokio::test]
async fn tokens_are_not_shown_in_blocks() {
    let (_world, chat, left) =
        delivered("All done.\nNO_REPLY", "telegram", |_| {}, |request| request.block_replies(BlockReplies::default()))
            .await;
    assert_eq!((chat.texts(), left), (vec!["All done.".to_owned()], vec![]));
    let (_world, chat, left) = delivered("HEARTBEAT_OK", "telegram", |_| {}, by_paragraph).await;
    assert_eq!((chat.texts().len(), left.len()), (0, 0));
}

#[tokio::test]
async fn every_message_begins_with_the_configured_prefix() {
    let set = |config: &mut Value| {
        config["agents"]["list"] = json!([{"id": "main", "identity": {"name": "Ada"}}]);
        config["messages"]["responsePrefix"] = "[{model}|{think}]".into();
        config["channels"] = json!({
            "telegram": {"responsePrefix": "auto", "accounts": {"work": {"responsePrefix": "{provider}:"}}},
            "discord": {"responsePrefix": "auto"},
            "slack": {"responsePrefix": ""},
        });
    };
    let text = "One.\n\n[Ada] Two.\n\nNO_REPLY";
    for (channel, expect) in [
        ("irc", ["[claude-sonnet-4-5|off] One.", "[claude-sonnet-4-5|off] [Ada] Two."]),
        ("telegram", ["anthropic: One.", "anthropic: [Ada] Two."]),
        ("discord", ["[Ada] One.", "[Ada] Two."]),
        ("slack", ["One.", "[Ada] Two."]),
    ] {
        let (_world, chat, left) = delivered(text, channel, set, by_paragraph).await;
        assert_eq!((chat.texts(), left), (expect.map(str::to_owned).to_vec(), vec![]), "{channel}");
        let (_world, chat, left) = delivered("One.", channel, set, |request| request).await;
        assert_eq!((chat.texts(), left), (vec![], vec![expect[0].to_owned()]), "{channel}");
    }
}

#[tokio::test]
async fn the_prefix_names_the_model_that_answers_and_also_begins_failures() {
    let world = World::with(|config| {
        config["messages"]["responsePrefix"] = "{modelFull}:".into();
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    })
    .await;
    for _ in 0..2 {
        world.server.reply(refusal(401, "authentication_error", "invalid x-api-key"));
    }
    world.server.reply(stream(fallback_answer("Hello.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert_eq!(payload_texts(&result), ["local/small: Hello."]);

    world.server.reply(refusal(529, "overloaded_error", "busy")).repeat_last();
    let request = world.request("s2", "go").model("local", "small");
    let budget = Budget { attempts: Some(1), ..Budget::default() };
    let result = within(world.engine.run(request.budget(budget)).finish()).await.unwrap();
    let limit = "The limit of this run is reached (attempts: 1 of 1).";
    assert_eq!(payload_texts(&result), [format!("!local/small: {limit}")]);
}

#[tokio::test]
async fn a_long_answer_leaves_room_for_the_prefix() {
    let text = "Some words, and more of them. ".repeat(40);
    let set = |config: &mut Value| {
        config["messages"]["responsePrefix"] = "[{model}]".into();
        config["channels"]["telegram"] = json!({"textChunkLimit": 200, "streaming": {"block": {"enabled": true}}});
        config["agents"]["defaults"]["blockStreamingDefault"] = "on".into();
    };
    let (_world, chat, left) = delivered(&text, "telegram", set, |request| request).await;
    let texts = chat.texts();
    assert!(texts.len() > 4 && texts.iter().all(|text| text.len() <= 200 && text.starts_with("[claude-")), "{texts:?}");
    assert_eq!(left, [""; 0]);
}

#[tokio::test]
async fn a_progress_draft_names_commands_only_if_asked() {
    for (setting, shown) in [(None, "🛠️ Exec"), (Some("status"), "🛠️ Exec"), (Some("raw"), "🛠️ Exec: echo secret-word")]
    {
        let world = World::with(|config| {
            let progress = setting.map_or_else(|| json!({}), |word| json!({"commandText": word}));
            config["channels"]["telegram"]["streaming"] = json!({"mode": "progress", "progress": progress});
        })
        .await;
        world.server.reply(stream(call("m1", "bash", &json!({"command": "echo secret-word; sleep 1.6"}))));
        world.server.reply(stream(call("m2", "bash", &json!({"command": "true"}))));
        world.server.reply(stream(answer("m3", "Done.")));
        let chat = Arc::new(Clocked::default());
        let request = world.request("s1", "go").caller(Caller::new().channel("telegram"));
        within(world.engine.run(request).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await.result.unwrap();
        let drafts = chat.drafts.lock().unwrap();
        let first = drafts.last().and_then(|draft| draft.lines().next().map(str::to_owned)).unwrap_or_default();
        assert!(first == shown || first == format!("{shown}; sleep 1.6"), "{setting:?} {drafts:?}");
    }
}

#[tokio::test]
async fn small_blocks_are_joined_on_every_channel_unless_configured_otherwise() {
    let text = "One two three. Four five six. Seven eight nine.";
    let small = |config: &mut Value| {
        let defaults = &mut config["agents"]["defaults"];
        defaults["blockStreamingDefault"] = "on".into();
        defaults["blockStreamingChunk"] = json!({"minChars": 10, "maxChars": 20, "breakPreference": "sentence"});
        for channel in ["telegram", "whatsapp", "discord", "somewhere"] {
            config["channels"][channel]["streaming"]["block"]["enabled"] = true.into();
        }
    };
    for channel in ["telegram", "whatsapp", "discord", "somewhere"] {
        let (_world, chat, _) = delivered(text, channel, small, |request| request).await;
        assert_eq!(chat.texts(), [text], "{channel}");
        let apart = |config: &mut Value| {
            small(config);
            config["channels"][channel]["streaming"]["block"]["coalesce"] = json!({"maxChars": 20});
        };
        let (_world, chat, _) = delivered(text, channel, apart, |request| request).await;
        assert_eq!(chat.texts(), ["One two three.", "Four five six.", "Seven eight nine."], "{channel}");
    }
}

#[tokio::test]
async fn paragraphs_end_at_blank_lines_with_carriage_returns() {
    let text = "One\r\nand a half.\r\n\r\nTwo.\r\n \r\nThree.";
    let (_world, chat, _) = delivered(text, "telegram", |_| {}, by_paragraph).await;
    assert_eq!(chat.texts(), ["One\r\nand a half.", "Two.", "Three."]);
}

#[tokio::test]
async fn media_received_by_the_host_may_be_sent() {
    let world = World::new().await;
    world.write("state/media/in.png", "small");
    let (known, secret) = (world.path("state/media/in.png"), world.path("state/pinch.json"));
    world.server.reply(stream(answer("m1", &format!("Here.\nMEDIA:{}\nMEDIA:{}", known.display(), secret.display()))));
    let result = world.ask("s1", "go").await.unwrap();
    assert_eq!(result.payloads[0].reply.media_urls, [known.display().to_string()]);
}

#[tokio::test]
async fn a_draft_is_never_longer_than_a_message() {
    let text = "Grüße an alle, die das hier lesen. ".repeat(30);
    for mode in ["partial", "block"] {
        let set = |config: &mut Value| {
            config["channels"]["irc"] =
                json!({"streaming": {"mode": mode, "preview": {"chunk": {"minChars": 20, "maxChars": 90}}}});
        };
        let (_world, chat, _) = delivered(&text, "irc", set, |request| request).await;
        let drafts = chat.drafts.lock().unwrap();
        let longest = drafts.iter().map(String::len).max();
        assert!(longest > Some(250) && longest <= Some(350), "{mode} {longest:?}");
        assert!(drafts.iter().all(|draft| text.starts_with(draft.as_str())), "{drafts:?}");
    }
}

#[tokio::test]
async fn a_draft_grows_with_the_answer_unless_blocks_are_delivered() {
    let drafts = |config: &mut Value| config["channels"]["telegram"]["streaming"] = "partial".into();
    let (_world, chat, left) = delivered("One. Two. Three.", "telegram", drafts, |request| request).await;
    let shown = chat.drafts.lock().unwrap().clone();
    assert!(shown.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{shown:?}");
    assert_eq!(
        (shown.last().map(String::as_str), left),
        (Some("One. Two. Three."), vec!["One. Two. Three.".to_owned()])
    );
    let (_world, chat, _) = delivered("One. Two. Three.", "telegram", drafts, by_paragraph).await;
    assert_eq!(chat.drafts.lock().unwrap().len(), 0);
}

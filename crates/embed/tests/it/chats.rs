//! What people see of whole runs in chats with length limits, rate limits and failures: a Telegram and a Slack server on the loopback.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_embed::Caller;
use pinch_embed::delivery::{OutgoingBlock, Receipt, ReplySink, SendFailure, SinkLimits};
use pinch_embed::engine::DeliveredRun;
use pinch_embed::replies::chunk::Chunking;
use pinch_embed::replies::unit::TextUnit;
use pinch_embed::run::RunRequest;
use pinch_embed::run::request::BlockReplies;
use pinch_testing::chats::{ChatKind, ChatMessage, ChatService};
use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{World, answer, call, stream, within};

/// The shortest time between two messages. The real service asks for a second.
const GAP: Duration = Duration::from_millis(4);

/// A channel to one of the services.
struct ChatChannel {
    kind: ChatKind,
    url: String,
    /// The current draft, which the next message replaces.
    draft: Mutex<Option<String>>,
}

impl ChatChannel {
    async fn post(&self, path: &str, body: &Value) -> Result<Value, SendFailure> {
        let (status, body) = post(&self.url, path, body).await.map_err(SendFailure::transient)?;
        match status {
            429 => {
                let wait = body["parameters"]["retry_after"].as_f64().unwrap_or(1.0);
                Err(SendFailure::transient("too many requests").retry_after(Duration::from_secs_f64(wait)))
            }
            200 if body["ok"] == true => Ok(body),
            _ => Err(SendFailure::permanent(body.to_string())),
        }
    }

    /// Sends a text, or replaces the draft with it.
    async fn show(&self, text: &str, thread: Option<&str>) -> Result<String, SendFailure> {
        let draft = self.draft.lock().unwrap().clone();
        let answer = match (self.kind, &draft) {
            (ChatKind::Telegram, Some(id)) => {
                let id: u64 = id.parse().unwrap();
                match self.post("/editMessageText", &json!({"message_id": id, "text": text})).await {
                    // The draft already shows the whole answer.
                    Err(same) if same.source.to_string().contains("not modified") => {
                        json!({"result": {"message_id": id}})
                    }
                    other => other?,
                }
            }
            (ChatKind::Telegram, None) => {
                let mut body = json!({"chat_id": 1, "text": text});
                if let Some(id) = thread.and_then(|id| id.parse::<u64>().ok()) {
                    body["reply_parameters"] = json!({"message_id": id});
                }
                self.post("/sendMessage", &body).await?
            }
            (ChatKind::Slack, Some(ts)) => {
                self.post("/chat.update", &json!({"ts": ts, "blocks": [{"text": text}]})).await?
            }
            (ChatKind::Slack, None) => {
                self.post("/chat.postMessage", &json!({"blocks": [{"text": text}], "thread_ts": thread})).await?
            }
        };
        let id = answer["result"]["message_id"].as_u64().map(|id| id.to_string());
        Ok(id.or_else(|| answer["ts"].as_str().map(str::to_owned)).unwrap())
    }
}

impl ReplySink for ChatChannel {
    fn limits(&self) -> SinkLimits {
        match self.kind {
            ChatKind::Telegram => SinkLimits::of_chars(4_096).max_media(10).max_media_bytes(50 << 20),
            ChatKind::Slack => SinkLimits::of_text(3_000, TextUnit::Bytes),
        }
    }

    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(async move {
            let mut text = block.reply.text.clone();
            for url in &block.reply.media_urls {
                write!(text, "\n[{url}]").unwrap();
            }
            let id = self.show(text.trim_start(), block.reply.reply_to_id.as_deref()).await?;
            *self.draft.lock().unwrap() = None;
            Ok(Receipt { id: Some(id) })
        })
    }

    fn draft<'a>(&'a self, text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // A draft that comes too soon is skipped, since the next one contains its text.
            if let Ok(id) = self.show(TextUnit::Utf16.prefix(text, 4_096), None).await {
                *self.draft.lock().unwrap() = Some(id);
            }
        })
    }
}

async fn post(url: &str, path: &str, body: &Value) -> std::io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await?;
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: chat\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        if let Some(found) = parsed(&answer) {
            return Ok(found);
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return parsed(&answer).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Parses the status and body of a complete response.
fn parsed(answer: &[u8]) -> Option<(u16, Value)> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = match body.split_once("\r\n") {
        // Chunked encoding, with a single chunk.
        Some((n, rest)) if head.to_lowercase().contains("chunked") => rest.get(..usize::from_str_radix(n, 16).ok()?)?,
        _ => body,
    };
    Some((status, serde_json::from_str(body).ok()?))
}

/// Delivers a run to a chat and returns what people see of it. What is left after the run is sent as a host would.
async fn seen(
    world: &World,
    kind: ChatKind,
    ask: impl FnOnce(RunRequest) -> RunRequest,
) -> (ChatService, DeliveredRun) {
    let service = ChatService::start(kind, GAP).await.unwrap();
    let channel = Arc::new(ChatChannel { kind, url: service.url(), draft: Mutex::default() });
    let name = if kind == ChatKind::Telegram { "telegram" } else { "slack" };
    let request = world.request("s1", "go").caller(Caller::new().channel(name).message_id("77"));
    let run = within(world.engine.run(ask(request)).deliver(Arc::clone(&channel) as Arc<dyn ReplySink>)).await;
    for payload in run.still_to_send() {
        loop {
            match channel.show(&payload.reply.text, payload.reply.reply_to_id.as_deref()).await {
                Ok(_) => break,
                Err(failure) => match failure.retry_after {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => panic!("{failure:?}"),
                },
            }
        }
        *channel.draft.lock().unwrap() = None;
    }
    (service, run)
}

fn small_blocks(request: RunRequest) -> RunRequest {
    let chunking = Chunking { min_chars: 60, max_chars: 240, ..Chunking::default() };
    request.block_replies(BlockReplies { chunking: Some(chunking), ..BlockReplies::default() })
}

/// Returns the messages in the chat.
fn transcript(messages: &[ChatMessage]) -> String {
    let mut text = String::new();
    for message in messages {
        let thread = message.thread.as_ref().map_or_else(String::new, |thread| format!(" to {thread}"));
        let edits = if message.n_edits > 0 { " (edited)" } else { "" };
        writeln!(text, "--- {}{thread}{edits}\n{}", message.id, message.text).unwrap();
    }
    text
}

/// A deterministic pseudorandom number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap()
    }
}

/// Returns an answer full of constructs that are hard to split. All paragraphs differ.
fn random_answer(dice: &mut Dice) -> String {
    let mut paragraphs = Vec::new();
    for n in 0..2 + dice.below(7) {
        let words = |dice: &mut Dice, most: usize| {
            let words = [
                "alpha",
                "beta",
                "Grüße",
                "👩‍👩‍👧",
                "`code x`",
                "don't.",
                "[link](https://e.com/a)",
                "**bold text**",
                "3.14",
                "end!",
            ];
            (0..1 + dice.below(most)).map(|_| words[dice.below(words.len())]).collect::<Vec<_>>().join(" ")
        };
        paragraphs.push(match dice.below(7) {
            0 => format!(
                "```rust\n{}```",
                (0..1 + dice.below(30)).map(|i| format!("let v{n}_{i} = {i};\n")).collect::<String>()
            ),
            1 => (0..1 + dice.below(8))
                .map(|i| format!("- item {n}.{i} {}", words(dice, 12)))
                .collect::<Vec<_>>()
                .join("\n"),
            2 => format!(
                "| a{n} | b |\n|---|---|\n{}",
                (0..1 + dice.below(5)).map(|i| format!("| {n} | {i} |\n")).collect::<String>().trim_end()
            ),
            3 => format!("[[reply_to_current]] Part {n}: {}", words(dice, 30)),
            4 => format!("{n}-{}", "x".repeat(1 + dice.below(700))),
            _ => format!("Paragraph {n}. {}", words(dice, 60)),
        });
    }
    paragraphs.join("\n\n")
}

/// Returns the words that people read: without fences, which are closed and reopened where a block is split, and without directives.
fn words(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("```"));
    let text = lines.collect::<Vec<_>>().join("\n").replace("[[reply_to_current]]", "");
    // A word longer than a message is split.
    text.split_whitespace().collect::<String>().chars().map(String::from).collect()
}

fn shown(messages: &[ChatMessage]) -> String {
    messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// Returns an answer that arrives in pieces of random size.
fn pieces(dice: &mut Dice, text: &str) -> ServerReply {
    stream(AnthropicResponse::new("m1").with_chunks_of(1 + dice.below(40)).text(text).stop("end_turn"))
}

/// Returns an answer that breaks off after this text.
fn cut_off(text: &str) -> ServerReply {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "no more"}});
    stream(AnthropicResponse::new("m0").event(start).event(delta).event(error).frames())
}

fn kind_of(seed: u64) -> ChatKind {
    if seed.is_multiple_of(2) { ChatKind::Telegram } else { ChatKind::Slack }
}

#[tokio::test]
async fn people_see_every_word_of_fifty_random_answers_once() {
    for seed in 1..=50 {
        let mut dice = Dice(seed * 7_919);
        let text = random_answer(&mut dice);
        let world = World::new().await;
        world.server.reply(pieces(&mut dice, &text));
        let (service, run) = seen(&world, kind_of(seed), small_blocks).await;
        assert!(run.delivered.is_complete(), "seed {seed}: {:?}", run.delivered);
        assert_eq!(service.refused(), Vec::<String>::new(), "seed {seed}");
        let messages = service.messages();
        assert_eq!(words(&shown(&messages)), words(&text), "seed {seed}: {text}\n\n{}", transcript(&messages));
        if seed <= 3 {
            insta::assert_snapshot!(format!("random_answer_{seed}"), transcript(&messages));
        }
    }
}

#[tokio::test]
async fn an_answer_interrupted_anywhere_and_retried_is_neither_repeated_nor_lost() {
    for seed in 1..=40 {
        let mut dice = Dice(seed * 104_729);
        let text = random_answer(&mut dice);
        let chars: Vec<char> = text.chars().collect();
        let cut: String = chars[..1 + dice.below(chars.len())].iter().collect();
        let is_same = seed % 4 != 0;
        let second = if is_same { text.clone() } else { format!("Something else. {}", random_answer(&mut dice)) };
        let world = World::new().await;
        world.server.reply(cut_off(&cut));
        world.server.reply(pieces(&mut dice, &second));
        let (service, run) = seen(&world, kind_of(seed), small_blocks).await;
        assert_eq!(world.server.requests().len(), 2, "seed {seed}");
        assert!(run.result.is_ok() && service.refused().is_empty(), "seed {seed}: {:?}", run.result);
        let messages = service.messages();
        let all = words(&shown(&messages));
        let context = || format!("seed {seed}, cut after {:?}: {second}\n\n{}", cut.len(), transcript(&messages));
        if is_same {
            assert_eq!(all, words(&text), "{}", context());
        } else {
            // Delivered text stays, and all of the second answer follows.
            let (second, first) = (words(&second), words(&cut));
            assert!(all.ends_with(&second), "{}", context());
            assert!(first.starts_with(&all[..all.len() - second.len()]), "{}", context());
        }
    }
}

#[tokio::test]
async fn a_run_with_tools_reads_like_a_conversation() {
    for kind in [ChatKind::Telegram, ChatKind::Slack] {
        let world = World::new().await;
        world.server.reply(stream(call("c1", "bash", &json!({"command": "echo built"}))));
        let text = "[[reply_to_current]] The build works.\n\n```sh\n$ echo built\nbuilt\n```\n\nNext steps:\n\n- write a test\n- ship it";
        world.server.reply(stream(answer("m2", text)));
        let (service, run) = seen(&world, kind, |request| {
            let chunking = Chunking { min_chars: 1, max_chars: 240, flush_on_paragraph: true, ..Chunking::default() };
            request.block_replies(BlockReplies { chunking: Some(chunking), ..BlockReplies::default() })
        })
        .await;
        assert!(run.delivered.is_complete(), "{:?}", run.delivered);
        let name = if kind == ChatKind::Telegram { "telegram" } else { "slack" };
        insta::assert_snapshot!(format!("tools_{name}"), transcript(&service.messages()));
    }
}

#[tokio::test]
async fn a_draft_becomes_the_answer() {
    let world = World::with(|config| config["channels"]["telegram"]["streaming"]["mode"] = "partial".into()).await;
    world.server.reply(stream(answer("m1", "One sentence. Another one. And the last.")));
    let (service, _run) = seen(&world, ChatKind::Telegram, |request| request).await;
    let messages = service.messages();
    assert_eq!((messages.len(), messages[0].text.as_str()), (1, "One sentence. Another one. And the last."));
}

#[tokio::test]
async fn a_chat_that_slows_down_gets_everything_in_order() {
    let world = World::new().await;
    let text = (0..12)
        .map(|n| format!("Paragraph number {n} has a few words in it, so that it is long enough to go out."))
        .collect::<Vec<_>>();
    world.server.reply(stream(answer("m1", &text.join("\n\n"))));
    let (service, run) = seen(&world, ChatKind::Telegram, small_blocks).await;
    assert!(run.delivered.is_complete() && service.n_too_fast() > 0, "{} too fast", service.n_too_fast());
    assert_eq!(words(&shown(&service.messages())), words(&text.join(" ")));
}

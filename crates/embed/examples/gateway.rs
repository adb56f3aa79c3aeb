//! A gateway in one file: two users of a chat, sessions by key, messages to a busy session, a new session, a tool written as a function, a
//! channel that fails now and then, a plugin that changes outgoing messages, two listeners, a new configuration, and an orderly shutdown.
//!
//! The model is a scripted server on the loopback, so that no key is needed: `cargo run -p pinch-embed --example gateway`. To use a real
//! one, leave out `models` and configure a model and its key.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::{Tool, tool_fn};
use pinch_embed::coding_agent::extension::{Extension, HandlerFuture, Points};
use pinch_embed::delivery::{EngineEvent, EngineEvents};
use pinch_embed::key::Peer;
use pinch_embed::plugin::{GatewayStart, LastAnswer, MessageChanges, MessageContext, MessageSending, Plugin};
use pinch_embed::ports::SessionEntry;
use pinch_embed::replies::{Piece, Pieces, Stage, compose};
use pinch_embed::skills::AgentSkills;
use pinch_embed::{
    BlockReplies, Caller, Config, Engine, InboundMessage, OutgoingBlock, Receipt, ReplySink, RunTarget, SendFailure,
    Sender, SinkLimits, Turn,
};
use pinch_testing::server::{Recorded, Server, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct WeatherArgs {
    /// The city to look up
    city: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct MessageArgs {
    /// The text of the message
    text: String,
}

/// A chat that loses every third message on the first try.
struct GatewayChat {
    user: &'static str,
    n_sends: AtomicUsize,
    /// The skills at the first message. Later runs use the same, so that the prompt does not change within the conversation.
    skills: OnceLock<Arc<AgentSkills>>,
}

impl ReplySink for GatewayChat {
    fn limits(&self) -> SinkLimits {
        SinkLimits::of_chars(4_096)
    }

    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(async move {
            let n = self.n_sends.fetch_add(1, Ordering::Relaxed) + 1;
            if n.is_multiple_of(3) {
                // It is retried with the same id, so that nothing is shown twice.
                return Err(SendFailure::transient("the chat is busy"));
            }
            println!("to {}: {}", self.user, block.reply.text);
            Ok(Receipt { id: Some(format!("{}-{n}", self.user)) })
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start().await?;
    server.answer_with(|request| Some(model(request)));
    let dir = tempfile::tempdir()?;
    let document = json!({
        "agents": {"defaults": {"model": {"primary": "demo/m1"}}},
        "session": {"dmScope": "per-channel-peer"},
        "models": {"providers": {"demo": {
            "baseUrl": server.url(), "api": "anthropic-messages", "apiKey": "none",
            "models": [{"id": "m1", "contextWindow": 200_000, "maxTokens": 8_000}],
        }}},
    });
    let (config, problems) = Config::from_document(document.as_object().cloned().unwrap_or_default(), dir.path());
    for problem in problems {
        println!("{problem}");
    }

    let weather = tool_fn("weather", "Look up the weather of a city", |args: WeatherArgs, _cx| async move {
        Ok(format!("It is sunny in {}.", args.city))
    });
    let engine = Engine::builder(dir.path())
        .config(config)
        .tool(weather)
        // Only the owner may restart the gateway.
        .tools_for(|request| {
            let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
            if request.caller.is_owner {
                let restart = |_: serde_json::Value, _cx| async move { Ok("Restarting.".to_owned()) };
                tools.push(Arc::new(tool_fn("restart", "Restart the gateway", restart)));
            }
            if let Some(target) = request.message_to.clone().filter(|_| !request.requires_explicit_message_target()) {
                let send = move |args: MessageArgs, _cx| {
                    let target = target.clone();
                    async move { Ok(format!("Sent to {target}: {}", args.text)) }
                };
                tools.push(Arc::new(tool_fn("message", "Send a message to the chat", send)));
            }
            tools
        })
        .reply_stages(|_, stages| stages.insert_after(compose::TOKENS, "names", PlainNames))
        .hooks(Arc::new(Masks))
        .build();
    engine.announce_start(None);

    let (first, second) = (engine.subscribe(), engine.subscribe());
    let users = async {
        let talked = tokio::join!(talk(&engine, "ada", true), talk(&engine, "bob", false));
        // A new configuration applies to later runs.
        let mut document = document;
        document["agents"]["defaults"]["maxConcurrent"] = 8.into();
        let (config, _) = Config::from_document(document.as_object().cloned().unwrap_or_default(), dir.path());
        engine.reload(config);
        for (key, entry) in engine.sessions("main").await? {
            println!("{key} has used {} tokens", entry.total_tokens.unwrap_or(0));
        }
        let n_stopped = engine.shutdown(Duration::from_secs(10)).await;
        println!("runs that had to be stopped: {n_stopped}");
        // Listeners end with the engine.
        drop(engine);
        talked.0.and(talked.1)
    };
    let (talked, first, second) = tokio::join!(users, count(first), count(second));
    talked?;
    println!("one listener saw {first} events, the other {second}");
    Ok(())
}

/// Masks digits in outgoing messages, and reports when the gateway starts.
struct Masks;

impl Extension for Masks {
    fn name(&self) -> &str {
        "masks"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

impl Plugin for Masks {
    fn message_sending<'a>(
        &'a self,
        event: &'a MessageSending,
        _: &'a MessageContext,
    ) -> HandlerFuture<'a, MessageChanges> {
        let masked = event.content.replace(|c: char| c.is_ascii_digit(), "*");
        Box::pin(async { Ok(MessageChanges { content: LastAnswer(Some(masked)), ..MessageChanges::default() }) })
    }

    fn on_gateway_start<'a>(&'a self, _: &'a GatewayStart) -> HandlerFuture<'a, ()> {
        Box::pin(async {
            println!("the gateway takes messages");
            Ok(())
        })
    }
}

/// Shows file names instead of `file://` URLs.
struct PlainNames;

impl Stage for PlainNames {
    fn push(&mut self, mut piece: Piece, out: &mut Pieces) {
        if let Piece::Block(block) = &mut piece {
            block.text = block.text.replace("file://", "");
        }
        out.push(piece);
    }

    fn finish(&mut self, _: &mut Pieces) {}
}

/// Sends two messages of a user in a row, then one that starts a new session.
async fn talk(engine: &Engine, user: &'static str, is_owner: bool) -> Result<(), Box<dyn std::error::Error>> {
    let caller = Caller::new().channel("demo-chat").sender(Sender::new(user));
    let caller = if is_owner { caller.owner() } else { caller };
    let chat = Arc::new(GatewayChat { user, n_sends: AtomicUsize::new(0), skills: OnceLock::new() });
    let key = engine.session_key(None, &Peer { channel: "demo-chat", account_id: None, kind: "direct", id: user });
    let message = |text: &str| InboundMessage::new(&key, text).caller(caller.clone()).to(format!("@{user}"));

    // What a command such as /think low would do.
    let set = |entry: Option<SessionEntry>| {
        entry.map(|mut entry| {
            entry.thinking_level = Some("low".to_owned());
            entry
        })
    };
    engine.update_session(&key, set).await?;

    let first = receive(engine, message("How is the weather in Rome?"), &chat);
    // A second message while the first is being answered.
    let second = async {
        while !engine.active().iter().any(|run| run.session_key.as_deref() == Some(&key) && run.is_streaming) {
            tokio::task::yield_now().await;
        }
        // The gateway's own note also goes into the run; if it comes too late, it is dropped.
        let note = "(The user's clock shows 9 in the morning.)";
        let noted = engine.queue_message(RunTarget::Session(&key), note, Vec::new(), QueueKind::Steering);
        let (second, noted) = tokio::join!(receive(engine, message("In Celsius, please."), &chat), noted);
        if let Err(reason) = noted {
            println!("the note for {user} was not read: {reason}");
        }
        second
    };
    let (first, second) = tokio::join!(first, second);
    first.and(second)?;
    receive(engine, message("/new And in Oslo?"), &chat).await
}

/// Handles a user's message as a gateway would.
async fn receive(
    engine: &Engine,
    message: InboundMessage,
    chat: &Arc<GatewayChat>,
) -> Result<(), Box<dyn std::error::Error>> {
    let user = chat.user;
    let request = match engine.send(message).await? {
        Turn::Run(request) => request.block_replies(BlockReplies::default()),
        Turn::Joined { .. } => {
            println!("a run under way reads the message of {user}");
            return Ok(());
        }
        other => {
            println!("the message of {user} gets no run: {other:?}");
            return Ok(());
        }
    };
    // The gateway itself confirms messages to Bob.
    let request = if user == "bob" { request.without_message_tool() } else { request };
    let skills = match chat.skills.get() {
        Some(skills) => Arc::clone(skills),
        None => {
            let found = Arc::new(engine.skills(&request)?);
            Arc::clone(chat.skills.get_or_init(|| found))
        }
    };
    let run = engine.run(request.skills(skills)).deliver(Arc::clone(chat) as _).await;
    let rest = run.send_rest(Arc::clone(chat) as _).await;
    println!("{} more blocks went to {user} at the end", rest.blocks.len());
    println!("the reply to {user} is {:?}", run.reply_delivery());
    run.result?;
    Ok(())
}

/// Counts the events of all runs until the engine is gone.
async fn count(mut events: EngineEvents) -> u64 {
    let mut n = 0;
    while let Some(event) = events.next().await {
        n += match event {
            EngineEvent::Event(_) => 1,
            EngineEvent::Lagged { missed } => missed,
        };
    }
    n
}

/// The scripted model: it calls the weather tool, and then repeats its result.
fn model(request: &Recorded) -> ServerReply {
    let body = request.json();
    let tools: Vec<&str> = body["tools"].as_array().into_iter().flatten().filter_map(|t| t["name"].as_str()).collect();
    let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let has_result = last["content"].as_array().is_some_and(|blocks| blocks.iter().any(|b| b["type"] == "tool_result"));
    let response = AnthropicResponse::new("m1").with_chunks(4);
    ServerReply::sse(match has_result {
        false => response
            .text("Let me look.")
            .tool_call("call_1", "weather", &json!({"city": "Rome"}).to_string())
            .stop("tool_use")
            .concat(),
        true => response.text(&format!("Sunny. (I may use: {}.)", tools.join(", "))).stop("end_turn").concat(),
    })
}

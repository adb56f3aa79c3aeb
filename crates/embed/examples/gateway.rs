//! A gateway in one file: two users of a chat, a tool written as a function, a channel that fails now and then, and two listeners.
//!
//! The model is a scripted server on the loopback, so that no key is needed: `cargo run -p pinch-embed --example gateway`. For a real one,
//! leave out `models` and name a model and its key in the configuration.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::{Tool, tool_fn};
use pinch_embed::delivery::{EngineEvent, EngineEvents};
use pinch_embed::{
    BlockReplies, Caller, Config, Engine, OutgoingBlock, Receipt, ReplySink, RunTarget, SendFailure, Sender, SinkLimits,
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

/// A chat whose every third message is lost at first.
struct GatewayChat {
    user: &'static str,
    n_sends: AtomicUsize,
}

impl ReplySink for GatewayChat {
    fn limits(&self) -> SinkLimits {
        SinkLimits::of_chars(4_096)
    }

    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(async move {
            let n = self.n_sends.fetch_add(1, Ordering::Relaxed) + 1;
            if n.is_multiple_of(3) {
                // Tried again with the same id, so that nothing is shown twice.
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
        "agents": {"defaults": {"model": {"primary": "demo/m1"}, "maxConcurrent": 4}},
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
        .build();

    let (first, second) = (engine.subscribe(), engine.subscribe());
    let users = async {
        let talked = tokio::join!(talk(&engine, "ada", true), talk(&engine, "bob", false));
        // Listeners end with the engine.
        drop(engine);
        talked.0.and(talked.1)
    };
    let (talked, first, second) = tokio::join!(users, count(first), count(second));
    talked?;
    println!("one listener saw {first} events, the other {second}");
    Ok(())
}

/// Sends one message of a user and delivers the answer.
async fn talk(engine: &Engine, user: &'static str, is_owner: bool) -> Result<(), Box<dyn std::error::Error>> {
    let caller = Caller::new().channel("demo-chat").sender(Sender::new(user));
    let caller = if is_owner { caller.owner() } else { caller };
    let request = engine
        .request(user, Some(&format!("agent:main:{user}")), None, "How is the weather in Rome?")
        .caller(caller)
        .message_to(format!("@{user}"))
        .block_replies(BlockReplies::default());
    // Bob's chat is confirmed by the gateway itself.
    let request = if user == "bob" { request.without_message_tool() } else { request };
    let chat = Arc::new(GatewayChat { user, n_sends: AtomicUsize::new(0) });
    let run = engine.run(request).deliver(chat);
    // A second message while the first is being answered: into the same run if it is read there, else it would start the next one.
    let more = async {
        while !engine.active().iter().any(|run| run.session_id == user && run.is_streaming) {
            tokio::task::yield_now().await;
        }
        engine.queue_message(RunTarget::Session(user), "In Celsius, please.", Vec::new(), QueueKind::Steering).await
    };
    let (run, more) = tokio::join!(run, more);
    if let Err(error) = more {
        println!("the second message of {user} starts a run of its own: {error}");
    }
    for payload in run.still_to_send() {
        println!("to {user}, at the end: {}", payload.reply.text);
    }
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

/// The scripted model: it calls the weather tool, and then says what the tool said.
fn model(request: &Recorded) -> ServerReply {
    let body = request.json();
    let tools: Vec<&str> = body["tools"].as_array().into_iter().flatten().filter_map(|t| t["name"].as_str()).collect();
    let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let has_result = last["content"].as_array().is_some_and(|blocks| blocks.iter().any(|b| b["type"] == "tool_result"));
    let response = AnthropicResponse::new("m1").in_pieces(4);
    ServerReply::sse(match has_result {
        false => response
            .text("Let me look.")
            .tool_call("call_1", "weather", &json!({"city": "Rome"}).to_string())
            .stop("tool_use")
            .concat(),
        true => response.text(&format!("Sunny. (I may use: {}.)", tools.join(", "))).stop("end_turn").concat(),
    })
}

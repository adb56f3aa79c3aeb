//! Plugin hooks around runs: messages that arrive and are sent, sessions that begin and end, the gateway.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_coding_agent::extension::{Extension, HandlerFuture, Points};
use pinch_embed::delivery::{OutgoingBlock, Receipt, ReplySink, SendFailure};
use pinch_embed::engine::{DeliveredRun, Engine};
use pinch_embed::plugin::{
    ASK_LIMIT, BeforeReset, GatewayStart, GatewayStop, LastAnswer, MessageChanges, MessageContext, MessageReceived,
    MessageSending, MessageSent, Plugin, SessionContext, SessionEnd, SessionStart, WATCH_LIMIT,
};
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::run::request::BlockReplies;
use pinch_embed::{Caller, InboundMessage, Turn};
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};

use crate::plugins::Behaviour;
use crate::world::{World, payload_texts};

type HookLog = Arc<Mutex<Vec<String>>>;

/// Records notifications, misbehaves in one hook, and changes outgoing messages.
#[derive(Clone)]
struct MessageWatcher {
    log: HookLog,
    bad: Option<(&'static str, Behaviour)>,
    changes: fn(&str) -> MessageChanges,
}

impl MessageWatcher {
    fn new() -> Self {
        Self { log: Arc::default(), bad: None, changes: |_| MessageChanges::default() }
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn note<'a, T: Send + 'a>(&'a self, hook: &'static str, what: String, answer: T) -> HandlerFuture<'a, T> {
        Box::pin(async move {
            self.log.lock().unwrap().push(format!("{hook} {what}"));
            match self.bad {
                Some((bad, how)) if bad == hook => how.act(hook).await.map(|()| answer),
                _ => Ok(answer),
            }
        })
    }
}

impl Extension for MessageWatcher {
    fn name(&self) -> &str {
        "watcher"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

impl Plugin for MessageWatcher {
    fn on_message_received<'a>(&'a self, event: &'a MessageReceived, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        let from = event.from.as_deref().unwrap_or("?");
        let place = (cx.channel.as_deref().unwrap_or("?"), cx.session_key.as_deref().unwrap_or("?"));
        self.note("message_received", format!("{} from {from} in {place:?}", event.content), ())
    }

    fn message_sending<'a>(
        &'a self,
        event: &'a MessageSending,
        _: &'a MessageContext,
    ) -> HandlerFuture<'a, MessageChanges> {
        let to = event.to.as_deref().unwrap_or("?");
        self.note("message_sending", format!("{} to {to}", event.content), (self.changes)(&event.content))
    }

    fn on_message_sent<'a>(&'a self, event: &'a MessageSent, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        let outcome = event.error.as_deref().unwrap_or("fine");
        let run = cx.run_id.as_deref().unwrap_or("?");
        self.note("message_sent", format!("{}: {} {outcome}, of {run}", event.content, event.success), ())
    }

    fn on_before_reset<'a>(&'a self, event: &'a BeforeReset, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let has_file = event.session_file.as_ref().is_some_and(|file| file.is_file());
        let key = cx.session_key.as_deref().unwrap_or_default();
        let what = format!("{key}: {:?}, {} messages, {has_file}", event.reason, event.messages.len());
        self.note("before_reset", what, ())
    }

    fn on_session_end<'a>(&'a self, event: &'a SessionEnd, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let is_known = event.duration_ms.is_some() && !cx.session_id.is_empty();
        self.note("session_end", format!("{} of {}, {is_known}", event.n_messages, cx.agent_id), ())
    }

    fn on_session_start<'a>(&'a self, event: &'a SessionStart, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let follows = event.resumed_from.as_ref().is_some_and(|before| *before != cx.session_id);
        self.note("session_start", format!("{} {follows}", cx.session_key.as_deref().unwrap_or_default()), ())
    }

    fn on_gateway_start<'a>(&'a self, event: &'a GatewayStart) -> HandlerFuture<'a, ()> {
        self.note("gateway_start", format!("{:?}", event.port), ())
    }

    fn on_gateway_stop<'a>(&'a self, event: &'a GatewayStop) -> HandlerFuture<'a, ()> {
        self.note("gateway_stop", format!("{:?}", event.reason), ())
    }
}

/// A chat that accepts everything but one text.
#[derive(Default)]
pub(crate) struct PickyChat {
    refuses: Option<&'static str>,
    texts: Mutex<Vec<String>>,
}

impl PickyChat {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap().clone()
    }
}

impl ReplySink for PickyChat {
    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(async move {
            if self.refuses == Some(block.reply.text.as_str()) {
                return Err(SendFailure::permanent("refused"));
            }
            self.texts.lock().unwrap().push(block.reply.text.clone());
            Ok(Receipt::default())
        })
    }
}

fn engine(world: &World, watcher: &MessageWatcher, replies: &[&str]) -> Engine {
    let mut providers = ProviderRegistry::new();
    let provider = ScriptedProvider::new(replies.iter().map(|text| ScriptedReply::text(*text)));
    providers.register("anthropic-messages", Arc::new(provider));
    world.built(|builder| builder.providers(providers).hooks(Arc::new(watcher.clone())))
}

fn message(text: &str) -> InboundMessage {
    let mut caller = Caller::new().channel("signal");
    caller.sender.id = Some("ada".to_owned());
    InboundMessage::new("main", text).caller(caller).to("room 1")
}

/// Sends a message and runs it; if `in_blocks`, its blocks are delivered to the chat during the run.
pub(crate) async fn exchange(engine: &Engine, text: &str, in_blocks: bool, chat: &Arc<PickyChat>) -> DeliveredRun {
    let Turn::Run(request) = engine.send(message(text)).await.unwrap() else { panic!("no run") };
    let mut request = request.run_id("r");
    request.block_replies =
        in_blocks.then(|| BlockReplies { break_at: BlockBreak::Paragraph, ..BlockReplies::default() });
    engine.run(request).deliver(Arc::clone(chat) as Arc<dyn ReplySink>).await
}

async fn quiet(engine: &Engine) {
    assert!(engine.drain(WATCH_LIMIT * 2).await);
}

fn of<'a>(log: &'a [String], hook: &str) -> Vec<&'a str> {
    log.iter().filter_map(|line| line.strip_prefix(hook)?.strip_prefix(' ')).collect()
}

#[tokio::test]
async fn plugins_observe_incoming_and_outgoing_messages() {
    let world = World::new().await;
    let watcher = MessageWatcher::new();
    let engine = engine(&world, &watcher, &["One.\n\nTwo."]);
    engine.announce_start(Some(80));
    let chat = Arc::new(PickyChat { refuses: Some("Two."), ..PickyChat::default() });
    exchange(&engine, "hello", true, &chat).await;
    quiet(&engine).await;
    quiet(&engine).await;
    let log = watcher.log();
    assert_eq!(of(&log, "message_received"), [r#"hello from ada in ("signal", "agent:main:main")"#]);
    assert_eq!(of(&log, "message_sending"), ["One. to room 1", "Two. to room 1"]);
    let mut sent = of(&log, "message_sent");
    sent.sort_unstable();
    assert_eq!(sent, ["One.: true fine, of r", "Two.: false refused, of r"]);
    assert_eq!((of(&log, "gateway_start"), of(&log, "gateway_stop")), (vec!["Some(80)"], vec!["None"]));
}

#[tokio::test]
async fn plugins_change_and_withhold_outgoing_messages() {
    for in_blocks in [true, false] {
        let world = World::new().await;
        let changes = |text: &str| MessageChanges {
            content: LastAnswer(text.contains("secret").then(|| text.replace("secret", "***"))),
            cancel: LastAnswer(text.starts_with("Noise").then_some(true)),
        };
        let watcher = MessageWatcher { changes, ..MessageWatcher::new() };
        let engine = engine(&world, &watcher, &["The secret is out.\n\nNoise.", "Noise."]);
        let chat = Arc::new(PickyChat::default());
        let run = exchange(&engine, "hello", in_blocks, &chat).await;
        let rest = run.send_rest(Arc::clone(&chat) as Arc<dyn ReplySink>).await;
        let expected = if in_blocks { vec!["The *** is out."] } else { vec!["The *** is out.\n\nNoise."] };
        assert_eq!(*chat.texts.lock().unwrap(), expected);
        assert_eq!(run.still_to_send().is_empty(), in_blocks);
        assert_eq!(run.delivered.withheld.len(), usize::from(in_blocks));
        assert!(rest.is_complete() && run.delivered.is_complete());

        let run = exchange(&engine, "again", in_blocks, &chat).await;
        let rest = run.send_rest(Arc::clone(&chat) as Arc<dyn ReplySink>).await;
        assert_eq!(run.delivered.withheld.len() + rest.withheld.len(), 1, "withheld once, and nothing is sent");
        assert_eq!(*chat.texts.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn plugins_observe_the_end_and_start_of_sessions() {
    let world = World::new().await;
    let watcher = MessageWatcher::new();
    let engine = engine(&world, &watcher, &["One.", "Two.", "Three."]);
    let chat = Arc::new(PickyChat::default());
    for text in ["hello", "/new and hello", "once more"] {
        exchange(&engine, text, false, &chat).await;
    }
    engine.reset_session("main").await.unwrap();
    quiet(&engine).await;
    let log = watcher.log();
    assert_eq!(of(&log, "session_start"), ["agent:main:main false", "agent:main:main true", "agent:main:main true"]);
    let resets = ["agent:main:main: Asked, 3 messages, true", "agent:main:main: Asked, 5 messages, true"];
    assert_eq!(of(&log, "before_reset"), resets);
    assert_eq!(of(&log, "session_end"), ["3 of main, true", "5 of main, true"]);
}

#[tokio::test(start_paused = true)]
async fn no_plugin_can_delay_an_answer() {
    let hooks = [
        "message_received",
        "message_sending",
        "message_sent",
        "before_reset",
        "session_end",
        "session_start",
        "gateway_start",
        "gateway_stop",
    ];
    for hook in hooks {
        for how in [Behaviour::Fine, Behaviour::Fails, Behaviour::Panics, Behaviour::Hangs] {
            let world = World::new().await;
            let watcher = MessageWatcher { bad: Some((hook, how)), ..MessageWatcher::new() };
            let engine = engine(&world, &watcher, &["One.", "Two."]);
            engine.announce_start(None);
            let began = tokio::time::Instant::now();
            let chat = Arc::new(PickyChat::default());
            exchange(&engine, "hello", true, &chat).await;
            let run = exchange(&engine, "/new hello", true, &chat).await;
            assert_eq!(payload_texts(run.result.as_ref().unwrap()), ["Two."], "{hook} {how:?}");
            assert_eq!(*chat.texts.lock().unwrap(), ["One.", "Two."], "{hook} {how:?}");
            assert!(began.elapsed() < 2 * ASK_LIMIT + Duration::from_secs(5), "{hook} {how:?}");
            quiet(&engine).await;
            assert!(!of(&watcher.log(), hook).is_empty(), "{hook} {how:?} {:?}", watcher.log());
        }
    }
}

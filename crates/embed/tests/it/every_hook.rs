//! Every hook of plugins: whatever it does, and wherever the work that waits for it is dropped, the next message is answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_coding_agent::extension::{Extension, HandlerFuture, Points};
use pinch_embed::engine::Engine;
use pinch_embed::plugin::{
    AfterToolCall, AgentBootstrap, AgentEnd, AgentStartChanges, ApprovalResolved, BeforeAgentRun, BeforeMessageWrite,
    BeforeModelResolve, BeforePromptBuild, BeforeReset, BeforeToolCall, CompactionFinished, CompactionStarting,
    GatewayStart, GatewayStop, HookContext, HookPoint, HookRules, LlmInput, LlmOutput, MessageChanges, MessageContext,
    MessageReceived, MessageSending, MessageSent, MessageWrite, ModelOverride, Plugin, PromptChanges, RequiredApproval,
    RunVerdict, SessionContext, SessionEnd, SessionStart, ToolCallChanges, ToolResultPersist, WATCH_LIMIT,
    WorkspaceFile,
};
use pinch_embed::ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest, ApprovalSeverity};
use pinch_llm::message::ToolResult;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_llm::schema::Schema;
use serde_json::json;

use crate::messengers::{PickyChat, exchange};
use crate::plugins::Behaviour;
use crate::transcript::Transcript;
use crate::world::World;

/// Misbehaves in one hook, and records the hooks that were called.
struct Misbehaving {
    at: Option<(HookPoint, Behaviour)>,
    called: Mutex<Vec<HookPoint>>,
}

impl Misbehaving {
    fn new(at: Option<(HookPoint, Behaviour)>) -> Arc<Self> {
        Arc::new(Self { at, called: Mutex::default() })
    }

    fn was_called(&self, hook: HookPoint) -> bool {
        self.called.lock().unwrap().contains(&hook)
    }

    fn act<'a, T: Send + 'a>(&'a self, hook: HookPoint, usual: T) -> HandlerFuture<'a, T> {
        Box::pin(async move {
            self.called.lock().unwrap().push(hook);
            match self.at {
                Some((bad, how)) if bad == hook => how.act(hook.name()).await.map(|()| usual),
                _ => Ok(usual),
            }
        })
    }
}

impl Extension for Misbehaving {
    fn name(&self) -> &str {
        "misbehaving"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

/// Implements the methods that do nothing but [`Misbehaving::act`].
macro_rules! hooks {
    ($($method:ident($event:ty $(, $cx:ty)?) -> $answer:ty = $hook:ident;)*) => {
        $(fn $method<'a>(&'a self, _: &'a $event $(, _: &'a $cx)?) -> HandlerFuture<'a, $answer> {
            self.act(HookPoint::$hook, <$answer>::default())
        })*
    };
}

impl Plugin for Misbehaving {
    fn rules(&self, hook: HookPoint) -> HookRules {
        HookRules { blocks_on_error: false, ..HookRules::of(hook) }
    }

    hooks! {
        before_model_resolve(BeforeModelResolve, HookContext) -> ModelOverride = BeforeModelResolve;
        on_agent_start(BeforeModelResolve, HookContext) -> AgentStartChanges = BeforeAgentStart;
        before_agent_run(BeforeAgentRun, HookContext) -> RunVerdict = BeforeAgentRun;
        before_prompt_build(BeforePromptBuild, HookContext) -> PromptChanges = BeforePromptBuild;
        agent_bootstrap(AgentBootstrap, HookContext) -> Option<Vec<WorkspaceFile>> = AgentBootstrap;
        llm_input(LlmInput, HookContext) -> () = LlmInput;
        llm_output(LlmOutput, HookContext) -> () = LlmOutput;
        on_agent_end(AgentEnd, HookContext) -> () = AgentEnd;
        on_before_compaction(CompactionStarting, HookContext) -> () = BeforeCompaction;
        on_after_compaction(CompactionFinished, HookContext) -> () = AfterCompaction;
        on_approval_resolved(ApprovalResolved, HookContext) -> () = ApprovalResolved;
        on_after_tool_call(AfterToolCall, HookContext) -> () = AfterToolCall;
        tool_result_persist(ToolResultPersist, HookContext) -> Option<ToolResult> = ToolResultPersist;
        before_message_write(BeforeMessageWrite, HookContext) -> MessageWrite = BeforeMessageWrite;
        on_message_received(MessageReceived, MessageContext) -> () = MessageReceived;
        message_sending(MessageSending, MessageContext) -> MessageChanges = MessageSending;
        on_message_sent(MessageSent, MessageContext) -> () = MessageSent;
        on_before_reset(BeforeReset, SessionContext) -> () = BeforeReset;
        on_session_start(SessionStart, SessionContext) -> () = SessionStart;
        on_session_end(SessionEnd, SessionContext) -> () = SessionEnd;
        on_gateway_start(GatewayStart) -> () = GatewayStart;
        on_gateway_stop(GatewayStop) -> () = GatewayStop;
    }

    fn before_tool_call<'a>(&'a self, _: &'a BeforeToolCall, _: &'a HookContext) -> HandlerFuture<'a, ToolCallChanges> {
        let approval = RequiredApproval {
            title: "Probe".to_owned(),
            description: String::new(),
            severity: ApprovalSeverity::Info,
            timeout: Duration::from_secs(60),
            allows_on_timeout: true,
        };
        self.act(HookPoint::BeforeToolCall, ToolCallChanges { approval: Some(approval), ..ToolCallChanges::default() })
    }
}

struct Consent;

impl ApprovalBroker for Consent {
    fn request<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async { ApprovalDecision::AllowOnce })
    }
}

fn engine(world: &World, plugin: &Arc<Misbehaving>) -> Engine {
    let replies = [
        ScriptedReply::call("c1", "probe", JsonObject::new()),
        ScriptedReply::text("One."),
        ScriptedReply::text("Two."),
        ScriptedReply::text("Three."),
        ScriptedReply::text("Four."),
        ScriptedReply::text("## Goal\nTo greet."),
    ];
    let mut providers = ProviderRegistry::new();
    providers.register("anthropic-messages", Arc::new(ScriptedProvider::new(replies)));
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let probe = FnTool::new(spec, |_: JsonObject, _| async { Ok(ToolOutput::text("fine")) });
    let plugin = Arc::clone(plugin) as Arc<dyn Plugin>;
    world.built(|builder| builder.providers(providers).tool(probe).hooks(plugin).approvals(Arc::new(Consent)))
}

/// Does what calls every hook: messages for a key with a tool call, approved, and a new session; two runs of a session without key, and its
/// compaction; and the end.
async fn everything(engine: &Engine, chat: &Arc<PickyChat>) {
    engine.announce_start(None);
    for text in ["hello", "/new hello"] {
        exchange(engine, text, true, chat).await;
    }
    for _ in 0..2 {
        engine.run(engine.request("s1", None, None, &"hello ".repeat(1_000))).finish().await.unwrap();
    }
    let outcome = engine.compact(engine.request("s1", None, None, ""), None).await.to_json();
    assert_eq!(outcome["compacted"], true, "{outcome}");
    assert!(engine.drain(WATCH_LIMIT * 2).await);
    assert_eq!(chat.texts(), ["One.", "Two."]);
}

fn transcripts(world: &World) -> Vec<Transcript> {
    let files = std::fs::read_dir(world.path("state/agents/main/sessions")).into_iter().flatten();
    let paths =
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    paths.map(|path| Transcript::read(&path)).collect()
}

#[tokio::test(start_paused = true)]
async fn no_hook_can_keep_a_message_from_its_answer() {
    for hook in HookPoint::ALL {
        for how in [Behaviour::Fine, Behaviour::Fails, Behaviour::Panics, Behaviour::Hangs] {
            let world = World::new().await;
            let plugin = Misbehaving::new(Some((hook, how)));
            everything(&engine(&world, &plugin), &Arc::default()).await;
            let needs = if how == Behaviour::Fine { &HookPoint::ALL[..] } else { &[hook] };
            assert!(needs.iter().all(|hook| plugin.was_called(*hook)), "{hook:?} {how:?} {:?}", plugin.called);
            assert!(transcripts(&world).iter().all(|transcript| transcript.unpaired().is_empty()), "{hook:?} {how:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_while_a_hook_hangs_can_be_done_again() {
    for hook in HookPoint::ALL {
        let world = World::new().await;
        let plugin = Misbehaving::new(Some((hook, Behaviour::Hangs)));
        let first = engine(&world, &plugin);
        let chat = Arc::default();
        let mut work = Box::pin(everything(&first, &chat));
        // Hooks have seconds.
        while !plugin.was_called(hook) {
            drop(tokio::time::timeout(Duration::from_millis(1), &mut work).await);
        }
        drop(work);
        assert!(first.active().is_empty(), "{hook:?}: {:?}", first.active());
        assert!(first.drain(WATCH_LIMIT * 2).await, "{hook:?}");

        everything(&engine(&world, &Misbehaving::new(None)), &Arc::default()).await;
        assert!(transcripts(&world).iter().all(|transcript| transcript.unpaired().is_empty()), "{hook:?}");
    }
}

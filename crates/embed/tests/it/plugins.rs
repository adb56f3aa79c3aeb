//! Plugin hooks: what they receive, and that none of them can break a run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_agent_core::tool::{FnTool, JsonObject, ToolError, ToolOutput, ToolSpec};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::{Extension, ExtensionCx, ExtensionError, HandlerFuture, Point, Points};
use pinch_embed::engine::Engine;
use pinch_embed::plugin::{
    ASK_LIMIT, AfterToolCall, AgentBootstrap, AgentEnd, AgentStartChanges, BeforeAgentRun, BeforeMessageWrite,
    BeforeModelResolve, BeforePromptBuild, BeforeToolCall, HookContext, HookPoint, HookRules, JoinedText, LastAnswer,
    LlmInput, LlmOutput, MessageWrite, ModelOverride, Plugin, PromptChanges, RunVerdict, SessionContext, SessionStart,
    ToolCallChanges, ToolResultPersist, WATCH_LIMIT, WorkspaceFile,
};
use pinch_embed::run::{RunErrorKind, RunResult};
use pinch_embed::runner::RunEvent;
use pinch_llm::message::{Block, ToolResult};
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_llm::schema::Schema;
use serde_json::json;

use crate::world::{World, answer, call, payload_texts, stream, within};

/// Asynchronous hooks of plugins.
const ASKED: [&str; 13] = [
    "before_model_resolve",
    "agent_bootstrap",
    "before_agent_start",
    "before_agent_run",
    "before_prompt_build",
    "llm_input",
    "llm_output",
    "agent_end",
    "tool_call",
    "before_tool_call",
    "after_tool_call",
    "tool_result_persist",
    "before_message_write",
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    Fine,
    Fails,
    Panics,
    Hangs,
}

impl Behaviour {
    pub(crate) async fn act(self, hook: &str) -> Result<(), ExtensionError> {
        match self {
            Self::Fine => Ok(()),
            Self::Fails => Err(ExtensionError::new("no")),
            Self::Panics => panic!("{hook}"),
            Self::Hangs => std::future::pending().await,
        }
    }
}

/// Misbehaves in one hook, and records its calls.
struct Suspect {
    hook: &'static str,
    how: Behaviour,
    rejects: bool,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Suspect {
    async fn act(&self, hook: &str) -> Result<(), ExtensionError> {
        self.calls.lock().unwrap().push(hook.to_owned());
        let how = if self.hook == hook { self.how } else { Behaviour::Fine };
        how.act(hook).await
    }

    fn answer<'a, T: Default + Send>(&'a self, hook: &'static str) -> HandlerFuture<'a, T> {
        Box::pin(async move { self.act(hook).await.map(|()| T::default()) })
    }
}

impl Extension for Suspect {
    fn name(&self) -> &str {
        "suspect"
    }

    fn points(&self) -> Points {
        Points::of([Point::ToolCall, Point::ToolResult])
    }

    fn tool_call<'a>(&'a self, _: &'a PendingCall, _: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        Box::pin(async { self.act("tool_call").await.map(|()| BeforeTool::Allow) })
    }

    fn tool_result<'a>(&'a self, _: &'a FinishedCall, _: &'a ExtensionCx) -> HandlerFuture<'a, ToolPatch> {
        Box::pin(async { self.act("tool_result").await.map(|()| ToolPatch::default()) })
    }
}

impl Plugin for Suspect {
    fn rules(&self, hook: HookPoint) -> HookRules {
        HookRules { blocks_on_error: self.rejects, ..HookRules::of(hook) }
    }

    fn before_model_resolve<'a>(
        &'a self,
        _: &'a BeforeModelResolve,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, ModelOverride> {
        self.answer("before_model_resolve")
    }

    fn on_agent_start<'a>(
        &'a self,
        _: &'a BeforeModelResolve,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, AgentStartChanges> {
        self.answer("before_agent_start")
    }

    fn before_agent_run<'a>(&'a self, _: &'a BeforeAgentRun, _: &'a HookContext) -> HandlerFuture<'a, RunVerdict> {
        self.answer("before_agent_run")
    }

    fn before_prompt_build<'a>(
        &'a self,
        _: &'a BeforePromptBuild,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, PromptChanges> {
        self.answer("before_prompt_build")
    }

    fn agent_bootstrap<'a>(
        &'a self,
        _: &'a AgentBootstrap,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, Option<Vec<WorkspaceFile>>> {
        self.answer("agent_bootstrap")
    }

    fn llm_input<'a>(&'a self, _: &'a LlmInput, _: &'a HookContext) -> HandlerFuture<'a, ()> {
        self.answer("llm_input")
    }

    fn llm_output<'a>(&'a self, _: &'a LlmOutput, _: &'a HookContext) -> HandlerFuture<'a, ()> {
        self.answer("llm_output")
    }

    fn on_agent_end<'a>(&'a self, end: &'a AgentEnd, _: &'a HookContext) -> HandlerFuture<'a, ()> {
        self.calls.lock().unwrap().push(format!("end:{}:{}", end.is_final, end.outcome));
        self.answer("agent_end")
    }

    fn before_tool_call<'a>(&'a self, _: &'a BeforeToolCall, _: &'a HookContext) -> HandlerFuture<'a, ToolCallChanges> {
        self.answer("before_tool_call")
    }

    fn on_after_tool_call<'a>(&'a self, _: &'a AfterToolCall, _: &'a HookContext) -> HandlerFuture<'a, ()> {
        self.answer("after_tool_call")
    }

    fn tool_result_persist<'a>(
        &'a self,
        _: &'a ToolResultPersist,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, Option<ToolResult>> {
        self.answer("tool_result_persist")
    }

    fn before_message_write<'a>(
        &'a self,
        _: &'a BeforeMessageWrite,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, MessageWrite> {
        self.answer("before_message_write")
    }
}

type CallLog = Arc<Mutex<Vec<String>>>;

/// Creates an engine whose model calls a tool and then answers, with a misbehaving plugin and a well-behaved one.
fn engine(world: &World, hook: &'static str, how: Behaviour, rejects: bool) -> (Engine, CallLog, CallLog) {
    let replies = [ScriptedReply::call("c1", "probe", JsonObject::new()), ScriptedReply::text("Done.")];
    let provider = ScriptedProvider::new(replies);
    let mut providers = ProviderRegistry::new();
    providers.register("anthropic-messages", Arc::new(provider));
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let probe = FnTool::new(spec, |_: JsonObject, _| async { Ok(ToolOutput::text("fine")) });
    let (of_suspect, of_other): (CallLog, CallLog) = Default::default();
    let suspect = Suspect { hook, how, rejects, calls: Arc::clone(&of_suspect) };
    let other = Suspect { hook: "", how: Behaviour::Fine, rejects: false, calls: Arc::clone(&of_other) };
    let engine =
        world.built(|builder| builder.providers(providers).tool(probe).hooks(Arc::new(suspect)).hooks(Arc::new(other)));
    (engine, of_suspect, of_other)
}

async fn run(engine: &Engine) -> RunResult {
    let result = engine.run(engine.request("s1", None, None, "hello")).finish().await.unwrap();
    assert!(engine.drain(WATCH_LIMIT * 2).await);
    result
}

#[tokio::test(start_paused = true)]
async fn no_hook_can_break_a_run() {
    for hook in ASKED {
        for how in [Behaviour::Fine, Behaviour::Fails, Behaviour::Panics, Behaviour::Hangs] {
            let world = World::new().await;
            let (engine, suspect, other) = engine(&world, hook, how, false);
            let began = tokio::time::Instant::now();
            let result = run(&engine).await;
            assert_eq!(payload_texts(&result), ["Done."], "{hook} {how:?}");
            assert!(began.elapsed() < WATCH_LIMIT + ASK_LIMIT, "{hook} {how:?}");
            for calls in [suspect, other] {
                let calls = calls.lock().unwrap();
                let is_stopped = hook == "tool_call" && how != Behaviour::Fine;
                let is_called = calls.iter().any(|call| call == hook);
                assert!(is_called || is_stopped, "{hook} {how:?}: {calls:?}");
                assert!(calls.iter().any(|call| call == "end:true:ok"), "{hook} {how:?}: {calls:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_guard_rejects_runs_if_configured() {
    for how in [Behaviour::Fails, Behaviour::Panics, Behaviour::Hangs] {
        let world = World::new().await;
        let (engine, suspect, _) = engine(&world, "before_agent_run", how, true);
        let result = run(&engine).await;
        assert_eq!(result.meta.error.as_ref().map(|error| error.kind), Some(RunErrorKind::HookBlock), "{how:?}");
        assert!(
            payload_texts(&result)[0].starts_with("!The message was not processed"),
            "{:?}",
            payload_texts(&result)
        );
        let calls = suspect.lock().unwrap();
        assert!(
            calls.iter().any(|call| call == "end:true:hook_block") && !calls.iter().any(|call| call == "llm_input")
        );
    }
}

#[tokio::test]
async fn plugins_are_notified_of_dropped_runs() {
    let world = World::new().await;
    let mut providers = ProviderRegistry::new();
    let hang = ScriptedReply { steps: vec![ScriptedStep::Hang], ..ScriptedReply::default() };
    providers.register("anthropic-messages", Arc::new(ScriptedProvider::new([hang])));
    let calls: CallLog = Arc::default();
    let suspect = Suspect { hook: "", how: Behaviour::Fine, rejects: false, calls: Arc::clone(&calls) };
    let engine = world.built(|builder| builder.providers(providers).hooks(Arc::new(suspect)));
    let mut run = engine.run(engine.request("s1", None, None, "hello"));
    while !matches!(within(run.next()).await, Some(RunEvent::Attempt(_)) | None) {}
    drop(run);
    assert!(engine.drain(Duration::from_secs(10)).await);
    assert_eq!(calls.lock().unwrap().last().map(String::as_str), Some("agent_end"));
    assert!(calls.lock().unwrap().iter().any(|call| call == "end:true:dropped"));
}

/// Records results and whether they stand in for missing ones, and created sessions; changes the text of results.
#[derive(Default)]
struct Archivist(Mutex<Vec<String>>);

impl Extension for Archivist {
    fn name(&self) -> &str {
        "archivist"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

impl Plugin for Archivist {
    fn tool_result_persist<'a>(
        &'a self,
        event: &'a ToolResultPersist,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, Option<ToolResult>> {
        self.0.lock().unwrap().push(format!("result of {}: {}", event.result.tool_call_id, event.is_synthetic));
        let result = ToolResult { content: vec![Block::text("archived")], ..event.result.clone() };
        Box::pin(async { Ok(Some(result)) })
    }

    fn on_session_start<'a>(&'a self, event: &'a SessionStart, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let SessionContext { session_key, session_id, .. } = cx;
        self.0.lock().unwrap().push(format!("session {session_id} {session_key:?} {:?}", event.resumed_from));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn plugins_see_the_results_that_stand_in_for_missing_ones() {
    let world = World::new().await;
    let archivist = Arc::new(Archivist::default());
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let endless =
        FnTool::new(spec, |_: JsonObject, _| async { std::future::pending::<Result<ToolOutput, ToolError>>().await });
    let plugin = Arc::clone(&archivist) as Arc<dyn Plugin>;
    let engine = world.built(|builder| builder.tool(endless).hooks(plugin));
    world.server.reply(stream(call("c1", "probe", &json!({}))));
    world.server.reply(stream(answer("m2", "Here I am.")));
    let mut killed = engine.run(engine.request("s1", None, None, "go"));
    let is_tool_start = |event: &RunEvent| matches!(event, RunEvent::Session(event) if matches!(&**event, SessionEvent::Agent(AgentEvent::ToolStart { .. })));
    while !within(killed.next()).await.is_some_and(|event| is_tool_start(&event)) {}
    drop(killed);
    within(engine.run(engine.request("s1", None, None, "again")).finish()).await.unwrap();
    assert!(engine.drain(Duration::from_secs(10)).await);
    assert_eq!(*archivist.0.lock().unwrap(), ["session s1 None None", "result of toolu_c1: true"]);
    let body = world.server.requests()[1].json().to_string();
    assert!(body.contains("archived") && !body.contains("missing tool result"), "{body}");
    assert_eq!(world.transcript("s1").unpaired(), [""; 0]);
}

#[tokio::test]
async fn plugins_are_notified_of_an_attempt_that_cannot_begin() {
    let world = World::new().await;
    world.write("state/agents/main/sessions/s1.jsonl", "not a session\n");
    let calls: CallLog = Arc::default();
    let suspect = Suspect { hook: "", how: Behaviour::Fine, rejects: false, calls: Arc::clone(&calls) };
    let engine = world.built(|builder| builder.hooks(Arc::new(suspect)));
    within(engine.run(engine.request("s1", None, None, "hello")).finish()).await.unwrap_err();
    assert!(engine.drain(Duration::from_secs(10)).await);
    let calls = calls.lock().unwrap();
    let ends: Vec<_> = calls.iter().filter(|call| call.starts_with("end:")).collect();
    assert_eq!(ends, ["end:false:config", "end:true:config"]);
}

/// Adds texts everywhere.
struct Adds;

impl Extension for Adds {
    fn name(&self) -> &str {
        "adds"
    }

    fn points(&self) -> Points {
        Points::NONE
    }
}

impl Plugin for Adds {
    fn before_prompt_build<'a>(
        &'a self,
        event: &'a BeforePromptBuild,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, PromptChanges> {
        let context = format!("{} of {} after {}", cx.session_id, cx.agent_id, event.messages.len());
        Box::pin(async {
            Ok(PromptChanges {
                system_prompt: LastAnswer(None),
                prepend_context: context.into(),
                prepend_system_context: "First of all.".into(),
                append_system_context: JoinedText::from("Last of all."),
            })
        })
    }

    fn agent_bootstrap<'a>(
        &'a self,
        event: &'a AgentBootstrap,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, Option<Vec<WorkspaceFile>>> {
        let name = "EXTRA.md".to_owned();
        let extra = WorkspaceFile { path: event.workspace.join(&name), name, text: Some("Extra rules.".to_owned()) };
        let files = event.files.iter().filter(|file| file.name != "SOUL.md").cloned().chain([extra]).collect();
        Box::pin(async { Ok(Some(files)) })
    }
}

#[tokio::test]
async fn plugins_add_to_the_prompt_and_to_the_system_prompt() {
    let world = World::new().await;
    world.write("workspace/SOUL.md", "Be gentle.");
    let engine = world.built(|builder| builder.builtin_tools(["read"]).hooks(Arc::new(Adds)));
    for text in ["One.", "Two."] {
        world.server.reply(stream(answer("m", text)));
        let result = within(engine.run(engine.request("s1", None, None, "hello")).finish()).await.unwrap();
        assert_eq!(payload_texts(&result), [text]);
    }
    let requests = world.server.requests();
    let system = requests[0].json()["system"].to_string();
    assert!(system.contains("First of all.") && system.contains("Last of all."), "{system}");
    assert!(system.contains("Extra rules.") && !system.contains("Be gentle."), "{system}");
    let body = requests[1].json();
    assert_eq!(body["system"], requests[0].json()["system"], "the same run after run");
    let last = body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains("s1 of main after 3\\n\\nhello"), "{last}");
}

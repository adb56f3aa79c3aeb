//! Plugins as processes: they get every hook, and none of them can break a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_coding_agent::extension::process::{ProcessExtension, ProcessSpec};
use pinch_embed::delivery::ReplySink;
use pinch_embed::engine::{CompactionOutcome, Engine};
use pinch_embed::plugin::process::start_plugins;
use pinch_embed::plugin::{HookPoint, WATCH_LIMIT};
use pinch_embed::run::{RunErrorKind, RunResult};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::schema::Schema;
use pinch_stdx::host::Host;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::messengers::{PickyChat, exchange};
use crate::world::{World, answer, payload_texts, stream, within};

/// The hooks of a run that calls a tool.
const OF_RUN: [HookPoint; 12] = [
    HookPoint::BeforeModelResolve,
    HookPoint::BeforeAgentStart,
    HookPoint::BeforeAgentRun,
    HookPoint::BeforePromptBuild,
    HookPoint::AgentBootstrap,
    HookPoint::LlmInput,
    HookPoint::LlmOutput,
    HookPoint::AgentEnd,
    HookPoint::BeforeToolCall,
    HookPoint::AfterToolCall,
    HookPoint::ToolResultPersist,
    HookPoint::BeforeMessageWrite,
];

/// The hooks of a conversation around its runs.
const OF_CHAT: [HookPoint; 8] = [
    HookPoint::MessageReceived,
    HookPoint::MessageSending,
    HookPoint::MessageSent,
    HookPoint::BeforeReset,
    HookPoint::SessionEnd,
    HookPoint::SessionStart,
    HookPoint::GatewayStart,
    HookPoint::GatewayStop,
];

/// How the process misbehaves in its bad hook.
const MOODS: [&str; 6] = ["fine", "fails", "exits", "hangs", "rubbish", "noise"];

/// Finds a program on the `PATH`; reports if it is missing.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file());
    if found.is_none() {
        let note = format!("skipped: {name} is not installed\n");
        std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes()).unwrap();
    }
    found
}

/// What the process does with its bad hook.
struct BadHook {
    hook: HookPoint,
    mood: &'static str,
    on_error: &'static str,
    limit: Duration,
}

impl BadHook {
    /// A hook that misbehaves. A process that answers has the whole time for it.
    fn new(hook: HookPoint, mood: &'static str) -> Self {
        let limit = if matches!(mood, "hangs" | "noise") { 200 } else { 10_000 };
        Self { hook, mood, on_error: "default", limit: Duration::from_millis(limit) }
    }
}

/// Starts the process; `None` without Python.
async fn process(world: &World, bad: &BadHook) -> Option<ProcessExtension> {
    let python = program("python3")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hook_process.py");
    world.write("hooks.log", "");
    let log = world.path("hooks.log");
    let limit = bad.limit.as_millis().to_string();
    let command = [python.to_str()?, script.to_str()?, log.to_str()?, bad.hook.name(), bad.mood, bad.on_error, &limit];
    let command = command.map(str::to_owned).to_vec();
    let dir = world.path("");
    let spec = ProcessSpec { name: "hooks".into(), command, cwd: dir.clone(), agent_dir: dir, has_ui: false };
    Some(ProcessExtension::start(spec, &Host::system()).await.unwrap())
}

/// Returns the hooks that were called.
fn called(world: &World) -> Vec<String> {
    std::fs::read_to_string(world.path("hooks.log")).unwrap().lines().map(str::to_owned).collect()
}

/// Waits until the process has noted a call or a cancellation.
async fn noted(world: &World, name: &str) {
    while !called(world).iter().any(|line| line.split(' ').next() == Some(name)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Creates an engine with the process as its plugin.
fn engine(world: &World, plugin: ProcessExtension, replies: impl IntoIterator<Item = ScriptedReply>) -> Engine {
    let mut providers = ProviderRegistry::new();
    providers.register("anthropic-messages", Arc::new(ScriptedProvider::new(replies)));
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let probe = FnTool::new(spec, |_: JsonObject, _| async { Ok(ToolOutput::text("fine")) });
    world.built(|builder| builder.providers(providers).tool(probe).hooks(Arc::new(plugin)))
}

fn replies() -> [ScriptedReply; 2] {
    [ScriptedReply::call("c1", "probe", JsonObject::new()), ScriptedReply::text("Done.")]
}

async fn run(engine: &Engine) -> RunResult {
    let result = engine.run(engine.request("s1", None, None, "hello")).finish().await.unwrap();
    assert!(engine.drain(WATCH_LIMIT * 2).await);
    result
}

async fn no_process_can_break_a_run(hook: HookPoint, mood: &'static str) {
    let world = World::new().await;
    let Some(plugin) = process(&world, &BadHook::new(hook, mood)).await else { return };
    let engine = engine(&world, plugin, replies());
    let result = run(&engine).await;
    let what = format!("{} {mood}", hook.name());
    assert_eq!(payload_texts(&result), ["Done."], "{what}");
    let called = called(&world);
    let was_called = |name: &str| called.iter().any(|line| line.split(' ').next() == Some(name));
    // A call that its guard does not allow has no end.
    let is_blocked = hook == HookPoint::BeforeToolCall && mood != "fine";
    for expected in OF_RUN {
        let is_expected = match expected {
            HookPoint::AfterToolCall => !is_blocked,
            _ => true,
        };
        assert!(mood == "exits" || was_called(expected.name()) == is_expected, "{what}: {called:?}");
    }
    assert!(was_called(hook.name()), "{what}: {called:?}");
    assert!(mood == "exits" || called.iter().any(|line| line == "agent_end True ok"), "{what}: {called:?}");
    if matches!(mood, "hangs" | "noise") {
        // The process may still be reading it.
        within(noted(&world, "cancelled")).await;
    } else {
        assert!(!was_called("cancelled"), "{what}: {called:?}");
    }
}

#[tokio::test]
async fn no_process_can_break_a_run_in_any_hook() {
    for mood in MOODS {
        futures::future::join_all(OF_RUN.map(|hook| no_process_can_break_a_run(hook, mood))).await;
    }
}

#[tokio::test]
async fn a_failing_process_rejects_runs_if_configured() {
    for mood in ["fails", "exits", "hangs", "rubbish", "noise"] {
        for (on_error, is_rejected) in [("block", true), ("allow", false)] {
            let world = World::new().await;
            let bad = BadHook { on_error, ..BadHook::new(HookPoint::BeforeAgentRun, mood) };
            let Some(plugin) = process(&world, &bad).await else { return };
            let result = run(&engine(&world, plugin, replies())).await;
            let kind = result.meta.error.as_ref().map(|error| error.kind);
            assert_eq!(kind == Some(RunErrorKind::HookBlock), is_rejected, "{mood} {on_error}: {result:?}");
        }
    }
}

#[tokio::test]
async fn a_failing_guard_of_tools_blocks_calls_unless_configured() {
    for (on_error, text) in [("default", "before_tool_call hook failed"), ("allow", "fine")] {
        let world = World::new().await;
        let bad = BadHook { on_error, ..BadHook::new(HookPoint::BeforeToolCall, "rubbish") };
        let Some(plugin) = process(&world, &bad).await else { return };
        let provider = Arc::new(ScriptedProvider::new(replies()));
        let mut providers = ProviderRegistry::new();
        providers.register("anthropic-messages", Arc::clone(&provider) as Arc<dyn Provider>);
        let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
        let probe = FnTool::new(spec, |_: JsonObject, _| async { Ok(ToolOutput::text("fine")) });
        let engine = world.built(|builder| builder.providers(providers).tool(probe).hooks(Arc::new(plugin)));
        run(&engine).await;
        let last = format!("{:?}", provider.requests().last().unwrap().messages.last().unwrap());
        assert!(last.contains(text), "{last}");
    }
}

#[tokio::test]
async fn a_process_is_notified_of_a_run_dropped_while_a_hook_hangs() {
    for hook in OF_RUN {
        let world = World::new().await;
        let bad = BadHook { limit: Duration::from_secs(1), ..BadHook::new(hook, "hangs") };
        let Some(plugin) = process(&world, &bad).await else { return };
        let hang = ScriptedReply { steps: vec![ScriptedStep::Hang], ..ScriptedReply::default() };
        let engine = engine(&world, plugin, [replies()[0].clone(), hang]);
        let mut run = engine.run(engine.request("s1", None, None, "hello"));
        let reached = noted(&world, hook.name());
        // The run never ends by itself, and its end has hooks that it reaches only then.
        let limit = Duration::from_secs(3);
        let pulled = async { while run.next().await.is_some() {} };
        drop(tokio::time::timeout(limit, futures::future::select(Box::pin(reached), Box::pin(pulled))).await);
        drop(run);
        assert!(engine.drain(Duration::from_secs(10)).await, "{}", hook.name());
        let called = called(&world);
        assert!(called.iter().any(|line| line == "agent_end True dropped"), "{}: {called:?}", hook.name());
    }
}

async fn no_process_can_break_a_conversation(hook: HookPoint, mood: &'static str) {
    let world = World::new().await;
    let Some(plugin) = process(&world, &BadHook::new(hook, mood)).await else { return };
    let engine = engine(&world, plugin, ["One.", "Two."].map(ScriptedReply::text));
    engine.announce_start(Some(80));
    let chat = Arc::new(PickyChat::default());
    exchange(&engine, "hello", true, &chat).await;
    exchange(&engine, "/new hello", true, &chat).await;
    assert!(engine.drain(WATCH_LIMIT * 2).await);
    assert_eq!(chat.texts(), ["One.", "Two."], "{} {mood}", hook.name());
    let called = called(&world);
    for expected in OF_CHAT {
        let was_called = called.iter().any(|line| line == expected.name());
        assert!(was_called || mood == "exits", "{} {mood}: {called:?}", hook.name());
    }
}

#[tokio::test]
async fn no_process_can_break_a_conversation_in_any_hook() {
    for mood in MOODS {
        futures::future::join_all(OF_CHAT.map(|hook| no_process_can_break_a_conversation(hook, mood))).await;
    }
}

#[tokio::test]
async fn a_process_is_notified_of_compactions_even_if_they_fail() {
    for (summary, tokens) in [(ScriptedReply::text("They said hello."), true), (ScriptedReply::error("no"), false)] {
        let world = World::new().await;
        let Some(plugin) = process(&world, &BadHook::new(HookPoint::BeforeCompaction, "hangs")).await else { return };
        let engine = engine(&world, plugin, ["One.", "Two."].map(ScriptedReply::text).into_iter().chain([summary]));
        for text in ["hello ", "again "] {
            engine.run(engine.request("s1", None, None, &text.repeat(400))).finish().await.unwrap();
        }
        let outcome = engine.compact(engine.request("s1", None, None, ""), None).await;
        assert_eq!(matches!(outcome, CompactionOutcome::Compacted(_)), tokens, "{outcome:?}");
        assert!(engine.drain(WATCH_LIMIT * 2).await);
        let called = called(&world);
        let of_compaction = called.iter().filter(|line| line.contains("_compaction"));
        // Two turns; afterwards the summary and the last turn.
        let after = if tokens { "after_compaction 3" } else { "after_compaction 4" };
        assert_eq!(of_compaction.collect::<Vec<_>>(), ["before_compaction 4", after]);
    }
}

/// Starts JavaScript plugins; `None` without Node.
async fn scripts(world: &World, texts: &[&str]) -> Option<Vec<Arc<dyn pinch_embed::plugin::Plugin>>> {
    program("node")?;
    let paths = texts.iter().enumerate().map(|(at, text)| {
        world.write(&format!("plugins/p{at}.mjs"), text);
        world.path(&format!("plugins/p{at}.mjs"))
    });
    let (plugins, problems) = start_plugins(&paths.collect::<Vec<_>>(), &world.path(""), &Host::system()).await;
    assert!(problems.is_empty(), "{problems:?}");
    Some(plugins)
}

#[tokio::test]
async fn scripts_change_prompts_calls_results_and_messages() {
    let world = World::new().await;
    world.write("workspace/IDENTITY.md", "Who I am.");
    let first = r#"
        export default function (pi) {
          pi.hook("before_prompt_build", async (event, ctx) => ({
            prependContext: `${ctx.sessionId} after ${event.messages.length}`, appendSystemContext: "Last of all.",
          }));
          pi.hook("before_prompt_build", () => ({ prependContext: "first handler" }), { priority: 5 });
          pi.hook("before_prompt_build", () => { throw new Error("skipped") }, { priority: 4 });
          pi.hook("agent:bootstrap", ({ bootstrapFiles }) => ({
            bootstrapFiles: bootstrapFiles.map((file) => file.name === "SOUL.md" ? { name: file.name, content: "Be brief." } : file),
          }));
          pi.hook("before_tool_call", (event) => ({ params: { seen: event.toolName, by: "one" } }), { priority: 10 });
          pi.hook("message_sending", ({ content }) => ({ content: content.replace("secret", "***") }));
        }"#;
    // As an OpenClaw plugin.
    let second = r#"
        export default {
          id: "second",
          register(api) {
            api.on("before_model_resolve", () => ({ modelOverride: "claude-opus-4-6" }));
            api.on("before_tool_call", (event) => ({ params: { by: event.params.by + " two" } }));
            api.on("tool_result_persist", ({ message }) => {
              message.content[0].text += " and persisted";
              return { message };
            });
            api.on("before_message_write", ({ message }) => ({ block: JSON.stringify(message).includes("forbidden") }));
          },
        }"#;
    let Some(plugins) = scripts(&world, &[first, second]).await else { return };
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let probe = FnTool::new(spec, |input: JsonObject, _| async move { Ok(ToolOutput::text(json!(input).to_string())) });
    let engine = world.built(|builder| plugins.iter().cloned().fold(builder.tool(probe), |to, one| to.hooks(one)));
    world.server.reply(stream(AnthropicResponse::new("m1").tool_call("c1", "probe", r#"{"own":1}"#).stop("tool_use")));
    world.server.reply(stream(answer("m2", "The secret is out.")));
    let chat = Arc::new(PickyChat::default());
    let run = exchange(&engine, "hello", false, &chat).await;
    run.send_rest(Arc::clone(&chat) as Arc<dyn ReplySink>).await;
    assert_eq!(chat.texts(), ["The *** is out."]);
    let requests = world.server.requests();
    let (one, two) = (requests[0].json(), requests[1].json());
    assert_eq!(one["model"], "claude-opus-4-6");
    let (system, prompt) = (one["system"].to_string(), one["messages"].to_string());
    assert!(system.contains("Last of all.") && prompt.contains("first handler\\n\\n"), "{system} {prompt}");
    assert!(system.contains("Who I am.") && system.contains("Be brief."), "{system}");
    assert!(prompt.contains(" after 0\\n\\nhello"), "{prompt}");
    let result = two["messages"].as_array().unwrap().last().unwrap()["content"][0]["content"].to_string();
    for part in [r#"\"own\":1"#, r#"\"seen\":\"probe\""#, r#"\"by\":\"one two\""#, " and persisted"] {
        assert!(result.contains(part), "{part}: {result}");
    }

    world.server.reply(stream(answer("m3", "Fine.")));
    exchange(&engine, "something forbidden", false, &chat).await;
    let last = world.server.requests()[2].json()["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(last.contains("[This message was removed.]") && !last.contains("forbidden"), "{last}");
    for plugin in plugins {
        plugin.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_call_for_which_a_script_requires_an_approval_does_not_run_without_it() {
    for (required, expected) in [
        (
            r#"{ title: "Deploy", severity: "critical", onResolution: (how) => writeFileSync(import.meta.dirname + "/../resolved", how) }"#,
            "Plugin approval unavailable (no approval route)",
        ),
        (r#""please""#, "Tool call blocked because before_tool_call hook failed"),
    ] {
        let world = World::new().await;
        let script = format!(
            r#"import {{ writeFileSync }} from "node:fs";
            export default function (pi) {{ pi.hook("before_tool_call", () => ({{ requireApproval: {required} }})); }}"#
        );
        let Some(plugins) = scripts(&world, &[&script]).await else { return };
        let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
        let probe = FnTool::new(spec, |_: JsonObject, _| async move { Ok(ToolOutput::text("ran")) });
        let engine = world.built(|builder| plugins.iter().cloned().fold(builder.tool(probe), |to, one| to.hooks(one)));
        world.server.reply(stream(AnthropicResponse::new("m1").tool_call("c1", "probe", "{}").stop("tool_use")));
        world.server.reply(stream(answer("m2", "Done.")));
        within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
        let last = world.server.requests()[1].json()["messages"].as_array().unwrap().last().unwrap().to_string();
        assert!(last.contains(expected), "{required}: {last}");
        assert!(engine.drain(WATCH_LIMIT).await);
        let resolved = std::fs::read_to_string(world.path("resolved")).ok();
        assert_eq!(resolved.as_deref(), required.contains("onResolution").then_some("cancelled"));
        for plugin in plugins {
            plugin.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_approval_that_a_failed_hook_required_is_never_resolved() {
    let world = World::new().await;
    let script = r#"import { appendFileSync } from "node:fs";
        export default function (pi) {
          let n = 0;
          const onResolution = () => appendFileSync(import.meta.dirname + "/../resolved", "x");
          pi.hook("before_tool_call", () => ({ requireApproval: { title: "Deploy", onResolution } }));
          pi.hook("before_tool_call", () => { if (n++ === 0) throw new Error("no"); });
        }"#;
    let Some(plugins) = scripts(&world, &[script]).await else { return };
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let probe = FnTool::new(spec, |_: JsonObject, _| async move { Ok(ToolOutput::text("ran")) });
    let engine = world.built(|builder| plugins.iter().cloned().fold(builder.tool(probe), |to, one| to.hooks(one)));
    for session in ["s1", "s2"] {
        // The two calls have the same id.
        world.server.reply(stream(AnthropicResponse::new("m1").tool_call("c1", "probe", "{}").stop("tool_use")));
        world.server.reply(stream(answer("m2", "Done.")));
        within(engine.run(engine.request(session, None, None, "go")).finish()).await.unwrap();
    }
    assert!(engine.drain(WATCH_LIMIT).await);
    assert_eq!(std::fs::read_to_string(world.path("resolved")).unwrap(), "x");
    for plugin in plugins {
        plugin.close().await.unwrap();
    }
}

#[tokio::test]
async fn requests_of_a_script_reach_the_session_of_their_handler() {
    let world = World::new().await;
    let text = r#"
        export default function (pi) {
          const gates = [];
          pi.on("agent_start", async () => { await pi.appendEntry("before", "x"); });
          pi.registerTool({
            name: "note", description: "Notes", parameters: { type: "object" },
            async execute(id, { text }) {
              // Both sessions are active when either continues.
              await new Promise((go) => { gates.push(go); if (gates.length === 2) gates.forEach((one) => one()); });
              await pi.appendEntry("note", text);
              return { content: text };
            },
          });
        }"#;
    let Some(plugins) = scripts(&world, &[text]).await else { return };
    let engine = world.built(|builder| plugins.iter().cloned().fold(builder, |to, one| to.hooks(one)));
    let run = async |session: &'static str| {
        let mut run = engine.run(engine.request(session, None, None, session));
        while run.next().await.is_some() {}
        run.result().unwrap()
    };
    world.server.answer_with(|request| {
        let messages = request.json()["messages"].to_string();
        let name = if messages.contains("alpha") { "alpha" } else { "beta" };
        let input = format!(r#"{{"text":"of {name}"}}"#);
        Some(match messages.contains("tool_result") {
            true => stream(answer("m2", "Done.")),
            false => stream(AnthropicResponse::new("m1").tool_call("c1", "note", &input).stop("tool_use")),
        })
    });
    let (one, two) = futures::join!(run("alpha"), run("beta"));
    assert_eq!((payload_texts(&one), payload_texts(&two)), (vec!["Done.".to_owned()], vec!["Done.".to_owned()]));
    for name in ["alpha", "beta"] {
        let path = world.path(&format!("state/agents/main/sessions/{name}.jsonl"));
        let transcript = std::fs::read_to_string(path).unwrap();
        let notes: Vec<&str> = transcript.lines().filter(|line| line.contains(r#""customType":"note""#)).collect();
        assert!(notes.len() == 1 && notes[0].contains(&format!("of {name}")), "{name}: {notes:?}");
    }
}

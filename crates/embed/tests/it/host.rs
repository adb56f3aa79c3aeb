//! Everything that a host can register: tools, machines, prompts, extensions, reply stages and runtimes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::hooks::{BeforeTool, PendingCall};
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::{Extension, ExtensionCx, HandlerFuture, Point, Points};
use pinch_coding_agent::machine::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use pinch_coding_agent::machine::{CommandSpec, LocalMachine, Machine, MachineError, Process, Stat};
use pinch_coding_agent::prompt::PromptSections;
use pinch_embed::config::Config;
use pinch_embed::lanes::Lanes;
use pinch_embed::ports::{Caller, LocalLeases, Sender};
use pinch_embed::replies::piece::Piece;
use pinch_embed::replies::{Pieces, Stage, compose};
use pinch_embed::run::decide::{Repair, RepairOutcome};
use pinch_embed::run::request::{BlockReplies, RunTrigger};
use pinch_embed::run::scope::RunScope;
use pinch_embed::run::{AttemptEnd, AttemptOutcome, AttemptPlan, RunError, RunRequest};
use pinch_embed::runtime::{AttemptEvent, AttemptRuntime, Attempts, Capabilities, QueueRefusal, RunControl};
use pinch_llm::message::Image;
use pinch_llm::model::Model;
use pinch_llm::schema::Schema;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use crate::world::{World, answer, call, payload_texts, refusal, stream, within};

/// A tool that returns a fixed text.
pub(crate) struct Fixed(ToolSpec, String);

pub(crate) fn tool(name: &str, text: &str) -> Fixed {
    let schema = Schema::new(json!({"type": "object"}));
    Fixed(ToolSpec::new(name, "A tool of the host", schema), text.to_owned())
}

impl Tool for Fixed {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text(&*self.1)) })
    }
}

fn offered(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

/// Returns a caller from a channel.
fn caller(channel: &str) -> Caller {
    Caller::new().channel(channel).sender(Sender::new("42").name("Ada"))
}

#[tokio::test]
async fn no_tool_is_offered_unless_the_host_enables_it() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "Hello.")));
    let engine = world.built(|builder| builder);
    within(engine.run(world.request("s1", "hello")).finish()).await.unwrap();
    let body = world.server.requests()[0].json();
    assert_eq!(body.get("tools"), None);
    let system = body["system"].to_string();
    assert!(system.contains("personal assistant") && !system.contains("coding agent"), "{system}");
}

#[tokio::test]
async fn host_tools_depend_on_the_caller_and_respect_deny_lists() {
    let world = World::with(|config| config["tools"] = json!({"deny": ["denied"]})).await;
    let engine = world.built(|builder| {
        builder
            .builtin_tools(["read", "ls"])
            .tool(tool("time", "noon"))
            .tool(tool("denied", "no"))
            .tool(tool("read", "a read of the host"))
            .tools_for(|request| {
                let caller = &request.caller;
                let name = format!("{}_{}", caller.channel.clone().unwrap(), caller.agent.clone().unwrap());
                vec![Arc::new(tool(&name, "hi")) as Arc<dyn Tool>, Arc::new(tool("message", "sent"))]
            })
    });
    for name in ["s1", "s2"] {
        world.server.reply(stream(answer(name, "Hello.")));
    }
    within(engine.run(world.request("s1", "hello").caller(caller("telegram"))).finish()).await.unwrap();
    let silent = world.request("s2", "hello").caller(caller("irc")).without_message_tool();
    within(engine.run(silent).finish()).await.unwrap();
    let names: Vec<_> = world.server.requests().iter().map(|request| offered(&request.json())).collect();
    assert_eq!(names, [vec!["read", "ls", "time", "telegram_main", "message"], vec!["read", "ls", "time", "irc_main"]]);
    let described = world.server.requests()[0].json()["tools"][0]["description"].clone();
    assert_eq!(described, "A tool of the host", "it replaces the built-in one");
}

#[tokio::test]
async fn a_tool_of_the_host_runs() {
    let world = World::new().await;
    let engine = world.built(|builder| builder.tool(tool("time", "It is noon.")));
    world.server.reply(stream(call("c1", "time", &json!({})))).reply(stream(answer("m1", "Noon.")));
    let result = within(engine.run(world.request("s1", "How late is it?")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result).last().map(String::as_str), Some("Noon."));
    let second = world.server.requests()[1].json();
    assert!(second["messages"].to_string().contains("It is noon."), "{second}");
}

/// This computer, except that every file has the same content.
struct OneText(&'static str);

impl Machine for OneText {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        LocalMachine.stat(path)
    }
    fn read<'a>(&'a self, _: &'a Path, _: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        Box::pin(async { Ok(Bytes::from_static(self.0.as_bytes())) })
    }
    fn read_pieces<'a>(&'a self, _: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        Box::pin(futures::stream::iter([Ok(Bytes::from_static(self.0.as_bytes()))]))
    }
    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        LocalMachine.write(path, content)
    }
    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        LocalMachine.list(path)
    }
    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        LocalMachine.find(query)
    }
    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        LocalMachine.grep(query)
    }
    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        LocalMachine.real_path(path)
    }
    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        LocalMachine.spawn(command)
    }
}

#[tokio::test]
async fn the_host_chooses_the_machine_for_each_caller() {
    let world = World::new().await;
    world.write("workspace/note.txt", "from the disk");
    let engine = world.built(|builder| {
        builder.builtin_tools(["read"]).machine_for(|request| match request.caller.channel.as_deref() {
            Some("sandboxed") => Arc::new(OneText("from elsewhere")),
            _ => Arc::new(LocalMachine),
        })
    });
    for (session, channel, expected) in [("s1", "local", "from the disk"), ("s2", "sandboxed", "from elsewhere")] {
        world.server.reply(stream(call(session, "read", &json!({"path": "note.txt"}))));
        world.server.reply(stream(answer("m", "Read.")));
        within(engine.run(world.request(session, "read it").caller(caller(channel))).finish()).await.unwrap();
        let body = world.server.requests().last().unwrap().json()["messages"].to_string();
        assert!(body.contains(expected), "{body}");
    }
}

/// Blocks one tool and adds another.
struct Guard;

impl Extension for Guard {
    fn name(&self) -> &str {
        "guard"
    }
    fn points(&self) -> Points {
        Points::of([Point::ToolCall])
    }
    fn register(
        &self,
        to: &mut pinch_coding_agent::extension::Registrations,
        _: &pinch_coding_agent::extension::ExtensionHandle,
    ) -> Result<(), pinch_coding_agent::extension::ExtensionError> {
        to.tool(Arc::new(tool("from_extension", "yes")));
        Ok(())
    }
    fn tool_call<'a>(&'a self, call: &'a PendingCall, _: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        Box::pin(async move {
            Ok(match call.call.name.as_str() {
                "time" => BeforeTool::deny("not now"),
                _ => BeforeTool::Allow,
            })
        })
    }
}

#[tokio::test]
async fn extensions_and_prompts_of_the_host_reach_the_session_and_survive_changes_of_tools() {
    let world = World::new().await;
    let engine = world.built(|builder| {
        builder.tool(tool("time", "noon")).extension(Arc::new(Guard)).prompt(|inputs| {
            let names: Vec<&str> = inputs.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
            PromptSections::text(format!("I serve {} with {}.", inputs.request.trigger.as_str(), names.join(" and ")))
        })
    });
    world.server.reply(stream(call("c1", "time", &json!({})))).reply(stream(answer("m1", "No.")));
    within(engine.run(world.request("s1", "time?").trigger(RunTrigger::Cron)).finish()).await.unwrap();
    let requests = world.server.requests();
    let system = requests[0].json()["system"].to_string();
    assert!(system.contains("I serve cron with time and from_extension."), "{system}");
    assert_eq!(offered(&requests[0].json()), ["time", "from_extension"]);
    assert!(requests[1].json()["messages"].to_string().contains("not now"));
}

#[tokio::test]
async fn the_default_prompt_includes_the_owners_and_the_section_of_the_request() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "Hello.")));
    let request = world.request("s1", "hello").owner_numbers(vec!["+4915".to_owned()]).extra_system_prompt("Rhyme.");
    within(world.engine.run(request).finish()).await.unwrap();
    let system = world.server.requests()[0].json()["system"].to_string();
    assert!(system.contains("Owner numbers: +4915.") && system.contains("Rhyme."), "{system}");
    // The first digits of the hashes of openssl: `printf +4915 | openssl dgst -sha256 [-hmac key]`.
    for (commands, shown) in [
        (json!({"ownerDisplay": "raw"}), "+4915"),
        (json!({"ownerDisplay": "hash"}), "7dfde43a323a"),
        (json!({"ownerDisplay": "hash", "ownerDisplaySecret": "key"}), "5074501cf0e5"),
    ] {
        let document = json!({"commands": commands});
        let (config, _) = Config::from_document(document.as_object().unwrap().clone(), Path::new("config.json"));
        assert_eq!(config.owner_display.shown(" +4915 "), shown, "{commands}");
    }
}

/// Turns every block of a reply into upper case.
struct Loud;

impl Stage for Loud {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        out.push(match piece {
            Piece::Block(mut reply) => {
                reply.text = reply.text.to_uppercase();
                Piece::Block(reply)
            }
            other => other,
        });
    }
    fn finish(&mut self, _: &mut Pieces) {}
}

#[tokio::test]
async fn stages_of_the_host_change_the_blocks_of_a_reply() {
    let world = World::new().await;
    let engine = world.built(|builder| {
        builder.reply_stages(|options, stages| {
            assert!(options.block_streaming);
            stages.insert_after(compose::DIRECTIVES, "loud", Loud)
        })
    });
    world.server.reply(stream(answer("m1", "Hello.")));
    let mut run = engine.run(world.request("s1", "hello").block_replies(BlockReplies::default()));
    let mut blocks = Vec::new();
    while let Some(event) = within(run.next()).await {
        if let pinch_embed::runner::RunEvent::Reply(pinch_embed::delivery::ReplyEvent::BlockReply(block)) = event {
            blocks.push(block.text);
        }
    }
    assert_eq!(blocks, ["HELLO."]);
}

/// A program that answers a prompt, without profiles and without memory.
struct ProgramRuntime {
    prompts: Arc<Mutex<Vec<String>>>,
}

impl AttemptRuntime for ProgramRuntime {
    fn id(&self) -> &str {
        "program"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }
    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        _: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        let prompts = Arc::clone(&self.prompts);
        Box::pin(async move {
            let attempts: Box<dyn Attempts> = Box::new(ProgramRun { prompts, prompt: scope.request.prompt.clone() });
            Ok(attempts)
        })
    }
}

struct ProgramRun {
    prompts: Arc<Mutex<Vec<String>>>,
    prompt: String,
}

impl Attempts for ProgramRun {
    fn attempt<'a>(
        &'a mut self,
        plan: &'a AttemptPlan,
        _: Arc<dyn RequestAuth>,
        _: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        let profile = plan.profile.as_ref().map_or("none", |id| id.as_str());
        self.prompts.lock().unwrap().push(format!("{:?} {profile}: {}", plan.start, self.prompt));
        let end = AttemptEvent::End(Box::new(AttemptOutcome::new(AttemptEnd::Good)));
        Box::pin(futures::stream::iter([end]))
    }
    fn repair<'a>(&'a mut self, _: &'a Repair, _: Arc<dyn RequestAuth>, _: Cancel) -> BoxFuture<'a, RepairOutcome> {
        Box::pin(async { RepairOutcome::NotTruncated })
    }
    fn control(&self) -> Arc<dyn RunControl> {
        Arc::new(Deaf)
    }
}

/// Accepts no messages.
struct Deaf;

impl RunControl for Deaf {
    fn queue(&self, _: QueueKind, _: String, _: Vec<Image>) -> Result<(), QueueRefusal> {
        Err(QueueRefusal::Unsupported)
    }
    fn is_streaming(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_runtime_of_the_host_is_selected_by_request_or_configuration() {
    let world =
        World::with(|config| config["agents"]["list"] = json!([{"id": "main"}, {"id": "p", "runtime": "program"}]))
            .await;
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let engine =
        world.built(|builder| builder.runtime("program", Arc::new(ProgramRuntime { prompts: Arc::clone(&prompts) })));
    within(engine.run(world.request("s1", "by request").runtime("program")).finish()).await.unwrap();
    within(engine.run(engine.request("s2", None, Some("p"), "by agent")).finish()).await.unwrap();
    assert_eq!(*prompts.lock().unwrap(), ["Prompt none: by request", "Prompt none: by agent"]);
    let unknown = within(engine.run(world.request("s3", "x").runtime("other")).finish()).await.unwrap_err();
    assert_eq!(unknown.to_string(), "unknown runtime \"other\"; registered: cli, native, program");
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn message_tools_need_an_explicit_target_in_sessions_of_sub_agents_unless_the_request_decides() {
    let world = World::new().await;
    let request = |key: &str| world.engine.request("s1", Some(key), None, "hi");
    assert!(!request("agent:main:main").requires_explicit_message_target());
    assert!(request("agent:main:subagent:1").requires_explicit_message_target());
    let decided: RunRequest = request("agent:main:subagent:1").require_explicit_message_target(false);
    assert!(!decided.requires_explicit_message_target());
    let seen = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&seen);
    let engine = world.built(|builder| {
        builder.tools_for(move |request| {
            let target = (request.message_to.clone(), request.requires_explicit_message_target());
            *slot.lock().unwrap() = Some(target);
            Vec::new()
        })
    });
    world.server.reply(stream(answer("m1", "Hello.")));
    within(engine.run(request("agent:main:main").message_to("@ada").require_explicit_message_target(true)).finish())
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), Some((Some("@ada".to_owned()), true)));
}

#[tokio::test]
async fn the_format_of_tool_messages_follows_the_channel_unless_requested() {
    let world = World::new().await;
    world.write("workspace/note.txt", "x");
    let engine = world.built(|builder| builder.builtin_tools(["read"]));
    let mut shown = Vec::new();
    for (session, channel) in [("s1", "telegram"), ("s2", "sms")] {
        world.server.reply(stream(call(session, "read", &json!({"path": "note.txt"}))));
        world.server.reply(stream(answer("m", "Read.")));
        let request = world
            .request(session, "read it")
            .caller(caller(channel))
            .verbose_level(pinch_embed::replies::tool_notes::Verbose::On);
        let mut run = engine.run(request);
        while let Some(event) = within(run.next()).await {
            if let pinch_embed::runner::RunEvent::Reply(pinch_embed::delivery::ReplyEvent::ToolResult(note)) = event {
                shown.push(format!("{note:?}").contains('`'));
            }
        }
    }
    assert_eq!(shown, [true, false]);
}

#[tokio::test]
async fn the_verbose_level_may_change_during_a_run() {
    use pinch_embed::delivery::ReplyEvent;
    use pinch_embed::replies::tool_notes::Verbose;
    use pinch_embed::runner::RunEvent;

    let world = World::new().await;
    world.write("workspace/note.txt", "The content.");
    let engine = world.built(|builder| builder.builtin_tools(["read"]));
    for id in ["c1", "c2", "c3"] {
        world.server.reply(stream(call(id, "read", &json!({"path": "note.txt"}))));
    }
    world.server.reply(stream(answer("m", "Read.")));
    let level = Arc::new(Mutex::new(Verbose::Off));
    let now = Arc::clone(&level);
    let request = world.request("s1", "read it").verbose_now(move || *now.lock().unwrap());
    let mut run = engine.run(request);
    let (mut shown, mut n_calls) = (Vec::new(), 0);
    while let Some(event) = within(run.next()).await {
        match event {
            RunEvent::Reply(ReplyEvent::ToolResult(note)) => shown.push((n_calls, note.is_output)),
            RunEvent::Session(event) if matches!(*event, SessionEvent::Agent(AgentEvent::ToolEnd { .. })) => {
                n_calls += 1;
                *level.lock().unwrap() = if n_calls == 1 { Verbose::On } else { Verbose::Full };
            }
            _ => {}
        }
    }
    assert!(
        !shown.contains(&(0, false)) && shown.contains(&(1, false)),
        "only the second call was announced: {shown:?}"
    );
    assert!(shown.iter().any(|(_, is_output)| *is_output), "the output of the last call: {shown:?}");
}

#[tokio::test]
async fn a_run_with_leases_of_its_own_does_not_wait_for_the_lane() {
    let world = World::with(|config| config["agents"]["defaults"]["maxConcurrent"] = 1.into()).await;
    let (gate, outer) = world.answering(world.request("outer", "go")).await;
    world.server.reply(stream(answer("m", "Meanwhile.")));
    let leases = Arc::new(LocalLeases::new(Lanes::default(), Host::system()));
    let inner = world.engine.run(world.request("inner", "go").leases(leases));
    assert_eq!(payload_texts(&within(inner.finish()).await.unwrap()), ["Meanwhile."]);
    gate.open_times(100);
    within(outer.finish()).await.unwrap();
}

#[tokio::test]
async fn an_overflow_fails_over_only_to_a_larger_window() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["model"]["fallbacks"] = json!(["local/small", "local/large"]);
        config["models"]["providers"]["local"]["models"] = json!([
            {"id": "small", "contextWindow": 100_000, "maxTokens": 4_000},
            {"id": "large", "contextWindow": 2_000_000, "maxTokens": 4_000},
        ]);
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    world.server.answer_with(|request| {
        let body = request.json();
        Some(match body["model"].as_str() {
            Some("large") => stream(crate::world::fallback_answer("It fits.")),
            _ => refusal(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        })
    });
    let result = world.ask("s1", "long").await.unwrap();
    assert_eq!(payload_texts(&result), ["It fits."]);
    let models: Vec<_> = result.meta.attempts.iter().map(|report| report.model.clone()).collect();
    assert!(!models.contains(&"small".to_owned()), "{models:?}");
}

#[tokio::test]
async fn the_history_is_limited_to_the_user_turns_configured_for_the_channel() {
    let world = World::with(|config| config["channels"] = json!({"telegram": {"dmHistoryLimit": 2}})).await;
    for (n, prompt) in ["one", "two", "three"].into_iter().enumerate() {
        world.server.reply(stream(answer(&format!("m{n}"), "Yes.")));
        let request = world.engine.request("s1", Some("agent:main:telegram:dm:42"), None, prompt);
        within(world.engine.run(request).finish()).await.unwrap();
    }
    let messages = world.server.requests().last().unwrap().json()["messages"].to_string();
    assert!(!messages.contains("one") && messages.contains("two") && messages.contains("three"), "{messages}");
    assert_eq!(world.transcript("s1").messages().len(), 6, "the session keeps everything");
}

//! Limits of a run's permissions: its permission mode, and where its commands run.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_embed::engine::Engine;
use pinch_embed::ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest};
use pinch_embed::run::RunError;
use pinch_embed::run::request::PermissionMode;
use pinch_stdx::host::{Env, Host};
use serde_json::{Value, json};

use crate::world::{World, answer, call, stream, within};

const HANDS: [&str; 6] = ["read", "bash", "process", "write", "edit", "apply_patch"];

/// Allows everything, and records the questions.
#[derive(Default)]
struct Allowing(Mutex<Vec<String>>);

impl ApprovalBroker for Allowing {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.0.lock().unwrap().push(request.command.clone());
        Box::pin(async { ApprovalDecision::AllowOnce })
    }
}

impl Allowing {
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct ModeWorld {
    world: World,
    engine: Engine,
    broker: Arc<Allowing>,
}

impl ModeWorld {
    async fn with(tools: Value) -> Self {
        let world = World::with(|config| config["tools"] = tools).await;
        let broker = Arc::new(Allowing::default());
        let approvals = Arc::clone(&broker) as Arc<dyn ApprovalBroker>;
        let host = Host::builder().home(world.path("")).env(Env::from_iter([("PATH", "/usr/bin:/bin")])).build();
        let engine = world.built(|builder| builder.host(host).builtin_tools(HANDS).approvals(approvals));
        std::fs::write(world.path("secret.txt"), "hush").unwrap();
        Self { world, engine, broker }
    }

    /// Returns the names of the tools offered to a model, and the result of a call.
    async fn call(&self, mode: PermissionMode, tool: &str, input: Value) -> (Vec<String>, String) {
        self.world.server.reply(stream(call("c1", tool, &input))).reply(stream(answer("m1", "Done.")));
        let session = format!("s{}", self.world.server.requests().len());
        let request = self.engine.request(&session, None, None, "go").permission_mode(mode);
        within(self.engine.run(request).finish()).await.unwrap();
        let body = self.world.server.requests().last().unwrap().json();
        let names = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        (names.collect(), body["messages"].as_array().unwrap().last().unwrap()["content"].to_string())
    }
}

#[tokio::test]
async fn a_read_only_run_reads_its_workspace_and_changes_nothing() {
    let modes = ModeWorld::with(json!({"exec": {"mode": "full", "applyPatch": {"workspaceOnly": false}}})).await;
    modes.world.write("workspace/note.txt", "a note");
    let (names, result) = modes.call(PermissionMode::ReadOnly, "read", json!({"path": "note.txt"})).await;
    assert_eq!(names, ["read"]);
    assert!(result.contains("a note"), "{result}");
    for (tool, input) in [
        ("read", json!({"path": "../secret.txt"})),
        ("exec", json!({"command": "cat ../secret.txt"})),
        ("bash", json!({"command": "cat ../secret.txt"})),
        ("write", json!({"path": "new.txt", "content": "x"})),
    ] {
        let (_, result) = modes.call(PermissionMode::ReadOnly, tool, input).await;
        assert!(result.contains("\"is_error\":true") && !result.contains("hush"), "{tool}: {result}");
    }
    assert!(!modes.world.path("workspace/new.txt").exists());
    let request = modes.engine.request("s", None, None, "").permission_mode(PermissionMode::ReadOnly);
    let decision = modes.engine.tool_policy(request).unwrap();
    assert_eq!(decision.explain("write").to_string(), "write is denied by the session mode read-only (write)");
}

#[tokio::test]
async fn a_guarded_run_changes_its_workspace_and_needs_approval_for_commands() {
    for mode in [PermissionMode::Guarded, PermissionMode::Workspace] {
        for tools in [json!({}), json!({"exec": {"mode": "full", "applyPatch": {"workspaceOnly": false}}})] {
            let modes = ModeWorld::with(tools).await;
            let (names, _) = modes.call(mode, "write", json!({"path": "new.txt", "content": "x"})).await;
            assert_eq!(names, ["read", "exec", "edit", "write", "apply_patch", "process"]);
            assert!(modes.world.path("workspace/new.txt").exists());
            modes.call(mode, "write", json!({"path": "../out.txt", "content": "x"})).await;
            let patch = "*** Begin Patch\n*** Add File: ../out.txt\n+x\n*** End Patch";
            modes.call(mode, "apply_patch", json!({"input": patch})).await;
            assert!(!modes.world.path("out.txt").exists());
            let (_, result) = modes.call(mode, "exec", json!({"command": "echo unasked", "workdir": ".."})).await;
            assert!(result.contains("is unavailable") && result.contains("unasked"), "{result}");
            assert_eq!(modes.broker.asked(), [""; 0]);
            modes.call(mode, "exec", json!({"command": "touch made"})).await;
            assert_eq!(modes.broker.asked(), ["touch made"]);
        }
    }
}

#[tokio::test]
async fn a_mode_does_not_loosen_the_configuration() {
    let open = ModeWorld::with(json!({})).await;
    let (names, _) = open.call(PermissionMode::Full, "bash", json!({"command": "touch made"})).await;
    assert_eq!(names, ["read", "bash", "edit", "write", "apply_patch", "process"]);
    assert!(open.world.path("workspace/made").exists());
    let closed = ModeWorld::with(json!({"exec": {"mode": "deny"}, "fs": {"workspaceOnly": true}})).await;
    for mode in [PermissionMode::Full, PermissionMode::Guarded] {
        closed.call(mode, "exec", json!({"command": "touch made"})).await;
        let (_, result) = closed.call(mode, "read", json!({"path": "../secret.txt"})).await;
        assert!(!closed.world.path("workspace/made").exists() && !result.contains("hush"), "{result}");
    }
    assert_eq!(closed.broker.asked(), [""; 0]);
}

#[tokio::test]
async fn an_unavailable_host_is_refused_with_a_reason() {
    let modes = ModeWorld::with(json!({"exec": {"mode": "full"}})).await;
    for (input, expect) in [
        (json!({"host": "sandbox"}), "this session is in no sandbox"),
        (json!({"host": "node"}), "no node is connected"),
        (json!({"elevated": true}), "elevated is not available right now (runtime=direct)."),
        (json!({"host": "gateway"}), "ran"),
    ] {
        let mut input = input;
        input["command"] = "echo ran".into();
        let (_, result) = modes.call(PermissionMode::Full, "exec", input.clone()).await;
        assert!(result.contains(expect) && result.contains("ran") == (expect == "ran"), "{input}: {result}");
    }
    let world = World::with(|config| config["tools"] = json!({"exec": {"host": "node"}})).await;
    match world.ask("s1", "hello").await {
        Err(RunError::Config(message)) => assert!(message.contains("tools.exec.host"), "{message}"),
        other => panic!("{other:?}"),
    }
}

/// Creates a world whose commands run in a sandbox, which sender 7 may leave, with a secret outside; `None` without Landlock.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) async fn sandboxed() -> Option<World> {
    use pinch_sandbox::contract::Sandbox as _;

    pinch_sandbox::landlock::LandlockSandbox.probe().await.ok()?;
    let world = World::with(|config| {
        config["agents"]["defaults"]["sandbox"] =
            json!({"mode": "all", "backend": "landlock", "workspaceAccess": "rw"});
        config["tools"] = json!({"exec": {"mode": "full"}, "elevated": {"allowFrom": {"telegram": ["7"]}}});
    })
    .await;
    std::fs::write(world.path("secret.txt"), "hush").unwrap();
    Some(world)
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[tokio::test]
async fn a_command_outside_of_the_sandbox_runs_in_a_directory_there() {
    use pinch_embed::{Caller, Sender};

    let Some(world) = sandboxed().await else { return };
    let approvals = Arc::new(Allowing::default()) as Arc<dyn ApprovalBroker>;
    let host = Host::builder().home(world.path("")).env(Env::from_iter([("PATH", "/usr/bin:/bin")])).build();
    let engine = world.built(|builder| builder.host(host).builtin_tools(["exec"]).approvals(approvals));
    for (elevated, expect) in [(true, "hush"), (false, "is unavailable")] {
        let input = json!({"command": "cat secret.txt", "workdir": world.path(""), "elevated": elevated});
        world.server.reply(stream(call("c1", "exec", &input))).reply(stream(answer("m1", "Done.")));
        let mut from = Sender::default();
        from.id = Some("7".to_owned());
        let request = engine.request("s1", None, None, "go").caller(Caller::new().channel("telegram").sender(from));
        within(engine.run(request).finish()).await.unwrap();
        let body = world.server.requests().last().unwrap().json();
        let result = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(result.contains(expect), "{elevated}: {result}");
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[tokio::test]
async fn commands_leave_the_sandbox_only_for_permitted_senders() {
    use pinch_embed::{Caller, Sender};

    let Some(world) = sandboxed().await else { return };
    let broker = Arc::new(Allowing::default());
    let approvals = Arc::clone(&broker) as Arc<dyn ApprovalBroker>;
    let host = Host::builder().home(world.path("")).env(Env::from_iter([("PATH", "/usr/bin:/bin")])).build();
    let engine = world.built(|builder| builder.host(host).builtin_tools(["exec", "process"]).approvals(approvals));
    let command = format!("cat {}", world.path("secret.txt").display());
    for (sender, more, mode, leaves) in [
        ("7", json!({"elevated": true}), None, true),
        // It fails in the sandbox, and a person approves of another try outside.
        ("7", json!({}), None, true),
        ("7", json!({"elevated": false}), None, false),
        ("7", json!({"host": "gateway"}), None, false),
        ("8", json!({}), None, false),
        ("8", json!({"elevated": true}), None, false),
        ("7", json!({"elevated": true}), Some(PermissionMode::Guarded), false),
    ] {
        let mut input = more.clone();
        input["command"] = command.as_str().into();
        world.server.reply(stream(call("c1", "exec", &input))).reply(stream(answer("m1", "Done.")));
        let mut from = Sender::default();
        from.id = Some(sender.to_owned());
        let mut request = engine.request("s1", None, None, "go").caller(Caller::new().channel("telegram").sender(from));
        request.permission_mode = mode;
        within(engine.run(request).finish()).await.unwrap();
        let body = world.server.requests().last().unwrap().json();
        let result = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert_eq!(result.contains("hush"), leaves, "{sender} {more} {mode:?}: {result}");
        let expect: &[&str] = if leaves || mode.is_some() { &[&command] } else { &[] };
        // Leaving the sandbox requires approval, although commands inside do not.
        assert!(mode.is_some() || broker.asked() == expect, "{sender} {more}");
        let system = body["system"].to_string();
        assert_eq!(system.contains("Current elevated level"), sender == "7" && mode.is_none(), "{system}");
    }
}

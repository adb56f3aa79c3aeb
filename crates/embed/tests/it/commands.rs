//! Commands of a run under rules: which run, what they see, and what remains of them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use pinch_embed::engine::{Engine, EngineBuilder};
use pinch_embed::ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest};
use pinch_embed::run::RunError;
use pinch_embed::run::request::ExecOverrides;
use pinch_stdx::host::{Env, Host};
use pinch_tools::exec::modes::{ExecAsk, ExecSecurity};
use pinch_tools::process::ConfiguredHost;
use serde_json::{Value, json};

use crate::world::{World, answer, call, stream, within};

const HANDS: [&str; 5] = ["read", "exec", "process", "write", "apply_patch"];

async fn world(tools: Value) -> World {
    World::with(|config| config["tools"] = tools).await
}

fn engine(world: &World, register: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Engine {
    let env =
        Env::from_iter([("PATH", "/usr/bin:/bin"), ("OPENAI_API_KEY", "secret"), ("MY_TOKEN", "t"), ("OTHER", "o")]);
    let host = Host::builder().home(world.path("")).env(env).build();
    world.built(|builder| register(builder.host(host).builtin_tools(HANDS)))
}

/// Makes the model call a tool, and returns the text and details of the result.
async fn result_of(world: &World, engine: &Engine, session: &str, tool: &str, arguments: Value) -> (String, Value) {
    world.server.reply(stream(call(&format!("{session}-1"), tool, &arguments)));
    world.server.reply(stream(answer("m1", "Done.")));
    within(engine.run(engine.request(session, None, None, "go")).finish()).await.unwrap();
    let transcript = world.transcript(session);
    let messages = transcript.of_type("message");
    let result = messages.iter().find(|message| message["message"]["role"] == "toolResult").unwrap();
    let text = result["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (text, result["message"]["details"].clone())
}

/// Gives every question the same answer, and records the questions.
struct Broker(ApprovalDecision, Mutex<Vec<String>>);

impl ApprovalBroker for Broker {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.1.lock().unwrap().push(request.command.clone());
        let decision = self.0;
        Box::pin(async move { decision })
    }
}

#[tokio::test]
async fn commands_see_the_usual_variables_and_those_listed() {
    let world = world(json!({"exec": {"mode": "full", "passEnv": ["MY_TOKEN"], "pathPrepend": ["/opt/own"]}})).await;
    let engine = engine(&world, |builder| builder);
    let (text, _) = result_of(&world, &engine, "s1", "exec", json!({"command": "env"})).await;
    assert!(text.contains("MY_TOKEN=t") && text.contains("PATH=/opt/own:/usr/bin:/bin"), "{text}");
    assert!(!text.contains("secret") && !text.contains("OTHER"), "{text}");
}

#[tokio::test]
async fn without_rules_harmless_commands_run_and_others_need_approval() {
    let world = world(json!({})).await;
    let silent = engine(&world, |builder| builder);
    let (text, _) = result_of(&world, &silent, "s1", "exec", json!({"command": "touch made"})).await;
    assert!(!world.path("workspace/made").exists(), "{text}");
    let broker = Arc::new(Broker(ApprovalDecision::AllowOnce, Mutex::default()));
    let asking = engine(&world, |builder| builder.approvals(Arc::clone(&broker) as Arc<dyn ApprovalBroker>));
    let (text, _) = result_of(&world, &asking, "s2", "exec", json!({"command": "touch made"})).await;
    assert!(world.path("workspace/made").exists(), "{text}");
    assert_eq!(*broker.1.lock().unwrap(), ["touch made"]);
}

#[tokio::test]
async fn scripts_need_an_approval_if_the_configuration_says_so() {
    for (setting, runs) in [(None, true), (Some(true), true), (Some(false), false)] {
        let mut exec = json!({"mode": "allowlist"});
        setting.inspect(|is_on| exec["scripts"] = json!(is_on));
        let world = world(json!({"exec": exec})).await;
        let engine = engine(&world, |builder| builder);
        for (session, command, expect) in [
            ("s1", "echo one\necho two", runs),
            ("s2", "echo $(echo two)", runs),
            ("s3", "echo one; echo two | wc -l && echo three", true),
        ] {
            let (text, _) = result_of(&world, &engine, session, "exec", json!({"command": command})).await;
            assert_eq!(!text.contains("denied"), expect, "{setting:?} {command}: {text}");
        }
    }
}

#[tokio::test]
async fn a_run_may_have_command_rules_of_its_own() {
    let world = world(json!({"exec": {"mode": "deny"}})).await;
    let engine = engine(&world, |builder| builder);
    for (session, overrides, expect) in [
        ("s1", ExecOverrides::default(), false),
        ("s2", ExecOverrides { ask: Some(ExecAsk::Off), ..Default::default() }, false),
        (
            "s3",
            ExecOverrides { security: Some(ExecSecurity::Full), ask: Some(ExecAsk::Off), ..Default::default() },
            true,
        ),
        // There is no sandbox.
        (
            "s4",
            ExecOverrides {
                host: Some(ConfiguredHost::Sandbox),
                security: Some(ExecSecurity::Full),
                ask: Some(ExecAsk::Off),
            },
            false,
        ),
    ] {
        world.server.reply(stream(call(session, "exec", &json!({"command": format!("touch {session}")}))));
        world.server.reply(stream(answer("m1", "Done.")));
        let request = engine.request(session, None, None, "go").exec_overrides(overrides);
        within(engine.run(request).finish()).await.unwrap();
        assert_eq!(world.path(&format!("workspace/{session}")).exists(), expect, "{session}");
    }
}

#[tokio::test]
async fn command_rules_remove_bash() {
    let world = world(json!({"exec": {"mode": "deny"}})).await;
    world.server.reply(stream(answer("m1", "Hello.")));
    world.ask("s1", "hello").await.unwrap();
    let body = world.server.requests()[0].json();
    let names: Vec<&str> = body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["read", "exec", "edit", "write", "process"]);
    let (text, _) = result_of(&world, &world.engine, "s2", "exec", json!({"command": "echo hello"})).await;
    assert!(!text.contains("hello\n"), "{text}");
}

#[tokio::test]
async fn invalid_command_rules_end_the_run_before_any_request() {
    for exec in [json!({"mode": "full", "ask": "off"}), json!({"security": "some"})] {
        let world = world(json!({"exec": exec})).await;
        match world.ask("s1", "hello").await {
            Err(RunError::Config(message)) => assert!(message.contains("tools.exec"), "{message}"),
            other => panic!("{other:?}"),
        }
        assert!(world.server.requests().is_empty());
    }
}

#[tokio::test]
async fn an_agent_has_rules_of_its_own() {
    let world = World::with(|config| {
        config["tools"] = json!({"exec": {"mode": "full", "timeoutSeconds": 60}});
        config["agents"]["list"] = json!([{"id": "main", "tools": {"exec": {"timeoutSeconds": 0.2}}}]);
    })
    .await;
    let engine = engine(&world, |builder| builder);
    let (text, _) = result_of(&world, &engine, "s1", "exec", json!({"command": "echo begun; sleep 30"})).await;
    assert!(text.contains("begun") && text.contains("timed out"), "{text}");
}

#[tokio::test]
async fn background_commands_are_managed_and_end_with_the_engine() {
    let world = world(json!({"exec": {"mode": "full", "backgroundMs": 10}})).await;
    let engine = engine(&world, |builder| builder);
    let command = "echo $$ > pid; exec sleep 300";
    let (_, details) = result_of(&world, &engine, "s1", "exec", json!({"command": command})).await;
    assert_eq!(details["status"], "running", "{details}");
    let pid = within(async {
        loop {
            let pid = std::fs::read_to_string(world.path("workspace/pid")).unwrap_or_default();
            match pid.trim().parse::<u32>() {
                Ok(pid) => return pid,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        }
    })
    .await;
    let listed = result_of_second(&world, &engine, "process", json!({"action": "list"})).await;
    assert!(listed.contains("sleep 300"), "{listed}");
    let is_alive = || std::path::Path::new(&format!("/proc/{pid}/status")).exists();
    assert!(is_alive());
    drop(engine);
    within(async {
        while is_alive() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_next_run_learns_about_background_commands_that_have_ended() {
    for (exec, is_told) in [(json!({"mode": "full"}), true), (json!({"mode": "full", "notifyOnExit": false}), false)] {
        let world = world(json!({"exec": exec})).await;
        let engine = engine(&world, |builder| builder);
        let command = "echo built; until test -e go; do sleep 0.02; done; exit 3";
        let arguments = json!({"command": command, "background": true});
        let (_, details) = result_of(&world, &engine, "s1", "exec", arguments).await;
        let id = details["sessionId"].as_str().unwrap();
        let poll = json!({"action": "poll", "sessionId": id, "timeout": 60_000});
        let polled = result_of_second(&world, &engine, "process", poll.clone()).await;
        assert!(polled.contains("Process still running"), "{polled}");
        world.write("workspace/go", "");
        // The run that waits for the end began before it.
        let told = |text: &str| text.contains(&format!("Exec failed ({}, code 3) :: built", &id[..id.len().min(8)]));
        let polled = result_of_second(&world, &engine, "process", poll).await;
        assert!(polled.contains("Process exited with code 3") && !told(&polled), "{polled}");
        for (session, is_told) in [("s2", false), ("s1", is_told), ("s1", false)] {
            world.server.reply(stream(answer("m3", "I see.")));
            within(engine.run(engine.request(session, None, None, "hello")).finish()).await.unwrap();
            let body = world.server.requests().last().unwrap().json();
            let prompt = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
            assert!(prompt.contains("hello") && told(&prompt) == is_told, "{session}: {prompt}");
        }
    }
}

/// Runs another turn of the session `s1` and returns the text of the last result.
async fn result_of_second(world: &World, engine: &Engine, tool: &str, arguments: Value) -> String {
    world.server.reply(stream(call("second", tool, &arguments)));
    world.server.reply(stream(answer("m2", "Done.")));
    within(engine.run(engine.request("s1", None, None, "and now?")).finish()).await.unwrap();
    world.server.requests().last().unwrap().json()["messages"].to_string()
}

#[tokio::test]
async fn without_process_commands_stay_in_the_foreground() {
    let world = world(json!({"deny": ["process"], "exec": {"mode": "full"}})).await;
    let engine = engine(&world, |builder| builder);
    let arguments = json!({"command": "echo done", "background": true});
    let (text, _) = result_of(&world, &engine, "s1", "exec", arguments).await;
    assert!(text.contains("background execution is disabled") && text.ends_with("done"), "{text}");
}

#[tokio::test]
async fn patches_change_files_of_the_workspace_only() {
    let world = world(json!({})).await;
    let engine = engine(&world, |builder| builder);
    let patch = |path: &str| json!({"input": format!("*** Begin Patch\n*** Add File: {path}\n+hello\n*** End Patch")});
    result_of(&world, &engine, "s1", "apply_patch", patch("a.txt")).await;
    assert_eq!(std::fs::read_to_string(world.path("workspace/a.txt")).unwrap(), "hello\n");
    let (text, _) = result_of(&world, &engine, "s2", "apply_patch", patch("../b.txt")).await;
    assert!(!world.path("b.txt").exists(), "{text}");

    let open = world_with_open_patches(&world);
    result_of(&world, &open, "s3", "apply_patch", patch("../b.txt")).await;
    assert!(world.path("b.txt").exists());
}

fn world_with_open_patches(world: &World) -> Engine {
    let mut document = world.document();
    document["tools"] = json!({"exec": {"applyPatch": {"workspaceOnly": false}}});
    world.configured(&document).builtin_tools(HANDS).build()
}

#[tokio::test]
async fn file_tools_see_only_the_workspace_if_configured() {
    let world = world(json!({})).await;
    let configured = |all: bool, own: Option<bool>| {
        let mut document = world.document();
        document["tools"] =
            json!({"fs": {"workspaceOnly": all}, "exec": {"mode": "full", "applyPatch": {"workspaceOnly": false}}});
        if let Some(own) = own {
            document["agents"]["list"] = json!([{"id": "main", "tools": {"fs": {"workspaceOnly": own}}}]);
        }
        world.configured(&document).builtin_tools(["read", "write", "ls", "exec", "apply_patch"]).build()
    };
    std::fs::write(world.path("secret.txt"), "hush").unwrap();
    let engine = configured(true, None);
    let (text, _) = result_of(&world, &engine, "s1", "read", json!({"path": "../secret.txt"})).await;
    assert!(text.contains("EACCES") && text.contains("outside of") && !text.contains("hush"), "{text}");
    let (text, _) = result_of(&world, &engine, "s2", "write", json!({"path": "../new.txt", "content": "x"})).await;
    assert!(text.contains("outside of") && !world.path("new.txt").exists(), "{text}");
    let patch = json!({"input": "*** Begin Patch\n*** Add File: ../b.txt\n+hello\n*** End Patch"});
    let (text, _) = result_of(&world, &engine, "s3", "apply_patch", patch).await;
    assert!(!world.path("b.txt").exists(), "{text}");
    let (text, _) = result_of(&world, &engine, "s4", "write", json!({"path": "in.txt", "content": "x"})).await;
    assert!(world.path("workspace/in.txt").exists(), "{text}");
    // Other agents' names for files in the workspace.
    let url = format!("file://{}", world.path("workspace/in.txt").display());
    for (n, path) in [url.as_str(), "/workspace/in.txt"].into_iter().enumerate() {
        let (text, _) = result_of(&world, &engine, &format!("u{n}"), "read", json!({"path": path})).await;
        assert_eq!(text, "x", "{path}");
    }
    for (n, path) in ["file:///etc/passwd", "/workspace/../secret.txt"].into_iter().enumerate() {
        let (text, _) = result_of(&world, &engine, &format!("o{n}"), "read", json!({"path": path})).await;
        assert!(text.contains("outside of"), "{path}: {text}");
    }
    // Commands are subject to the rules of tools.exec.
    let (text, _) = result_of(&world, &engine, "s5", "exec", json!({"command": "cat ../secret.txt"})).await;
    assert!(text.contains("hush"), "{text}");
    let engine = configured(true, Some(false));
    let (text, _) = result_of(&world, &engine, "s6", "read", json!({"path": "../secret.txt"})).await;
    assert!(text.contains("hush"), "{text}");
    let engine = configured(false, Some(true));
    let (text, _) = result_of(&world, &engine, "s7", "read", json!({"path": "../secret.txt"})).await;
    assert!(!text.contains("hush"), "{text}");
}

#[tokio::test]
async fn a_command_that_requests_a_terminal_gets_one_if_supported() {
    let world = world(json!({"exec": {"mode": "full"}})).await;
    let engine = engine(&world, |builder| builder);
    let arguments = json!({"command": "test -t 0 && stty size || echo none", "pty": true});
    let (text, _) = result_of(&world, &engine, "s1", "exec", arguments).await;
    match cfg!(feature = "pty") {
        true => assert_eq!(text.trim(), "30 120"),
        false => assert!(text.starts_with("Warning: ") && text.ends_with("none"), "{text}"),
    }
}

/// Allows everything, after running a closure.
struct Meanwhile<F>(F);

impl<F: Fn() + Send + Sync> ApprovalBroker for Meanwhile<F> {
    fn request<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async move {
            // File system timestamps have a resolution of a few milliseconds.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            (self.0)();
            ApprovalDecision::AllowOnce
        })
    }
}

fn write_script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn settings_of_exec_that_have_no_effect_on_bash_are_reported() {
    let told = |mode: Option<&str>, names: &[&str]| {
        let exec = match mode {
            Some(mode) => json!({"mode": mode, "timeoutSeconds": 5, "pathPrepend": ["/opt/bin"]}),
            None => json!({"timeoutSeconds": 5, "pathPrepend": ["/opt/bin"]}),
        };
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        async move {
            let world = world(json!({})).await;
            let mut document = world.document();
            document["tools"] = json!({"exec": exec});
            let engine = world.configured(&document).builtin_tools(names.iter().map(String::as_str)).build();
            engine.problems().iter().map(ToString::to_string).collect::<Vec<_>>()
        }
    };
    let problems = told(None, &["bash"]).await;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("tools.exec.timeoutSeconds: has no effect") && problems[0].contains("tools.exec.mode")
    );
    assert!(problems[1].contains("tools.exec.pathPrepend"), "{problems:?}");
    assert!(told(Some("full"), &["bash"]).await.is_empty());
    assert!(told(None, &["exec", "process"]).await.is_empty());
}

#[tokio::test]
async fn an_interrupted_patch_is_completed_before_the_next_run_sees_its_files() {
    let world = World::new().await;
    let engine = world.built(|builder| builder.builtin_tools(["apply_patch"]));
    let journal = json!({"version": 1, "changes": [
        {"path": "a.txt", "before": null, "content": "a\n"}, {"path": "b.txt", "before": null, "content": "b\n"},
    ]});
    world.write("workspace/.pinch-patch-1.json", &journal.to_string());
    world.server.reply(stream(answer("m1", "Done.")));
    within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(world.path("workspace")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.txt", "b.txt"]);
}

#[tokio::test]
async fn a_program_replaced_while_approval_is_pending_does_not_run() {
    type Meantime = fn(&Path);
    let cases: [(&str, &str, Meantime); 5] = [
        ("tool", "", |_| {}),
        ("tool", "second/tool was changed or replaced", |dir| {
            write_script(&dir.join("new"), "touch bad");
            std::fs::rename(dir.join("new"), dir.join("second/tool")).unwrap();
        }),
        ("tool", "second/tool was changed or replaced", |dir| write_script(&dir.join("first/tool"), "touch bad")),
        ("sh job.sh", "job.sh was changed or replaced", |dir| write_script(&dir.join("workspace/job.sh"), "touch bad")),
        ("ls && ./job.sh", "job.sh was changed or replaced", |dir| {
            std::fs::remove_file(dir.join("workspace/job.sh")).unwrap();
        }),
    ];
    for (command, expect, meantime) in cases {
        let world = world(json!({})).await;
        write_script(&world.path("second/tool"), "touch good");
        write_script(&world.path("workspace/job.sh"), "touch good");
        let mut document = world.document();
        document["tools"] =
            json!({"exec": {"mode": "ask", "pathPrepend": [world.path("first"), world.path("second")]}});
        let host = Host::builder().home(world.path("")).env(Env::from_iter([("PATH", "/usr/bin:/bin")])).build();
        let dir = world.path("");
        let builder = world.configured(&document).host(host).builtin_tools(HANDS);
        let engine = builder.approvals(Arc::new(Meanwhile(move || meantime(&dir)))).build();
        let (text, _) = result_of(&world, &engine, "s1", "exec", json!({"command": command})).await;
        assert!(text.contains(expect), "{command}: {text}");
        assert_eq!(world.path("workspace/good").exists(), expect.is_empty(), "{command}: {text}");
        assert!(!world.path("workspace/bad").exists(), "{command}: {text}");
    }
}

#[tokio::test]
async fn patches_outside_of_the_workspace_are_completed_after_a_crash() {
    for (workspace_only, is_finished) in [(false, true), (true, false)] {
        let world = World::with(|config| {
            config["tools"] = json!({"exec": {"mode": "ask"}, "fs": {"workspaceOnly": workspace_only}});
        })
        .await;
        let engine = engine(&world, |builder| builder);
        let changes = json!([
            {"path": world.path("elsewhere.txt"), "before": null, "content": "patched\n"},
            {"path": world.path("state/exec-approvals.json"), "before": null, "content": "{}"},
        ]);
        world.write("state/patches/.pinch-patch-1.json", &json!({"version": 1, "changes": changes}).to_string());
        result_of(&world, &engine, "s1", "read", json!({"path": "none"})).await;
        assert_eq!(world.path("elsewhere.txt").exists(), is_finished, "workspaceOnly: {workspace_only}");
        assert!(!world.path("state/exec-approvals.json").exists(), "what file tools may not change");
    }
}

#[tokio::test]
async fn file_tools_do_not_change_what_decides_about_commands() {
    let allowed = json!({"version": 1, "agents": {"*": {"allowlist": ["/**"]}}}).to_string();
    for (mode, is_written) in [("ask", false), ("deny", false), ("full", true)] {
        let world = world(json!({"exec": {"mode": mode, "applyPatch": {"workspaceOnly": false}}})).await;
        let engine = engine(&world, |builder| builder);
        let approvals = world.path("state/exec-approvals.json");
        let write = json!({"path": approvals.display().to_string(), "content": allowed});
        let (text, _) = result_of(&world, &engine, "s1", "write", write).await;
        assert_eq!(approvals.exists(), is_written, "{mode}: {text}");
        assert_eq!(text.contains("EACCES"), !is_written, "{mode}: {text}");
        if is_written {
            continue;
        }
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+{allowed}\n*** End Patch", approvals.display());
        let (text, _) = result_of(&world, &engine, "s2", "apply_patch", json!({"input": patch})).await;
        assert!(!approvals.exists(), "{mode}: {text}");
        std::os::unix::fs::symlink(&approvals, world.path("workspace/link")).unwrap();
        let (text, _) = result_of(&world, &engine, "s3", "write", json!({"path": "link", "content": allowed})).await;
        assert!(!approvals.exists(), "{mode}: {text}");
        // Nor do they write what runs programs later.
        for path in [
            world.path("state/agents/main/agent/models.json"),
            world.path("state/agents/main/agent/extensions/x"),
            world.path("workspace/.pinch/extensions/x"),
            world.path("workspace/.pi/settings.json"),
        ] {
            let write = json!({"path": path.display().to_string(), "content": "{}"});
            let (text, _) = result_of(&world, &engine, "s5", "write", write).await;
            assert!(text.contains("EACCES"), "{mode}: {}: {text}", path.display());
        }
        let (text, _) = result_of(&world, &engine, "s4", "write", json!({"path": "a.txt", "content": "x"})).await;
        assert!(world.path("workspace/a.txt").exists(), "{mode}: {text}");
    }
}

#[tokio::test]
async fn programs_of_skills_run_without_asking_only_if_the_approvals_file_says_so() {
    let skill = |bins: &str| {
        format!(
            "---\nname: making\ndescription: d\nmetadata: {{\"openclaw\": {{\"requires\": {{\"bins\": {bins}}}}}}}\n---\nUse it.\n"
        )
    };
    let on = json!({"defaults": {"autoAllowSkills": true}});
    let of_agent = json!({"agents": {"main": {"autoAllowSkills": true}, "*": {"autoAllowSkills": false}}});
    let off = json!({"defaults": {"autoAllowSkills": true}, "agents": {"main": {"autoAllowSkills": false}}});
    let making = "touch made";
    for (approvals, mode, place, bins, command, is_made) in [
        (&on, "allowlist", "state/skills", r#"["touch"]"#, making, true),
        (&on, "ask", "state/skills", r#"["touch"]"#, making, true),
        (&of_agent, "allowlist", ".agents/skills", r#""touch, cat""#, making, true),
        (&on, "allowlist", "state/skills", r#"["touch"]"#, "ls | xargs touch made; bash -c 'touch made'", true),
        (&off, "allowlist", "state/skills", r#"["touch"]"#, making, false),
        (&json!({}), "allowlist", "state/skills", r#"["touch"]"#, making, false),
        (&on, "deny", "state/skills", r#"["touch"]"#, making, false),
        (&on, "allowlist", "state/skills", r#"["cat"]"#, making, false),
        (&on, "allowlist", "state/skills", r#"["touch", "not-installed"]"#, making, false),
        (&on, "allowlist", "workspace/skills", r#"["touch"]"#, making, false),
        (&on, "allowlist", "workspace/.agents/skills", r#"["touch"]"#, making, false),
        (&on, "allowlist", "state/skills", r#"["touch"]"#, "/usr/bin/touch made", false),
        (&on, "allowlist", "state/skills", r#"["touch"]"#, "PATH=. touch made", false),
        (&on, "allowlist", "state/skills", r#"["touch"]"#, "touch made; rm -f none", false),
        (&on, "allowlist", "state/skills", r#"["bash"]"#, "bash -c 'touch made'", false),
    ] {
        let world = world(json!({"exec": {"mode": mode}})).await;
        let dir = world.path(place).join("making");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("SKILL.md"), skill(bins)).unwrap();
        let mut file = approvals.clone();
        file["version"] = json!(1);
        if command.contains("xargs") {
            file["agents"] = json!({"*": {"allowlist": ["/**/ls", "/**/xargs"]}});
        }
        std::fs::write(world.path("state/exec-approvals.json"), file.to_string()).unwrap();
        let engine = engine(&world, |builder| builder);
        let (text, _) = result_of(&world, &engine, "s1", "exec", json!({"command": command})).await;
        assert_eq!(
            world.path("workspace/made").exists(),
            is_made,
            "{approvals} {mode} {place} {bins} {command}: {text}"
        );
    }
}

#[tokio::test]
async fn a_program_that_the_workspace_puts_before_that_of_a_skill_does_not_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world(json!({"exec": {"mode": "allowlist"}})).await;
    let skill =
        "---\nname: s\ndescription: d\nmetadata: {\"openclaw\": {\"requires\": {\"bins\": [\"touch\"]}}}\n---\n";
    std::fs::create_dir_all(world.path("state/skills/s")).unwrap();
    std::fs::write(world.path("state/skills/s/SKILL.md"), skill).unwrap();
    let approvals = json!({"version": 1, "defaults": {"autoAllowSkills": true}});
    std::fs::write(world.path("state/exec-approvals.json"), approvals.to_string()).unwrap();
    let bin = world.path("workspace/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let host = Host::builder().home(world.path("")).env(Env::from_iter([("PATH", path.as_str())])).build();
    let engine = world.built(|builder| builder.host(host).builtin_tools(HANDS));
    // Whether or not there is such a program yet.
    for session in ["s1", "s2"] {
        let (text, _) = result_of(&world, &engine, session, "exec", json!({"command": "touch made"})).await;
        assert!(!world.path("workspace/made").exists() && text.contains("exec denied"), "{session}: {text}");
        std::fs::write(bin.join("touch"), "#!/bin/sh\n: > made\n").unwrap();
        std::fs::set_permissions(bin.join("touch"), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    // Nor can the agent add skills that count.
    let write = json!({"path": world.path("state/skills/t/SKILL.md").display().to_string(), "content": skill});
    let (text, _) = result_of(&world, &engine, "s3", "write", write).await;
    assert!(!world.path("state/skills/t").exists() && text.contains("EACCES"), "{text}");
}

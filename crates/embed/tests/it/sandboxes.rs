//! Sandboxed runs: what tools can reach, and what happens if the sandbox is unavailable.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::io::Write as _;

use pinch_coding_agent::tools::CODING;
use pinch_embed::run::{RunError, RunRequest};
use pinch_embed::{Caller, Engine};
use pinch_sandbox::contract::Sandbox as _;
use pinch_sandbox::landlock::LandlockSandbox;
use serde_json::{Value, json};

use crate::host::tool;
use crate::world::{World, answer, call, stream, within};

/// Returns whether the kernel supports these tests.
async fn works() -> bool {
    match LandlockSandbox.probe().await {
        Ok(_) => true,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "skipped: {error}"));
            false
        }
    }
}

/// Creates a world with these sandbox settings, and a secret next to the workspace.
async fn world(sandbox: Value) -> World {
    let world = World::with(|config| {
        let mut section = json!({"mode": "all", "backend": "landlock"});
        section.as_object_mut().unwrap().extend(sandbox.as_object().unwrap().clone());
        config["agents"]["defaults"]["sandbox"] = section;
    })
    .await;
    world.write("secret.txt", "top secret");
    world.write("workspace/note.txt", "a note");
    world
}

/// Returns the result of one tool call, and the system prompt of the run.
async fn called(world: &World, engine: &Engine, request: RunRequest, name: &str, input: Value) -> (String, String) {
    world.server.reply(stream(call("c1", name, &input))).reply(stream(answer("m1", "Done.")));
    within(engine.run(request).finish()).await.unwrap();
    let body = world.server.requests().last().unwrap().json();
    let result = body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    (result, body["system"].to_string())
}

#[tokio::test]
async fn a_sandboxed_run_sends_files_of_its_workspace_and_no_others() {
    if !works().await {
        return;
    }
    for access in ["rw", "ro"] {
        let world = world(json!({"workspaceAccess": access})).await;
        world.write("state/media/in.png", "of another session");
        let name = |path: &str| world.path(path).display().to_string();
        let outside = [name("secret.txt"), name("state/media/in.png")];
        // Tools of a run without write access to the workspace of its agent work in a copy.
        let own = if access == "rw" { "/workspace/note.txt" } else { "/agent/note.txt" };
        let lines: Vec<String> =
            outside.iter().map(String::as_str).chain([own]).map(|path| format!("MEDIA:{path}")).collect();
        world.server.reply(stream(answer("m1", &format!("Here.\n{}", lines.join("\n")))));
        let result = world.ask("s1", "go").await.unwrap();
        assert_eq!(result.payloads[0].reply.media_urls, [name("workspace/note.txt")], "{access}");
    }
}

#[tokio::test]
async fn a_sandboxed_run_reaches_its_workspace_and_nothing_else() {
    if !works().await {
        return;
    }
    let world = world(json!({"workspaceAccess": "rw"})).await;
    let mut document = world.document();
    document["tools"] = json!({"sandbox": {"tools": {"alsoAllow": ["ls"]}}});
    let engine = world.configured(&document).builtin_tools(CODING).builtin_tools(["apply_patch", "ls"]).build();
    let secret = world.path("secret.txt").display().to_string();
    let config = world.path("state/agents/main/agent/settings.json").display().to_string();
    let patch = format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch", world.path("new.txt").display());
    for (name, input) in [
        ("bash", json!({"command": format!("cat {secret} ../secret.txt")})),
        ("bash", json!({"command": format!("cat {config}")})),
        ("bash", json!({"command": format!("echo x > {secret}")})),
        (
            "bash",
            json!({"command": format!("exec 3<>/dev/tcp/{}", world.server.url().replace("http://", "").replace(':', "/"))}),
        ),
        ("read", json!({"path": secret})),
        ("read", json!({"path": "../secret.txt"})),
        ("write", json!({"path": secret, "content": "x"})),
        ("edit", json!({"path": secret, "edits": [{"oldText": "top", "newText": "no"}]})),
        ("ls", json!({"path": world.path("state").display().to_string()})),
        ("apply_patch", json!({"input": patch})),
    ] {
        let (result, _) = called(&world, &engine, world.request("s1", "go"), name, input.clone()).await;
        assert!(result.contains("\"is_error\":true") && !result.contains("not found\""), "{name} {input}: {result}");
        assert!(!result.contains("top secret") && !result.contains("keepRecentTokens"), "{name} {input}: {result}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "top secret");
    assert!(!world.path("new.txt").exists());
    let input = json!({"command": "cat note.txt && echo new > made.txt && echo $TMPDIR"});
    let (result, system) = called(&world, &engine, world.request("s1", "go"), "bash", input).await;
    assert!(result.contains("a note") && result.contains("pinch-sandbox-"), "{result}");
    assert_eq!(std::fs::read_to_string(world.path("workspace/made.txt")).unwrap(), "new\n");
    for line in [
        "Tools execute in: landlock".to_owned(),
        format!("Sandbox workspace: {}", world.path("workspace").display()),
        "Agent workspace access: rw".to_owned(),
    ] {
        assert!(system.contains(&line), "{line}: {system}");
    }
}

#[tokio::test]
async fn commands_under_rules_are_also_confined() {
    if !works().await {
        return;
    }
    let world = world(json!({"workspaceAccess": "rw"})).await;
    let mut document = world.document();
    document["tools"] = json!({"exec": {"mode": "full", "host": "sandbox"}});
    let engine = world.configured(&document).builtin_tools(["exec", "process"]).build();
    let command = format!("cat note.txt; cat {}", world.path("secret.txt").display());
    let (result, _) = called(&world, &engine, world.request("s1", "go"), "exec", json!({"command": command})).await;
    assert!(result.contains("a note") && result.contains("Permission denied"), "{result}");
    assert!(!result.contains("top secret"), "{result}");
}

#[tokio::test]
async fn an_image_outside_the_sandbox_is_not_shown_to_the_model() {
    if !works().await {
        return;
    }
    let world = world(json!({"workspaceAccess": "rw"})).await;
    const PIXEL: [u8; 67] = [
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0, 0, 1,
        8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0, 1, 0, 0, 5,
        0, 1, 0x0d, 0x0a, 0x2d, 0xb4, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
    ];
    for (dir, is_shown) in [("workspace", true), (".", false)] {
        let path = world.path(dir).join("pixel.png");
        pinch_stdx::fs::write_atomic(&path, &PIXEL, pinch_stdx::fs::Access::Keep).unwrap();
        world.server.reply(stream(answer("m1", "Seen.")));
        world.ask(&format!("s-{is_shown}"), &format!("what is in {}", path.display())).await.unwrap();
        let body = world.server.requests().last().unwrap().json()["messages"].to_string();
        assert_eq!(body.contains("\"type\":\"image\""), is_shown, "{body}");
    }
}

#[tokio::test]
async fn without_access_a_run_works_in_a_copy() {
    if !works().await {
        return;
    }
    for access in ["none", "ro"] {
        let world = world(json!({"workspaceAccess": access})).await;
        world.write("workspace/AGENTS.md", "Be brief.");
        let workspace = world.path("workspace").display().to_string();
        let command = format!("pwd; cat AGENTS.md; cat {workspace}/note.txt; echo x > {workspace}/x; echo y > y.txt");
        let (result, system) =
            called(&world, &world.engine, world.request("s1", "go"), "bash", json!({"command": command})).await;
        let copies = world.path("state/sandboxes");
        let copy = std::fs::read_dir(&copies).unwrap().next().unwrap().unwrap().path();
        assert!(result.contains(&copy.display().to_string()) && result.contains("Be brief."), "{access}: {result}");
        assert_eq!(result.contains("a note"), access == "ro", "{access}: {result}");
        assert!(!world.path("workspace/x").exists(), "{access}");
        assert_eq!(std::fs::read_to_string(copy.join("y.txt")).unwrap(), "y\n", "{access}");
        assert!(system.contains("Be brief.") && system.contains(&format!("Agent workspace access: {access}")));
        assert_eq!(system.contains(&format!("(mounted at {workspace})")), access == "ro", "{access}: {system}");
        // Changes to the copy are kept, and a link in it is not followed for writing.
        let swap = format!("echo Sing. > AGENTS.md; rm -f SOUL.md; ln -s {workspace}/x SOUL.md");
        called(&world, &world.engine, world.request("s1", "go"), "bash", json!({"command": swap})).await;
        world.write("workspace/SOUL.md", "A soul.");
        let (result, _) =
            called(&world, &world.engine, world.request("s2", "go"), "bash", json!({"command": "cat AGENTS.md"})).await;
        assert!(result.contains("Sing.") && !world.path("workspace/x").exists(), "{access}: {result}");
    }
}

#[tokio::test]
async fn sessions_share_a_sandbox_according_to_its_scope() {
    if !works().await {
        return;
    }
    for (scope, is_shared) in [("session", false), ("agent", true), ("shared", true)] {
        let world = world(json!({"workspaceAccess": "rw", "scope": scope})).await;
        let request = |key: &str, id: &str| {
            let mut request = world.request(id, "go");
            request.session_key = Some(format!("agent:main:{key}").into());
            request
        };
        let keep = json!({"command": "echo kept > $TMPDIR/kept"});
        called(&world, &world.engine, request("one", "s1"), "bash", keep).await;
        let look = json!({"command": "cat $TMPDIR/kept"});
        let (same, _) = called(&world, &world.engine, request("one", "s1"), "bash", look.clone()).await;
        let (other, _) = called(&world, &world.engine, request("two", "s2"), "bash", look).await;
        assert!(same.contains("kept"), "{scope}: {same}");
        assert_eq!(!other.contains("is_error\":true"), is_shared, "{scope}: {other}");
    }
}

#[tokio::test]
async fn only_the_main_session_stays_outside_in_mode_non_main() {
    if !works().await {
        return;
    }
    let world = world(json!({"mode": "non-main", "workspaceAccess": "rw"})).await;
    let command = json!({"command": format!("cat {}", world.path("secret.txt").display())});
    for (key, is_outside) in
        [(Some("main"), true), (Some("agent:main:MAIN"), true), (Some("agent:main:x"), false), (None, false)]
    {
        let mut request = world.request(&format!("s{key:?}"), "go");
        request.session_key = key.map(Into::into);
        let (result, system) = called(&world, &world.engine, request, "bash", command.clone()).await;
        assert_eq!(result.contains("top secret"), is_outside, "{key:?}: {result}");
        assert_eq!(!system.contains("## Sandbox"), is_outside, "{key:?}");
    }
}

#[tokio::test]
async fn a_sandbox_only_offers_the_tools_of_its_policy() {
    if !works().await {
        return;
    }
    let world = world(json!({"workspaceAccess": "rw"})).await;
    let offered = |document: Value| {
        let engine = world.configured(&document).builtin_tools(["read", "write"]).tool(tool("home", "at home")).build();
        let request = world.request("s1", "go").caller(Caller::new());
        world.server.reply(stream(answer("m1", "Hello.")));
        let server = &world.server;
        async move {
            within(engine.run(request).finish()).await.unwrap();
            let tools = server.requests().last().unwrap().json()["tools"].clone();
            let tools = tools.as_array().cloned().unwrap_or_default();
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(offered(world.document()).await, ["read", "write"], "tools of the host act outside");
    let mut document = world.document();
    document["tools"] = json!({"sandbox": {"tools": {"allow": ["read", "home"]}}});
    assert_eq!(offered(document.clone()).await, ["read", "home"]);
    let engine = world.configured(&document).builtin_tools(["read", "write"]).build();
    let decision = engine.tool_policy(world.request("s1", "")).unwrap();
    assert_eq!(decision.explain("write").to_string(), "write is not in sandbox tools.allow");
}

#[tokio::test]
async fn an_unavailable_sandbox_ends_the_run_before_any_request() {
    for (sandbox, expect) in [
        (json!({"backend": "bubblewrap"}), "bwrap"),
        (json!({"backend": "firejail"}), "unknown sandbox backend \"firejail\""),
        (json!({"backend": "landlock", "docker": {"memory": "1g"}}), "docker.memory"),
        (json!({"backend": "landlock", "docker": {"network": "host"}}), "network"),
        (json!({"backend": "landlock", "docker": {"network": "mine"}}), "docker.network requires a container"),
        (json!({"backend": "landlock", "domains": ["example.com"]}), "limit network access to a list of servers"),
        (
            json!({"backend": "landlock", "domains": ["https://a.test"]}),
            "sandbox.domains: \"https://a.test\" is not a server",
        ),
        (json!({"mode": "al", "backend": "bubblewrap"}), "bwrap"),
    ] {
        let world = World::new().await;
        let mut document = world.document();
        document["agents"]["defaults"]["sandbox"] = json!({"mode": "all"});
        document["agents"]["defaults"]["sandbox"].as_object_mut().unwrap().extend(sandbox.as_object().unwrap().clone());
        let config = document.as_object().unwrap().clone();
        let (config, _) = pinch_embed::Config::from_document(config, &world.path("pinch.json"));
        let host = pinch_stdx::host::Host::builder()
            .home(world.path("."))
            .env(pinch_stdx::host::Env::from_iter([("PATH", "/nowhere")]))
            .build();
        let engine = Engine::builder(world.path("state")).host(host).config(config).builtin_tools(CODING).build();
        match within(engine.run(world.request("s1", "go")).finish()).await {
            Err(RunError::Config(message)) => assert!(message.contains(expect), "{expect}: {message}"),
            other => panic!("{sandbox}: {other:?}"),
        }
        assert!(world.server.requests().is_empty());
    }
}

#[tokio::test]
async fn the_backend_none_is_no_sandbox_and_satisfies_nothing_that_needs_one() {
    for (host, expect) in [("auto", None), ("sandbox", Some("tools.exec.host requires a sandbox"))] {
        let world = World::with(|config| {
            config["agents"]["defaults"]["sandbox"] = json!({"mode": "all", "backend": "none"});
            config["tools"] = json!({"exec": {"host": host, "mode": "full"}});
        })
        .await;
        world.server.reply(stream(answer("m1", "Done.")));
        match (world.ask("s1", "go").await, expect) {
            (Ok(_), None) => assert!(!world.server.requests()[0].json()["system"].to_string().contains("## Sandbox")),
            (Err(RunError::Config(message)), Some(expect)) => assert!(message.contains(expect), "{message}"),
            (found, _) => panic!("{host}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn a_workspace_with_credentials_is_refused_as_a_sandbox() {
    if !works().await {
        return;
    }
    let world = world(json!({"workspaceAccess": "rw"})).await;
    for dir in [".", "state"] {
        let mut document = world.document();
        document["agents"]["defaults"]["workspace"] = json!(world.path(dir));
        let engine = world.configured(&document).builtin_tools(CODING).build();
        match within(engine.run(world.request("s1", "go")).finish()).await {
            Err(RunError::Config(message)) => assert!(message.contains("would contain"), "{message}"),
            other => panic!("{dir}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_command_line_agent_is_refused_in_a_sandbox() {
    if !works().await {
        return;
    }
    let world = world(json!({"workspaceAccess": "rw"})).await;
    let mut document = world.document();
    document["agents"]["defaults"]["model"] = json!({"primary": "echo-cli/x"});
    document["agents"]["defaults"]["cliBackends"] =
        json!({"echo-cli": {"command": "/bin/sh", "args": ["-c", "touch ran; echo hello"], "output": "text"}});
    let engine = world.configured(&document).build();
    match within(engine.run(world.request("s1", "go")).finish()).await {
        Err(RunError::Config(message)) => assert!(message.contains("outside the sandbox"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert!(!world.path("workspace/ran").exists());
}

#[tokio::test]
async fn additional_directories_are_readable_or_writable_as_configured() {
    if !works().await {
        return;
    }
    let world = world(json!({"extraRoots": ["../read", "~/write:rw", "../missing"]})).await;
    for dir in ["read", "write"] {
        world.write(&format!("{dir}/x"), "shared");
    }
    let [read, write] = ["read", "write"].map(|dir| world.path(dir).join("x").display().to_string());
    let command = format!("cat {read} {write}; echo changed > {read}; echo changed > {write}");
    let engine = world.configured(&world.document()).builtin_tools(CODING).build();
    let (result, _) = called(&world, &engine, world.request("s1", "go"), "bash", json!({"command": command})).await;
    assert!(result.contains("sharedshared"), "{result}");
    assert_eq!([&read, &write].map(|file| std::fs::read_to_string(file).unwrap()), ["shared", "changed\n"]);
    // The directory above contains the state of the engine.
    let exposed = world.path("").display().to_string();
    let mut document = world.document();
    document["agents"]["defaults"]["sandbox"]["extraRoots"] = json!([exposed]);
    let engine = world.configured(&document).build();
    match within(engine.run(world.request("s2", "go")).finish()).await {
        Err(RunError::Config(message)) => assert!(message.contains("the sandbox would contain"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_required_sandbox_takes_precedence_over_the_configuration() {
    if !works().await {
        return;
    }
    let configured = [
        (json!({"mode": "off", "backend": "landlock"}), json!({"exec": {"mode": "full"}})),
        (json!({"mode": "all", "backend": "landlock", "workspaceAccess": "rw"}), json!({"exec": {"mode": "full"}})),
        (json!({"mode": "all", "backend": "landlock"}), json!({"exec": {"mode": "full", "host": "gateway"}})),
        (
            json!({"mode": "all", "backend": "landlock"}),
            json!({"exec": {"mode": "full"}, "elevated": {"allowFrom": {"telegram": ["7"]}}}),
        ),
    ];
    for (sandbox, tools) in configured {
        let world = world(json!({})).await;
        let mut document = world.document();
        document["agents"]["defaults"]["sandbox"] = sandbox.clone();
        document["tools"] = tools.clone();
        let engine = world.configured(&document).builtin_tools(["exec", "process"]).build();
        let secret = world.path("secret.txt");
        let command = format!("cat {}; echo x > {}", secret.display(), world.path("workspace/made.txt").display());
        let input = json!({"command": command, "elevated": tools.get("elevated").is_some()});
        for is_required in [false, true] {
            let mut request = world.request(&format!("s{is_required}"), "go");
            request.elevated_level = Some(pinch_embed::run::request::ElevatedLevel::Full);
            let mut sender = pinch_embed::Sender::default();
            sender.id = Some("7".to_owned());
            request.caller = Caller::new().channel("telegram").sender(sender);
            let request = if is_required { request.require_sandbox() } else { request };
            let (result, system) = called(&world, &engine, request, "exec", input.clone()).await;
            let made = std::fs::remove_file(world.path("workspace/made.txt"));
            let has_left = result.contains("top secret") || made.is_ok();
            assert_eq!(has_left, !is_required, "{sandbox} {tools}: {result}");
            assert!(!is_required || system.contains("Tools execute in: landlock"), "{sandbox} {tools}: {system}");
        }
    }
    let world = world(json!({"backend": "none"})).await;
    match within(world.engine.run(world.request("s1", "go").require_sandbox()).finish()).await {
        Err(RunError::Config(message)) => assert!(message.contains("this run requires a sandbox"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert!(world.server.requests().is_empty());
}

/// Creates a world with a program that behaves like docker.
async fn with_engine() -> World {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().await;
    world.write("bin/docker", include_str!("../../../sandbox/tests/it/fake-engine.sh"));
    world.write("workspace/note.txt", "a note");
    std::fs::set_permissions(world.path("bin/docker"), std::fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// Creates an engine that finds the program of [`with_engine`].
fn engine_with_path(world: &World, document: Value) -> Engine {
    let Value::Object(document) = document else { panic!("{document}") };
    let (config, _) = pinch_embed::Config::from_document(document, &world.path("pinch.json"));
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    let host = pinch_stdx::host::Host::builder()
        .home(world.path("."))
        .env(pinch_stdx::host::Env::from_iter([("PATH", path)]))
        .build();
    Engine::builder(world.path("state")).host(host).config(config).builtin_tools(CODING).build()
}

#[tokio::test]
async fn no_rule_about_this_machine_covers_a_program_of_a_container() {
    if !works().await {
        return;
    }
    for (backend, is_allowed) in [("docker", false), ("landlock", true)] {
        let world = with_engine().await;
        let mut document = world.document();
        document["agents"]["defaults"]["sandbox"] = json!({"mode": "all", "backend": backend, "workspaceAccess": "rw"});
        document["tools"]["exec"] = json!({"security": "allowlist", "ask": "on-miss"});
        let allowed = json!({"version": 1, "agents": {"main": {"allowlist": [{"pattern": "/**"}]}}});
        world.write("state/exec-approvals.json", &allowed.to_string());
        let engine = engine_with_path(&world, document);
        for (command, is_builtin) in [("cat note.txt", false), ("echo a note", true)] {
            let (text, _) =
                called(&world, &engine, world.request("s1", "go"), "exec", json!({"command": command})).await;
            assert_eq!(text.contains("a note"), is_allowed || is_builtin, "{backend} {command}: {text}");
            assert_eq!(text.contains("cat is a program of the container"), !is_allowed && !is_builtin, "{text}");
        }
    }
}

#[tokio::test]
async fn container_settings_are_passed_to_docker() {
    if !works().await {
        return;
    }
    let world = with_engine().await;
    let log = || std::fs::read_to_string(world.path("bin/log")).unwrap_or_default();
    // Only containers support this limit, so `auto` selects a container.
    for (n, backend) in ["docker", "auto"].into_iter().enumerate() {
        let mut document = world.document();
        document["agents"]["defaults"]["sandbox"] = json!({
            "mode": "all", "backend": backend, "workspaceAccess": "ro",
            "docker": {"memory": "1g", "image": "my-image", "env": {"GREETING": "hello", "MY_TOKEN": "x"}, "setupCommand": "true"},
        });
        let engine = engine_with_path(&world, document);
        let command = json!({"command": "pwd; echo $GREETING"});
        let (result, system) = called(&world, &engine, world.request("s1", "go"), "bash", command.clone()).await;
        assert!(result.contains("state/sandboxes/agent-main-") && result.contains("hello"), "{result}");
        assert!(system.contains("Tools execute in: docker"), "{system}");
        called(&world, &engine, world.request("s2", "go"), "bash", command).await;
        let created: Vec<String> =
            log().lines().filter(|line| line.starts_with("create ")).map(str::to_owned).collect();
        assert_eq!(created.len(), n + 1, "both runs share it: {created:?}");
        for part in [
            " --memory 1g ",
            " my-image sleep infinity",
            ":/agent:ro ",
            " --env GREETING=hello ",
            " --label openclaw.sessionKey=agent:main ",
        ] {
            assert!(created[n].contains(part), "{part}: {}", created[n]);
        }
        assert!(!log().contains("MY_TOKEN"), "{}", log());
        drop(engine);
        for _ in 0..500 {
            if log().matches("rm --force").count() == n + 1 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(log().matches("rm --force").count(), n + 1, "{}", log());
    }
}

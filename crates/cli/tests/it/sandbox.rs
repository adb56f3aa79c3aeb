//! `--sandbox`: what a model can access with it.

use std::io::Write as _;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::help::{CommandOutput, TestUser};
use crate::rpc::PinchClient;
use crate::terminal_program::TerminalProgram;

/// Runs in the directory `project` beside a secret; the model calls one tool and answers. Returns the program's output and the text of the
/// tool's result.
async fn call(user: &TestUser, flags: &[&str], tool: &str, input: serde_json::Value) -> (CommandOutput, String) {
    user.write("secret.txt", "top secret");
    user.write("project/a.txt", "inside");
    let response = AnthropicResponse::new("msg_1").tool_call("toolu_1", tool, &input.to_string()).stop("tool_use");
    user.server.reply(ServerReply::sse(response.concat()));
    user.answer("Done.");
    let args = [&["--model", "local/m1", "--no-session"], flags, &["-p", "x"]].concat();
    let mut command = user.command(&args);
    let output = command.env("OUTSIDE", "seen").current_dir(user.path("project")).output().await.unwrap();
    let asked = user.asked().unwrap_or_default();
    let result = asked.as_array().and_then(|messages| messages.last()).map(|last| last["content"].to_string());
    (user.ran(output), result.unwrap_or_default())
}

/// In a trusted project, an agent in a sandbox could otherwise write programs that run outside of it later.
#[tokio::test]
async fn a_project_changed_from_inside_a_sandbox_is_not_trusted_any_more() {
    let user = TestUser::new().await;
    for backend in backends(&user).await {
        let flag = format!("--sandbox={backend}");
        let user = TestUser::new().await;
        user.write("project/.pinch/prompts/own.md", "mine");
        let project = user.path("project").canonicalize().unwrap();
        user.write("agent/trust.json", &json!({project.to_str().unwrap(): true}).to_string());
        let plant = "mkdir -p .pinch/extensions && printf '#!/bin/sh\ntouch ../escaped\n' > .pinch/extensions/x && \
                     chmod 755 .pinch/extensions/x && touch -d 2001-01-01 .pinch/extensions/x .pinch/extensions";
        let harmless = json!({"command": "echo ok > b.txt"});
        for (command, warns) in [(harmless.clone(), false), (json!({"command": plant}), false), (harmless, true)] {
            let (output, _) = call(&user, &[&flag], "bash", command).await;
            assert_eq!(output.err.contains("not trusted any more"), warns, "{flag}: {output:?}");
        }
        let (output, _) = call(&user, &["--sandbox=none"], "bash", json!({"command": "true"})).await;
        assert!(output.err.contains("not trusted any more"), "{flag}: {output:?}");
        let (output, _) = call(&user, &["--sandbox=none", "--approve"], "bash", json!({"command": "true"})).await;
        assert!(!output.err.contains("not trusted"), "{flag}: {output:?}");
    }
}

/// Returns the backends that work here.
async fn backends(user: &TestUser) -> Vec<String> {
    let report = user.run_program(&["doctor", "--json", "--offline"]).await;
    let report: serde_json::Value = serde_json::from_str(&report.out).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let section = sections.iter().find(|section| section["title"] == "Sandbox").unwrap();
    let findings = section["findings"].as_array().unwrap();
    let works = |name: &str| findings.iter().any(|one| one["name"] == name && one["mark"] == "ok");
    let (working, missing): (Vec<&str>, Vec<&str>) =
        ["landlock", "bubblewrap"].into_iter().partition(|name| works(name));
    for name in missing {
        drop(writeln!(std::io::stderr(), "skipped: {name} does not work here"));
    }
    working.into_iter().map(str::to_owned).collect()
}

/// Landlock does not hide them; the other backends do.
#[tokio::test]
async fn hidden_processes_are_a_demand_that_is_met_or_refused() {
    let user = TestUser::new().await;
    for backend in backends(&user).await {
        for (setting, is_demanded) in [(json!(true), true), (json!("no"), true), (json!(false), false)] {
            let user = TestUser::new().await;
            user.write("agent/settings.json", &json!({"sandbox": {"hideProcesses": setting}}).to_string());
            let flag = format!("--sandbox={backend}");
            let (output, _) = call(&user, &[&flag], "bash", json!({"command": "true"})).await;
            let is_refused = is_demanded && backend == "landlock";
            assert_eq!(output.code, Some(if is_refused { 2 } else { 0 }), "{flag} {setting}: {output:?}");
            assert_eq!(output.err.contains("hide processes"), is_refused, "{flag} {setting}: {output:?}");

            let config = json!({
                "agents": {"defaults": {
                    "model": "local/m1",
                    "sandbox": {"mode": "all", "workspaceAccess": "rw", "backend": backend, "hideProcesses": setting},
                }},
                "models": {"providers": {"local": {
                    "baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "m1"}],
                }}},
            });
            user.write(".pinch/pinch.json", &config.to_string());
            user.answer("Done.");
            let ran = user.run_program(&["agent", "--session-id", "s1", "-m", "x"]).await;
            assert_eq!(ran.code, Some(if is_refused { 2 } else { 0 }), "{flag} {setting}: {ran:?}");
            assert_eq!(ran.err.contains("hide processes"), is_refused, "{flag} {setting}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn a_model_in_a_sandbox_reaches_the_project_and_nothing_else() {
    let user = TestUser::new().await;
    let secret = user.path("secret.txt").display().to_string();
    let (_, result) = call(&user, &[], "bash", json!({"command": format!("cat {secret}")})).await;
    assert!(result.contains("top secret"), "without a sandbox: {result}");
    let show = json!({"command": "echo the mark is $OUTSIDE.; echo home is $HOME"});
    let (_, result) = call(&user, &[], "bash", show.clone()).await;
    assert!(result.contains("the mark is seen."), "without a sandbox: {result}");
    let mut flags: Vec<String> = backends(&user).await.iter().map(|name| format!("--sandbox={name}")).collect();
    if !flags.is_empty() {
        flags.push("--sandbox".to_owned());
    }
    for flag in flags {
        for (tool, input) in [
            ("bash", json!({"command": format!("cat {secret}; cat ../secret.txt")})),
            ("read", json!({"path": secret})),
            ("read", json!({"path": "../secret.txt"})),
            ("bash", json!({"command": format!("cat {}", user.path("agent/models.json").display())})),
            (
                "bash",
                json!({"command": format!("exec 3<>/dev/tcp/{}", user.server.url().replace("http://", "").replace(':', "/"))}),
            ),
        ] {
            let (ran, result) = call(&user, &[&flag], tool, input.clone()).await;
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{flag} {input}: {}", ran.err);
            assert!(
                !result.contains("top secret") && !result.contains("anthropic-messages"),
                "{flag} {input}: {result}"
            );
            assert!(result.contains("\"is_error\":true"), "{flag} {input}: {result}");
        }
        let (ran, result) = call(&user, &[&flag], "bash", json!({"command": "cat a.txt && echo new > b.txt"})).await;
        assert!(ran.code == Some(0) && result.contains("inside"), "{flag}: {result}");
        assert_eq!(std::fs::read_to_string(user.path("project/b.txt")).unwrap(), "new\n", "{flag}");
        let (_, result) = call(&user, &[&flag], "bash", show.clone()).await;
        assert!(result.contains("the mark is .") && result.contains("home is /"), "{flag}: {result}");
        let (_, result) = call(&user, &[&flag], "write", json!({"path": "c.txt", "content": "c"})).await;
        assert!(!result.contains("\"is_error\":true"), "{flag}: {result}");
        assert_eq!(std::fs::read_to_string(user.path("project/c.txt")).unwrap(), "c", "{flag}");
    }
}

#[tokio::test]
async fn skills_of_the_user_are_readable_in_a_sandbox_and_the_model_knows_about_it() {
    let user = TestUser::new().await;
    user.write("agent/skills/demo/SKILL.md", "---\nname: demo\ndescription: Shows things.\n---\nTurn left at the oak.");
    user.write("agent/skills/demo/steps.txt", "then right");
    for backend in backends(&user).await {
        let flag = format!("--sandbox={backend}");
        let file = user.path("agent/skills/demo/SKILL.md").display().to_string();
        let (_, result) = call(&user, &[&flag], "read", json!({"path": file})).await;
        assert!(result.contains("Turn left at the oak"), "{flag}: {result}");
        let steps = user.path("agent/skills/demo/steps.txt").display().to_string();
        let change =
            format!("cat {steps}; echo x > {steps} || echo refused; cat {}", user.path("agent/models.json").display());
        let (_, result) = call(&user, &[&flag], "bash", json!({"command": change})).await;
        assert!(result.contains("then right") && result.contains("refused"), "{flag}: {result}");
        assert!(!result.contains("anthropic-messages"), "{flag}: {result}");
        let system = user.server.requests().last().unwrap().json()["system"].to_string();
        let project = user.path("project").canonicalize().unwrap();
        for part in [&*format!("run in a sandbox ({backend})"), "There is no network.", project.to_str().unwrap()] {
            assert!(system.contains(part), "{part} is not in {system}");
        }
    }
    let (_, _) = call(&user, &["--sandbox=none"], "bash", json!({"command": "true"})).await;
    assert!(!user.server.requests().last().unwrap().json()["system"].to_string().contains("in a sandbox"));
}

#[tokio::test]
async fn long_output_is_readable_inside_the_sandbox() {
    let user = TestUser::new().await;
    for backend in backends(&user).await {
        let flag = format!("--sandbox={backend}");
        let (_, result) = call(&user, &[&flag], "bash", json!({"command": "seq 9999"})).await;
        let at =
            result.find("Full output: ").map(|at| at + "Full output: ".len()).unwrap_or_else(|| panic!("{result}"));
        let path: String = result[at..].chars().take_while(|c| !c.is_whitespace() && !"]\"\\,".contains(*c)).collect();
        assert!(path.contains("pinch-sandbox-"), "{backend}: {path}");
    }
}

#[tokio::test]
async fn an_unavailable_sandbox_ends_the_program_with_a_remedy() {
    let user = TestUser::new().await;
    user.write("project/a.txt", "inside");
    let args = ["--model", "local/m1", "--no-session", "--sandbox=bubblewrap", "-p", "x"];
    let output = user.command(&args).current_dir(user.path("project")).env("PATH", "/nowhere").output().await.unwrap();
    let ran = user.ran(output);
    let text = if cfg!(target_os = "linux") { "bwrap is not installed" } else { "there is none" };
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains(text) && ran.err.contains("hint: "), "{}", ran.err);
    assert!(user.server.requests().is_empty(), "the model was not asked");
}

#[tokio::test]
async fn a_sandbox_does_not_contain_the_home_directory() {
    let user = TestUser::new().await;
    let ran = user.run(&["--model", "local/m1", "--no-session", "--sandbox", "-p", "x"]).await;
    let text = "Error: the sandbox would contain your home directory: HOME is visible inside\nhint: start pinch in the directory of a project\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), text));
}

/// Writes the settings of a user whose tools are confined by this backend.
fn configure(user: &TestUser, backend: &str, more: serde_json::Value) {
    let mut sandbox = json!({"backend": backend});
    sandbox.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let settings = json!({"retry": {"enabled": false}, "sandbox": sandbox});
    user.write("agent/settings.json", &settings.to_string());
}

#[tokio::test]
async fn the_setting_keeps_tools_inside_unless_the_flag_says_otherwise() {
    let user = TestUser::new().await;
    let read = json!({"command": format!("cat {}", user.path("secret.txt").display())});
    for backend in backends(&user).await {
        configure(&user, &backend, json!({}));
        for flags in [&[][..], &["--mode", "json"]] {
            let (_, result) = call(&user, flags, "bash", read.clone()).await;
            assert!(result.contains("\"is_error\":true") && !result.contains("top secret"), "{backend}: {result}");
        }
        let (_, result) = call(&user, &["--sandbox=none"], "bash", read.clone()).await;
        assert!(result.contains("top secret"), "{backend}: {result}");
        // A project cannot change it.
        user.write("project/.pinch/settings.json", r#"{"sandbox": {"backend": "none"}}"#);
        let (_, result) = call(&user, &["--approve"], "bash", read.clone()).await;
        assert!(!result.contains("top secret"), "{backend}: {result}");
    }
}

#[tokio::test]
async fn settings_control_what_is_visible_in_a_sandbox() {
    let user = TestUser::new().await;
    user.write("shared/a.txt", "shared text");
    user.write("drafts/a.txt", "a draft");
    for backend in backends(&user).await {
        let drafts = format!("{}:rw", user.path("drafts").display());
        let more = json!({"workspaceAccess": "ro", "extraRoots": ["~/shared", drafts, "~/missing"]});
        configure(&user, &backend, more);
        let command = "cat ~/a.txt ../shared/a.txt ../drafts/a.txt; echo x > b.txt; echo x > ../shared/b.txt; echo x > ../drafts/b.txt";
        let (ran, result) = call(&user, &[], "bash", json!({"command": command})).await;
        assert!(result.contains("shared text") && result.contains("a draft"), "{backend}: {result}");
        let made = ["project/b.txt", "shared/b.txt", "drafts/b.txt"].map(|path| user.path(path).exists());
        assert_eq!(made, [false, false, true], "{backend}: {result}");
        assert!(ran.err.contains("~/missing does not exist"), "{}", ran.err);
        std::fs::remove_file(user.path("drafts/b.txt")).unwrap();
        let address = user.server.url().replace("http://", "").replace(':', "/");
        let connect = json!({"command": format!("exec 3<>/dev/tcp/{address} && echo connected")});
        for (network, is_reached) in [("off", false), ("on", true)] {
            configure(&user, &backend, json!({"network": network}));
            let (_, result) = call(&user, &[], "bash", connect.clone()).await;
            assert_eq!(result.contains("\"connected"), is_reached, "{backend} {network}: {result}");
        }
    }
}

#[tokio::test]
async fn the_setting_limits_the_network_to_listed_servers() {
    let user = TestUser::new().await;
    let server = user.server.url().replace("http://", "");
    let run = json!({"command": format!(
        "exec 3<>/dev/tcp/{} && echo direct; proxy=${{http_proxy#http://}}; exec 3<>/dev/tcp/${{proxy/:/\\/}}; \
         printf 'CONNECT {server} HTTP/1.1\\r\\n\\r\\n' >&3; read -r line <&3; echo \"$line\"", server.replace(':', "/"))});
    user.write("project/a.txt", "inside");
    for backend in backends(&user).await {
        let fails = async |domain: &str, expect: &str| {
            configure(&user, &backend, json!({"network": "domains", "domains": [domain]}));
            let mut command = user.command(&["--model", "local/m1", "--no-session", "-p", "x"]);
            let ran = user.ran(command.current_dir(user.path("project")).output().await.unwrap());
            assert!(ran.code == Some(2) && ran.err.contains(expect), "{backend}: {}", ran.err);
        };
        fails("https://example.com", "\"https://example.com\" is not a server").await;
        if backend == "landlock" {
            fails(&server, "it cannot limit network access to a list of servers\nhint: use bubblewrap").await;
            continue;
        }
        for (domain, expect) in [(server.as_str(), "200 Connection established"), ("example.com", "403 Forbidden")] {
            configure(&user, &backend, json!({"network": "domains", "domains": [domain]}));
            let (_, result) = call(&user, &[], "bash", run.clone()).await;
            assert!(result.contains(expect) && !result.contains("direct"), "{domain}: {result}");
        }
    }
}

#[tokio::test]
async fn an_invalid_sandbox_setting_does_not_disable_the_sandbox() {
    let user = TestUser::new().await;
    if backends(&user).await.is_empty() {
        return;
    }
    let read = json!({"command": format!("cat {}", user.path("secret.txt").display())});
    for wrong in [json!({"sandbox": true}), json!({"sandbox": {"backend": "landlok"}})] {
        user.write("agent/settings.json", &wrong.to_string());
        let (ran, result) = call(&user, &[], "bash", read.clone()).await;
        assert!(!result.contains("top secret") && result.contains("is_error"), "{wrong}: {result}");
        assert!(ran.err.contains("sandbox") && ran.err.contains("The strictest value is used"), "{}", ran.err);
    }
    user.write("agent/settings.json", r#"{"sandbox": {"backend": "landlock""#);
    let output = user.command(&["--model", "local/m1", "-p", "x"]).current_dir(user.path("project")).output().await;
    assert_eq!(user.ran(output.unwrap()).code, Some(2), "settings that cannot be read may have asked for it");
    user.server.take_unexpected();
}

#[tokio::test]
async fn every_mode_is_in_the_sandbox_of_the_settings() {
    let user = TestUser::new().await;
    let Some(backend) = backends(&user).await.pop() else { return };
    user.write("secret.txt", "top secret");
    user.write("project/a.txt", "inside");
    configure(&user, &backend, json!({}));
    let mut command = user.command(&["--mode", "rpc", "--model", "local/m1", "--no-session"]);
    command.current_dir(user.path("project"));
    let mut client = PinchClient::start(command);
    let answer = client.ask(&json!({"type": "bash", "command": "cat a.txt ../secret.txt"})).await;
    let answer = serde_json::to_string(&answer).unwrap();
    assert!(answer.contains("inside") && !answer.contains("top secret"), "{answer}");
    client.hang_up();
    let agent_dir = user.path("agent").display().to_string();
    let args = ["--agent-dir", &agent_dir, "--model", "local/m1", "--no-session"];
    let mut program = TerminalProgram::run_in(&user, "project", &args);
    program.wait_for("/ for commands").await;
    program.keys("!cat a.txt ../secret.txt; echo en''ded").await;
    program.wait_for("en''ded").await;
    program.keys("\r").await;
    program.wait_for("\n ended").await;
    assert!(program.contents().contains("inside") && !program.contents().contains("top secret"));
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    configure(&user, "bubblewrap", json!({}));
    for mode in [&["--mode", "json", "x"][..], &["--mode", "rpc"], &["-p", "x"]] {
        let args = [&["--model", "local/m1", "--no-session"], mode].concat();
        let mut command = user.command(&args);
        command.current_dir(user.path("project")).env("PATH", "/nowhere");
        let ran = user.ran(command.output().await.unwrap());
        assert_eq!(ran.code, Some(2), "{mode:?}: {}", ran.err);
        assert!(ran.err.contains("bwrap") && ran.err.contains("settings.json"), "{mode:?}: {}", ran.err);
    }
    assert!(user.server.requests().is_empty(), "the model was not asked");
}

/// Creates a program named docker that logs its arguments and runs commands here; returns its directory.
fn fake_docker(user: &TestUser) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let program = user.write("bin/docker", include_str!("../../../sandbox/tests/it/fake-engine.sh"));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    user.path("bin")
}

#[tokio::test]
async fn a_container_holds_the_commands_of_a_conversation_and_is_removed_with_it() {
    let user = TestUser::new().await;
    if backends(&user).await.is_empty() {
        return;
    }
    let bin = fake_docker(&user);
    user.write("secret.txt", "top secret");
    user.write("project/a.txt", "inside");
    configure(&user, "docker", json!({"image": "my-image"}));
    for (tool, input, expect) in [
        ("bash", json!({"command": "cat a.txt"}), "inside"),
        ("read", json!({"path": "a.txt"}), "inside"),
        ("read", json!({"path": "../secret.txt"}), "is_error\":true"),
    ] {
        let response = AnthropicResponse::new("msg_1").tool_call("toolu_1", tool, &input.to_string()).stop("tool_use");
        user.server.reply(ServerReply::sse(response.concat()));
        user.answer("Done.");
        let mut command = user.command(&["--model", "local/m1", "--no-session", "-p", "x"]);
        command.current_dir(user.path("project")).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let ran = user.ran(command.output().await.unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{}", ran.err);
        let result = user.asked().unwrap().as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(result.contains(expect) && !result.contains("top secret"), "{input}: {result}");
    }
    let log = || std::fs::read_to_string(bin.join("log")).unwrap();
    assert!(log().contains(" --network none ") && log().contains(" my-image sleep infinity"), "{}", log());
    for _ in 0..500 {
        if log().matches("rm --force").count() == 3 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("containers are left: {}", log());
}

#[tokio::test]
async fn an_embedded_run_is_in_its_sandbox_or_ends_with_the_remedy() {
    let user = TestUser::new().await;
    user.write("secret.txt", "top secret");
    let configure = |backend: &str| {
        let document = json!({
            "agents": {"defaults": {
                "model": "anthropic/claude-sonnet-4-5", "workspace": user.path("project"),
                "sandbox": {"mode": "all", "workspaceAccess": "rw", "backend": backend},
            }},
            "models": {"providers": {"anthropic": {"baseUrl": user.server.url(), "apiKey": "none"}}},
        });
        user.write(".pinch/pinch.json", &document.to_string());
    };
    let args = ["agent", "--session-id", "s1", "--message", "go"];
    configure("bubblewrap");
    let ran = user.ran(user.program(&args).env("PATH", "/nowhere").output().await.unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains("install the package bubblewrap"), "{}", ran.err);
    assert!(user.server.requests().is_empty(), "the model was not asked");
    for backend in backends(&user).await {
        configure(&backend);
        let input = json!({"command": "pwd; cat ../secret.txt"}).to_string();
        let response = AnthropicResponse::new("msg_1").tool_call("toolu_1", "bash", &input).stop("tool_use");
        user.server.reply(ServerReply::sse(response.concat()));
        user.answer("Done.");
        let ran = user.run_program(&args).await;
        assert!(ran.code == Some(0) && ran.out.starts_with("Done.\n"), "{backend}: {}{}", ran.out, ran.err);
        let result = user.asked().unwrap().as_array().unwrap().last().unwrap()["content"].to_string();
        assert!(result.contains("/project") && result.contains("is_error\":true"), "{backend}: {result}");
        assert!(!result.contains("top secret"), "{backend}: {result}");
    }
}

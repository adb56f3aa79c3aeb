//! `--sandbox`: what a model can reach with it.

use std::io::Write as _;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::help::{CommandOutput, TestUser};

/// Runs in the directory `project`, beside which there is a secret; the model calls one tool and answers. Returns how the program ended, and the
/// text of the tool's result.
async fn call(user: &TestUser, flags: &[&str], tool: &str, input: serde_json::Value) -> (CommandOutput, String) {
    user.write("secret.txt", "top secret");
    user.write("project/a.txt", "inside");
    let response = AnthropicResponse::new("msg_1").tool_call("toolu_1", tool, &input.to_string()).stop("tool_use");
    user.server.reply(ServerReply::sse(response.concat()));
    user.answer("Done.");
    let args = [&["--model", "local/m1", "--no-session"], flags, &["-p", "x"]].concat();
    let output = user.command(&args).current_dir(user.path("project")).output().await.unwrap();
    let asked = user.asked().unwrap_or_default();
    let result = asked.as_array().and_then(|messages| messages.last()).map(|last| last["content"].to_string());
    (user.ran(output), result.unwrap_or_default())
}

/// The backends that work here.
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

#[tokio::test]
async fn a_model_in_a_sandbox_reaches_the_project_and_nothing_else() {
    let user = TestUser::new().await;
    let secret = user.path("secret.txt").display().to_string();
    let (_, result) = call(&user, &[], "bash", json!({"command": format!("cat {secret}")})).await;
    assert!(result.contains("top secret"), "without a sandbox: {result}");
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
        let (_, result) = call(&user, &[&flag], "write", json!({"path": "c.txt", "content": "c"})).await;
        assert!(!result.contains("\"is_error\":true"), "{flag}: {result}");
        assert_eq!(std::fs::read_to_string(user.path("project/c.txt")).unwrap(), "c", "{flag}");
    }
}

#[tokio::test]
async fn long_output_of_a_sandbox_can_be_read_there() {
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
async fn what_cannot_be_had_ends_the_program_with_the_remedy() {
    let user = TestUser::new().await;
    user.write("project/a.txt", "inside");
    let args = ["--model", "local/m1", "--no-session", "--sandbox=bubblewrap", "-p", "x"];
    let output = user.command(&args).current_dir(user.path("project")).env("PATH", "/nowhere").output().await.unwrap();
    let ran = user.ran(output);
    let text = if cfg!(target_os = "linux") { "the program bwrap is not installed" } else { "there is none" };
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains(text) && ran.err.contains("hint: "), "{}", ran.err);
    assert!(user.server.requests().is_empty(), "the model was not asked");
}

#[tokio::test]
async fn a_sandbox_does_not_contain_the_home_directory() {
    let user = TestUser::new().await;
    let ran = user.run(&["--model", "local/m1", "--no-session", "--sandbox", "-p", "x"]).await;
    let text = "Error: the sandbox would contain your home directory: HOME is shown inside\nhint: start pinch in the directory of a project\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), text));
}

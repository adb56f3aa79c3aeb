//! Package commands as scripts use them: output, messages, exit codes and settings.

use pinch_testing::server::ServerReply;
use serde_json::{Value, json};

use crate::help::{CommandOutput, TestUser};
#[cfg(unix)]
use crate::sessions::stored;
#[cfg(target_os = "linux")]
use crate::terminal_program::TerminalProgram;

fn ran(code: i32, out: &str, err: &str) -> CommandOutput {
    CommandOutput { code: Some(code), out: out.to_owned(), err: err.to_owned() }
}

/// Runs a command in a user's project.
async fn run(user: &TestUser, args: &[&str]) -> CommandOutput {
    let mut command = user.program(args);
    command.current_dir(user.path("w")).env("PINCH_AGENT_DIR", user.path("agent"));
    user.ran(command.output().await.unwrap())
}

async fn user() -> TestUser {
    let user = TestUser::new().await;
    user.write("w/pkg/skills/s/SKILL.md", "---\ndescription: d\n---\n");
    user
}

fn settings(user: &TestUser, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(user.path(name)).unwrap()).unwrap()
}

#[tokio::test]
async fn a_directory_is_installed_and_removed() {
    let user = user().await;
    assert_eq!(run(&user, &["list"]).await, ran(0, "No packages installed.\n", ""));
    assert_eq!(run(&user, &["install", "./pkg"]).await, ran(0, "Installing ./pkg...\nInstalled ./pkg\n", ""));
    let kept = settings(&user, "agent/settings.json");
    assert_eq!(kept, json!({"retry": {"enabled": false}, "packages": ["../w/pkg"]}));
    assert_eq!(run(&user, &["list"]).await, ran(0, "User packages:\n  ../w/pkg\n    HOME/w/pkg\n", ""));
    assert_eq!(run(&user, &["update", "./pkg"]).await, ran(0, "Updated ./pkg\n", ""));
    assert_eq!(run(&user, &["uninstall", "pkg"]).await, ran(0, "Removing pkg...\nRemoved pkg\n", ""));
    let gone = ran(1, "Removing pkg...\n", "No matching package found for pkg\n");
    assert_eq!(run(&user, &["remove", "pkg"]).await, gone);
    assert_eq!(settings(&user, "agent/settings.json"), json!({"retry": {"enabled": false}, "packages": []}));
}

#[tokio::test]
async fn packages_of_a_project_need_its_trust() {
    let user = user().await;
    assert_eq!(run(&user, &["install", "pkg", "-l"]).await.code, Some(0), "a bare project needs none");
    assert_eq!(settings(&user, "w/.pi/settings.json"), json!({"packages": ["../pkg"]}));
    let hint = "Warning: this project is not trusted, so its packages are ignored. Use --approve to trust it\n";
    assert_eq!(run(&user, &["list"]).await, ran(0, "No packages installed.\n", hint));
    let refused = run(&user, &["install", "-l", "."]).await;
    assert_eq!(
        (refused.code, refused.err.starts_with("Error: This project is not trusted")),
        (Some(1), true),
        "{refused:?}"
    );
    let listed = ran(0, "Project packages:\n  ../pkg\n    HOME/w/pkg\n", "");
    assert_eq!(run(&user, &["list", "--approve"]).await, listed);
    user.write(
        "agent/trust.json",
        &json!({user.path("w").canonicalize().unwrap().to_str().unwrap(): true}).to_string(),
    );
    assert_eq!(run(&user, &["list"]).await, listed);
    assert_eq!(run(&user, &["list", "-na"]).await, ran(0, "No packages installed.\n", hint));
    assert_eq!(run(&user, &["remove", "-l", "pkg"]).await.code, Some(0));
}

#[tokio::test]
async fn impossible_requests_are_errors() {
    let user = user().await;
    let config = run(&user, &["config"]).await;
    assert_eq!((config.code, config.err.starts_with("Error: pinch config needs a terminal\n")), (Some(1), true));
    let update = run(&user, &["update"]).await;
    assert!(
        update.code == Some(0)
            && update.out.contains("cargo install pinch-cli\u{60}")
            && update.out.contains("--extensions")
    );
    assert!(!run(&user, &["update", "--self"]).await.out.contains("--extensions"));
    let models = run(&user, &["update", "--models"]).await;
    assert_eq!((models.code, models.out.as_str()), (Some(1), ""));
    let unsafe_source = run(&user, &["install", "git:github.com/../x"]).await;
    assert_eq!(unsafe_source.err, "Error: Not a usable git source: git:github.com/../x\n");
    user.write("agent/settings.json", "{oops");
    let damaged = run(&user, &["install", "pkg"]).await;
    assert_eq!(damaged.code, Some(2), "{damaged:?}");
    let help = run(&user, &["install", "--help"]).await;
    assert!(help.code == Some(0) && help.out.starts_with("Usage: pinch install <source> [-l]"));
}

/// Packages needed by a session of another directory are installed there; the program's own directory is not touched.
#[cfg(unix)]
#[tokio::test]
async fn packages_are_installed_for_the_directory_of_the_session() {
    let user = user().await;
    let npm = user.write("npm", "for name; do :; done\nmkdir -p \"node_modules/$name\"\n");
    let wanted = json!({"retry": {"enabled": false}, "npmCommand": ["/bin/sh", npm]});
    user.write("agent/settings.json", &wanted.to_string());
    for folder in ["w", "other"] {
        let packages = json!({"packages": [format!("npm:of-{folder}")]});
        user.write(&format!("{folder}/.pi/settings.json"), &packages.to_string());
    }
    user.write("s.jsonl", &stored("abc", user.path("other").to_str().unwrap()));
    user.answer("Fine.");
    let asked = run(&user, &["--approve", "--session", "../s.jsonl", "-p", "more"]).await;
    assert_eq!(asked, ran(0, "Fine.\n", "Installing npm:of-other\n"));
    let is_there = |name: &str| user.path(&format!("{name}/.pi/npm/node_modules/of-{name}")).is_dir();
    assert_eq!((is_there("w"), is_there("other")), (false, true));
    // A copy belongs to the directory in which it is created.
    user.answer("Fine.");
    let copied = run(&user, &["--approve", "--fork", "../s.jsonl", "-p", "more"]).await;
    assert_eq!(copied, ran(0, "Fine.\n", "Installing npm:of-w\n"));
    assert!(is_there("w"));
}

#[tokio::test]
async fn passwords_of_sources_are_not_printed() {
    let user = TestUser::new().await;
    let ran = user.run_program(&["install", "http://me:secret@127.0.0.1:1/a/b"]).await;
    assert_ne!(ran.code, Some(0));
    assert!(ran.out.contains("http://me:***@127.0.0.1:1/a/b"), "{}", ran.out);
    assert!(!format!("{}{}", ran.out, ran.err).contains("secret"), "{}{}", ran.out, ran.err);
}

#[tokio::test]
async fn catalogs_of_models_are_fetched_for_those_with_credentials() {
    let user = user().await;
    let update = async |vars: &[(&str, &str)]| {
        let mut command = user.program(&["update", "--models"]);
        command.env("PINCH_AGENT_DIR", user.path("agent")).env("PINCH_MODEL_CATALOG_URL", user.server.url());
        user.ran(command.envs(vars.iter().copied()).output().await.unwrap())
    };
    let none = update(&[]).await;
    assert!(none.code == Some(1) && none.err.contains("no provider has credentials"), "{none:?}");
    let offline = update(&[("PINCH_OFFLINE", "1"), ("ANTHROPIC_API_KEY", "k")]).await;
    assert!(offline.code == Some(1) && offline.err.contains("offline"), "{offline:?}");
    let record = json!({
        "id": "claude-next", "name": "Claude Next", "api": "anthropic-messages", "provider": "anthropic",
        "baseUrl": "https://api.anthropic.com", "input": ["text"], "contextWindow": 1000, "maxTokens": 100,
    });
    user.server.reply(ServerReply::json(200, &json!({"models": [record]})));
    let done = update(&[("ANTHROPIC_API_KEY", "k")]).await;
    assert_eq!(done, ran(0, "anthropic: 1 models\nModel catalogs refreshed\n", ""));
    let mut list = user.program(&["--list-models", "claude-next"]);
    list.env("PINCH_AGENT_DIR", user.path("agent")).env("ANTHROPIC_API_KEY", "k");
    let listed = user.ran(list.output().await.unwrap());
    assert!(listed.out.contains("claude-next"), "{listed:?}");
    user.server.reply(ServerReply::status(403));
    let failed = update(&[("ANTHROPIC_API_KEY", "k")]).await;
    let text = "Error: could not refresh model catalogs: anthropic: the server responded with 403 Forbidden\n";
    assert_eq!(failed, ran(3, "", text));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn resources_are_toggled_on_a_terminal() {
    let user = user().await;
    user.write("agent/settings.json", &json!({"packages": ["../w/pkg"], "z": 1}).to_string());
    user.write("agent/prompts/hello.md", "hi");
    user.write("w/.pi/prompts/ours.md", "hi");
    let agent_dir = format!("PINCH_AGENT_DIR={}", user.path("agent").display());
    let mut program = TerminalProgram::run_with(&user, "w", &[&agent_dir], &["config", "--approve"]);
    program.wait_for("Global resources").await;
    program.wait_for("[x] s").await;
    let screen = program.contents();
    assert!(
        screen.contains("../w/pkg (user)") && screen.contains("[x] hello.md") && !screen.contains("ours.md"),
        "{screen}"
    );
    program.keys(" ").await;
    program.wait_for("[ ] s").await;
    let disabled = json!([{"source": "../w/pkg", "skills": ["-skills/s/SKILL.md"]}]);
    assert_eq!(settings(&user, "agent/settings.json"), json!({"packages": disabled, "z": 1}));
    program.keys("\t").await;
    program.wait_for("Project resources").await;
    program.keys("ours").await;
    program.wait_until("the one that is searched for", |screen| !screen.contains("hello.md")).await;
    program.keys(" ").await;
    program.wait_for("project unload").await;
    assert_eq!(settings(&user, "w/.pi/settings.json"), json!({"prompts": ["-prompts/ours.md"]}));
    program.keys("\u{1b}").await;
    assert_eq!(program.end().await, Some(0));
    let mut program = TerminalProgram::run_with(&user, "w", &[&agent_dir], &["config", "--local"]);
    program.wait_for("this project is not trusted").await;
    assert_eq!(program.end().await, Some(1));
}

//! `/share-as-file`: a page of the session for others.
#![cfg(target_os = "linux")]

use serde_json::json;

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

#[tokio::test]
async fn the_page_has_no_credentials_and_not_the_home_directory() {
    let user = TestUser::new().await;
    let (variable, stored) = ("sk-proj-from-the-environment-0123", "sk-ant-from-the-file-4567");
    user.write("agent/auth.json", &json!({"anthropic": {"type": "api_key", "key": stored}}).to_string());
    let home = user.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1"];
    let mut program = TerminalProgram::run_with(&user, "", &[&format!("OPENAI_API_KEY={variable}")], &args);
    program.wait_for("/ for commands").await;
    user.answer(&format!("keys {variable} and {stored} in {home}/notes.txt, the end"));
    program.keys("go\r").await;
    program.wait_for("the end").await;
    for (command, file) in [("/export all.html", "all.html"), ("/share-as-file for-others.html", "for-others.html")] {
        program.keys(&format!("{command}\r")).await;
        program.wait_until(file, |_| user.path(file).exists()).await;
    }
    program.wait_for("review the rest before you share it").await;
    let all = std::fs::read_to_string(user.path("all.html")).unwrap();
    let shared = std::fs::read_to_string(user.path("for-others.html")).unwrap();
    for secret in [variable, stored, &home] {
        assert!(all.contains(secret) && !shared.contains(secret), "{secret}");
    }
    assert!(shared.contains("keys [hidden] and [hidden] in ~/notes.txt"), "{shared}");
    program.keys("/share-as-file all.jsonl\r").await;
    program.wait_for("/export writes one as it is").await;
    program.keys("/share\r").await;
    program.wait_for("did you mean /share-as-file?").await;
}

//! Theme files of the user, in the interactive mode.
#![cfg(target_os = "linux")]

use serde_json::{Map, Value, json};

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Writes the user's theme, all of whose colours are this one.
fn write_theme(user: &TestUser, color: &str) {
    let colors = pinch_embed::coding_agent::resources::themes::COLORS;
    let colors: Map<String, Value> = colors.into_iter().map(|name| (name.to_owned(), color.into())).collect();
    user.write("agent/themes/mine.json", &json!({"name": "mine", "colors": colors}).to_string());
}

#[tokio::test]
async fn changing_the_file_of_the_theme_shows_at_once() {
    let user = TestUser::new().await;
    write_theme(&user, "#010203");
    user.write("agent/settings.json", r#"{"theme": "mine"}"#);
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1"];
    let vars = ["TERM=xterm-256color", "COLORTERM=truecolor"];
    let mut program = TerminalProgram::run_with(&user, "", &vars, &args);
    program.wait_for("/ for commands").await;
    program.wait_for_bytes("38;2;1;2;3").await;

    write_theme(&user, "#040506");
    program.wait_for_bytes("38;2;4;5;6").await;

    // A mistake is shown once, and the theme stays as it was.
    user.write("agent/themes/mine.json", r#"{"name": "mine", "colors": {}}"#);
    program.wait_for("mine.json: is not a theme").await;
    user.write("agent/themes/mine.json", r#"{"name": "mine", "colors": { }}"#);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    program.keys("typed").await;
    program.wait_for("typed").await;
    assert_eq!(program.contents().matches("is not a theme").count(), 1, "{}", program.contents());

    write_theme(&user, "#070809");
    program.wait_for_bytes("38;2;7;8;9").await;

    // Exported pages have the colours on the screen, not those of the start.
    for (command, file) in [("export", "page.html"), ("share-as-file", "shared.html")] {
        program.keys(&format!("\u{15}/{command} {file}\r")).await;
        program.wait_for(file).await;
        let page = || std::fs::read_to_string(user.path(file)).unwrap_or_default();
        for _ in 0..50 {
            if page().contains("</html>") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert!(page().contains("#070809") && !page().contains("#010203"), "{file}");
    }
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

//! What extensions change about the interactive mode without drawing, and what they can look up.
#![cfg(target_os = "linux")]

use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

const SCRIPT: &str = r##"
module.exports = function (pi) {
  pi.on("session_start", (event, ctx) => {
    ctx.ui.setStatus("state", ctx.ui.theme.fg("error", "red state"));
    ctx.ui.setWidget("list", [ctx.ui.theme.bold("bold line"), "plain\u001b]52;c;ZXZpbA==\u0007 line"]);
    ctx.ui.setWorkingMessage("\u001b[4mPondering\u001b[24m deeply");
    ctx.ui.setWorkingIndicator({ frames: ["(o)", "(-)"], intervalMs: 50 });
  });
  pi.registerShortcut("ctrl+q", {
    description: "Look",
    handler: (ctx) => {
      ctx.ui.notify(`has ${JSON.stringify(ctx.ui.getEditorText())}, ${ctx.ui.getToolsExpanded()}`, "info");
      ctx.ui.setToolsExpanded(!ctx.ui.getToolsExpanded());
    },
  });
  pi.registerCommand("paste", {
    description: "Paste",
    handler: (args, ctx) => {
      ctx.ui.setEditorText("before ");
      ctx.ui.pasteToEditor(Array.from({ length: 30 }, (_, i) => `line ${i}`).join("\n"));
    },
  });
  pi.registerCommand("theme-of", {
    description: "Change the theme",
    handler: (args, ctx) => {
      const names = ctx.ui.getAllThemes().map((theme) => theme.name);
      const done = ctx.ui.setTheme(args);
      const other = ctx.ui.getTheme("light");
      ctx.ui.notify(`${names} ${done.success} ${done.error} ${other.getFgAnsi("accent").length > 3}`, "info");
    },
  });
  pi.registerCommand("usual", {
    description: "Show everything as usual",
    handler: (args, ctx) => {
      ctx.ui.setWorkingMessage();
      ctx.ui.setWorkingIndicator();
      ctx.ui.notify("as usual", "info");
    },
  });
  pi.registerCommand("hide", {
    description: "Hide the row",
    handler: (args, ctx) => {
      ctx.ui.setWorkingVisible(false);
      ctx.ui.setHiddenThinkingLabel("Deep thoughts");
      ctx.ui.notify("hidden", "info");
    },
  });
};
"##;

async fn start() -> Option<(TestUser, TerminalProgram)> {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return None;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/screen.js", SCRIPT);
    user.write("agent/settings.json", r#"{"hideThinkingBlock": true}"#);
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.wait_for("red state").await;
    Some((user, program))
}

/// Sends an answer of which the end waits for the gate.
fn half_answer(user: &TestUser, text: &str) -> Gate {
    let gate = Gate::new();
    let answer = AnthropicResponse::new("m").thinking("secret thoughts", "s").text(text).stop("end_turn");
    user.server.reply(ServerReply::events().gated(&gate, answer));
    gate
}

#[tokio::test]
async fn extensions_look_up_and_change_the_editor_the_theme_and_the_output() {
    let Some((user, mut program)) = start().await else { return };
    program.keys("a draft\u{11}").await;
    program.wait_for(r#"has "a draft", false"#).await;
    program.keys(" of two\u{11}").await;
    program.wait_for(r#"has "a draft of two", true"#).await;
    // A command sees the editor as it is afterwards.
    program.keys("\u{3}/paste\r").await;
    program.wait_for("before [paste #1 +30 lines]").await;
    program.keys("\u{11}").await;
    program.wait_for(r#"has "before line 0\nline 1\n"#).await;

    program.keys("\u{3}/theme-of none\r").await;
    program.wait_for("false Theme not found: none true").await;
    program.keys("/theme-of light\r").await;
    program.wait_for("true undefined true").await;
    program.wait_until("no editor text", |screen| screen.contains("Type a message")).await;
    let saved = || std::fs::read_to_string(user.path("agent/settings.json")).unwrap();
    for _ in 0..50 {
        if saved().contains("light") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(saved().contains(r#""theme": "light""#), "{}", saved());
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn extensions_change_the_row_of_activity_and_their_texts_have_colors() {
    let Some((user, mut program)) = start().await else { return };
    program.wait_for("plain line").await;
    let gate = half_answer(&user, "one done");
    program.keys("go\r").await;
    program.wait_for("Pondering deeply").await;
    program.wait_until("the first frame", |screen| screen.contains("(o) Pondering deeply")).await;
    program.wait_until("the second frame", |screen| screen.contains("(-) Pondering deeply")).await;
    gate.open_times(20);
    program.wait_for("one done").await;
    program.keys("/usual\r").await;
    program.wait_for("as usual").await;
    let gate = half_answer(&user, "two done");
    program.keys("go on\r").await;
    program.wait_for("Working").await;
    gate.open_times(20);
    program.wait_for("two done").await;
    program.wait_until("an idle row", |screen| !screen.contains("Working")).await;

    program.keys("/hide\r").await;
    program.wait_for("hidden").await;
    let gate = half_answer(&user, "three done");
    program.keys("once more\r").await;
    gate.open_times(3);
    program.wait_for("Deep thoughts").await;
    assert!(!program.contents().contains("to interrupt"), "{}", program.contents());
    gate.open_times(20);
    program.wait_for("three done").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let bytes = String::from_utf8_lossy(&program.bytes).into_owned();
    assert!(!bytes.contains("\u{1b}]52;") && bytes.contains("bold line"), "{bytes:?}");
    let red = bytes.split("red state").next().unwrap();
    assert!(red[red.len() - 40..].contains("38;"), "{red:?}");
}

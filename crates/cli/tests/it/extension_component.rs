//! Components that an extension draws in the interactive mode.
#![cfg(target_os = "linux")]

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Lets the user pick a word, after a question; another command ignores its keys.
const SCRIPT: &str = r#"
module.exports = function (pi) {
  pi.registerCommand("pick", {
    description: "Pick a word",
    handler: async (args, ctx) => {
      const word = await ctx.ui.custom((tui, theme, keybindings, done) => {
        const words = ["alpha", "beta", "gamma"];
        let at = 0;
        let typed = "";
        return {
          render: (width) => [
            theme.fg("accent", "=".repeat(width)),
            ...words.map((word, i) => (i === at ? theme.bold(`> ${word}`) : `  ${word}`)),
            `typed ${typed}, \u001b]52;c;ZXZpbA==\u0007\u001b[2J\u001b[31mred\u001b[0m` + "x".repeat(500),
          ],
          handleInput(data) {
            if (keybindings.matches(data, "tui.select.down")) at = Math.min(at + 1, 2);
            else if (keybindings.matches(data, "tui.select.confirm")) done(words[at]);
            else if (keybindings.matches(data, "tui.select.cancel")) done(undefined);
            else if (data === "?") ctx.ui.confirm("Sure?", "").then((yes) => { typed += yes; tui.requestRender(); });
            else typed += data;
          },
        };
      }, { overlay: true });
      ctx.ui.notify(`picked ${word}`, "info");
    },
  });
  pi.registerCommand("stuck", {
    description: "Ignore keys",
    handler: async (args, ctx) => {
      const result = await ctx.ui.custom(() => ({ render: () => ["stuck"] }));
      ctx.ui.notify(`ended with ${result}`, "info");
    },
  });
};
"#;

async fn start() -> Option<(TestUser, TerminalProgram)> {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return None;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/pick.js", SCRIPT);
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.wait_for("pick.js").await;
    Some((user, program))
}

#[tokio::test]
async fn a_component_replaces_the_editor_gets_the_keys_and_returns_a_result() {
    let Some((_user, mut program)) = start().await else { return };
    program.keys("draft ").await;
    program.wait_for("draft").await;
    program.keys("\u{3}/pick\r").await;
    program.wait_for("> alpha").await;
    let screen = program.contents();
    assert!(!screen.contains("Type a message"), "{screen}");
    assert!(screen.lines().any(|line| line == "=".repeat(80)), "as wide as the terminal: {screen}");
    assert!(screen.contains("typed , redxxx"), "{screen}");
    program.keys("\u{1b}[Bab").await;
    program.wait_until("the second word", |screen| screen.contains("> beta") && screen.contains("typed ab,")).await;
    // A question above the component.
    program.keys("?").await;
    program.wait_for("Sure?").await;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    program.keys("y").await;
    program.wait_for("Yes").await;
    program.keys("\r").await;
    program.wait_for("typed abtrue,").await;
    program.keys("\r").await;
    program.wait_for("picked beta").await;
    program.wait_for("Type a message").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let bytes = String::from_utf8_lossy(&program.bytes).into_owned();
    assert!(!bytes.contains("\u{1b}]52;") && !bytes.contains("\u{1b}[2J"), "{bytes:?}");
}

#[tokio::test]
async fn a_component_that_does_not_react_is_closed_by_the_user() {
    let Some((_user, mut program)) = start().await else { return };
    program.keys("/stuck\r").await;
    program.wait_until("the component", |screen| screen.lines().any(|line| line == "stuck")).await;
    program.keys("\u{1b}").await;
    program.keys("x\u{3}\u{3}").await;
    program.wait_for("ended with undefined").await;
    program.wait_for("Type a message").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

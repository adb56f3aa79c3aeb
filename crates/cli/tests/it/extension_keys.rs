//! Keys that extensions bind in the interactive mode, and arguments that they complete.
#![cfg(target_os = "linux")]

use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Counts how often its key is pressed, asks with another one, and wants a key that it cannot have.
const SCRIPT: &str = r#"
module.exports = function (pi) {
  let n = 0;
  pi.registerShortcut("alt+x", {
    description: "Count presses",
    handler: async (ctx) => ctx.ui.notify(`pressed ${++n}, idle ${await ctx.isIdle()}`, "info"),
  });
  pi.registerShortcut("shift+ctrl+b", { description: "Send", handler: () => pi.sendUserMessage("sent by a key") });
  pi.registerShortcut("ctrl+c", { handler: () => {} });
};
"#;

#[tokio::test]
async fn a_script_binds_keys_while_idle_and_during_a_run() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/keys.js", SCRIPT);
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    let warns = |screen: &str| {
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        words.contains("keys.js conflicts with a built-in shortcut; it is ignored")
    };
    program.wait_until("a warning", warns).await;
    program.keys("\u{1b}x").await;
    program.wait_for("pressed 1, idle true").await;
    program.keys("/hotkeys\r").await;
    program.wait_for("Count presses").await;

    let gate = Gate::new();
    let answer = AnthropicResponse::new("msg_1").text("the answer").stop("end_turn").concat();
    user.server.reply(ServerReply::sse("").gated(&gate, [answer]));
    program.keys("begin\r").await;
    program.wait_for("Working").await;
    program.keys("\u{1b}x").await;
    program.wait_for("pressed 2, idle false").await;
    gate.open();
    program.wait_until("the answer", |screen| screen.contains("the answer") && !screen.contains("Working")).await;

    user.answer("answer to a key");
    // As terminals with kitty's protocol send ctrl+shift+b.
    program.keys("\u{1b}[98;6u").await;
    program.wait_for("answer to a key").await;
    program.wait_until("an idle footer", |screen| !screen.contains("Working")).await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

/// Completes the arguments of its command.
const COMPLETING: &str = r#"
module.exports = function (pi) {
  pi.registerCommand("deploy", {
    description: "Deploy a branch",
    getArgumentCompletions: (prefix) => ["staging", "production"].filter((name) => name.startsWith(prefix))
      .map((name) => ({ value: name, label: `to ${name}` })),
    handler: async (args, ctx) => ctx.ui.notify(`deployed ${args}`, "info"),
  });
};
"#;

#[tokio::test]
async fn a_script_completes_the_arguments_of_its_command() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/deploy.js", COMPLETING);
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1"]).await;
    program.wait_for("deploy.js").await;
    program.keys("/depl").await;
    program.wait_for("[u] Deploy a branch").await;
    program.keys("oy pro").await;
    program.wait_for("to production").await;
    program.keys("\t\r").await;
    program.wait_for("deployed production").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

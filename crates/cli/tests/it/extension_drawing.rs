//! Messages and tool calls that extensions draw in the interactive mode.
#![cfg(target_os = "linux")]

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

const SCRIPT: &str = r##"
module.exports = function (pi) {
  pi.registerMessageRenderer("report", (message, { expanded, keyHint }, theme) => ({
    render: (width) => [
      theme.fg("accent", `<${message.content}|${width}>`),
      expanded ? `details ${message.details.secret}` : keyHint("app.tools.expand", "to see more"),
      "\u001b]52;c;ZXZpbA==\u0007",
    ],
  }));
  pi.registerMessageRenderer("broken", () => { throw new Error("no pen"); });
  pi.registerMessageRenderer("slow", () => ({ render: () => { while (true); } }));
  for (const type of ["report", "broken", "slow", "other"]) {
    pi.registerCommand(type, {
      description: type,
      handler: (args, ctx) =>
        pi.sendMessage({ customType: type, content: `the ${type}`, display: true, details: { secret: 42 } }),
    });
  }
  let n = 0;
  pi.registerTool({
    name: "todo",
    description: "Add to the list",
    parameters: { type: "object", properties: { item: { type: "string" } } },
    execute: async (id, { item }, signal, update) => {
      update({ content: [{ type: "text", text: "half" }], details: { items: [] } });
      return { content: [{ type: "text", text: "raw text" }], details: { items: [item, "second"] } };
    },
    renderCall(args, theme, context) {
      context.state.calls = (context.state.calls ?? 0) + 1;
      return { render: () => [theme.bold(`Todo: ${args.item}`)] };
    },
    renderResult(result, { expanded, isPartial }, theme, context) {
      if (isPartial) return { render: () => ["..."] };
      const items = result.details.items;
      return {
        render: () => [`${items.length} items ${context.state.calls > 0}`, ...(expanded ? items.map((i) => `- ${i}`) : [])],
      };
    },
  });
  pi.registerTool({
    name: "bare",
    description: "Bare",
    parameters: { type: "object", properties: {} },
    renderShell: "self",
    execute: async () => ({ content: [{ type: "text", text: "plain result" }] }),
    renderCall: () => ({ render: (width) => ["#".repeat(width)] }),
  });
};
"##;

async fn start(args: &[&str]) -> Option<(TestUser, TerminalProgram)> {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return None;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/draw.js", SCRIPT);
    let mut program = TerminalProgram::start(&user, &[&["--model", "local/m1"], args].concat()).await;
    program.wait_for("draw.js").await;
    Some((user, program))
}

#[tokio::test]
async fn extensions_draw_their_messages() {
    let Some((user, mut program)) = start(&[]).await else { return };
    program.keys("/report\r").await;
    program.wait_for("<the report|80>").await;
    program.wait_for("ctrl+o to see more").await;
    assert!(!program.contents().contains("[report]"), "{}", program.contents());
    program.keys("/other\r").await;
    program.wait_for("[other]").await;
    // What cannot be drawn is shown as usual.
    program.keys("/broken\r").await;
    program.wait_for("[broken]").await;
    program.wait_for("no pen").await;
    program.keys("\u{f}").await;
    program.wait_for("details 42").await;
    user.answer("hello");
    program.keys("\u{f}hi\r").await;
    program.wait_for("hello").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let bytes = String::from_utf8_lossy(&program.bytes).into_owned();
    assert!(!bytes.contains("\u{1b}]52;"), "{bytes:?}");

    // Those of an earlier run are drawn, too.
    let mut program = TerminalProgram::start(&user, &["--model", "local/m1", "--continue"]).await;
    program.wait_for_bytes("<the report|80>").await;
    program.wait_for("[broken]").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn an_extension_that_hangs_while_it_draws_does_not_hold_up_the_conversation() {
    let Some((user, mut program)) = start(&[]).await else { return };
    program.keys("/slow\r").await;
    program.wait_for("[slow]").await;
    program.wait_for("it took longer").await;
    user.answer("still here");
    program.keys("hi\r").await;
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn extensions_draw_the_calls_of_their_tools() {
    let Some((user, mut program)) = start(&[]).await else { return };
    let calls = AnthropicResponse::new("m")
        .tool_call("t1", "todo", r#"{"item": "buy milk"}"#)
        .tool_call("t2", "bare", "{}")
        .stop("tool_use");
    user.server.reply(ServerReply::sse(calls.concat()));
    user.answer("all added");
    program.keys("go\r").await;
    program.wait_for("all added").await;
    program
        .wait_until("the drawings", |screen| screen.contains("Todo: buy milk") && screen.contains("2 items true"))
        .await;
    let screen = program.contents();
    assert!(!screen.contains("raw text") && screen.lines().any(|line| line == "#".repeat(80)), "{screen}");
    assert!(screen.contains("plain result"), "{screen}");
    program.keys("\u{f}").await;
    program.wait_for("- buy milk").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

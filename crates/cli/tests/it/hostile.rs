//! Hundreds of texts that attack a terminal, at every place where the program shows foreign text. What reaches the terminal is judged byte
//! by byte.
#![cfg(target_os = "linux")]

mod images;
mod output;
mod places;
mod texts;

use std::time::Duration;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use self::output::{AllowedOutput, check};
use self::texts::{bytes, names, paragraphs, texts};
use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Size of the terminal: large, so that much is shown at once.
const ROWS: u16 = 120;
const COLUMNS: u16 = 400;
const SIZE: (u16, u16) = (ROWS, COLUMNS);
/// Time for a frame to be drawn.
const FRAME: Duration = Duration::from_millis(60);

/// Starts the interactive mode in one of the user's directories.
async fn begin(user: &TestUser, dir: &str, args: &[&str]) -> TerminalProgram {
    let agent_dir = user.path("agent");
    let args = [&["--agent-dir", agent_dir.to_str().unwrap()], args].concat();
    let mut program = TerminalProgram::run_sized(user, dir, &[], &args, SIZE);
    program.wait_for("/ for commands").await;
    program
}

/// Leaves the program, however it is occupied, and judges all that it wrote.
#[track_caller]
fn leave(program: TerminalProgram, allowed: AllowedOutput) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let mut program = program;
        for _ in 0..4 {
            program.keys("\u{1b}").await;
            tokio::time::sleep(FRAME).await;
        }
        program.keys("\u{3}").await;
        tokio::time::sleep(FRAME).await;
        program.keys("\u{4}").await;
        assert_eq!(program.end().await, Some(0), "{caller}");
        check(&program.bytes, allowed);
    }
}

/// Presses a key many times, each in a frame of its own.
async fn press(program: &mut TerminalProgram, key: &str, times: usize) {
    for _ in 0..times {
        program.keys(key).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Pastes a text and submits it.
async fn submit(program: &mut TerminalProgram, text: &str) {
    program.keys(&pasted(text)).await;
    tokio::time::sleep(FRAME).await;
    program.keys("\r").await;
}

fn pasted(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

#[test]
fn there_are_more_than_three_hundred_texts() {
    assert!(texts().len() > 300 && names().len() > 300, "{} {}", texts().len(), names().len());
}

#[tokio::test]
async fn answers_and_thoughts_in_pieces() {
    let user = TestUser::new().await;
    for (fullscreen, n_chars) in [(false, 1), (false, 3), (true, 7)] {
        let mode = if fullscreen { "fullscreen" } else { "regular" };
        let mut program = begin(&user, "", &["--model", "local/m1", "--tui-mode", mode]).await;
        let lists = texts().iter().map(|text| format!("- `{text}` **{text}** [{text}]({text})\n")).collect::<String>();
        let fence = format!("```{}\n{}\n```", texts()[0], texts().join("\n"));
        for text in
            [paragraphs(), format!("{lists}\n\n{fence}\n\n| a | b |\n|---|---|\n| {} |  |", texts().join(" | | |\n| "))]
        {
            let answer = AnthropicResponse::new("msg_1").with_chunks_of(n_chars).thinking(&text, "s").text(&text);
            user.server.reply(ServerReply::sse(answer.text("\n\nthe end").stop("end_turn").concat()));
            program.keys("go\r").await;
            program.wait_for("the end").await;
        }
        press(&mut program, "\u{14}", 2).await;
        if fullscreen {
            press(&mut program, "\u{1b}[5~", 40).await;
        }
        leave(program, AllowedOutput { fullscreen, ..AllowedOutput::default() }).await;
    }
}

#[tokio::test]
async fn calls_of_tools_and_their_output() {
    let user = TestUser::new().await;
    user.write("work/all.txt", &texts().join("\n"));
    std::fs::write(user.path("work/bytes.txt"), bytes()).unwrap();
    for name in names() {
        user.write(&format!("work/names/{name}.rs"), &format!("{name}\n"));
    }
    let mut program =
        begin(&user, "work", &["--model", "local/m1", "--tools", "read,bash,edit,write,grep,find,ls"]).await;
    // Everything is shown expanded.
    program.keys("\u{f}").await;
    let all = paragraphs();
    let replace = json!({"path": "all.txt", "edits": [{"oldText": texts()[0..9].join("\n"), "newText": texts()[20..29].join("\n")}]});
    let mut calls = vec![
        ("bash", json!({"command": "cat all.txt bytes.txt; ls -N names"})),
        ("bash", json!({"command": format!("exit 3 # {all}"), "timeout": 9})),
        ("read", json!({"path": "all.txt"})),
        ("read", json!({"path": all})),
        ("ls", json!({"path": "names"})),
        ("ls", json!({"path": all})),
        ("grep", json!({"pattern": "<", "path": "."})),
        ("grep", json!({"pattern": all, "path": all, "glob": all})),
        ("find", json!({"pattern": "*.rs", "path": "."})),
        ("find", json!({"pattern": all, "path": all})),
        ("write", json!({"path": format!("out/{}", names()[3]), "content": all})),
        ("edit", replace),
        ("edit", json!({"path": all, "edits": [{"oldText": all, "newText": all}]})),
        ("bash", json!({"command": 7, "more": all})),
    ];
    let strange: Vec<(String, serde_json::Value)> =
        texts().chunks(8).map(|some| (some.concat(), json!({some[0].clone(): some}))).collect();
    calls.extend(strange.iter().map(|(name, arguments)| (name.as_str(), arguments.clone())));
    let mut answer = AnthropicResponse::new("msg_1").with_chunks_of(5);
    for (n, (name, arguments)) in calls.iter().enumerate() {
        answer = answer.tool_call(&format!("c{n}"), name, &arguments.to_string());
    }
    user.server.reply(ServerReply::sse(answer.stop("tool_use").concat()));
    user.answer("the end");
    program.keys("go\r").await;
    program.wait_for("the end").await;
    for command in
        ["cat all.txt bytes.txt; ls -N names", "while read -r line; do echo \"$line\"; done < all.txt; sleep 0.1"]
    {
        submit(&mut program, &format!("!{command}; echo d''one")).await;
        program.wait_for("done").await;
        // The command must have ended before the next one.
        tokio::time::sleep(FRAME * 8).await;
    }
    submit(&mut program, &format!("!echo '{}'; echo o''ver", texts()[..60].concat().replace(['\'', '\0'], ""))).await;
    program.wait_for("<001>").await;
    leave(program, AllowedOutput::default()).await;
}

#[tokio::test]
async fn messages_of_servers() {
    let user = TestUser::new().await;
    let mut program = begin(&user, "", &["--model", "local/m1"]).await;
    for (n, some) in texts().chunks(40).enumerate() {
        let text = some.join("\n\n");
        let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": text}});
        user.server.reply(match n % 3 {
            0 => ServerReply::json(400, &refused),
            1 => ServerReply::json(500, &json!(text)),
            _ => ServerReply::sse(format!("event: error\ndata: {refused}\n\n")),
        });
        program.keys(&format!("number {n}\r")).await;
        let seen = format!("number {n}");
        program
            .wait_until("the failure", |screen| {
                screen.split(&seen).nth(1).is_some_and(|after| after.contains("Error:") && !after.contains("Working"))
            })
            .await;
    }
    leave(program, AllowedOutput::default()).await;
    user.server.take_unexpected();
}

#[tokio::test]
async fn what_the_user_pastes_and_types() {
    let user = TestUser::new().await;
    let mut program = begin(&user, "", &["--model", "local/m1"]).await;
    for some in texts().chunks(9) {
        // Without the marks of a paste, it would end there.
        program.keys(&pasted(&some.join("\n"))).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        program.keys("\u{3}").await;
    }
    user.answer("the end");
    submit(&mut program, &paragraphs()).await;
    program.wait_for("the end").await;
    for dialog in ["/model\r", "/settings\r", "/tree\r", "/resume\r"] {
        program.keys(dialog).await;
        tokio::time::sleep(FRAME).await;
        for some in texts().chunks(30) {
            program.keys(&pasted(&some.concat())).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        program.keys("\u{1b}\u{1b}").await;
        tokio::time::sleep(FRAME).await;
    }
    for name in texts().chunks(9) {
        submit(&mut program, &format!("/name {}", name.concat().replace('\r', ""))).await;
        tokio::time::sleep(FRAME).await;
    }
    submit(&mut program, &format!("/{}", texts()[..9].concat())).await;
    tokio::time::sleep(FRAME).await;
    leave(program, AllowedOutput::default()).await;
}

#[tokio::test]
async fn what_extensions_show() {
    const SCRIPT: &str = r#"
module.exports = function (pi) {
  const texts = TEXTS;
  pi.on("session_start", (_event, ctx) => ctx.ui.notify("rea" + "dy", "info"));
  pi.registerCommand("attack", {
    description: texts.join(""),
    handler: async (_args, ctx) => {
      const timeout = 60;
      for (let at = 0; at < texts.length; at += 12) {
        const some = texts.slice(at, at + 12);
        const line = some.join("");
        ctx.ui.setStatus("s" + at % 36, line);
        ctx.ui.setStatus(line, line);
        ctx.ui.setWidget("w", some);
        ctx.ui.setWidget(line, [line], { placement: "belowEditor" });
        ctx.ui.setTitle(line);
        ctx.ui.notify(some.join("\n"), ["info", "warning", "error"][at % 3]);
        await ctx.ui.select(line, some, { timeout });
        await ctx.ui.confirm(line, some.join("\n"), { timeout });
        await ctx.ui.input(line, line, { timeout });
        ctx.ui.setStatus(line, undefined);
        ctx.ui.setWidget(line, undefined);
        ctx.ui.setEditorText(some.join("\n"));
        for (const draw of ["custom", "setHeader", "setFooter", "setEditorComponent"]) {
          try {
            await ctx.ui[draw]((tui, theme, keys, done) => {
              setTimeout(done, timeout);
              return { render: () => [...some, theme.fg("accent", line), theme.bg(line, line)] };
            });
          } catch (error) {
            ctx.ui.notify(`${error.message}\n${line}`, "error");
          }
        }
        await new Promise((done) => setTimeout(done, timeout));
        pi.sendMessage({ customType: line, content: some.join("\n\n"), display: true });
        await pi.setSessionName(line);
      }
      ctx.ui.setEditorText("");
      ctx.ui.notify("attack " + "over", "info");
    },
  });
  pi.registerShortcut("alt+x", { description: texts.join(""), handler: () => { throw new Error(texts.join("\n")); } });
};
"#;
    let user = TestUser::new().await;
    let list = serde_json::to_string(&texts()).unwrap();
    user.write("agent/extensions/attack.js", &SCRIPT.replace("TEXTS", &list));
    let mut program = begin(&user, "", &["--model", "local/m1"]).await;
    program.wait_for("ready").await;
    program.keys("/att").await;
    tokio::time::sleep(FRAME).await;
    program.keys("ack\r").await;
    program.wait_for("attack over").await;
    program.keys("\u{1b}x").await;
    tokio::time::sleep(FRAME).await;
    program.keys("/hotkeys\r").await;
    tokio::time::sleep(FRAME).await;
    leave(program, AllowedOutput::default()).await;
}

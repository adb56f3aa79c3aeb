//! Input in the interactive mode while the session is being opened.
#![cfg(target_os = "linux")]

use std::time::Duration;

use crate::help::TestUser;
use crate::interactive::visit_work;

#[tokio::test]
async fn input_submitted_before_the_session_is_open_is_processed_in_order() {
    let user = TestUser::new().await;
    user.write("work/.pinch/prompts/greet.md", "Say hello to everyone");
    user.answer("first reply");
    user.answer("second reply");
    let mut program = visit_work(&user);
    program.wait_for("Do you trust").await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    // The session opens after the answer; all of this arrives before that.
    let texts = ["first message", "!sleep 0.3; echo slow-$((40 + 2))", "!!echo quick-$((40 + 3))", "second message"];
    let submitted: String = texts.iter().map(|text| format!("\u{1b}[200~{text}\u{1b}[201~\r")).collect();
    program.keys(&format!("\r{submitted}")).await;
    program.wait_for("second reply").await;
    let screen = program.contents();
    let at = |text: &str| screen.find(text).unwrap_or_else(|| panic!("no {text:?} in:\n{screen}"));
    let order = ["first reply", "slow-42", "quick-43", "second message", "second reply"].map(at);
    assert!(order.is_sorted(), "{screen}");
    // The model receives the output of the command before the message.
    let last = user.asked().unwrap().to_string();
    assert!(last.contains("slow-42") && !last.contains("quick-43"), "{last}");
}

/// Registers a command.
const GREETING: &str = r#"
module.exports = function (pi) {
  pi.registerCommand("greet", {
    description: "Greet somebody",
    handler: async (args, ctx) => ctx.ui.notify(`greetings to ${args}`, "info"),
  });
};
"#;

#[tokio::test]
async fn commands_of_extensions_that_are_typed_before_the_session_is_open_wait_for_it() {
    if !std::path::Path::new("/usr/bin/node").exists() {
        return;
    }
    let user = TestUser::new().await;
    user.write("agent/extensions/greet.js", GREETING);
    user.write("work/.pinch/prompts/wave.md", "Wave at everyone");
    user.answer("waved");
    let mut program = visit_work(&user);
    program.wait_for("Do you trust").await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    // The session opens after the answer; all of this arrives before that.
    program.keys("\r/greet Ada\r/wave\r/gret Bob\r").await;
    program.wait_for("greetings to Ada").await;
    program.wait_for("waved").await;
    program.wait_for("Unknown command /gret, did you mean /greet?").await;
    let screen = program.contents();
    assert_eq!(screen.matches("Unknown command").count(), 1, "{screen}");
    assert_eq!(user.server.requests().len(), 1, "an unknown command is not sent");
    // It is in the editor again, and enter sends it.
    user.answer("sent as it is");
    program.wait_until("an idle footer", |screen| !screen.contains("Working")).await;
    program.keys("\r").await;
    program.wait_for("sent as it is").await;
    assert!(user.asked().unwrap().to_string().contains("/gret Bob"));
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

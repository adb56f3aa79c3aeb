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

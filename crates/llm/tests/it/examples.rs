//! Runs the examples, each against a server on the loopback interface.

use std::path::PathBuf;
use std::process::Stdio;

use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::completions::CompletionsServer;
use pinch_testing::wires::{Answer, AnswerPart, Wire};
use tokio::process::Command;

/// Returns the path of an example, which is built beside the tests.
fn program(name: &str) -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop(); // deps
    folder.pop();
    folder.join("examples").join(name)
}

/// Returns what an example prints if the server gives these answers.
async fn run(name: &str, answers: impl IntoIterator<Item = Answer>) -> (String, usize) {
    let server = Server::start().await.unwrap();
    for answer in answers {
        server.reply(ServerReply::sse(CompletionsServer.frames(&answer).concat()));
    }
    let mut command = Command::new(program(name));
    command.args(["--base-url", &server.url(), "--key", "k"]).stdin(Stdio::null()).env_clear();
    let output = command.output().await.unwrap_or_else(|why| panic!("{name} is not built: {why}"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), server.requests().len())
}

fn call(name: &str, arguments: &str) -> Answer {
    Answer::of([AnswerPart::call("call_1", name, arguments)])
}

#[tokio::test]
async fn chat() {
    let (told, n_requests) =
        run("chat", [Answer::of([AnswerPart::text("It has claws.")]), Answer::of([AnswerPart::text("Ten.")])]).await;
    assert!(told.contains("It has claws.") && told.contains("Ten.") && told.contains("(15 tokens)"), "{told}");
    assert_eq!(n_requests, 2);
}

#[tokio::test]
async fn tool_use() {
    let answers =
        [call("add", r#"{"a":17}"#), call("add", r#"{"a":17,"b":25}"#), Answer::of([AnswerPart::text("It is 42.")])];
    let (told, n_requests) = run("tool_use", answers).await;
    assert!(told.contains("Validation failed") && told.contains("-> 42") && told.ends_with("It is 42.\n"), "{told}");
    assert_eq!(n_requests, 3);
}

#[cfg(feature = "schemars")]
#[tokio::test]
async fn structured_output() {
    let (told, _) = run("structured_output", [Answer::of([AnswerPart::text(r#"{"name":"crab","legs":10}"#)])]).await;
    assert_eq!(told, "crab has 10 legs\n");
}

#[tokio::test]
async fn custom_provider() {
    let (told, n_requests) = run("custom_provider", [Answer::of([AnswerPart::text("An animal.")])]).await;
    assert_eq!(told, "An animal.\nAn animal.\n");
    assert_eq!(n_requests, 1, "the second answer comes from memory");
}

#[cfg(feature = "scripted")]
#[tokio::test]
async fn scripted_test() {
    let (told, _) = run("scripted_test", [Answer::of([AnswerPart::text("Sideways He Walks")])]).await;
    assert_eq!(told, "the scripted tests hold\nSideways He Walks\n");
}

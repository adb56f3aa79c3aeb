//! Testing a program that calls models without a model: the scripted provider answers and fails as the test specifies.
//!
//! The same program then runs against a real server.
//!
//! ```sh
//! cargo run -p pinch-llm --features scripted --example scripted_test -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

#[path = "support/args.rs"]
mod args;

use std::sync::Arc;

use http::StatusCode;
use pinch_llm::client::{Chat, Client};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};

/// The program under test: asks for a title, retries once if that may help, and falls back to a fixed title.
async fn title(chat: Chat, text: &str) -> String {
    let chat = chat.user(format!("A title of three words for: {text}"));
    for _ in 0..2 {
        match chat.send().await {
            Ok(reply) => return reply.text().trim().to_owned(),
            Err(error) if error.retryable() => {}
            Err(_) => break,
        }
    }
    "Untitled".to_owned()
}

/// The tests; in your own program these are `#[tokio::test]` functions.
async fn check() {
    let run = |script: Vec<ScriptedReply>| async {
        let provider = Arc::new(ScriptedProvider::new(script));
        let client =
            Client::builder().provider("scripted", provider.clone()).model(ScriptedProvider::model("scripted"));
        (title(client.build().chat("faux/faux-1"), "crab").await, provider.n_calls())
    };
    let busy = ScriptedReply::refused(StatusCode::SERVICE_UNAVAILABLE, "busy");
    let good = || ScriptedReply::text("Sideways He Walks\n");
    assert_eq!(run(vec![busy, good()]).await, ("Sideways He Walks".into(), 2), "a busy server is asked again");

    let unauthorized = ScriptedReply::refused(StatusCode::UNAUTHORIZED, "invalid key");
    assert_eq!(run(vec![unauthorized]).await, ("Untitled".into(), 1), "an invalid key stays invalid");

    let cut = ScriptedReply::text("Side").breaking_after(1, "terminated");
    assert_eq!(run(vec![cut, good()]).await, ("Sideways He Walks".into(), 2), "half an answer counts as none");
    println!("the scripted tests hold");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let chat = args::Args::read()?.chat().system("You name things.");
    check().await;
    println!("{}", title(chat, "a crab walks sideways over the beach").await);
    Ok(())
}

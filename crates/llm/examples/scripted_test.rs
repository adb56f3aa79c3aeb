//! Testing a program that talks to models, without a model: the scripted provider answers, fails and breaks off as told.
//!
//! The same program then runs against a real server.
//!
//! ```sh
//! cargo run -p pinch-llm --features scripted --example scripted_test -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to a person")]

#[path = "support/args.rs"]
mod args;

use std::sync::Arc;

use http::StatusCode;
use pinch_llm::error::retry;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::{Reply, ScriptedProvider};
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::Request;
use pinch_llm::stdx::cancel::Cancel;

/// The program under test: asks for a title, once more if the server says that it may, and falls back to a title of its own.
async fn title(provider: &dyn Provider, mut request: Request, text: &str) -> String {
    request.messages.push(Arc::new(Message::user(format!("A title of three words for: {text}"), 0)));
    for _ in 0..2 {
        let finished = provider.stream(request.clone(), Cancel::new()).collect_end().await;
        match finished.error {
            None => return finished.message.text("").trim().to_owned(),
            Some(error) if retry::retryable(&error) => {}
            Some(_) => break,
        }
    }
    "Untitled".to_owned()
}

/// The tests; in a program of one's own these are `#[tokio::test]` functions.
async fn check(request: &Request) {
    let request = || Request { model: Arc::new(ScriptedProvider::model("scripted")), ..request.clone() };

    let busy = Reply::refused(StatusCode::SERVICE_UNAVAILABLE, "busy");
    let provider = ScriptedProvider::new([busy, Reply::text("Sideways He Walks\n")]);
    assert_eq!(title(&provider, request(), "crab").await, "Sideways He Walks");
    assert_eq!(provider.n_calls(), 2, "a busy server is asked once more");

    let provider = ScriptedProvider::new([Reply::refused(StatusCode::UNAUTHORIZED, "who are you?")]);
    assert_eq!(title(&provider, request(), "crab").await, "Untitled");
    assert_eq!(provider.n_calls(), 1, "a wrong key does not become right by asking again");

    let provider =
        ScriptedProvider::new([Reply::text("Side").breaking_after(1, "terminated"), Reply::text("Sideways He Walks")]);
    assert_eq!(title(&provider, request(), "crab").await, "Sideways He Walks", "half an answer is none");
    println!("the scripted tests hold");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = args::Args::read()?.request("You name things.")?;
    check(&request).await;
    let provider = ProviderRegistry::builtin().get(&request.model.api)?;
    println!("{}", title(&*provider, request, "a crab walks sideways over the beach").await);
    Ok(())
}

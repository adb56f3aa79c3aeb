//! A custom provider that wraps another one: it answers repeated questions from a cache.
//!
//! ```sh
//! cargo run -p pinch-llm --example custom_provider -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

#[path = "support/args.rs"]
mod args;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use pinch_llm::Reply;
use pinch_llm::event::{EventStream, Finished, StreamEvent};
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::Request;
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::stdx::pull::pulled;

/// Caches successful answers by the conversation that led to them.
struct Caching {
    inner: Arc<dyn Provider>,
    cache: Arc<Mutex<HashMap<String, Finished>>>,
}

impl Provider for Caching {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let key: Vec<_> = request.messages.iter().map(|message| message.to_value()["content"].to_string()).collect();
        let key = key.join("\n");
        let model = Arc::clone(&request.model);
        let cached = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let (inner, cache) = (Arc::clone(&self.inner), Arc::clone(&self.cache));
        let now = request.host.now_ms();
        EventStream::new(
            &model,
            now,
            pulled(move |emitter| async move {
                if let Some(finished) = cached {
                    emitter.emit(StreamEvent::End(finished)).await;
                    return;
                }
                let mut events = inner.stream(request, cancel);
                while let Some(event) = events.next().await {
                    if let StreamEvent::End(finished) = &event
                        && finished.is_ok()
                    {
                        cache.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), finished.clone());
                    }
                    emitter.emit(event).await;
                }
            }),
        )
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request =
        args::Args::read()?.chat().system("You answer in one sentence.").user("What is a crab?").to_request()?;
    let mut registry = ProviderRegistry::builtin();
    let caching = Caching { inner: registry.get(&request.model.api)?, cache: Arc::default() };
    // From here on our provider serves the wire format; unregistering the source restores the previous one.
    registry.register_from("example", request.model.api.clone(), Arc::new(caching));
    let provider = registry.get(&request.model.api)?;
    for _ in 0..2 {
        let reply = Reply::from_finished(provider.stream(request.clone(), Cancel::new()).collect_end().await)?;
        println!("{}", reply.text());
    }
    Ok(())
}

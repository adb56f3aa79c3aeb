//! A provider of one's own around another: it counts tokens, and answers from memory what was asked before.
//!
//! ```sh
//! cargo run -p pinch-llm --example custom_provider -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to a person")]

#[path = "support/args.rs"]
mod args;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use pinch_llm::event::{EventStream, Finished, StreamEvent};
use pinch_llm::message::Message;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::Request;
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::stdx::pull::pulled;

/// Remembers good answers by what was asked.
struct Remembering {
    inner: Arc<dyn Provider>,
    known: Arc<Mutex<HashMap<String, Finished>>>,
}

impl Provider for Remembering {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let question: Vec<_> = request.messages.iter().map(|message| message.to_value().to_string()).collect();
        let question = question.join("\n");
        let model = Arc::clone(&request.model);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&question).cloned();
        let (inner, memory) = (Arc::clone(&self.inner), Arc::clone(&self.known));
        let now = request.host.now_ms();
        EventStream::new(
            &model,
            now,
            pulled(move |emitter| async move {
                if let Some(finished) = known {
                    emitter.emit(StreamEvent::End(finished)).await;
                    return;
                }
                let mut events = inner.stream(request, cancel);
                while let Some(event) = events.next().await {
                    if let StreamEvent::End(finished) = &event
                        && finished.is_ok()
                    {
                        memory
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .insert(question.clone(), finished.clone());
                    }
                    emitter.emit(event).await;
                }
            }),
        )
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut request = args::Args::read()?.request("You answer in one sentence.")?;
    request.messages.push(Arc::new(Message::user("What is a crab?", 0)));
    let mut registry = ProviderRegistry::builtin();
    let remembering = Remembering { inner: registry.get(&request.model.api)?, known: Arc::default() };
    // From here on the wire format is served through ours; removing the source gives the other one back.
    registry.register_from("example", request.model.api.clone(), Arc::new(remembering));
    let provider = registry.get(&request.model.api)?;
    for _ in 0..2 {
        let finished = provider.stream(request.clone(), Cancel::new()).collect_end().await;
        if let Some(error) = finished.error {
            return Err(error.text.clone().into());
        }
        println!("{}", finished.message.text(""));
    }
    Ok(())
}

//! A provider that silently retries calls that failed before any event.

use std::sync::Arc;

use futures::StreamExt;
use pinch_llm::error::retry::{RetryLimits, retry_delay};
use pinch_llm::event::{EventStream, StreamEvent};
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::pulled;

use super::TransportRetry;

/// Wraps a provider and retries its calls according to a plan, for turns and summaries alike.
pub struct RepeatingProvider {
    inner: Arc<dyn Provider>,
    plan: TransportRetry,
}

impl RepeatingProvider {
    /// Wraps a provider.
    pub fn new(inner: Arc<dyn Provider>, plan: TransportRetry) -> Self {
        Self { inner, plan }
    }
}

impl Provider for RepeatingProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        if self.plan.max_retries == 0 {
            return self.inner.stream(request, cancel);
        }
        let (inner, plan) = (Arc::clone(&self.inner), self.plan);
        let (model, now) = (Arc::clone(&request.model), request.host.now_ms());
        let about = Arc::clone(&model);
        EventStream::new(
            &about,
            now,
            pulled(move |emitter| async move {
                let limits = RetryLimits { max_retries: plan.max_retries, max_delay: plan.max_delay };
                for n_done in 0.. {
                    let mut events = inner.stream(request.clone(), cancel.clone());
                    let first = events.next().await;
                    let wait = match &first {
                        Some(StreamEvent::End(finished)) => finished
                            .error
                            .as_ref()
                            .and_then(|error| retry_delay(error, n_done, &limits, request.host.ids().fraction())),
                        _ => None,
                    };
                    if let Some(wait) = wait {
                        tracing::debug!(n_done, ?wait, "retrying a request that failed before any event");
                        if cancel.run(tokio::time::sleep(wait)).await.is_ok() {
                            continue;
                        }
                    }
                    if let Some(first) = first {
                        emitter.emit(first).await;
                    }
                    while let Some(event) = events.next().await {
                        emitter.emit(event).await;
                    }
                    break;
                }
            }),
        )
    }
}

//! The event stream of a call.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::{BoxStream, StreamExt};

use super::laws::Laws;
use super::{Finished, StreamEvent};
use crate::error::{LlmError, LlmErrorKind};
use crate::ids::{ApiId, ModelId, ProviderId};
use crate::message::{AssistantMessage, StopReason};

/// The events of one call, pulled by one consumer.
///
/// Nothing is sent or read unless the stream is polled; a slow consumer slows down the provider's socket and loses nothing. The stream
/// yields exactly one [`StreamEvent::End`] as its last event, even if its producer does not. Dropping it closes the connection.
pub struct EventStream {
    events: BoxStream<'static, StreamEvent>,
    laws: Laws,
    about: About,
    ended: bool,
}

/// Metadata of the call, for the message that replaces a missing end.
#[derive(Clone, Debug)]
struct About {
    api: ApiId,
    provider: ProviderId,
    model: ModelId,
    timestamp: i64,
}

impl EventStream {
    /// Wraps a producer of events for a call made at `timestamp` (Unix milliseconds).
    pub fn new(
        model: &crate::model::Model,
        timestamp: i64,
        events: impl Stream<Item = StreamEvent> + Send + 'static,
    ) -> Self {
        Self {
            events: events.boxed(),
            laws: Laws::default(),
            about: About {
                api: model.api.clone(),
                provider: model.provider.clone(),
                model: model.id.clone(),
                timestamp,
            },
            ended: false,
        }
    }

    /// Creates a stream that ends immediately with an error, for failures before a request.
    pub fn failed(model: &crate::model::Model, timestamp: i64, error: LlmError) -> Self {
        let message = AssistantMessage::pending(model.api.clone(), model.provider.clone(), model.id.clone(), timestamp);
        let end = StreamEvent::End(failure(message, error));
        Self::new(model, timestamp, futures::stream::once(async move { end }))
    }

    /// Like [`Self::failed`], for a call whose model is known only by name.
    pub(crate) fn failed_early(model: &str, timestamp: i64, error: LlmError) -> Self {
        let (api, provider, model) = (ApiId::new(""), error.provider.clone(), ModelId::new(model));
        let about = About { api, provider, model, timestamp };
        let end = StreamEvent::End(failure(about.pending(), error));
        Self { events: futures::stream::once(async move { end }).boxed(), laws: Laws::default(), about, ended: false }
    }

    /// Pulls the stream to its end and returns how it ended.
    pub async fn collect_end(mut self) -> Finished {
        while let Some(event) = self.next().await {
            if let StreamEvent::End(finished) = event {
                return finished;
            }
        }
        self.about.missing_end()
    }
}

/// Builds the end of a failed call: the message gets the error's text and the matching stop reason.
pub(crate) fn failure(mut message: AssistantMessage, error: LlmError) -> Finished {
    message.stop_reason = if error.kind == LlmErrorKind::Aborted { StopReason::Aborted } else { StopReason::Error };
    message.error_message = Some(error.text.clone());
    Finished { message: Arc::new(message), error: Some(Arc::new(error)) }
}

impl About {
    fn pending(&self) -> AssistantMessage {
        AssistantMessage::pending(self.api.clone(), self.provider.clone(), self.model.clone(), self.timestamp)
    }

    fn missing_end(&self) -> Finished {
        let message = self.pending();
        let text = "Stream ended without a final event";
        failure(message, LlmError::new(self.provider.clone(), LlmErrorKind::StreamCut, text))
    }
}

impl Stream for EventStream {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let event = match self.events.poll_next_unpin(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(event)) => event,
            Poll::Ready(None) => StreamEvent::End(self.about.missing_end()),
        };
        self.laws.observe(&event);
        self.ended = matches!(event, StreamEvent::End(_));
        Poll::Ready(Some(event))
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("about", &self.about).field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// The buffer into which a decoder emits its events.
#[derive(Debug, Default)]
pub struct Emit {
    events: VecDeque<StreamEvent>,
}

impl Emit {
    /// Appends an event.
    pub fn push(&mut self, event: StreamEvent) {
        self.events.push_back(event);
    }

    /// Removes the oldest event.
    pub fn pop(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Returns the buffered events, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &StreamEvent> {
        self.events.iter()
    }

    /// Returns the number of buffered events.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether content or the end is buffered, not counting the `n` oldest events.
    pub(crate) fn has_content_after(&self, n: usize) -> bool {
        self.events
            .range(n.min(self.events.len())..)
            .any(|event| !matches!(event, StreamEvent::Start(_) | StreamEvent::Usage(_)))
    }

    /// Returns whether no event is buffered.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

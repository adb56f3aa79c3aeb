//! An active run, and the outcome of one whose reply went to a sink.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt};
use pinch_stdx::pull::{Pulled, pulled};

use super::published::publish;
use super::{carry_out, replying};
use crate::delivery::{Delivered, DeliveryTerms, Lifecycle, Pump, ReplyEvent, ReplySink, RunId, RunPublisher};
use crate::parts::Parts;
use crate::run::payloads::Payload;
use crate::run::{FailureKind, RunError, RunRequest, RunResult, UsageLine, still_to_send, unsent};
use crate::runner::{BoxedRunResult, RunEvent, notice, terminal_event, usage_line};
use crate::texts::TextTable;

type ResultSlot = Arc<Mutex<Option<BoxedRunResult>>>;

/// An active run: a stream of its events, then its result.
#[must_use = "a run does nothing unless polled"]
pub struct EngineRun {
    events: Pulled<'static, RunEvent>,
    result: ResultSlot,
    run_id: RunId,
    publisher: RunPublisher,
    terms: DeliveryTerms,
    usage_line: UsageLine,
}

impl EngineRun {
    pub(super) fn new(parts: Arc<Parts>, request: RunRequest) -> Self {
        let result: ResultSlot = Arc::default();
        let slot = Arc::clone(&result);
        let run_id = RunId::from(request.run_id.as_str());
        let publisher = parts.bus.publisher(run_id.clone(), request.session_key.as_deref(), parts.host.clone());
        let usage_line = request.usage_line;
        let terms = replying::delivery_terms(&parts, &request);
        // Boxed, because every future it is passed to would reserve space for all of it.
        let request = Box::new(request);
        let events = pulled(move |emitter| async move {
            let mut has_started = false;
            let done = carry_out(&parts, request, &emitter, &mut has_started).await;
            let now_ms = parts.host.now_ms();
            if !has_started {
                let start = Lifecycle::Start { started_at_ms: now_ms };
                emitter.emit(RunEvent::Reply(ReplyEvent::Lifecycle(start))).await;
            }
            let end = terminal_event(&done, now_ms, &parts.registered.texts);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            emitter.emit(RunEvent::Reply(ReplyEvent::Lifecycle(end))).await;
            // After the last event, so that an available answer does not wait for the disk.
            parts.profiles.flush().await;
        });
        Self { events, result, run_id, publisher, terms, usage_line }
    }

    /// Returns the id of the run, for [`RunTarget::Run`](super::RunTarget::Run) and for the ids of its reply.
    pub fn id(&self) -> &RunId {
        &self.run_id
    }

    /// Drives the run to its end.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn finish(mut self) -> Result<RunResult, RunError> {
        while self.next().await.is_some() {}
        self.result()
    }

    /// Drives the run to its end and sends its reply to a sink as it arrives. The run never waits for the sink: events that a slow sink has
    /// not taken yet are merged, and delivered before this returns. Even for a failed run, the outcome lists what was delivered.
    pub fn deliver(self, sink: Arc<dyn ReplySink>) -> impl Future<Output = DeliveredRun> + Send {
        // Boxed here, since the future of a function that owns it holds it twice.
        Box::new(self).deliver_boxed(sink)
    }

    async fn deliver_boxed(mut self: Box<Self>, sink: Arc<dyn ReplySink>) -> DeliveredRun {
        let texts = self.terms.texts.clone();
        let (sender, pump) = Pump::new(sink, self.run_id.clone(), self.terms.clone());
        let pulled = async {
            while let Some(event) = self.next().await {
                if let Some(text) = notice(&event, &texts) {
                    sender.send(ReplyEvent::Notice(text));
                }
                if let RunEvent::Reply(event) = event {
                    if matches!(&event, ReplyEvent::Lifecycle(end) if end.is_terminal()) {
                        self.usage_line(&texts).into_iter().for_each(|line| sender.send(ReplyEvent::Notice(line)));
                    }
                    sender.send(event);
                }
            }
            sender.close();
        };
        let ((), delivered) = futures::join!(pulled, pump.run());
        DeliveredRun { id: self.run_id.clone(), result: self.result(), delivered, terms: self.terms.clone() }
    }

    /// Returns the line about the run's token usage, if it is enabled and the run succeeded.
    fn usage_line(&self, texts: &TextTable) -> Option<String> {
        let slot = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let result = slot.as_ref()?.as_ref().ok()?;
        usage_line(result, self.usage_line, texts)
    }

    /// Returns the result, after the last event.
    ///
    /// # Errors
    /// [`RunError`]; also if the run has not ended yet.
    pub fn result(&mut self) -> Result<RunResult, RunError> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.map_or_else(
            || Err(RunError::Internal("the run has not ended".to_owned())),
            |ended| ended.map(|result| *result),
        )
    }
}

impl Stream for EngineRun {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let event = ready!(Pin::new(&mut self.events).poll_next(cx));
        if let Some(event) = &event {
            publish(&mut self.publisher, event);
        }
        Poll::Ready(event)
    }
}

/// Outcome of a run whose reply went to a sink.
#[derive(Debug)]
pub struct DeliveredRun {
    /// Id of the run, which [`Payload::id`] needs to identify unsent payloads.
    pub id: RunId,
    /// How the run ended.
    pub result: Result<RunResult, RunError>,
    /// Receipts and failures of its blocks, even if the run failed.
    pub delivered: Delivered,
    terms: DeliveryTerms,
}

/// Whether the answer of a run reached its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyDelivery {
    /// All of it was delivered, or a message tool sent it.
    Delivered,
    /// Part of the answer has not been sent or confirmed.
    Pending,
    /// There is no answer.
    Missing,
}

impl DeliveredRun {
    /// Returns whether the answer was delivered. Failures and reasoning do not count as answers.
    pub fn reply_delivery(&self) -> ReplyDelivery {
        let Ok(result) = &self.result else { return ReplyDelivery::Missing };
        let is_answer = |payload: &Payload| !payload.is_error && !payload.reply.is_reasoning;
        if result.messaging.did_send() {
            ReplyDelivery::Delivered
        } else if result.failure().is_some_and(|failure| failure.kind == FailureKind::Empty)
            || !result.payloads.iter().any(is_answer)
        {
            ReplyDelivery::Missing
        } else if self.delivered.unconfirmed.is_some() || self.still_to_send().iter().any(is_answer) {
            ReplyDelivery::Pending
        } else {
            ReplyDelivery::Delivered
        }
    }

    /// Sends [the unsent payloads](DeliveredRun::still_to_send) to a sink in the same way as blocks during the run: split to fit, retried
    /// after transient failures, and passed through the plugin hooks for outgoing messages.
    pub async fn send_rest(&self, sink: Arc<dyn ReplySink>) -> Delivered {
        let (sender, pump) = Pump::new(sink, self.id.clone(), self.terms.clone());
        self.still_to_send().into_iter().for_each(|payload| sender.send(ReplyEvent::BlockReply(payload.reply)));
        sender.close();
        pump.after(&self.delivered).run().await
    }

    /// Returns what the host still has to send: payloads, or parts of them, that the sink did not receive. For a failed run these are the
    /// unsent blocks and a text about the failure.
    pub fn still_to_send(&self) -> Vec<Payload> {
        match &self.result {
            Ok(result) => still_to_send(result.payloads.clone(), &self.delivered),
            Err(error) => {
                let mut left = unsent::unsent_blocks(&self.delivered);
                left.push(Payload::error(error.text_for_user(&self.terms.texts)));
                left
            }
        }
    }
}

//! Broadcasts the events of all runs of an engine to any number of listeners.
//!
//! Listeners read one bounded ring buffer, each at its own position. A run never waits for a listener: one that is too slow loses the
//! oldest events, without affecting others, and learns how many it missed ([`EngineEvent::Lagged`]).

use std::sync::Arc;

use pinch_stdx::host::Host;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::contract::RunId;
use super::event::Lifecycle;
use crate::key::SessionKey;
use crate::replies::piece::AgentStream;

/// Number of events kept for a slow listener.
const BACKLOG: usize = 1024;

/// One event of a run.
///
/// | stream | data |
/// |---|---|
/// | `lifecycle` | `{phase: "start", startedAt}`, then either `{phase: "end", endedAt, executionSettled, aborted?, stopReason?}` or `{phase: "error", error, endedAt, executionSettled}`: one start and one end per run |
/// | `assistant` | `{delta, at, mediaUrls?}`: the text of the current answer is truncated at byte `at`, then `delta` is appended |
/// | `thinking` | `{delta, at}`: the same for the formatted reasoning |
/// | `tool` | `{phase: "start", name, toolCallId, args}`, `{phase: "update", …, partialResult}`, `{phase: "result", …, meta?, isError, result}` |
/// | `compaction` | `{phase: "start"}`, `{phase: "end", willRetry}` |
/// | `retry` | `{phase: "wait", reason, delayMs, attempt?, max?}` |
///
/// Unlike in OpenClaw, no event repeats the whole text so far: the cost of a long answer is linear in its length, not quadratic. An answer
/// begins with
/// `at: 0`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Envelope {
    /// The run.
    pub run_id: RunId,
    /// Sequence number of the event within its run, starting at 1, without gaps.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub ts_ms: i64,
    /// Routing key of the session, if the request has one.
    pub session_key: Option<SessionKey>,
    /// Stream that the event belongs to.
    pub stream: AgentStream,
    /// The payload; see the table above.
    pub data: Arc<Value>,
}

impl Envelope {
    /// Returns the JSON form: `{runId, seq, ts, sessionKey?, stream, data}`.
    pub fn to_value(&self) -> Value {
        let mut value = json!({"runId": self.run_id.as_str(), "seq": self.seq, "ts": self.ts_ms});
        if let Some(key) = &self.session_key {
            value["sessionKey"] = json!(**key);
        }
        value["stream"] = self.stream.as_str().into();
        value["data"] = (*self.data).clone();
        value
    }
}

/// An item that a listener receives.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// An event of a run.
    Event(Arc<Envelope>),
    /// The listener was too slow and missed this many events, of any runs. The following events are in order again.
    Lagged {
        /// Number of missed events.
        missed: u64,
    },
}

/// The receiving end of a subscription. Dropping it ends the subscription.
#[derive(Debug)]
pub struct EngineEvents(broadcast::Receiver<Arc<Envelope>>);

impl EngineEvents {
    /// Returns the next event, or `None` when the engine and all its runs are gone. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<EngineEvent> {
        match self.0.recv().await {
            Ok(envelope) => Some(EngineEvent::Event(envelope)),
            Err(RecvError::Lagged(missed)) => Some(EngineEvent::Lagged { missed }),
            Err(RecvError::Closed) => None,
        }
    }
}

/// The sending end, one per engine.
#[derive(Clone, Debug)]
pub(crate) struct EventBus(broadcast::Sender<Arc<Envelope>>);

impl Default for EventBus {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl EventBus {
    pub(crate) fn subscribe(&self) -> EngineEvents {
        EngineEvents(self.0.subscribe())
    }

    /// Returns the publisher of one run.
    pub(crate) fn publisher(&self, run_id: RunId, session_key: Option<&str>, host: Host) -> RunPublisher {
        RunPublisher { bus: self.clone(), run_id, session_key: session_key.map(Into::into), host, n: 0, is_open: false }
    }
}

/// Numbers and sends the events of a run. If dropped during a run, it publishes the terminal event.
#[derive(Debug)]
pub(crate) struct RunPublisher {
    bus: EventBus,
    run_id: RunId,
    session_key: Option<SessionKey>,
    host: Host,
    n: u64,
    /// Whether the start has been published and the end has not.
    is_open: bool,
}

impl RunPublisher {
    /// Publishes an event. The payload is only built if there are listeners.
    pub(crate) fn publish(&mut self, stream: AgentStream, data: impl FnOnce() -> Arc<Value>) {
        self.n += 1;
        if self.bus.0.receiver_count() == 0 {
            return;
        }
        let envelope = Envelope {
            run_id: self.run_id.clone(),
            seq: self.n,
            ts_ms: self.host.now_ms(),
            session_key: self.session_key.clone(),
            stream,
            data: data(),
        };
        // The last listener may have gone in the meantime.
        let _nobody_listens = self.bus.0.send(Arc::new(envelope));
    }

    /// Publishes the start or the end of the run.
    pub(crate) fn lifecycle(&mut self, event: &Lifecycle) {
        self.is_open = !event.is_terminal();
        self.publish(AgentStream::Lifecycle, || Arc::new(event.to_value()));
    }
}

impl Drop for RunPublisher {
    fn drop(&mut self) {
        if self.is_open {
            let error = "the run was dropped before its end".to_owned();
            self.lifecycle(&Lifecycle::Error { ended_at_ms: self.host.now_ms(), error });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publisher(bus: &EventBus) -> RunPublisher {
        bus.publisher(RunId::from("r"), Some("agent:main:main"), Host::builder().clock(5, 1).build())
    }

    fn number(event: Option<EngineEvent>) -> u64 {
        match event {
            Some(EngineEvent::Event(envelope)) => envelope.seq,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_slow_listener_loses_only_its_own_events_and_learns_how_many() {
        let bus = EventBus::default();
        let (mut slow, mut fast) = (bus.subscribe(), bus.subscribe());
        let mut run = publisher(&bus);
        for n in 1..=BACKLOG as u64 + 10 {
            run.publish(AgentStream::Tool, || Arc::new(json!(n)));
            assert_eq!(number(fast.next().await), n);
        }
        assert_eq!(slow.next().await, Some(EngineEvent::Lagged { missed: 10 }));
        assert_eq!(number(slow.next().await), 11);
    }

    #[tokio::test]
    async fn a_dropped_run_ends_once_and_an_unstarted_run_publishes_nothing() {
        let bus = EventBus::default();
        let mut listener = bus.subscribe();
        drop(publisher(&bus));
        let mut run = publisher(&bus);
        run.lifecycle(&Lifecycle::Start { started_at_ms: 1 });
        drop(run);
        drop(bus);
        let mut phases = Vec::new();
        while let Some(EngineEvent::Event(envelope)) = listener.next().await {
            phases.push(envelope.data["phase"].clone());
        }
        assert_eq!(phases, ["start", "error"]);
    }

    #[tokio::test]
    async fn the_json_has_the_members_programs_know() {
        let bus = EventBus::default();
        let mut listener = bus.subscribe();
        publisher(&bus).publish(AgentStream::Assistant, || Arc::new(json!({"delta": "a", "at": 0})));
        let Some(EngineEvent::Event(envelope)) = listener.next().await else { panic!("an event was published") };
        let expected = json!({"runId": "r", "seq": 1, "ts": 5, "sessionKey": "agent:main:main", "stream": "assistant",
            "data": {"delta": "a", "at": 0}});
        assert_eq!(envelope.to_value(), expected);
    }
}

//! Scenarios of a complete call to a server on the loopback interface.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_llm::error::{Emitted, LlmError, LlmErrorKind, retry};
use pinch_llm::event::{EventStream, Finished, StreamEvent};
use pinch_llm::message::StopReason;
use pinch_llm::model::Model;
use pinch_llm::provider::http::HttpProvider;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::{CallObserver, Request, ThinkingChoice, Timeouts};
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_llm::thinking::ThinkingLevel;
use serde_json::{Value, json};

use super::support::{ensure, equal, format_of, good, request_at};
use crate::server::{Fault, Gate, Server, ServerReply};
use crate::wires::{Answer, AnswerPart, Wire};

/// Maximum duration of a scenario.
const MAX_TIME: Duration = Duration::from_secs(60);
/// A time limit that must expire.
const SHORT: Duration = Duration::from_millis(60);

fn run(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    let limited = async { tokio::time::timeout(MAX_TIME, work).await };
    runtime.block_on(limited).unwrap_or_else(|_| Err(format!("not over after {MAX_TIME:?}")))
}

fn stream(wire: &dyn Wire, request: Request, cancel: Cancel) -> Result<EventStream, String> {
    // Built-in formats are called as in programs, with everything that surrounds them there.
    let provider: Arc<dyn Provider> = match ProviderRegistry::builtin().get(&request.model.api) {
        Ok(provider) => provider,
        Err(_) => Arc::new(HttpProvider::new(format_of(wire)?, Arc::default())),
    };
    Ok(provider.stream(request, cancel))
}

async fn start() -> Result<Server, String> {
    Server::start().await.map_err(|why| why.to_string())
}

fn events(wire: &dyn Wire) -> ServerReply {
    ServerReply::status(200).header("content-type", wire.content_type())
}

fn answer() -> Answer {
    Answer::of([AnswerPart::text("abc déf"), AnswerPart::call("call_1", "read", r#"{"path":"a"}"#)])
}

async fn end_with(wire: &dyn Wire, reply: ServerReply, timeouts: Timeouts) -> Result<(Finished, usize), String> {
    let server = start().await?;
    server.reply(reply);
    let mut request = request_at(wire, &server.url());
    request.options.timeouts = timeouts;
    let end = stream(wire, request, Cancel::new())?.collect_end().await;
    Ok((end, server.requests().len()))
}

pub(super) fn statuses(wire: &dyn Wire) -> Result<(), String> {
    use LlmErrorKind::{
        Auth, Billing, ContextOverflow, InvalidRequest, ModelNotFound, Overloaded, RateLimit, Server, Timeout,
    };
    const KINDS: [(u16, LlmErrorKind, bool); 13] = [
        (400, InvalidRequest, false),
        (401, Auth, false),
        (402, Billing, false),
        (403, Auth, false),
        (404, ModelNotFound, false),
        (408, Timeout, true),
        (409, Server, true),
        (413, ContextOverflow, false),
        (422, InvalidRequest, false),
        (429, RateLimit, true),
        (500, Server, true),
        (503, Server, true),
        (529, Overloaded, true),
    ];
    run(async {
        for (status, kind, retryable) in KINDS {
            let reply = ServerReply::json(status, &wire.refusal("these are my words")).header("retry-after", "7");
            let (end, n_requests) = end_with(wire, reply, Timeouts::default()).await?;
            let error = end.error.ok_or_else(|| format!("{status} is a good answer"))?;
            equal(&format!("kind of {status}"), error.kind, kind)?;
            equal(&format!("retryable {status}"), retry::retryable(&error), retryable)?;
            equal(&format!("status of {status}"), error.status.map(|s| s.as_u16()), Some(status))?;
            equal("time to wait", error.retry_after, Some(Duration::from_secs(7)))?;
            equal("emitted", error.emitted, Emitted::Nothing)?;
            equal(&format!("requests of {status}"), n_requests, 1)?;
            let says = wire.is_reworded(status) || error.text.contains("these are my words");
            ensure(says, || format!("the error says {:?}", error.text))?;
            equal("errorMessage", end.message.error_message.as_deref(), Some(error.text.as_str()))?;
        }
        for (body, status) in [("<html>bad gateway</html>", 502), ("", 500), ("{\"error\":", 500), ("[]", 500)] {
            let (end, _) = end_with(wire, ServerReply::status(status).send(body), Timeouts::default()).await?;
            let error = end.error.ok_or("a bad body is a good answer")?;
            equal(&format!("kind of {body:?}"), error.kind, Server)?;
        }
        Ok(())
    })
}

pub(super) fn facts(wire: &dyn Wire) -> Result<(), String> {
    run(async {
        let server = start().await?;
        server.reply(events(wire).send(wire.frames(&answer()).concat()));
        let mut request = request_at(wire, &server.url());
        request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Low);
        let now = request.host.now_ms();
        let end = stream(wire, request, Cancel::new())?.collect_end().await;
        let message = good(&end)?;
        let who = (message.api.as_str(), message.provider.as_str(), message.model.as_str());
        equal("who answered", who, (wire.api(), wire.api(), "m"))?;
        equal("timestamp", message.timestamp, now)?;
        equal("level", message.thinking_level, Some(ThinkingLevel::Low))?;
        ensure(message.duration_ms.is_some(), || "the duration is missing".into())?;
        ensure(message.raw_stop_reason.is_some(), || "the provider's own stop word is missing".into())
    })
}

pub(super) fn abort_at_each_event(wire: &dyn Wire) -> Result<(), String> {
    let frames = wire.frames(&answer());
    run(async {
        for stop_after in 0.. {
            let server = start().await?;
            let gate = Gate::new();
            gate.open_times(frames.len());
            server.reply(events(wire).gated(&gate, frames.clone()));
            let cancel = Cancel::new();
            let mut stream = stream(wire, request_at(wire, &server.url()), cancel.clone())?;
            let mut n_events = 0_usize;
            let end = loop {
                if n_events == stop_after {
                    cancel.cancel(CancelReason::User);
                }
                match stream.next().await {
                    Some(StreamEvent::End(end)) => break end,
                    Some(_) => n_events += 1,
                    None => return Err("the stream has no end".into()),
                }
            };
            ensure(stream.next().await.is_none(), || "something comes after the end".into())?;
            if end.is_ok() {
                let late = stop_after + 2 >= n_events;
                return ensure(late, || format!("a good end, though aborted after {stop_after} of {n_events} events"));
            }
            equal("stop reason", end.message.stop_reason, StopReason::Aborted)?;
            equal("errorMessage", end.message.error_message.as_deref(), Some("Request was aborted"))?;
            equal("kind", end.error.map(|error| error.kind), Some(LlmErrorKind::Aborted))?;
        }
        Ok(())
    })
}

pub(super) fn abort_before(wire: &dyn Wire) -> Result<(), String> {
    run(async {
        let server = start().await?;
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::User);
        let end = stream(wire, request_at(wire, &server.url()), cancel)?.collect_end().await;
        equal("stop reason", end.message.stop_reason, StopReason::Aborted)?;
        equal("requests", server.requests().len(), 0)
    })
}

pub(super) fn broken_connection(wire: &dyn Wire) -> Result<(), String> {
    run(async {
        let frames =
            wire.frames(&Answer { pieces: 1, ..Answer::of([AnswerPart::text("abc"), AnswerPart::text("def")]) });
        let n = frames.len() - 2;
        for fault in [Fault::Close, Fault::Reset] {
            let half = &frames[n][..frames[n].len() / 2];
            let reply = events(wire).send(frames[..n].concat()).send(half.to_vec()).then(fault);
            let (end, _) = end_with(wire, reply, Timeouts::default()).await?;
            let error = end.error.ok_or("a broken connection is a good answer")?;
            equal("kind", error.kind, LlmErrorKind::StreamCut)?;
            ensure(retry::retryable(&error), || format!("not retryable: {error:?}"))?;
            ensure(end.message.text("").starts_with("abc"), || format!("what came is lost: {:?}", end.message))?;
        }
        let (end, _) = end_with(wire, ServerReply::fault(Fault::Close), Timeouts::default()).await?;
        equal("kind before the headers", end.error.map(|error| error.kind), Some(LlmErrorKind::Connect))
    })
}

pub(super) fn idle_deadline(wire: &dyn Wire) -> Result<(), String> {
    run(async {
        let frames = wire.frames(&answer());
        let timeouts = Timeouts::default().with_idle(Some(SHORT));
        // Keep-alives continue, content does not.
        let mut reply = events(wire).send(frames[..frames.len() / 2].concat());
        for _ in 0..40 {
            let sign = wire.keep_alive();
            reply = reply.pause(SHORT / 4).send(sign.unwrap_or_default());
        }
        let (end, _) = end_with(wire, reply.then(Fault::Hang), timeouts).await?;
        let error = end.error.ok_or("a silent server is a good answer")?;
        equal("error", (error.kind, error.text.as_str()), (LlmErrorKind::Timeout, "Stream idle timeout"))?;
        let timeouts = Timeouts::default().with_first_content(Some(SHORT));
        let (end, _) = end_with(wire, events(wire).then(Fault::Hang), timeouts).await?;
        equal("kind without any content", end.error.map(|error| error.kind), Some(LlmErrorKind::Timeout))
    })
}

pub(super) fn header_deadline(wire: &dyn Wire) -> Result<(), String> {
    run(async {
        let timeouts = Timeouts::default().with_headers(Some(SHORT));
        let (end, _) = end_with(wire, ServerReply::fault(Fault::Hang), timeouts).await?;
        let error = end.error.ok_or("a silent server is a good answer")?;
        equal("error", (error.kind, error.text.as_str()), (LlmErrorKind::Timeout, "Request timed out."))?;
        // Zero means no limit, and the limit for the headers does not affect a running stream.
        let timeouts = Timeouts::default().with_headers(Some(SHORT * 4)).with_total(Some(Duration::ZERO));
        let mut reply = events(wire);
        for frame in wire.frames(&answer()) {
            reply = reply.pause(SHORT).send(frame);
        }
        let (end, _) = end_with(wire, reply, timeouts).await?;
        good(&end).map(drop)
    })
}

#[derive(Default)]
struct EventNotes(Mutex<Vec<String>>);

impl EventNotes {
    fn add(&self, note: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }
}

impl CallObserver for EventNotes {
    fn on_payload<'a>(&'a self, body: &'a Value, _: &'a Model) -> BoxFuture<'a, Result<Option<Value>, LlmError>> {
        Box::pin(async move {
            let mut replaced = body.clone();
            replaced["added_by_observer"] = json!(true);
            self.add("payload".into());
            Ok(Some(replaced))
        })
    }

    fn on_response<'a>(
        &'a self,
        status: http::StatusCode,
        _: &'a http::HeaderMap,
        _: &'a Model,
    ) -> BoxFuture<'a, Result<(), LlmError>> {
        Box::pin(async move {
            self.add(status.as_u16().to_string());
            Ok(())
        })
    }
}

pub(super) fn observers(wire: &dyn Wire) -> Result<(), String> {
    run(async {
        for (status, notes_expected) in [(200, ["payload", "200"]), (401, ["payload", "401"])] {
            let server = start().await?;
            server.reply(match status {
                200 => events(wire).send(wire.frames(&answer()).concat()),
                refused => ServerReply::json(refused, &wire.refusal("no")),
            });
            let notes = Arc::new(EventNotes::default());
            let mut request = request_at(wire, &server.url());
            request.options.observer = Some(Arc::clone(&notes) as Arc<dyn CallObserver>);
            let mut stream = stream(wire, request, Cancel::new())?;
            ensure(stream.next().await.is_some(), || "no event at all".into())?;
            let noted = notes.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
            equal("notes before the first event", noted.join(" "), notes_expected.join(" "))?;
            let _end = stream.collect_end().await;
            let sent = server.requests().first().map(|request| request.json()["added_by_observer"].clone());
            equal("replaced body", sent, Some(json!(true)))?;
        }
        Ok(())
    })
}

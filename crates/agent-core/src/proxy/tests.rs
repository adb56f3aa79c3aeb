use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use pinch_llm::error::{Emitted, LlmError, LlmErrorKind};
use pinch_llm::event::laws::Laws;
use pinch_llm::event::{BlockKind, Emit, Finished, Fold, StreamEvent};
use pinch_llm::frame::{Frames, Framing};
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, Text, Thinking, Usage};
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, Request, SystemPrompt};
use pinch_llm::wire::{Decoder, WireCall};
use pinch_stdx::cancel::{Cancel, CancelReason};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::reader::LineReader;
use super::{LineWriter, ProxyBodyError, ProxyCall, body};

fn request() -> Request {
    let record =
        json!({"id": "m", "api": "a", "provider": "p", "baseUrl": "http://x", "compat": {"supportsStore": false}});
    Request::new(Model::from_record(&record).unwrap(), vec![Arc::new(Message::user("hi", 1))])
        .with_system(SystemPrompt::text("Be brief."))
        .with_auth(Auth::key("never sent"))
}

/// Returns the events of lines that arrive in these chunks, after checking the laws.
fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<StreamEvent> {
    let request = request();
    let mut reader = LineReader::new(&WireCall::new(&request, 5));
    let (mut frames, mut emit) = (Frames::new(Framing::DataLines), Emit::default());
    for chunk in chunks {
        frames.push(chunk);
        while let Some(frame) = frames.next_frame().unwrap() {
            reader.push(frame, &mut emit);
        }
    }
    if let Some(frame) = frames.finish().unwrap() {
        reader.push(frame, &mut emit);
    }
    reader.finish(&mut emit);
    let mut laws = Laws::default();
    let events: Vec<StreamEvent> = std::iter::from_fn(|| emit.pop()).collect();
    events.iter().for_each(|event| laws.check(event).unwrap());
    events
}

/// Renders an event completely.
fn in_words(event: &StreamEvent) -> String {
    let error = |error: &LlmError| {
        let LlmError { provider, kind, status, code, request_id, retry_after, should_retry, emitted, text, .. } = error;
        format!(
            "{provider} {kind:?} {status:?} {code:?} {request_id:?} {retry_after:?} {should_retry:?} {emitted:?} {text}"
        )
    };
    match event {
        StreamEvent::End(Finished { message, error: failure }) => {
            format!("end {message:?} {:?}", failure.as_deref().map(error))
        }
        other => format!("{other:?}"),
    }
}

fn words(events: &[StreamEvent]) -> Vec<String> {
    events.iter().map(in_words).collect()
}

/// A step in an answer.
#[derive(Clone, Debug)]
enum AnswerStep {
    Open(u8, String),
    Delta(usize, String),
    /// Ends a block, either consistently with its deltas or not.
    Close(usize, Option<String>, bool),
    Usage(u64),
}

fn steps() -> impl Strategy<Value = Vec<AnswerStep>> {
    let text = "[a-c\"{}:,0-9 \u{e9}\n\\\\]{0,6}";
    let step = prop_oneof![
        (0u8..4, text).prop_map(|(kind, id)| AnswerStep::Open(kind, id)),
        (0usize..4, text).prop_map(|(at, text)| AnswerStep::Delta(at, text)),
        (0usize..4, prop::option::of(text), any::<bool>()).prop_map(|(at, sig, odd)| AnswerStep::Close(at, sig, odd)),
        (0u64..9).prop_map(AnswerStep::Usage),
    ];
    prop::collection::vec(step, 0..14)
}

fn closed(fold: &Fold, at: usize, signature: Option<String>, odd: bool) -> Block {
    match Arc::unwrap_or_clone(fold.block(at).unwrap()) {
        Block::Text(_) if odd => Block::Text(Text { text: "corrected".into(), signature }),
        Block::Text(text) => Block::Text(Text { signature, ..text }),
        Block::Thinking(thinking) => {
            Block::Thinking(Thinking { signature, redacted: odd || thinking.redacted, ..thinking })
        }
        Block::ToolCall(mut call) if odd => {
            call.thought_signature = signature;
            call.arguments_error = Some("cut".into());
            Block::ToolCall(call)
        }
        other => other,
    }
}

/// Builds the events of an answer step by step, as a decoder would.
fn answer(steps: &[AnswerStep], end: u8, started: bool) -> Vec<StreamEvent> {
    let mut base = AssistantMessage::pending("a".into(), "real".into(), "m".into(), 7);
    let mut events = Vec::new();
    let mut fold = Fold::new();
    let mut open: Vec<bool> = Vec::new();
    let mut push = |event: StreamEvent, fold: &mut Fold| {
        fold.push(&event);
        events.push(event);
    };
    if started {
        base.response_id = Some("r".into());
        push(StreamEvent::Start(Arc::new(base.clone())), &mut fold);
    }
    for step in steps.iter().filter(|_| started) {
        match step {
            AnswerStep::Open(kind, id) => {
                let kind = match kind {
                    0 => BlockKind::Text,
                    1 => BlockKind::Thinking { redacted: false },
                    2 => BlockKind::Thinking { redacted: true },
                    _ => BlockKind::ToolCall { id: id.clone().into(), name: "t".into() },
                };
                push(StreamEvent::BlockStart { index: open.len(), kind }, &mut fold);
                open.push(true);
            }
            AnswerStep::Delta(at, text) if open.get(*at) == Some(&true) => {
                push(StreamEvent::Delta { index: *at, text: text.as_str().into() }, &mut fold);
            }
            AnswerStep::Close(at, signature, odd) if open.get(*at) == Some(&true) => {
                open[*at] = false;
                let block = Arc::new(closed(&fold, *at, signature.clone(), *odd));
                push(StreamEvent::BlockEnd { index: *at, block }, &mut fold);
            }
            AnswerStep::Usage(output) => {
                let usage = Usage { output: *output, ..Usage::default() };
                push(StreamEvent::Usage(Box::new(usage)), &mut fold);
            }
            AnswerStep::Delta(..) | AnswerStep::Close(..) => {}
        }
    }
    let mut message = if started { (*fold.message()).clone() } else { base };
    message.raw_stop_reason = Some("end".into());
    message.duration_ms = Some(3);
    let mut failure = None;
    match end {
        0 => message.stop_reason = StopReason::Stop,
        1 => message.stop_reason = StopReason::ToolUse,
        2 => {
            message.stop_reason = StopReason::Length;
            message.content.push(Arc::new(Block::text("said at the end only")));
        }
        kind => {
            let kind = if kind == 3 { LlmErrorKind::Aborted } else { LlmErrorKind::RateLimit };
            let is_aborted = kind == LlmErrorKind::Aborted;
            message.stop_reason = if is_aborted { StopReason::Aborted } else { StopReason::Error };
            message.error_message = Some("no".into());
            let mut error = LlmError::new("real".into(), kind, "no");
            error.status = http::StatusCode::from_u16(429).ok();
            error.code = Some("slow".into());
            error.request_id = Some("q".into());
            error.retry_after = Some(Duration::from_millis(1_500));
            error.should_retry = Some(true);
            error.emitted = match (started, open.is_empty()) {
                (false, _) => Emitted::Nothing,
                (true, true) => Emitted::Started,
                (true, false) => Emitted::Content,
            };
            failure = Some(Arc::new(error));
        }
    }
    push(StreamEvent::End(Finished { message: Arc::new(message), error: failure }), &mut fold);
    events
}

proptest! {
    #[test]
    fn the_client_receives_exactly_the_events_of_the_server(
        steps in steps(), end in 0u8..5, started in prop::bool::weighted(0.9), cuts in prop::collection::vec(0usize..3_000, 0..6),
    ) {
        let events = answer(&steps, end, started);
        let mut writer = LineWriter::new();
        let lines: String = events.iter().map(|event| writer.line(event)).collect();
        // The last line may lack its terminator.
        let bytes = lines.trim_end().as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(words(&read(chunks)), words(&events));
    }

    #[test]
    fn any_lines_produce_exactly_one_end(lines in prop::collection::vec(any_line(), 0..12)) {
        let events = read([lines.concat().as_bytes()]);
        let n_ends = events.iter().filter(|event| matches!(event, StreamEvent::End(_))).count();
        prop_assert_eq!(n_ends, 1);
    }
}

fn any_line() -> impl Strategy<Value = String> {
    let kinds = [
        "start",
        "text_start",
        "text_delta",
        "text_end",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_end",
        "thinking_start",
        "thinking_end",
        "usage",
        "done",
        "error",
        "surprise",
    ];
    let event = (prop::sample::select(kinds.to_vec()), 0u64..3, prop::sample::select(vec!["stop", "aborted", "x"]))
        .prop_map(|(kind, index, reason)| {
            let event =
                json!({"type": kind, "contentIndex": index, "delta": "{\"a", "reason": reason, "usage": {"input": 1}});
            format!("data: {event}\n")
        });
    prop_oneof![8 => event, 1 => "[a-z:{ ]{0,9}\n", 1 => "data: [\\[{\"a0]{0,6}\n"]
}

/// Parses lines as pi's own server writes them.
fn pi(events: &[Value]) -> Vec<StreamEvent> {
    let lines: String = events.iter().map(|event| format!("data: {event}\n")).collect();
    read([lines.as_bytes()])
}

fn end_of(events: &[StreamEvent]) -> &Finished {
    match events.last() {
        Some(StreamEvent::End(finished)) => finished,
        other => panic!("{other:?} is no end"),
    }
}

#[test]
fn pi_servers_are_supported() {
    let usage = json!({"input": 3, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 5,
        "cost": {"input": 0.5, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.5}});
    let events = pi(&[
        json!({"type": "start"}),
        json!({"type": "thinking_start", "contentIndex": 0}),
        json!({"type": "thinking_delta", "contentIndex": 0, "delta": "hm"}),
        json!({"type": "thinking_end", "contentIndex": 0, "contentSignature": "SIG"}),
        json!({"type": "text_start", "contentIndex": 1}),
        json!({"type": "text_delta", "contentIndex": 1, "delta": "hé"}),
        json!({"type": "text_end", "contentIndex": 1}),
        json!({"type": "toolcall_start", "contentIndex": 2, "id": "c", "toolName": "read"}),
        json!({"type": "toolcall_delta", "contentIndex": 2, "delta": "{\"path\":"}),
        json!({"type": "toolcall_delta", "contentIndex": 2, "delta": "\"a\"}"}),
        json!({"type": "toolcall_end", "contentIndex": 2}),
        json!({"type": "done", "reason": "toolUse", "usage": usage}),
    ]);
    let Finished { message, error } = end_of(&events);
    assert!(error.is_none());
    assert_eq!((message.stop_reason, message.timestamp, message.usage.total_tokens), (StopReason::ToolUse, 5, 5));
    assert_eq!((message.usage.cost.total, message.provider.as_str()), (0.5, "p"));
    let content: Vec<Value> = message.content.iter().map(|block| json!(**block)).collect();
    assert_eq!(
        content,
        [
            json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "SIG"}),
            json!({"type": "text", "text": "hé"}),
            json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}}),
        ]
    );
    let ended = |event: Value| {
        let events = pi(&[event]);
        let Finished { message, error } = end_of(&events);
        let error = error.as_ref().unwrap();
        (message.stop_reason, error.kind, error.text.clone())
    };
    let slow = json!({"type": "error", "reason": "error", "errorMessage": "429 rate limit", "usage": usage});
    assert_eq!(ended(slow), (StopReason::Error, LlmErrorKind::RateLimit, "429 rate limit".into()));
    let aborted = json!({"type": "error", "reason": "aborted", "usage": usage});
    assert_eq!(ended(aborted).0, StopReason::Aborted);
}

#[test]
fn impossible_events_are_errors() {
    let text = |events: &[Value]| end_of(&pi(events)).error.as_ref().unwrap().text.clone();
    let start = json!({"type": "text_start", "contentIndex": 0});
    let delta = json!({"type": "thinking_delta", "contentIndex": 0, "delta": "x"});
    assert_eq!(text(&[start.clone(), delta]), "Received thinking_delta for non-thinking content");
    let delta = json!({"type": "text_delta", "contentIndex": 1, "delta": "x"});
    assert_eq!(text(&[start.clone(), delta]), "Received text_delta for non-text content");
    let end = json!({"type": "text_end", "contentIndex": 0});
    assert_eq!(text(&[start.clone(), end.clone(), end]), "Received text_end for content that had ended");
    assert_eq!(text(&[start.clone(), start.clone()]), "Proxy stream began block 0 and not 1");
    assert_eq!(text(&[json!({"type": "done", "reason": "maybe"})]), "Unhandled stop reason: \"maybe\"");
    let events = pi(&[start, json!({"type": "text_delta", "contentIndex": 0, "delta": "half"})]);
    let Finished { message, error } = end_of(&events);
    let error = error.as_ref().unwrap();
    assert_eq!((error.text.as_str(), error.kind), ("Proxy stream ended unexpectedly", LlmErrorKind::StreamCut));
    assert_eq!((message.text(""), error.emitted), ("half".into(), Emitted::Content));
}

#[test]
fn invalid_bodies_are_errors() {
    let read = |body: &str| ProxyCall::read(body.as_bytes()).map(drop).unwrap_err();
    assert!(matches!(read("{"), ProxyBodyError::NotJson { .. }));
    assert!(matches!(read("{}"), ProxyBodyError::Model { .. }));
    let mut body = body(&request());
    body["context"]["tools"] = json!([7]);
    assert_eq!(read(&body.to_string()).to_string(), "tool 0 of the body cannot be read");
    body["context"]["messages"] = json!("x");
    assert!(matches!(read(&body.to_string()), ProxyBodyError::NoList { what: "messages" }));
}

#[tokio::test]
async fn events_from_elsewhere_end_with_their_end_or_failure_or_when_cancelled() {
    let begin = || {
        let start = json!({"type": "text_start", "contentIndex": 0});
        [Ok(start), Ok(json!({"type": "text_delta", "contentIndex": 0, "delta": "half"}))]
    };
    let read = |rest: BoxStream<'static, Result<Value, LlmError>>, cancel: Cancel| {
        super::read(&request(), stream::iter(begin()).chain(rest), cancel)
    };
    let done = json!({"type": "done", "reason": "stop"});
    let finished = read(stream::iter([Ok(done)]).boxed(), Cancel::new()).collect_end().await;
    assert_eq!((finished.is_ok(), finished.message.text("")), (true, "half".to_owned()));
    assert!(finished.message.duration_ms.is_some());

    let failed = async |rest, cancel| {
        let finished = read(rest, cancel).collect_end().await;
        assert_eq!(finished.message.text(""), "half");
        (finished.message.stop_reason, finished.error.unwrap().kind)
    };
    assert_eq!(failed(stream::empty().boxed(), Cancel::new()).await, (StopReason::Error, LlmErrorKind::StreamCut));
    let error = LlmError::new("p".into(), LlmErrorKind::Protocol, "broken");
    let ended = failed(stream::iter([Err(error)]).boxed(), Cancel::new()).await;
    assert_eq!(ended, (StopReason::Error, LlmErrorKind::Protocol));
    let cancel = Cancel::new();
    let cancels = cancel.clone();
    let last = stream::poll_fn(move |_| {
        cancels.cancel(CancelReason::User);
        Poll::Pending
    });
    assert_eq!(failed(last.boxed(), cancel).await, (StopReason::Aborted, LlmErrorKind::Aborted));
}

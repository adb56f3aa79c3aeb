//! Scenarios of decoding a response, without a network.

use pinch_llm::error::{Emitted, LlmErrorKind, retry};
use pinch_llm::event::{BlockKind, Fold, StreamEvent};
use pinch_llm::message::{Block, StopReason};
use serde_json::{Value, json};

use super::support::{decode, end_of, ensure, equal, good, in_words};
use crate::wires::{Answer, AnswerPart, End, Tokens, Wire};

const WORDS: &str = "grüße 😀 und \"mehr\"\n davon";
const ARGUMENTS: &str = r#"{"path":"ä/😀.txt","n":[1,2.5],"deep":{"a":null,"b":true},"text":"a\nb \u00e9 c"}"#;

/// Returns a response that contains everything.
fn rich() -> Answer {
    let parts =
        [AnswerPart::thinking("ich dénke"), AnswerPart::text(WORDS), AnswerPart::call("call_1", "read", ARGUMENTS)];
    Answer::of(parts)
}

fn events_of(wire: &dyn Wire, answer: &Answer) -> Result<Vec<StreamEvent>, String> {
    let frames = wire.frames(answer);
    decode(wire, frames.iter().map(Vec::as_slice))
}

pub(super) fn text(wire: &dyn Wire) -> Result<(), String> {
    let events = events_of(wire, &Answer::of([AnswerPart::text(WORDS)]))?;
    let message = good(end_of(&events)?)?;
    equal("stop reason", message.stop_reason, StopReason::Stop)?;
    equal("text", message.text("").as_str(), WORDS)?;
    equal("blocks", message.content.len(), 1)?;
    let deltas: String = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Delta { text, .. } => Some(&**text),
            _ => None,
        })
        .collect();
    equal("deltas", deltas.as_str(), WORDS)?;
    ensure(message.raw_stop_reason.is_some(), || "the provider's own stop word is missing".into())
}

pub(super) fn thinking(wire: &dyn Wire) -> Result<(), String> {
    let events = events_of(wire, &Answer::of([AnswerPart::thinking("hm, dénn"), AnswerPart::text("ja")]))?;
    let message = good(end_of(&events)?)?;
    match message.content.iter().map(|block| &**block).collect::<Vec<_>>()[..] {
        [Block::Thinking(thinking), Block::Text(text)] => {
            equal("thinking", thinking.thinking.as_str(), "hm, dénn")?;
            equal("text", text.text.as_str(), "ja")
        }
        ref other => Err(format!("thinking and text expected, got {other:?}")),
    }
}

pub(super) fn split_arguments(wire: &dyn Wire) -> Result<(), String> {
    let answer = Answer { pieces: 40, ..Answer::of([AnswerPart::call("call_1", "read", ARGUMENTS)]) };
    let events = events_of(wire, &answer)?;
    let whole: Value = serde_json::from_str(ARGUMENTS).map_err(|why| why.to_string())?;
    let (mut fold, mut json) = (Fold::new(), String::new());
    for event in &events {
        fold.push(event);
        if let StreamEvent::Delta { index, text } = event {
            json.push_str(text);
            let block = fold.block(*index).ok_or("the fold does not know the block")?;
            let so_far = block.as_tool_call().ok_or("the block is no call")?.arguments.clone();
            let path = so_far.get("path").and_then(Value::as_str).unwrap_or_default();
            ensure("ä/😀.txt".starts_with(path), || format!("path so far: {path:?}"))?;
        }
    }
    equal("argument deltas", serde_json::from_str::<Value>(&json).ok(), Some(whole.clone()))?;
    let message = good(end_of(&events)?)?;
    equal("stop reason", message.stop_reason, StopReason::ToolUse)?;
    let call = message.tool_calls().next().ok_or("there is no call")?;
    equal("name", call.name.as_str(), "read")?;
    equal("arguments", Value::Object(call.arguments.clone()), whole)?;
    let named = events.iter().any(|event| match event {
        StreamEvent::BlockStart { kind: BlockKind::ToolCall { name, .. }, .. } => name == "read",
        _ => false,
    });
    ensure(named, || "the start of the call does not name its tool".into())
}

pub(super) fn parallel_calls(wire: &dyn Wire) -> Result<(), String> {
    let calls =
        [1, 2, 3].map(|n| AnswerPart::call(&format!("call_{n}"), "read", &json!({"path": n.to_string()}).to_string()));
    let events = events_of(wire, &Answer::of([vec![AnswerPart::text("so")], calls.to_vec()].concat()))?;
    let message = good(end_of(&events)?)?;
    let paths: Vec<&Value> = message.tool_calls().map(|call| &call.arguments["path"]).collect();
    equal("paths", paths, vec![&json!("1"), &json!("2"), &json!("3")])?;
    let mut ids: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
    ids.dedup();
    equal("different ids", ids.len(), 3)?;
    equal("stop reason", message.stop_reason, StopReason::ToolUse)
}

pub(super) fn empty(wire: &dyn Wire) -> Result<(), String> {
    let events = events_of(wire, &Answer::of([]))?;
    let message = good(end_of(&events)?)?;
    equal("text", message.text("").as_str(), "")?;
    equal("stop reason", message.stop_reason, StopReason::Stop)
}

pub(super) fn cut_stream(wire: &dyn Wire) -> Result<(), String> {
    let frames = wire.frames(&rich());
    let whole = decode(wire, frames.iter().map(Vec::as_slice))?;
    let content = &good(end_of(&whole)?)?.content;
    for n in 0..frames.len() {
        let events = decode(wire, frames[..n].iter().map(Vec::as_slice))?;
        let finished = end_of(&events)?;
        match &finished.error {
            Some(error) => {
                equal(&format!("kind after {n} frames"), error.kind, LlmErrorKind::StreamCut)?;
                ensure(retry::retryable(error), || format!("not retryable after {n} frames: {error:?}"))?;
            }
            // The frames after the stop reason contain nothing of the answer.
            None => equal(&format!("content after {n} frames"), &finished.message.content, content)?,
        }
    }
    Ok(())
}

pub(super) fn error_mid_stream(wire: &dyn Wire) -> Result<(), String> {
    let answer = Answer::of([AnswerPart::text("so far")]).ending(End::Error("the server fell over".into()));
    let events = events_of(wire, &answer)?;
    let finished = end_of(&events)?;
    let error = finished.error.as_ref().ok_or("the answer is good")?;
    ensure(error.text.contains("the server fell over"), || format!("the error says {:?}", error.text))?;
    equal("emitted", error.emitted, Emitted::Content)?;
    equal("text", finished.message.text("").as_str(), "so far")?;
    equal("stop reason", finished.message.stop_reason, StopReason::Error)
}

pub(super) fn usage(wire: &dyn Wire) -> Result<(), String> {
    let tokens = Tokens { input: 1_000, output: 500, cached: 2_000 };
    let events = events_of(wire, &Answer { tokens, ..Answer::of([AnswerPart::text("x")]) })?;
    let usage = good(end_of(&events)?)?.usage;
    equal("tokens", (usage.input, usage.output, usage.cache_read), (1_000, 500, 2_000))?;
    equal("total", usage.total_tokens, 3_500)?;
    let total = (1_000.0 * 1.0 + 500.0 * 2.0 + 2_000.0 * 0.5) / 1e6;
    ensure((usage.cost.total - total).abs() < 1e-12, || format!("cost {:?}, expected {total}", usage.cost))
}

pub(super) fn huge_counts(wire: &dyn Wire) -> Result<(), String> {
    let marked = Tokens { input: 1_111, output: 2_222, cached: 0 };
    let whole = wire.frames(&Answer { tokens: marked, ..Answer::of([AnswerPart::text("x")]) }).concat();
    // Frames with a checksum cannot be changed afterwards.
    let Ok(text) = String::from_utf8(whole) else { return Ok(()) };
    let huge = text.replace("1111", "18446744073709551615").replace("2222", "18446744073709551615");
    ensure(huge != text, || format!("no count is in {text}"))?;
    let events = decode(wire, [huge.as_bytes()])?;
    ensure(good(end_of(&events)?)?.usage.output > 0, || "the answer cost nothing".into())
}

pub(super) fn length(wire: &dyn Wire) -> Result<(), String> {
    for parts in [
        vec![AnswerPart::text("cut")],
        vec![AnswerPart::text("cut"), AnswerPart::call("call_1", "read", r#"{"path":"a"}"#)],
    ] {
        let events = events_of(wire, &Answer::of(parts).ending(End::Length))?;
        equal("stop reason", good(end_of(&events)?)?.stop_reason, StopReason::Length)?;
    }
    Ok(())
}

pub(super) fn unknown_stop(wire: &dyn Wire) -> Result<(), String> {
    let answer = Answer::of([AnswerPart::text("so far")]).ending(End::Word("SOLAR_FLARE".into()));
    let events = events_of(wire, &answer)?;
    let finished = end_of(&events)?;
    let error = finished.error.as_ref().ok_or("the answer is good")?;
    ensure(error.text.contains("SOLAR_FLARE"), || format!("the error says {:?}", error.text))?;
    equal("text", finished.message.text("").as_str(), "so far")
}

pub(super) fn arguments_no_object(wire: &dyn Wire) -> Result<(), String> {
    for arguments in ["[1]", "\"text\"", "7", "{\"path\":"] {
        let events = events_of(wire, &Answer::of([AnswerPart::call("call_1", "read", arguments)]))?;
        let message = good(end_of(&events)?)?;
        let call = message.tool_calls().next().ok_or("there is no call")?;
        ensure(call.arguments.is_empty(), || format!("arguments of {arguments}: {:?}", call.arguments))?;
        let error = call.arguments_error.as_deref().unwrap_or_default();
        ensure(error.contains(arguments), || format!("the error of {arguments} says {error:?}"))?;
    }
    Ok(())
}

pub(super) fn arguments_mended(wire: &dyn Wire) -> Result<(), String> {
    let broken = "{\"path\":\"a\tb\",\"re\":\"\\d+\",\"last\":1}";
    let events = events_of(wire, &Answer::of([AnswerPart::call("call_1", "read", broken)]))?;
    let message = good(end_of(&events)?)?;
    let call = message.tool_calls().next().ok_or("there is no call")?;
    let expected = json!({"path": "a\tb", "re": "\\d+", "last": 1});
    equal("arguments", Value::Object(call.arguments.clone()), expected)
}

pub(super) fn chunk_edges(wire: &dyn Wire) -> Result<(), String> {
    let bytes = wire.frames(&rich()).concat();
    let whole = in_words(&decode(wire, [bytes.as_slice()])?);
    let one_by_one = in_words(&decode(wire, bytes.chunks(1))?);
    equal("events byte by byte", &one_by_one, &whole)?;
    for cut in 1..bytes.len() {
        let (head, tail) = bytes.split_at(cut);
        equal(&format!("events, cut at {cut}"), &in_words(&decode(wire, [head, tail])?), &whole)?;
    }
    Ok(())
}

pub(super) fn unknown_events(wire: &dyn Wire) -> Result<(), String> {
    let frames = wire.frames(&rich());
    let whole = in_words(&decode(wire, frames.iter().map(Vec::as_slice))?);
    for extra in [Some(wire.unknown_event()), wire.keep_alive()].into_iter().flatten() {
        for at in 0..frames.len() {
            let mut more = frames.clone();
            more.insert(at, extra.clone());
            let events = in_words(&decode(wire, more.iter().map(Vec::as_slice))?);
            equal(&format!("events with another before frame {at}"), &events, &whole)?;
        }
    }
    Ok(())
}

pub(super) fn garbage(wire: &dyn Wire) -> Result<(), String> {
    let bytes = wire.frames(&rich()).concat();
    let mut state = 1_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The remainder fits, because `below` is a usize.
        ((state >> 33) % below as u64) as usize
    };
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        for _ in 0..=draw(6) {
            let at = draw(damaged.len());
            match draw(3) {
                0 => damaged[at] = draw(256).to_le_bytes()[0],
                1 if damaged.len() > 1 => drop(damaged.remove(at)),
                _ => damaged.truncate(at.max(1)),
            }
        }
        decode(wire, [damaged.as_slice()])?;
    }
    Ok(())
}

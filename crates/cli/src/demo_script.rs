//! The script of the demo's model server, which identifies itself as scripted.
//!
//! The server speaks Anthropic's wire format over real HTTP. It decides by the contents of the request instead of counting, so that a run
//! that was killed halfway can be resumed.

use std::time::Duration;

use pinch_testing::server::{Recorded, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

/// The user's request.
pub(crate) const REQUEST: &str = "Summarize today's meeting notes and save the summary to my desktop";

/// The scripted model.
pub(crate) const MODEL: &str = "claude-sonnet-4-5";

/// The rate-limited key, and the one that works.
pub(crate) const TIRED_KEY: &str = "demo-key-over-its-limit";
pub(crate) const GOOD_KEY: &str = "demo-key-that-works";

/// Path of the summary.
pub(crate) const SUMMARY_PATH: &str = "~/Desktop/meeting-summary.md";

/// Bytes per token in the script.
const BYTES_PER_TOKEN: usize = 4;

/// Returns meeting notes that are long enough for a compaction.
pub(crate) fn notes(date: &str) -> String {
    let mut text = format!(
        "# Product sync, {date}\n\nPresent: Ana, Ben, Chiara, Dmitri\n\n\
         ## Decisions\n\n\
         - The 2.0 release moves from Thursday to Tuesday; Ben tells the partners.\n\
         - Search stays behind a flag until the index job is twice as fast.\n\
         - Chiara owns the migration guide; the first draft is due on Friday.\n\n\
         ## Numbers\n\n\
         - 1,204 sign-ups this week (+9 %), 31 open support cases (-12).\n\
         - p95 of the import job: 4.1 s, goal 2.0 s.\n\n\
         ## Open questions\n\n\
         - Do we need a second on-call person during the release week? Dmitri asks.\n\n\
         ## Transcript\n\n"
    );
    let speakers = ["Ana", "Ben", "Chiara", "Dmitri"];
    let lines = [
        "I looked at the import job again; most of its time goes into parsing, not into the database.",
        "The partners need two working days of notice, so today is the last day to tell them.",
        "The draft of the guide covers the common path; the rare ones need somebody who has done a migration.",
        "If the index job stays as it is, the flag has to stay too, and support should know why.",
    ];
    for minute in 0..60 {
        let at = minute % speakers.len();
        text.push_str(&format!(
            "[{:02}:{:02}] {}: {}\n",
            10,
            minute,
            speakers[at],
            lines[(minute * 3 + 1) % lines.len()]
        ));
    }
    text
}

/// Returns the reply to a request; `None` for one that is not in the script. `pace` is the delay between two chunks of an answer.
pub(crate) fn answer(request: &Recorded, notes_path: &str, pace: Duration) -> Option<ServerReply> {
    if request.header("x-api-key") == Some(TIRED_KEY) {
        let text = "Number of request tokens has exceeded your per-minute rate limit (scripted)";
        let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": text}});
        return Some(ServerReply::json(429, &body).header("retry-after", "30"));
    }
    let body = request.json();
    let messages = body["messages"].as_array()?;
    if body.get("tools").is_none() {
        return Some(stream(answered(request, "msg_summary", SUMMARY_OF_HISTORY, None), pace));
    }
    let was_read = has_result(messages, "read");
    let was_compacted = body["messages"].to_string().contains("<summary>");
    Some(if has_result(messages, "write") {
        stream(answered(request, "msg_final", FINAL, None), pace)
    } else if was_read && !was_compacted {
        let text = "prompt is too long: 208310 tokens > 200000 maximum (scripted)";
        ServerReply::json(400, &json!({"type": "error", "error": {"type": "invalid_request_error", "message": text}}))
    } else if was_read || was_compacted {
        let arguments = json!({"path": SUMMARY_PATH, "content": SUMMARY_FILE});
        let id = call_id(messages, "write");
        let call = Some((&*id, "write", &arguments));
        stream(answered(request, "msg_write", "Now I write the summary.", call), pace)
    } else {
        let arguments = json!({ "path": notes_path });
        let id = call_id(messages, "read");
        let call = Some((&*id, "read", &arguments));
        stream(answered(request, "msg_read", "I look at the notes first.", call), pace)
    })
}

/// Returns a new tool call id: a run that was killed during a call repeats the call.
fn call_id(messages: &[Value], tool: &str) -> String {
    let blocks = messages.iter().filter_map(|m| m["content"].as_array()).flatten();
    match blocks.filter(|b| b["type"] == "tool_use" && b["name"] == tool).count() {
        0 => format!("toolu_{tool}"),
        n => format!("toolu_{tool}_{}", n + 1),
    }
}

/// Returns whether a conversation has a successful result of a tool, other than the placeholder for a killed call.
fn has_result(messages: &[Value], tool: &str) -> bool {
    let blocks = || messages.iter().filter_map(|m| m["content"].as_array()).flatten();
    let ids: Vec<&Value> =
        blocks().filter(|b| b["type"] == "tool_use" && b["name"] == tool).map(|b| &b["id"]).collect();
    blocks().any(|b| b["type"] == "tool_result" && b["is_error"] != true && ids.contains(&&b["tool_use_id"]))
}

/// Builds an answer to a request: a text, an optional tool call (id, name, arguments), and the stop reason. Counts the tokens of both
/// sides.
fn answered(request: &Recorded, id: &str, text: &str, call: Option<(&str, &str, &Value)>) -> Vec<String> {
    let arguments = call.map(|(_, _, arguments)| arguments.to_string()).unwrap_or_default();
    let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN);
    let usage = json!({"input_tokens": tokens(request.body.len()), "output_tokens": 1});
    let response = AnthropicResponse::with_usage(id, &usage).with_chunks(24).text(text);
    let (response, stop) = match call {
        Some((call_id, tool, _)) => (response.tool_call(call_id, tool, &arguments), "tool_use"),
        None => (response, "end_turn"),
    };
    let usage = json!({"output_tokens": tokens(text.len() + arguments.len())});
    response
        .event(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}))
        .event(json!({"type": "message_stop"}))
        .frames()
}

fn stream(frames: Vec<String>, pace: Duration) -> ServerReply {
    frames.into_iter().fold(ServerReply::events(), |reply, frame| {
        let reply = if pace.is_zero() { reply } else { reply.pause(pace) };
        reply.send(frame)
    })
}

const SUMMARY_OF_HISTORY: &str = "## Original Request\nSummarize today's meeting notes and save the summary to the desktop.\n\n\
    ## Early Progress\n- The notes of the product sync were found and are about to be read.\n\n\
    ## Context for Suffix\n- The summary belongs into ~/Desktop/meeting-summary.md.";

const SUMMARY_FILE: &str = "# Product sync: summary\n\n\
    - Release 2.0 moves from Thursday to Tuesday; Ben tells the partners today.\n\
    - Search stays behind its flag until the index job is twice as fast.\n\
    - Chiara drafts the migration guide until Friday.\n\
    - Sign-ups +9 % (1,204), open cases 31 (-12), import p95 4.1 s (goal 2.0 s).\n\
    - Open: a second on-call person for the release week?\n";

const FINAL: &str = "I read today's notes and saved a summary to **~/Desktop/meeting-summary.md**.\n\n\
    The three decisions: 2.0 moves to Tuesday, search stays behind its flag, and Chiara drafts the migration guide until Friday.\n\n\
    One question is still open: whether the release week needs a second person on call.\n";

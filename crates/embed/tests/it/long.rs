//! A conversation of two thousand turns in a small window: it is compacted as often as needed, and nobody notices.

use std::sync::{Arc, Mutex};

use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_embed::run::result::AttemptReport;
use pinch_llm::schema::Schema;
use pinch_testing::server::{Recorded, ServerReply};
use pinch_testing::wires::completions::CompletionsResponse;
use serde_json::{Value, json};

use crate::world::{FALLBACK, World, is_turn, payload_texts, refusal, within};

/// Runs, and turns in each: every turn but the last calls a tool.
const RUNS: usize = 200;
const TURNS: usize = 10;

/// What the server has seen.
struct SeenTurns {
    /// Tokens of the window, at three bytes each.
    window: usize,
    n_turns: usize,
    n_summaries: usize,
    n_overflows: usize,
    /// The summaries since the last turn.
    fresh: Vec<String>,
    /// The messages of the last turn, as sent.
    messages: String,
    problems: Vec<String>,
}

/// Returns the text of the messages in a body, without the bracket at the end.
fn messages_of(body: &str) -> &str {
    let start = body.find(r#""messages":["#).unwrap();
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in body.bytes().enumerate().skip(start + r#""messages":"#.len()) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => {
                depth -= 1;
                if depth == 0 {
                    return &body[start..at];
                }
            }
            _ => {}
        }
    }
    panic!("the messages never end");
}

impl SeenTurns {
    fn answer(&mut self, request: &Recorded) -> ServerReply {
        let body = String::from_utf8(request.body.clone()).unwrap();
        let n_tokens = body.len() / 3;
        if n_tokens > self.window {
            self.n_overflows += 1;
            return refusal(
                400,
                "invalid_request_error",
                &format!("prompt is too long: {n_tokens} tokens > {} maximum", self.window),
            );
        }
        let usage = json!({"prompt_tokens": n_tokens, "completion_tokens": 20, "total_tokens": n_tokens + 20});
        let reply = CompletionsResponse::new(&format!("r{}", self.n_turns), "small");
        if !is_turn(request) {
            self.n_summaries += 1;
            let summary = format!("SUMMARY-{}-OF-THE-TALK", self.n_summaries);
            self.fresh.push(summary.clone());
            return ServerReply::sse(
                reply.text(&format!("## Goal\n{summary}")).finish("stop").usage(&usage).done().concat(),
            );
        }
        self.check_prefix(messages_of(&body));
        self.n_turns += 1;
        let reply = match self.n_turns % TURNS {
            0 => reply.text("Done.").finish("stop"),
            _ => {
                let arguments = json!({"n": self.n_turns}).to_string();
                reply.tool_call(&format!("call_{}", self.n_turns), "count", &arguments).finish("tool_calls")
            }
        };
        ServerReply::sse(reply.usage(&usage).done().concat())
    }

    /// Checks that a request continues the previous one, or begins with a new summary.
    fn check_prefix(&mut self, messages: &str) {
        let fresh = std::mem::take(&mut self.fresh);
        if !fresh.is_empty() {
            if !fresh.iter().any(|summary| messages.contains(summary)) {
                self.problems.push(format!("turn {} has none of {fresh:?}", self.n_turns));
            }
        } else if !messages.starts_with(&self.messages) {
            let same = messages.bytes().zip(self.messages.bytes()).take_while(|(one, other)| one == other).count();
            self.problems.push(format!("turn {} changes the prefix after {same} bytes", self.n_turns));
        }
        messages.clone_into(&mut self.messages);
    }
}

/// Runs a conversation in a window, with these settings of compaction. Nobody may notice that it is compacted.
async fn converse(window: usize, n_runs: usize, reserve: Option<u64>, settings: Value) -> SeenTurns {
    let world = World::with(|config| {
        config["agents"]["defaults"]["model"] = json!({"primary": FALLBACK});
        config["models"]["providers"]["local"]["models"][0]["contextWindow"] = window.into();
        config["agents"]["defaults"]["compaction"] = json!({"reserveTokensFloor": reserve});
    })
    .await;
    world.write("state/agents/main/agent/settings.json", &settings.to_string());
    let spec = ToolSpec::new("count", "Counts", Schema::new(json!({"type": "object"})));
    let count = FnTool::new(spec, |input: JsonObject, _| async move {
        Ok(ToolOutput::text(format!("{} of turn {}", "x".repeat(900), json!(input))))
    });
    let engine = world.built(|builder| builder.tool(count));
    let seen = Arc::new(Mutex::new(SeenTurns {
        window,
        n_turns: 0,
        n_summaries: 0,
        n_overflows: 0,
        fresh: Vec::new(),
        messages: String::new(),
        problems: Vec::new(),
    }));
    let of_server = Arc::clone(&seen);
    world.server.answer_with(move |request| Some(of_server.lock().unwrap().answer(request)));
    for n in 0..n_runs {
        let request = engine.request("s1", None, None, &format!("Question {n}: count again."));
        let result = within(engine.run(request).finish()).await.unwrap();
        let reports: Vec<&AttemptReport> = result.meta.attempts.iter().collect();
        let found = (payload_texts(&result), result.meta.error.as_ref());
        assert_eq!(found, (vec!["Done.".to_owned()], None), "run {n} of {window}: {reports:?}");
    }
    world.server.answer_with(|_| None);
    let seen = Arc::try_unwrap(seen).ok().unwrap().into_inner().unwrap();
    assert_eq!(seen.problems, [""; 0]);
    assert_eq!(seen.n_turns, n_runs * TURNS);
    let transcript = world.transcript("s1");
    assert_eq!(transcript.unpaired(), [""; 0]);
    let compactions: Vec<&Value> = transcript.of_type("compaction");
    assert!(compactions.len() >= n_runs / 10, "{} compactions, {} overflows", compactions.len(), seen.n_overflows);
    assert!(seen.n_summaries >= compactions.len());
    seen
}

#[tokio::test]
async fn a_conversation_of_two_thousand_turns_is_compacted_unnoticed() {
    let settings = json!({"compaction": {"keepRecentTokens": 6_000, "reserveTokens": 6_000}});
    converse(32_000, RUNS, Some(6_000), settings).await;
}

#[tokio::test]
async fn small_windows_need_no_settings() {
    for window in [16_000, 32_000] {
        let seen = converse(window, 30, None, json!({})).await;
        // Most turns must not need a summary each.
        let (n_summaries, n_turns) = (seen.n_summaries, seen.n_turns);
        assert!(n_summaries < n_turns / 3, "{window}: {n_summaries} summaries of {n_turns} turns");
    }
}

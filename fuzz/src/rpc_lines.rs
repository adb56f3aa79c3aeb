//! Commands of RPC clients: every line is parsed or rejected with an answer, and answers are lines of JSON.
//!
//! Options: none; the content is one line.

use pinch_coding_agent::protocol::command::{self, ClientLine};
use pinch_coding_agent::protocol::response::Answerer;
use pinch_stdx::json;
use serde_json::Value;

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let parsed = command::parse(line);
    if !line.ends_with(b"\r") {
        assert_eq!(command::parse(&[line, b"\r"].concat()), parsed, "the carriage return counts");
    }
    let answer = match &parsed {
        Ok(ClientLine::Command(request)) => {
            let answerer = Answerer::of(request);
            let answer = answerer.with(&serde_json::json!({"text": "a\nb"}));
            check_answer(&answerer.done(), request.id.as_ref(), &request.name, true);
            check_answer(&answerer.failed("a\nb"), request.id.as_ref(), &request.name, false);
            check_answer(&answer, request.id.as_ref(), &request.name, true);
            return check_rewritten(line, &parsed);
        }
        Ok(_) => return check_rewritten(line, &parsed),
        Err(rejected) => {
            assert!(!rejected.error.is_empty(), "no reason");
            rejected.line()
        }
    };
    if let Err(rejected) = &parsed {
        check_answer(&answer, rejected.id.as_ref(), &rejected.name, false);
    }
}

/// The same JSON in other words is the same command.
fn check_rewritten(line: &[u8], parsed: &Result<ClientLine, command::RejectedLine>) {
    if let Ok(value) = serde_json::from_slice::<Value>(line) {
        let rewritten = serde_json::to_vec(&value).expect("a value can be written");
        assert_eq!(&command::parse(&rewritten), parsed, "rewritten as {}", String::from_utf8_lossy(&rewritten));
    }
}

fn check_answer(line: &[u8], id: Option<&Value>, name: &str, success: bool) {
    let text = std::str::from_utf8(line).expect("an answer is text");
    let text = text.strip_suffix('\n').unwrap_or(text);
    assert!(!text.contains(['\n', '\r']), "an answer is one line: {text:?}");
    let answer: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text:?} is not JSON: {error}"));
    // Numbers are written as JavaScript writes them: -0 as 0.
    let id = id.map(|id| serde_json::from_str(&json::to_string(id)?)).transpose().expect("an id can be written");
    assert_eq!(answer.get("id"), id.as_ref());
    assert_eq!(answer["command"], name);
    assert_eq!(answer["success"], success);
}

//! Failures and interruptions.

use serde_json::{Value, json};

use super::{ModeScenario, scenario};

pub(super) fn all() -> Vec<ModeScenario> {
    let refused = |status: u16, message: &str| json!({"status": status, "message": message});
    let retry = |max: u32, script: Value| json!({"settings": {"retry": {"enabled": true, "maxRetries": max, "baseDelayMs": 20}}, "serverScript": script});
    let answers = |script: Value| json!({"serverScript": script});
    // The signal is sent while the model, or the tool that it calls, is running.
    let stopped = |signal: &str, args: &str, script: Value| json!({"runs": [{"args": super::words(args), "signal": signal, "after": 1500}], "serverScript": script});
    let hangs = || json!([{"text": "This has no end at all.", "hang": true}]);
    let sleeps = || json!([{"tool": {"name": "bash", "args": {"command": "echo begun; sleep 20"}}}, {"text": "done"}]);
    vec![
        scenario("an error in print mode", "-p x", answers(json!([refused(400, "bad thing")]))),
        scenario("an error in json mode", "--mode json -p x", answers(json!([refused(400, "bad thing")]))),
        scenario("an error of claude", "--mode json --model c1 -p x", answers(json!([refused(400, "bad thing")]))),
        scenario("an error of keys", "--mode json -p x", answers(json!([refused(401, "invalid key")]))),
        scenario(
            "an error before the last message",
            "-p one two",
            answers(json!([refused(400, "bad thing"), {"text": "two"}])),
        ),
        scenario(
            "an error behind an answer",
            "--mode json -p one two",
            answers(json!([{"text": "one"}, refused(500, "bad thing")])),
        ),
        scenario(
            "an error behind a call",
            "--mode json -p x",
            answers(json!([{"tool": {"name": "bash", "args": {"command": "echo hi"}}}, refused(400, "bad thing")])),
        ),
        scenario("tried again", "--mode json -p x", retry(2, json!([refused(503, "overloaded"), {"text": "fine"}]))),
        scenario(
            "tried again in print mode",
            "-p x",
            retry(2, json!([refused(529, "overloaded"), refused(500, "internal"), {"text": "fine"}])),
        ),
        scenario("tried again in vain", "--mode json -p x", retry(2, json!([refused(503, "overloaded")]))),
        scenario("tried again in vain in print mode", "-p x", retry(1, json!([refused(503, "overloaded")]))),
        scenario(
            "tried again behind a call",
            "--mode json -p x",
            retry(
                2,
                json!([{"tool": {"name": "bash", "args": {"command": "echo hi"}}}, refused(503, "overloaded"), {"text": "fine"}]),
            ),
        ),
        scenario(
            "tried again by claude",
            "--mode json --model c1 -p x",
            retry(2, json!([refused(529, "Overloaded"), {"text": "fine"}])),
        ),
        scenario(
            "a quota is not tried again",
            "--mode json -p x",
            retry(2, json!([refused(429, "insufficient_quota: you exceeded your quota"), {"text": "fine"}])),
        ),
        scenario(
            "a limit of the rate is tried again",
            "--mode json -p x",
            retry(2, json!([refused(429, "rate limit reached"), {"text": "fine"}])),
        ),
        scenario(
            "a connection that breaks off",
            "--mode json -p x",
            answers(json!([{"text": "partial answer", "drop": true}])),
        ),
        scenario(
            "an answer that is cut in print mode",
            "-p x",
            answers(json!([{"text": "cut", "stop": "length", "usage": {"input": 10, "output": 20_000}}])),
        ),
        scenario(
            "an answer that is cut in json mode",
            "--mode json -p x",
            answers(json!([{"text": "cut", "stop": "length", "usage": {"input": 10, "output": 20_000}}])),
        ),
        scenario(
            "an answer that is filtered",
            "--mode json -p x",
            answers(json!([{"text": "no", "stop": "content_filter"}])),
        ),
        scenario(
            "an answer that stops strangely",
            "--mode json -p x",
            answers(json!([{"text": "no", "stop": "surprise"}])),
        ),
        scenario("claude refuses", "--mode json --model c1 -p x", answers(json!([{"text": "no", "stop": "refusal"}]))),
        scenario(
            "nobody at the other end",
            "--mode json -p x",
            json!({"modelsJson": {"providers": {"fake": {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k", "models": [{"id": "m1"}]}}}}),
        ),
        scenario("an interrupt in print mode", "", stopped("SIGINT", "-p x", hangs())),
        scenario("an interrupt in json mode", "", stopped("SIGINT", "--mode json -p x", hangs())),
        scenario("an interrupt while a tool works", "", stopped("SIGINT", "--mode json -p x", sleeps())),
        scenario("an end in print mode", "", stopped("SIGTERM", "-p x", hangs())),
        scenario("an end in json mode", "", stopped("SIGTERM", "--mode json -p x", hangs())),
        scenario("an end while a tool works", "", stopped("SIGTERM", "--mode json -p x", sleeps())),
        scenario("a line that is cut", "", stopped("SIGHUP", "-p x", hangs())),
    ]
}

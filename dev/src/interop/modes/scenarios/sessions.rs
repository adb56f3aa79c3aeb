//! Sessions: which one is resumed, how it continues, and when it is compacted.

use serde_json::{Value, json};

use super::{ModeScenario, answered, asked, runs, scenario, session, words};

pub(super) fn all() -> Vec<ModeScenario> {
    let talk = || {
        [
            asked(1, "first question"),
            answered(2, "first answer"),
            asked(3, "second question"),
            answered(4, "second answer"),
        ]
    };
    let here = || json!({"files": {"s.jsonl": session("$CWD", &talk())}, "filesToCompare": ["s.jsonl"]});
    let elsewhere =
        || json!({"files": {"s.jsonl": session("/no/such/folder", &talk())}, "filesToCompare": ["s.jsonl"]});
    let none = || json!({});
    // A long prompt, one that is kept, and one that arrives when the conversation is near its limit. The whole system prompt is set by the
    // user, so that token estimates are equal.
    let prompts = format!("'one {}' 'short {}' two", "x".repeat(30_000), "y".repeat(600));
    let own = |words: &str| format!("--model small --system-prompt Own. -nt {words}");
    let in_json = |words: &str| own(&format!("--mode json {words}"));
    let first = in_json(&format!("-p {prompts}"));
    let first = first.as_str();
    let summary = json!({"text": "## Goal\nSummary."});
    let too_long = json!({"status": 400, "message": "prompt is too long: 21000 tokens > 20000 maximum"});
    vec![
        runs("go on", &["-p hello", "-c -p again", "-c --mode json -p 'and again'"], none()),
        scenario("go on from nothing", "-c -p hello", none()),
        runs(
            "go on with other tools",
            &["-p hello", "-c --mode json -t read,grep -p again", "-c --mode json -p 'and again'"],
            none(),
        ),
        runs(
            "go on with another model",
            &["-p hello", "-c --mode json --model m2 --thinking high -p again", "-c --mode json -p 'and again'"],
            none(),
        ),
        runs(
            "go on with another provider",
            &["--model m2 --thinking low -p hello", "-c --mode json --model c2 -p again"],
            json!({"serverScript": [{"blocks": [{"thinking": "Well"}, {"text": "one"}]}, {"text": "two"}]}),
        ),
        runs(
            "go on with another prompt",
            &["-p hello", "-c --mode json --append-system-prompt More. -p again"],
            none(),
        ),
        runs(
            "go on with claude who is told of changes",
            &["--model mid -p hello", "-c --model mid -t read,bash,grep --append-system-prompt More. -p again"],
            none(),
        ),
        runs(
            "go on with a message of several",
            &["--mode json -p one two", "--mode json -c -p three four"],
            json!({"serverScript": [{"text": "1"}, {"text": "2"}, {"text": "3"}, {"text": "4"}]}),
        ),
        scenario("a session by its path", "--mode json --session $CWD/s.jsonl -p more", here()),
        scenario(
            "a session by a path that is not there",
            "--session $CWD/new.jsonl -p more",
            json!({"filesToCompare": ["new.jsonl"]}),
        ),
        scenario(
            "a session that is none",
            "--session $CWD/s.jsonl -p more",
            json!({"files": {"s.jsonl": "words\n"}, "filesToCompare": ["s.jsonl"]}),
        ),
        scenario("a session by an id that nobody has", "--session 0000abcd -p more", none()),
        scenario("a session of a folder that is gone", "--session $CWD/s.jsonl -p more", elsewhere()),
        runs(
            "a session with an id",
            &[
                "--session-id my.id-1 -p hello",
                "--session-id my.id-1 --mode json -p again",
                "--session my.id -p 'and again'",
            ],
            none(),
        ),
        scenario("a session with a bad id", "--session-id -x -p more", none()),
        scenario("a session with a name", "--mode json -n ' My  name ' -p hello", none()),
        runs(
            "a session in another folder",
            &["--session-dir $CWD/kept -p hello", "--session-dir $CWD/kept -c --mode json -p again"],
            none(),
        ),
        scenario("no session", "--no-session -p hello", none()),
        scenario("a fork", "--mode json --fork $CWD/s.jsonl -p more", elsewhere()),
        runs("a fork of an id", &["--session-id one -p hello", "--fork one --mode json -p again"], none()),
        scenario("a fork of nothing", "--fork 0000abcd -p more", none()),
        scenario("a fork and more", "--fork $CWD/s.jsonl -c -p more", here()),
        scenario(
            "a session without answers",
            "--mode json --session $CWD/s.jsonl -p more",
            json!({"files": {"s.jsonl": session("$CWD", &[asked(1, "first question")])}, "filesToCompare": ["s.jsonl"]}),
        ),
        scenario(
            "a session with a torn line",
            "--mode json --session $CWD/s.jsonl -p more",
            json!({"files": {"s.jsonl": session("$CWD", &talk()) + "{\"type\":\"mess"}, "filesToCompare": ["s.jsonl"]}),
        ),
        summed_up(
            "summed up when it is long",
            &[first, &in_json("-c -p three")],
            json!([{"text": "one", "usage": {"input": 9000}},
            {"text": "short", "usage": {"input": 17_000}}, summary, {"text": "two"}, {"text": "three"}]),
        ),
        scenario(
            "summed up before a prompt",
            "",
            json!({
                "settings": {"compaction": {"enabled": false}},
                "serverScript": [{"text": "one", "usage": {"input": 9000}}, {"text": "short"}, {"text": "two", "usage": {"input": 17_000}}, summary, {"text": "three"}],
                "runs": [{"args": words(first)}, {"args": words(&in_json("-c -a -p three")),
                    "files": {".pi/settings.json": "{\"compaction\": {\"enabled\": true, \"keepRecentTokens\": 100, \"reserveTokens\": 4000}}"}}],
            }),
        ),
        summed_up(
            "summed up twice",
            &[first, &in_json("-c -p three four")],
            json!([{"text": "one", "usage": {"input": 9000}},
            {"text": "short", "usage": {"input": 17_000}}, summary, {"text": "two", "usage": {"input": 16_500}}, summary, {"text": "three"}, {"text": "four"}]),
        ),
        summed_up(
            "summed up between turns",
            &["--mode json --model small --system-prompt Own. -t bash -p one two"],
            json!([{"text": "one", "usage": {"input": 5000}},
            {"tool": {"name": "bash", "args": {"command": "seq 1 9000"}}, "usage": {"input": 16_500}}, summary, {"text": "Prefix."}, {"text": "done"}]),
        ),
        summed_up(
            "nothing to sum up",
            &["--mode json --model small --system-prompt Own. -nt -p one two"],
            json!([{"text": "one", "usage": {"input": 17_000}}, {"text": "two", "usage": {"input": 17_100}}]),
        ),
        summed_up(
            "summed up because it is too long",
            &[first],
            json!([{"text": "one"}, {"text": "short"}, too_long, summary, {"text": "two"}]),
        ),
        summed_up(
            "too long for ever",
            &[first],
            json!([{"text": "one"}, {"text": "short"}, too_long, summary, too_long]),
        ),
        summed_up(
            "too long in print mode",
            &[&own(&format!("-p {prompts}"))],
            json!([{"text": "one"}, {"text": "short"}, too_long, summary, {"text": "two"}]),
        ),
        summed_up(
            "too long and nothing to sum up",
            &["--mode json --model small --system-prompt Own. -nt -p one"],
            json!([too_long, {"text": "two"}]),
        ),
        summed_up(
            "a summary that fails",
            &[first],
            json!([{"text": "one"}, {"text": "short"}, too_long, {"status": 400, "message": "no summary"}]),
        ),
        summed_up(
            "a summary that is cut",
            &[first],
            json!([{"text": "one"}, {"text": "short"}, too_long, {"text": "## Goal", "stop": "length"}]),
        ),
        summed_up(
            "an answer that is cut is summed up for",
            &[first],
            json!([{"text": "one"}, {"text": "short"},
            {"text": "cut", "stop": "length", "usage": {"input": 19_990, "output": 10}}, summary, {"text": "two"}]),
        ),
    ]
}

/// Command lines for a model with a small context window, of which little is kept.
fn summed_up(name: &'static str, lines: &[&str], answers: Value) -> ModeScenario {
    let more =
        json!({"settings": {"compaction": {"keepRecentTokens": 100, "reserveTokens": 4000}}, "serverScript": answers});
    runs(name, lines, more)
}

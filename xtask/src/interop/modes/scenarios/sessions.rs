//! Sessions: which one is taken, how it goes on, and when it is summed up.

use serde_json::{Value, json};

use super::{Scenario, answered, asked, runs, scenario, session};

pub(super) fn all() -> Vec<Scenario> {
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
    // The whole prompt is the user's: estimates of tokens are the same then.
    let long = "x".repeat(30_000);
    let long = long.as_str();
    let summed =
        |settings: Value, answers: Value| json!({"settings": {"compaction": settings}, "serverScript": answers});
    let own = "--system-prompt Own. -nt";
    let own_run = |more: &str| json!({"args": super::words(&format!("--mode json --model small {own} {more}"))});
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
        scenario("summed up when it is long", "", {
            let mut input = summed(
                json!({"keepRecentTokens": 100, "reserveTokens": 4000}),
                json!([{"text": "one", "usage": {"input": 9000}}, {"text": "two", "usage": {"input": 17_000}}, {"text": "## Goal\nSummary."}, {"text": "three"}]),
            );
            input["runs"] = json!([own_run(&format!("-p 'one {long}' two")), own_run("-c -p three")]);
            input
        }),
        scenario("summed up before a prompt", "", {
            let mut input = summed(
                json!({"enabled": false}),
                json!([{"text": "one", "usage": {"input": 9000}}, {"text": "two", "usage": {"input": 17_000}}]),
            );
            input["runs"] = json!([own_run(&format!("-p 'one {long}' two")), {"args": super::words(&format!("-c --mode json --model small {own} -p three")), "files": {"note": "x"}}]);
            input
        }),
        scenario("summed up between turns", "", {
            let mut input = summed(
                json!({"keepRecentTokens": 100, "reserveTokens": 4000}),
                json!([{"text": "one", "usage": {"input": 5000}}, {"tool": {"name": "bash", "args": {"command": "seq 1 9000"}}, "usage": {"input": 16_500}}, {"text": "## Goal\nSummary."}, {"text": "Prefix."}, {"text": "done"}]),
            );
            input["args"] = json!(super::words("--mode json --model small --system-prompt Own. -t bash -p one two"));
            input
        }),
        scenario("nothing to sum up", "", {
            let mut input = summed(
                json!({"reserveTokens": 4000}),
                json!([{"text": "one", "usage": {"input": 17_000}}, {"text": "two", "usage": {"input": 17_100}}]),
            );
            input["args"] = own_run("-p one two")["args"].clone();
            input
        }),
        scenario("summed up because it is too long", "", {
            let mut input = summed(
                json!({"keepRecentTokens": 100}),
                json!([{"text": "one"}, {"status": 400, "message": "prompt is too long: 21000 tokens > 20000 maximum"}, {"text": "## Goal\nSummary."}, {"text": "two"}]),
            );
            input["args"] = own_run(&format!("-p 'one {long}' two"))["args"].clone();
            input
        }),
        scenario("too long for ever", "", {
            let too_long = json!({"status": 400, "message": "prompt is too long: 21000 tokens > 20000 maximum"});
            let mut input = summed(
                json!({"keepRecentTokens": 100}),
                json!([{"text": "one"}, too_long, {"text": "## Goal\nSummary."}, too_long]),
            );
            input["args"] = own_run(&format!("-p 'one {long}' two"))["args"].clone();
            input
        }),
        scenario("a summary that fails", "", {
            let too_long = json!({"status": 400, "message": "prompt is too long: 21000 tokens > 20000 maximum"});
            let mut input = summed(
                json!({"keepRecentTokens": 100}),
                json!([{"text": "one"}, too_long, {"status": 400, "message": "no summary"}]),
            );
            input["args"] = own_run(&format!("-p 'one {long}' two"))["args"].clone();
            input
        }),
        scenario("an answer that is cut is summed up for", "", {
            let mut input = summed(
                json!({"keepRecentTokens": 100}),
                json!([{"text": "one"}, {"text": "cut", "stop": "length", "usage": {"input": 19_990, "output": 10}}, {"text": "## Goal\nSummary."}, {"text": "two"}]),
            );
            input["args"] = own_run(&format!("-p 'one {long}' two"))["args"].clone();
            input
        }),
    ]
}

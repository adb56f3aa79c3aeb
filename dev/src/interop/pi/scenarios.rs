//! Sessions written by one program and read by the other.
//!
//! A step is an entry, given by its own fields, or a move. `#n` is the ID of the entry that step n appended, counted from 0.

mod known;

mod given;

pub(super) use known::{KNOWN, KnownPiDifference};

use serde_json::{Value, json};

/// A session as a sequence of steps.
pub(super) struct PiScenario {
    pub(super) name: &'static str,
    /// An existing file to start from, instead of a new session.
    pub(super) given: Option<String>,
    pub(super) steps: Vec<Value>,
}

fn user(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1_748_772_001_000_i64}})
}

fn usage() -> Value {
    json!({"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 0, "totalTokens": 18,
        "cost": {"input": 0.000_03, "output": 0.000_075, "cacheRead": 1e-7, "cacheWrite": 0, "total": 0.000_105_1}})
}

fn assistant(content: Value, stop: &str) -> Value {
    json!({"type": "message", "message": {
        "role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5",
        "usage": usage(),
        "stopReason": stop, "timestamp": 1_748_772_002_000_i64,
    }})
}

fn answer(text: &str) -> Value {
    assistant(json!([{"type": "text", "text": text}]), "stop")
}

fn system(members: Value) -> Value {
    json!({"type": "message", "message": extended(json!({"role": "system"}), members)})
}

fn extended(mut object: Value, members: Value) -> Value {
    if let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) {
        object.extend(members);
    }
    object
}

fn result(call: &str, content: Value, is_error: bool) -> Value {
    json!({"type": "message", "message": {"role": "toolResult", "toolCallId": call, "toolName": "read", "content": content,
        "details": {"diff": "-a\n+b", "nested": [1, null, {"x": 1.5}]}, "isError": is_error, "timestamp": 1_748_772_003_000_i64}})
}

fn call(id: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": "read", "arguments": arguments})
}

fn bash(members: Value) -> Value {
    let message = json!({"role": "bashExecution", "command": "ls -l", "output": "a\nb", "exitCode": 0, "cancelled": false,
        "truncated": false, "timestamp": 1_748_772_004_000_i64});
    json!({"type": "message", "message": extended(message, members)})
}

fn move_to(id: &str) -> Value {
    json!({"moveTo": id})
}

fn label(target: &str, label: Option<&str>) -> Value {
    match label {
        Some(label) => json!({"type": "label", "targetId": target, "label": label}),
        None => json!({"type": "label", "targetId": target}),
    }
}

fn name(name: &str) -> Value {
    json!({"type": "session_info", "name": name})
}

/// Text that programs often handle incorrectly.
const ODD: &str = "line\u{2028}paragraph\u{2029}nul\0bell\u{7}esc\u{1b}[31m del\u{7f} c1\u{85} astral\u{1f600}\u{10ffff} \
    family\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} e\u{301} rtl\u{202e}abc\u{202c} bom\u{feff} non\u{fffe}\u{ffff} \
    replaced\u{fffd} \"quotes\" back\\slash tab\t crlf\r\n</script> {{braces}} $& \\u0041 \\n";

const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// All sessions.
pub(super) fn all() -> Vec<PiScenario> {
    let mut scenarios = written();
    scenarios.extend(given::all());
    scenarios
}

fn written() -> Vec<PiScenario> {
    let scenario = |name, steps| PiScenario { name, given: None, steps };
    let begin = || {
        vec![
            json!({"type": "model_change", "provider": "anthropic", "modelId": "claude-sonnet-4-5"}),
            json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
            user("one"),
            answer("first"),
        ]
    };
    let after = |steps: Vec<Value>| [begin(), steps].concat();
    vec![
        scenario(
            "a line of messages",
            after(vec![
                json!({"type": "message", "message": {"role": "user", "content": "a plain text", "timestamp": 1_748_772_001_500_i64}}),
                assistant(
                    json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "U0lH"}, {"type": "text", "text": "ok", "textSignature": "s"}]),
                    "stop",
                ),
                json!({"type": "model_change", "provider": "openai", "modelId": "gpt-5"}),
                json!({"type": "thinking_level_change", "thinkingLevel": "off"}),
                user("two"),
                json!({"type": "message", "message": {"role": "assistant", "content": [], "api": "openai-responses", "provider": "openai", "model": "gpt-5",
                "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
                "stopReason": "error", "timestamp": 1_748_772_005_000_i64, "errorMessage": "529: overloaded"}}),
                answer("last"),
            ]),
        ),
        scenario(
            "system messages",
            vec![
                json!({"type": "model_change", "provider": "fake", "modelId": "m1"}),
                system(
                    json!({"content": "", "sections": {"preamble": "You help.", "tools": "<tools>\n- read\n</tools>", "cwd": "<cwd>\n/w\n</cwd>"},
                "timestamp": 1_748_772_000_500_i64, "toolsAdded": [{"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]}),
                ),
                user("one"),
                answer("first"),
                system(
                    json!({"content": "Be brief.", "sections": {"cwd": "<cwd>\n/v\n</cwd>", "tools": null}, "timestamp": 1_748_772_004_500_i64, "toolsRemoved": [{"name": "read"}]}),
                ),
                user("two"),
                answer("second"),
                json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "#2", "tokensBefore": 900, "details": {"readFiles": [], "modifiedFiles": []}, "fromHook": false,
                "systemMessage": {"role": "system", "content": "Be brief.", "sections": {"preamble": "You help.", "cwd": "<cwd>\n/v\n</cwd>"}, "timestamp": 1_748_772_006_000_i64}}),
                user("three"),
                answer("third"),
            ],
        ),
        scenario(
            "tool calls",
            after(vec![
                assistant(
                    json!([{"type": "text", "text": "I look"}, call("toolu_1", json!({"path": "a.txt", "limit": 10})), call("toolu_2|fc_1", json!({}))]),
                    "toolUse",
                ),
                result("toolu_1", json!([{"type": "text", "text": "one\ntwo"}]), false),
                result("toolu_2|fc_1", json!([{"type": "text", "text": "no such file"}]), true),
                assistant(
                    json!([{"type": "toolCall", "id": "toolu_3", "name": "read", "arguments": {"deep": {"a": [1, 2.5, {"b": null}]}}, "thoughtSignature": "xyz"}]),
                    "toolUse",
                ),
                result("toolu_3", json!([]), false),
                answer("done"),
            ]),
        ),
        scenario(
            "images",
            after(vec![
                json!({"type": "message", "message": {"role": "user", "content": [
                {"type": "text", "text": "look"}, {"type": "image", "data": IMAGE, "mimeType": "image/png"}], "timestamp": 1_748_772_001_000_i64}}),
                assistant(json!([call("toolu_1", json!({"path": "a.png"}))]), "toolUse"),
                result(
                    "toolu_1",
                    json!([{"type": "text", "text": "an image"}, {"type": "image", "data": IMAGE, "mimeType": "image/png"}]),
                    false,
                ),
                answer("a dot"),
            ]),
        ),
        scenario(
            "branches",
            after(vec![
                user("two"),
                answer("second"),
                move_to("#3"),
                user("other two"),
                answer("other second"),
                move_to("#8"),
                user("other three"),
                answer("other third"),
                json!({"moveTo": null}),
                user("another root"),
                answer("another first"),
                move_to("#4"),
                json!({"type": "thinking_level_change", "thinkingLevel": "low"}),
                answer("second again"),
            ]),
        ),
        scenario(
            "branch summaries",
            after(vec![
                user("two"),
                answer("second"),
                json!({"type": "branch_summary", "target": "#3", "summary": "They tried **two**.", "details": {"readFiles": ["a"], "modifiedFiles": []}, "fromHook": false}),
                user("three"),
                answer("third"),
                json!({"type": "branch_summary", "target": "#2", "summary": ""}),
                answer("first again"),
                json!({"type": "branch_summary", "target": null, "summary": "All of it.", "fromHook": true}),
                user("anew"),
                answer("new"),
            ]),
        ),
        scenario(
            "compactions",
            after(vec![
                user("two"),
                answer("second"),
                user("three"),
                answer("third"),
                json!({"type": "compaction", "summary": "Goal\n\n<read-files>\na\n</read-files>", "firstKeptEntryId": "#6", "tokensBefore": 12345,
                "details": {"readFiles": ["a"], "modifiedFiles": ["b"]}, "fromHook": false}),
                user("four"),
                answer("fourth"),
                json!({"type": "thinking_level_change", "thinkingLevel": "medium"}),
                json!({"type": "compaction", "summary": "Goal 2", "firstKeptEntryId": "#9", "tokensBefore": 999}),
                answer("fifth"),
                move_to("#7"),
                user("beside the compactions"),
                answer("here all is shown"),
            ]),
        ),
        scenario(
            "an older compaction is kept",
            after(vec![
                json!({"type": "compaction", "summary": "S1", "firstKeptEntryId": "#2", "tokensBefore": 1}),
                user("two"),
                answer("second"),
                json!({"type": "compaction", "summary": "S2", "firstKeptEntryId": "#3", "tokensBefore": 2, "fromHook": true}),
                user("three"),
            ]),
        ),
        scenario(
            "a compaction of unknown entries",
            after(vec![
                json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "ffffffff", "tokensBefore": 1}),
                user("two"),
            ]),
        ),
        scenario(
            "summaries with their usage",
            after(vec![
                user("two"),
                answer("second"),
                json!({"type": "branch_summary", "target": "#3", "summary": "They tried.", "details": {"n": 1}, "usage": usage(), "fromHook": false}),
                answer("again"),
                json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "#3", "tokensBefore": 5, "details": {"n": 2}, "usage": usage(), "fromHook": true}),
                user("three"),
            ]),
        ),
        scenario(
            "labels",
            after(vec![
                label("#2", Some("start")),
                label("#3", Some("täg \u{1f600}\u{2028}")),
                user("two"),
                label("#2", Some("begin")),
                label("#3", None),
                label("#4", Some("a label's label")),
                move_to("#3"),
                label("#3", Some("again")),
                answer("after a label"),
            ]),
        ),
        scenario(
            "names",
            after(vec![name("First"), user("two"), name("  a\nb\r\n\r\nc  "), answer("second"), name(ODD)]),
        ),
        scenario("a name that is cleared", after(vec![name("First"), name("  "), user("two")])),
        scenario(
            "commands of the user",
            after(vec![
                bash(json!({})),
                bash(json!({"output": "", "exitCode": 3})),
                bash(json!({"output": ODD, "exitCode": null, "cancelled": true})),
                bash(json!({"truncated": true, "fullOutputPath": "/tmp/pi-bash-1.log"})),
                bash(json!({"excludeFromContext": true, "output": "secret"})),
                user("two"),
                answer("second"),
            ]),
        ),
        scenario(
            "entries of extensions",
            after(vec![
                json!({"type": "custom", "customType": "state", "data": {"n": 1, "list": [true, null, "x"], "deep": {"a": {"b": []}}}}),
                json!({"type": "custom", "customType": "empty"}),
                json!({"type": "custom", "customType": "nothing", "data": null}),
                json!({"type": "custom_message", "customType": "note", "content": "remember", "display": true, "details": {"by": "x"}}),
                json!({"type": "custom_message", "customType": "note", "content": [{"type": "text", "text": "see"}, {"type": "image", "data": IMAGE, "mimeType": "image/png"}], "display": false}),
                user("two"),
                answer("second"),
            ]),
        ),
        scenario(
            "odd characters",
            vec![
                json!({"type": "model_change", "provider": "p", "modelId": ODD}),
                user(ODD),
                assistant(
                    json!([{"type": "thinking", "thinking": ODD, "thinkingSignature": ""}, {"type": "text", "text": ODD}, call("toolu_1", json!({ODD: ODD, "": {"ключ": "值"}}))]),
                    "toolUse",
                ),
                result("toolu_1", json!([{"type": "text", "text": ODD}]), false),
                answer(ODD),
                json!({"type": "custom", "customType": ODD, "data": {ODD: [ODD]}}),
                label("#1", Some(ODD)),
                json!({"type": "compaction", "summary": ODD, "firstKeptEntryId": "#1", "tokensBefore": 1, "details": {"readFiles": [ODD], "modifiedFiles": []}}),
            ],
        ),
        scenario(
            "odd numbers",
            after(vec![
                assistant(
                    json!([call(
                        "toolu_1",
                        json!({"n": [0.1, 1e21, 1e-7, -0.0, 123_456_789_012_345_680_000.0, 9_007_199_254_740_991_i64, 5e-324, 1.5e300]})
                    )]),
                    "toolUse",
                ),
                result("toolu_1", json!([{"type": "text", "text": "1e21"}]), false),
                json!({"type": "custom", "customType": "n", "data": [1.0, 100.0, -1.5, 0.30000000000000004]}),
                answer("ok"),
            ]),
        ),
        scenario(
            "context edits",
            after(vec![
                user("two"),
                answer("second"),
                json!({"type": "context_edit", "targetId": "#2", "replacement": {"content": "one, edited"}}),
                json!({"type": "context_edit", "targetId": "#5", "replacement": {"content": [{"type": "text", "text": "x"}]}}),
                json!({"type": "context_edit", "targetId": "#3", "replacement": null}),
                json!({"type": "custom_message", "customType": "note", "content": "remember", "display": true}),
                json!({"type": "context_edit", "targetId": "#9", "replacement": {"content": "forget"}}),
                json!({"type": "context_edit", "targetId": "#5", "replacement": {"content": [{"type": "text", "text": "second, edited"}]}}),
                user("three"),
            ]),
        ),
        scenario(
            "usage notes",
            after(vec![
                json!({"type": "usage", "kind": "cache_warm", "provider": "p", "model": "m", "note": "n", "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}}),
                user("two"),
            ]),
        ),
        scenario(
            "a branch as a session",
            after(vec![
                label("#2", Some("start")),
                user("two"),
                label("#3", Some("first")),
                answer("second"),
                json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "#3", "tokensBefore": 2}),
                user("three"),
                answer("third"),
                json!({"branched": "#9"}),
                answer("goes on"),
            ]),
        ),
        scenario(
            "a copy",
            after(vec![
                user("two"),
                move_to("#3"),
                user("other two"),
                label("#2", Some("start")),
                json!({"fork": "/elsewhere"}),
                answer("in the copy"),
            ]),
        ),
    ]
}

//! Sessions that are written by one program and read by the other, and what is known to differ.
//!
//! A step is an entry by its own members, or a movement. `#n` stands for the id of the entry that step n appended, counted from 0.

use serde_json::{Value, json};

/// A session step by step.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// A file that is there before, instead of a new session.
    pub(super) given: Option<String>,
    pub(super) steps: Vec<Value>,
}

/// A difference between pinch and a version of pi.
pub(super) struct Known {
    pub(super) version: &'static str,
    /// `*` stands for all.
    pub(super) scenario: &'static str,
    /// Members of the view of which one at least differs; none: the session cannot be written by this version.
    pub(super) members: &'static [&'static str],
    pub(super) reason: &'static str,
}

const NO_SYSTEM: &str = "does not know system messages: it keeps old ones after a compaction, and sends none";
const NO_EDITS: &str = "does not know context edits and shows what was there before";

const NO_REPAIR: &str = "shows null as it is, where 0.87.1 and pinch show an empty list";
const UNKNOWN: &str = "members that nobody knows";
const NOT_IN_MEMORY: &str = "has unknown members of messages in memory, too; pinch leaves them in the file";

/// What is known. A difference that does not show any more is a failure, too.
pub(super) const KNOWN: &[Known] = &[
    Known { version: "0.73.1", scenario: "system messages", members: &["messages", "sent"], reason: NO_SYSTEM },
    Known { version: "0.49.3", scenario: "system messages", members: &["messages", "sent"], reason: NO_SYSTEM },
    Known { version: "0.73.1", scenario: "context edits", members: &["messages", "sent"], reason: NO_EDITS },
    Known { version: "0.49.3", scenario: "context edits", members: &["messages", "sent"], reason: NO_EDITS },
    Known { version: "0.73.1", scenario: "context edits", members: &[], reason: "cannot write context edits" },
    Known { version: "0.49.3", scenario: "context edits", members: &[], reason: "cannot write context edits" },
    Known { version: "0.73.1", scenario: "usage notes", members: &[], reason: "cannot write usage notes" },
    Known { version: "0.49.3", scenario: "usage notes", members: &[], reason: "cannot write usage notes" },
    Known {
        version: "0.49.3",
        scenario: "a name that is cleared",
        members: &["name"],
        reason: "looks for the last name that is not blank",
    },
    Known {
        version: "0.49.3",
        scenario: "odd labels and names",
        members: &["name"],
        reason: "trims names when it writes them only",
    },
    Known { version: "0.73.1", scenario: "null content", members: &["messages", "sent"], reason: NO_REPAIR },
    Known { version: "0.49.3", scenario: "null content", members: &["messages", "sent"], reason: NO_REPAIR },
    Known { version: "0.87.1", scenario: UNKNOWN, members: &["messages", "sent"], reason: NOT_IN_MEMORY },
    Known { version: "0.73.1", scenario: UNKNOWN, members: &["messages", "sent"], reason: NOT_IN_MEMORY },
    Known { version: "0.49.3", scenario: UNKNOWN, members: &["messages", "sent"], reason: NOT_IN_MEMORY },
    Known { version: "0.49.3", scenario: "*", members: &["labelTimes"], reason: "does not tell when labels were set" },
];

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

/// Text that programs stumble over.
const ODD: &str = "line\u{2028}paragraph\u{2029}nul\0bell\u{7}esc\u{1b}[31m del\u{7f} c1\u{85} astral\u{1f600}\u{10ffff} \
    family\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} e\u{301} rtl\u{202e}abc\u{202c} bom\u{feff} non\u{fffe}\u{ffff} \
    replaced\u{fffd} \"quotes\" back\\slash tab\t crlf\r\n</script> {{braces}} $& \\u0041 \\n";

const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A file by its lines.
fn file(version: Option<u32>, lines: &[&str]) -> String {
    let mut header = json!({"type": "session", "id": "01900000-0000-7000-8000-0000000000aa", "timestamp": "2025-06-01T10:00:00.000Z", "cwd": "/"});
    if let Some(version) = version {
        header["version"] = version.into();
    }
    let lines: Vec<String> =
        std::iter::once(header.to_string()).chain(lines.iter().map(|line| (*line).to_owned())).collect();
    lines.join("\n")
}

const QUESTION: &str = r#"{"type":"message","id":"a0000001","parentId":null,"timestamp":"2025-06-01T10:00:01.000Z","message":{"role":"user","content":"first question","timestamp":1748772001000}}"#;
const ANSWER: &str = r#"{"type":"message","id":"a0000002","parentId":"a0000001","timestamp":"2025-06-01T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"first answer"}],"api":"openai-completions","provider":"fake","model":"m1","usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}},"stopReason":"stop","timestamp":1748772002000}}"#;

/// A question of a file.
fn next(id: &str, parent: &str, second: &str, text: &str) -> String {
    let line = QUESTION.replace("a0000001", id).replace(r#""parentId":null"#, &format!(r#""parentId":"{parent}""#));
    line.replace(":01.000Z", &format!(":{second}.000Z")).replace("first question", text)
}

/// All sessions.
pub(super) fn all() -> Vec<Scenario> {
    let mut scenarios = written();
    scenarios.extend(given());
    scenarios
}

fn written() -> Vec<Scenario> {
    let scenario = |name, steps| Scenario { name, given: None, steps };
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

/// Files of other hands.
fn given() -> Vec<Scenario> {
    let more = || vec![user("more"), answer("ok"), user("and more")];
    let scenario = |name, text| Scenario { name, given: Some(text), steps: more() };
    let odd = [
        "",
        QUESTION,
        ANSWER,
        r#"  {"type":"message","id":"a0000003","parentId":"a0000002","timestamp":"2025-06-01T10:00:03.000Z","message":{"role":"user","content":[{"type":"text","text":"half \ud83d, other half \ude00, whole \ud83d\ude00, \u0000 \/ \u00E9 \u2028"}],"timestamp":1748772003000},"alsoUnknown":[1E3,1.0,-0]}  "#,
        r#"{"type":"from_the_future","id":"a0000004","parentId":"a0000003","timestamp":"2025-06-01T10:00:04.000Z","x":{"y":[]}}"#,
        "not json at all",
        r#"{"type":"message","id":"a0000005","parentId":"a0000004","timestamp":"2025-06-01T10:00:05.000Z","message":{"role":"visitor","content":"hello","timestamp":1748772005000}}"#,
        r#"{"type":"session","version":3,"id":"again","timestamp":"2025-06-01T10:00:00.000Z","cwd":"/again"}"#,
        r#"{"timestamp":"2025-06-01T10:00:06.000Z","type":"message","id":"a0000006","parentId":"a0000005","message":{"timestamp":1748772006000,"content":[{"type":"text","text":"answer"},{"type":"hologram","data":"?"}],"role":"assistant","api":"openai-completions","provider":"fake","model":"m2","usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}},"stopReason":"stop"}}"#,
        r#"{"type":"message","id":"a0000007","parentId":"missing0","timestamp":"2025-06-01T10:00:07.000Z","message":{"role":"user","content":"an orphan","timestamp":1748772007000}}"#,
        r#"{"type":"message","id":"a0000006b","parentId":"a0000006","timestamp":"2025-06-01T10:00:08.000Z","message":{"role":"user","content":"goes on","timestamp":1748772008000}}"#,
    ];
    vec![
        scenario("a file of odd lines", file(Some(3), &odd) + "\r\n"),
        scenario(UNKNOWN, file(Some(3), &[&QUESTION.replace(r#""role""#, r#""mood":"good","role""#), ANSWER]) + "\n"),
        scenario("a torn last line", file(Some(3), &[QUESTION, ANSWER, r#"{"type":"mess"#])),
        scenario(
            "null content",
            file(
                Some(3),
                &[
                    &QUESTION.replace(r#""first question""#, "null"),
                    &ANSWER.replace(r#"[{"type":"text","text":"first answer"}]"#, "null"),
                    r#"{"type":"custom_message","id":"a0000003","parentId":"a0000002","timestamp":"2025-06-01T10:00:03.000Z","customType":"c","content":null,"display":true}"#,
                ],
            ) + "\n",
        ),
        scenario(
            "written twice",
            file(
                Some(3),
                &[QUESTION, ANSWER, &file(Some(3), &[QUESTION, ANSWER, &next("a0000003", "a0000002", "05", "more")])],
            ) + "\n",
        ),
        scenario(
            "children before their parents",
            file(
                Some(3),
                &[
                    &next("a0000004", "a0000003", "09", "a child"),
                    &next("a0000003", "a0000002", "08", "a parent"),
                    QUESTION,
                    ANSWER,
                    &next("a0000005", "a0000002", "03", "an older child that comes later"),
                    &next("a0000006", "a0000004", "03", "goes on"),
                ],
            ) + "\n",
        ),
        scenario(
            "odd labels and names",
            file(
                Some(3),
                &[
                    QUESTION,
                    r#"{"type":"label","id":"b0000001","parentId":"a0000001","timestamp":"2025-06-01T10:00:03.000Z","targetId":"a0000002","label":"before its target"}"#,
                    ANSWER,
                    r#"{"type":"label","id":"b0000002","parentId":"a0000002","timestamp":"2025-06-01T10:00:04.000Z","targetId":"nobody00","label":"nowhere"}"#,
                    r#"{"type":"label","id":"b0000003","parentId":"b0000002","timestamp":"2025-06-01T10:00:05.000Z","targetId":"a0000001","label":""}"#,
                    r#"{"type":"session_info","id":"b0000004","parentId":"b0000003","timestamp":"2025-06-01T10:00:06.000Z","name":" two\nlines "}"#,
                ],
            ) + "\n",
        ),
        scenario(
            "summaries that lack something",
            file(
                Some(3),
                &[
                    QUESTION,
                    ANSWER,
                    r#"{"type":"branch_summary","id":"b0000001","parentId":"a0000002","timestamp":"no time","fromId":"root","summary":"B"}"#,
                    r#"{"type":"compaction","id":"b0000002","parentId":"b0000001","timestamp":"2025-06-01T10:00:08.000Z","summary":"S","tokensBefore":0}"#,
                    &next("a0000003", "b0000002", "09", "after it"),
                ],
            ) + "\n",
        ),
        scenario("line ends of Windows", file(Some(3), &[QUESTION, ANSWER]).replace('\n', "\r\n") + "\r\n"),
        scenario("no newline at the end", file(Some(3), &[QUESTION, ANSWER])),
        scenario(
            "a call without a result",
            file(
                Some(3),
                &[
                    QUESTION,
                    r#"{"type":"message","id":"a0000002","parentId":"a0000001","timestamp":"2025-06-01T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"toolu_1","name":"read","arguments":{}}],"api":"openai-completions","provider":"fake","model":"m1","usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}},"stopReason":"toolUse","timestamp":1748772002000}}"#,
                ],
            ) + "\n",
        ),
        scenario("a question without an answer", file(Some(3), &[QUESTION]) + "\n"),
        scenario(
            "version 1",
            file(
                None,
                &[
                    r#"{"type":"message","timestamp":"2025-06-01T10:00:01.000Z","message":{"role":"user","content":"v1 question","timestamp":1748772001000}}"#,
                    r#"{"type":"message","timestamp":"2025-06-01T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"v1 answer"}],"api":"openai-completions","provider":"fake","model":"m1","usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}},"stopReason":"stop","timestamp":1748772002000}}"#,
                    r#"{"type":"compaction","timestamp":"2025-06-01T10:00:03.000Z","summary":"S","firstKeptEntryIndex":2,"tokensBefore":10}"#,
                ],
            ) + "\n",
        ),
        scenario(
            "version 2",
            file(
                Some(2),
                &[
                    QUESTION,
                    ANSWER,
                    r#"{"type":"message","id":"a0000003","parentId":"a0000002","timestamp":"2025-06-01T10:00:03.000Z","message":{"role":"hookMessage","customType":"note","content":"hooked","display":true,"timestamp":1748772003000}}"#,
                ],
            ) + "\n",
        ),
    ]
}

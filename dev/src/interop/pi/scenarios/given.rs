//! Files from other sources, which both programs continue.

use serde_json::json;

use super::known::UNKNOWN;
use super::{PiScenario, answer, user};

/// A file from its lines.
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

/// A user message in a file.
fn next(id: &str, parent: &str, second: &str, text: &str) -> String {
    let line = QUESTION.replace("a0000001", id).replace(r#""parentId":null"#, &format!(r#""parentId":"{parent}""#));
    line.replace(":01.000Z", &format!(":{second}.000Z")).replace("first question", text)
}

/// All such files.
pub(super) fn all() -> Vec<PiScenario> {
    let more = || vec![user("more"), answer("ok"), user("and more")];
    let scenario = |name, text| PiScenario { name, given: Some(text), steps: more() };
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

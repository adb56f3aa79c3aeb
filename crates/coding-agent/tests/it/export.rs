//! Sessions as pages: their content, and that session text never becomes markup.

use std::path::Path;
use std::sync::LazyLock;

use base64::Engine as _;
use pinch_coding_agent::export::html::{self, ExportError, PageTheme};
use pinch_coding_agent::export::{fixed_page_theme, page_theme};
use pinch_coding_agent::resources::themes::Theme;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};
use sha2::Digest as _;

use pinch_testing::logs::{host, open};

/// Creates a session file from entries, each following the previous one by default.
fn session(entries: &[Value]) -> String {
    let mut text =
        json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2025-06-01T10:00:00.000Z", "cwd": "/w"})
            .to_string();
    let mut before = Value::Null;
    for (at, entry) in entries.iter().enumerate() {
        let mut line = json!({"type": "message", "id": format!("{at:08x}"), "parentId": before, "timestamp": "2025-06-01T10:00:01.000Z"});
        for (name, value) in entry.as_object().unwrap() {
            line[name] = value.clone();
        }
        before = line["id"].clone();
        text.push_str(&format!("\n{line}"));
    }
    text + "\n"
}

async fn log(dir: &Path, text: &[u8]) -> SessionLog {
    let path = dir.join("2025_s1.jsonl");
    std::fs::write(&path, text).unwrap();
    open(&path).await.unwrap()
}

fn written(log: &SessionLog) -> String {
    let mut page = Vec::new();
    html::write(log, &page_theme(&Theme::builtin()[0]), &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

async fn page(text: impl AsRef<[u8]>) -> String {
    let dir = tempfile::tempdir().unwrap();
    written(&log(dir.path(), text.as_ref()).await)
}

/// Returns the text between two parts of a page.
#[track_caller]
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = page.split_once(from).unwrap();
    rest.split_once(to).unwrap().0
}

fn user(text: &str) -> Value {
    json!({"message": {"role": "user", "content": text, "timestamp": 1}})
}

fn assistant(content: Value) -> Value {
    json!({"message": {"role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m", "stopReason": "stop", "timestamp": 2,
        "usage": {"input": 1200, "output": 34, "cacheRead": 5, "cacheWrite": 0, "totalTokens": 1239, "cost": {"total": 0.0123}}}})
}

fn result(id: &str, text: &str) -> Value {
    json!({"message": {"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": [{"type": "text", "text": text}], "isError": false, "timestamp": 3}})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": format!("run {id}")}})
}

/// Creates a session with two branches, results with and without their calls, and entries of every kind.
fn sample() -> String {
    session(&[
        json!({"message": {"role": "system", "content": "Be *kind*.", "sections": {"date": "today", "old": null}, "toolsRemoved": [{"name": "ls"}],
            "toolsAdded": [{"name": "bash", "description": "Runs", "parameters": {"type": "object"}}], "timestamp": 1}}),
        json!({"type": "model_change", "provider": "p", "modelId": "m"}),
        json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
        user("<skill name=\"pdf\" location=\"/s\">\nRead it.\n</skill>\n\nFirst line\nsecond"),
        assistant(
            json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."}, call("c1"), call("c2")]),
        ),
        result("c2", "two"),
        result("c1", "one"),
        assistant(json!([call("c3")])),
        result("c3", "three"),
        json!({"type": "message", "parentId": "00000007", "message": {"role": "toolResult", "toolCallId": "c3", "toolName": "bash",
            "content": [], "isError": true, "timestamp": 3}}),
        json!({"message": {"role": "bashExecution", "command": "ls -l", "output": "\u{1b}[1mx\u{1b}[0m", "exitCode": 2, "cancelled": false,
            "truncated": true, "fullOutputPath": "/t", "timestamp": 4}}),
        json!({"type": "compaction", "summary": "So *far*.", "firstKeptEntryId": "00000003", "tokensBefore": 12345}),
        json!({"type": "branch_summary", "fromId": "x", "summary": "Left."}),
        json!({"type": "custom_message", "customType": "hint", "content": "Seen", "display": true}),
        json!({"type": "custom_message", "customType": "hint", "content": "UNSEEN", "display": false}),
        json!({"type": "custom", "customType": "state", "data": {"secret": "UNSEEN"}}),
        json!({"type": "label", "targetId": "00000003", "label": "start"}),
        json!({"type": "session_info", "name": "A <name>"}),
        json!({"type": "context_edit", "targetId": "00000003", "replacement": {"content": "Short"}}),
        json!({"type": "usage", "kind": "warm", "provider": "p", "model": "m", "usage": {"input": 1, "output": 0, "cacheRead": 0,
            "cacheWrite": 0, "totalTokens": 1, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}}),
        json!({"type": "future", "what": 1}),
    ])
}

#[tokio::test]
async fn every_kind_of_entry_is_shown() {
    let page = page(sample()).await;
    insta::assert_snapshot!("export_head", between(&page, "<header>", "</header>"));
    insta::assert_snapshot!("export_tree", between(&page, "<div id=\"tree\"", "</nav>"));
    insta::assert_snapshot!("export_entries", between(&page, "<main>", "</main>"));
    assert!(!page.contains("UNSEEN"));
}

#[tokio::test]
async fn equal_sessions_give_equal_pages() {
    let first = page(sample()).await;
    assert_eq!(first, page(sample()).await);
    assert_eq!(first, page(sample().trim_end()).await, "also when the last line has no end");
}

#[tokio::test]
async fn the_page_runs_only_its_own_script_and_loads_nothing() {
    let page = page(session(&[user("x")])).await;
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\">");
    let hash = |content: &str| {
        let digest = sha2::Sha256::digest(content.as_bytes());
        format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
    };
    let (style, script) = (hash(between(&page, "<style>", "</style>")), hash(between(&page, "<script>", "</script>")));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; img-src data:; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"
        )
    );
    assert_eq!((page.matches("<script").count(), page.matches("<style").count()), (1, 1));
    for loads in ["http:", "https:", "<link", "@import", "url(", " style=\"", " src="] {
        assert!(!page.contains(loads), "{loads}");
    }
    assert!(
        page.find("Content-Security-Policy") < page.find("<title>"),
        "the policy stands before everything that it is for"
    );
}

#[tokio::test]
async fn the_page_starts_in_the_mode_of_its_look() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path(), session(&[user("x")]).as_bytes()).await;
    let themes = Theme::builtin();
    let checked = |page_theme: PageTheme| {
        let mut page = Vec::new();
        html::write(&log, &page_theme, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        ["system", "light", "dark"].map(|id| page.contains(&format!("id=\"scheme-{id}\" checked")))
    };
    assert_eq!(checked(page_theme(&themes[0])), [true, false, false]);
    assert_eq!(checked(fixed_page_theme(&themes[0])), [false, false, true]);
    assert_eq!(checked(fixed_page_theme(&themes[1])), [false, true, false]);
}

#[tokio::test]
async fn thousands_of_entries_and_deep_trees_are_exported() {
    let many: Vec<Value> = (0..5000).map(|n| user(&format!("question {n}"))).collect();
    let page = page(session(&many)).await;
    assert_eq!((page.matches("<article ").count(), page.matches("<a id=\"t").count()), (5000, 5000));
    let deep: Vec<Value> = (0..20_000)
        .map(|n| match n % 10 {
            // A fork every ten entries: this one and the next follow the same entry.
            9 => json!({"type": "label", "targetId": "x", "parentId": format!("{:08x}", n - 2)}),
            _ => user("q"),
        })
        .collect();
    let page = self::page(session(&deep)).await;
    assert_eq!(page.matches("<article ").count(), 20_000);
    assert!(page.contains("class=\"d1 ") && !page.contains("class=\"d13"));
}

#[tokio::test]
async fn long_pages_stay_fast_in_browsers() {
    let code = format!("{}\n", "fn f() -> Vec<u8> { todo!() }\n".repeat(1000));
    let read = |at: usize, text: &str| {
        let call = json!({"type": "toolCall", "id": format!("c{at}"), "name": "read", "arguments": {"path": "a.rs"}});
        let mut result = result(&format!("c{at}"), text);
        result["message"]["toolName"] = "read".into();
        [assistant(json!([call])), result]
    };
    let page_of =
        |n: usize| page(session(&(0..n).flat_map(|at| read(at, &code)).chain(read(n, "fn g()")).collect::<Vec<_>>()));
    let is_coloured = |page: &str, name: &str| page.contains(&format!("<span class=\"sf\">{name}</span>"));
    let short = page_of(10).await;
    assert!(is_coloured(&short, "f") && is_coloured(&short, "g"));
    // 3 MB of code in long pieces: only the short piece is highlighted.
    let long = page_of(100).await;
    assert!(!is_coloured(&long, "f") && is_coloured(&long, "g"));
    assert!(long.matches('<').count() < 10_000);
    // Browsers number list items, and re-evaluate everything that `:has` may match, whenever something changes.
    assert!(!between(&long, "<nav", "</nav>").contains("<li"));
    let style = between(&long, "<style>", "</style>");
    assert!(style.contains(":root:has(>body>#scheme-dark:checked)"));
    assert!(style.split(":has(").skip(1).all(|rest| rest.starts_with(">body>#")));
}

#[tokio::test]
async fn damaged_texts_are_shown_as_far_as_possible() {
    let text = session(&[user("HALF \u{1}\u{7f}\u{202e}")]).replace("HALF", "\\ud83d");
    let text = [
        text.as_bytes(),
        b"{\"type\":\"message\",\"id\":\"b\",\"message\":{\"role\":\"user\",\"content\":\"\xff\"}}\n{torn",
    ]
    .concat();
    let page = page(text).await;
    assert!(page.contains("<p>\u{fffd} \u{2401}\u{2421}\u{fffd}</p>"), "{page}");
    assert!(page.contains("<p>\u{fffd}</p>"));
}

#[tokio::test]
async fn entries_that_are_their_own_ancestors_are_shown_once() {
    let circle = session(&[
        json!({"parentId": "00000001", "message": {"role": "user", "content": "a"}}),
        json!({"parentId": "00000000", "message": {"role": "user", "content": "b"}}),
        json!({"id": "00000000", "parentId": "00000000", "message": {"role": "user", "content": "c"}}),
    ]);
    let page = page(circle).await;
    let texts: Vec<&str> = page.split("<div class=\"md\"><p>").skip(1).map(|rest| &rest[..1]).collect();
    assert!(texts.contains(&"b") && texts.contains(&"c"), "{texts:?}");
}

#[tokio::test]
async fn files_are_replaced_completely_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    // Long enough to stay in its file.
    let log = log(dir.path(), session(&[user(&"x".repeat(4 << 20))]).as_bytes()).await;
    let theme = &Theme::builtin()[1];
    let export = |path: Option<&Path>| html::export(&log, &page_theme(theme), path, dir.path());
    let usual = dir.path().join("pinch-session-2025_s1.html");
    assert_eq!(export(None).unwrap(), usual);
    assert_eq!(export(Some(Path::new("new/a.html"))).unwrap(), Path::new("new/a.html"));
    let first = std::fs::read(&usual).unwrap();
    assert_eq!(first, std::fs::read(dir.path().join("new/a.html")).unwrap());
    assert!(matches!(export(Some(dir.path())), Err(ExportError::Write { .. })));
    // Truncating the session during an export leaves the old page unchanged.
    std::fs::write(log.path().unwrap(), "").unwrap();
    let cut = export(None);
    assert!(matches!(cut, Err(ExportError::Read(_))), "{cut:?}");
    assert_eq!(std::fs::read(&usual).unwrap(), first);
    let in_memory =
        SessionLog::in_memory(&host(), NewSession { id: Some("m1".into()), ..NewSession::in_directory("/w") });
    assert_eq!(html::file_name(&in_memory), "pinch-session-m1.html");
    assert!(written(&in_memory).contains("<main>\n</main>"));
}

/// All tags that a page may contain.
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^</?(?:html|head|meta|title|style|script|body|header|section|h1|dl|div|dt|dd|label|input|button|nav|select|option|ol|ul|li|a|b|main",
        r"|article|p|time|details|summary|code|pre|span|img|h3|h4|h5|h6|blockquote|table|thead|tr|th|td|em|strong|del|br|hr)",
        r#"(?: (?:checked|(?:lang|charset|http-equiv|content|name|class|type|autocomplete|id|for|placeholder|aria-label|value|data-p|href|datetime|title"#,
        r#"|rel|target|start|alt|loading|decoding|src)="[^"<>]*"))*>"#
    ))
    .unwrap()
});

/// Checks that a page consists of our tags, our script and text.
fn is_harmless(page: &str) -> Result<(), TestCaseError> {
    let (head, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, end) = rest.rsplit_once("<script>").unwrap();
    let (_, end) = end.split_once("</script>").unwrap();
    prop_assert_eq!(end, "\n</body>\n</html>\n");
    for part in [head.trim_start_matches("<!DOCTYPE html>"), body] {
        for (at, _) in part.match_indices('<') {
            prop_assert!(TAG.is_match(&part[at..]), "{}", part[at..].chars().take(200).collect::<String>());
        }
        for link in part.split(" href=\"").skip(1) {
            let is_safe = ["#e", "http://", "https://", "mailto:"]
                .iter()
                .any(|start| link.to_ascii_lowercase().starts_with(start));
            prop_assert!(is_safe, "{}", link.chars().take(100).collect::<String>());
        }
        let odd = part.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        prop_assert_eq!(odd, None);
    }
    Ok(())
}

/// Generates texts that try to become markup.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("</script><script>alert(1)</script>"),
        Just("\" onload=\"alert(1)"),
        Just("' onerror='x"),
        Just("<img src=x onerror=y>"),
        Just("[a](javascript:alert(1))"),
        Just("[a](https://x/\"onclick=\"y)"),
        Just("![a](data:image/svg+xml;base64,PHN2Zz4=)"),
        Just("<!--"),
        Just("]]>"),
        Just("</style>"),
        Just("```\"><b>\n"),
        Just("\u{0}\u{1b}\u{202e}\u{85}"),
        Just("&lt;b&gt;"),
        Just("\n\n> - # *a* `b` | c\n|-|\n"),
        Just("<skill name=\""),
        Just("https://a.b/<c>\"d"),
    ];
    prop::collection::vec(prop_oneof![3 => pieces.prop_map(str::to_owned), 1 => "\\PC{0,8}"], 1..6)
        .prop_map(|list| list.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn session_text_never_becomes_markup(texts in prop::collection::vec(hostile(), 12)) {
        let t = |at: usize| texts[at % texts.len()].as_str();
        let mut args = serde_json::Map::new();
        args.insert("command".into(), t(0).into());
        args.insert(t(1).into(), json!([{t(2): t(3)}]));
        let mut shell = user("");
        shell["message"] = json!({"role": "bashExecution", "command": t(4), "output": t(5), "truncated": true, "fullOutputPath": t(6)});
        let mut answer = assistant(json!([
            {"type": "text", "text": t(0)}, {"type": "thinking", "thinking": t(1)},
            {"type": "toolCall", "id": t(2), "name": t(3), "arguments": args},
            {"type": "toolCall", "id": "e", "name": "edit", "arguments": {"path": t(4), "edits": [{"oldText": t(5), "newText": t(6)}]}},
            {"type": "toolCall", "id": "w", "name": "write", "arguments": {"path": format!("{}.rs", t(4)), "content": t(5)}},
            {"type": t(7), "x": t(8)},
        ]));
        for (at, name) in ["model", "provider", "errorMessage", "api"].iter().enumerate() {
            answer["message"][*name] = t(at).into();
        }
        answer["message"]["stopReason"] = "error".into();
        let mut done = result(t(2), t(3));
        done["message"]["toolName"] = t(4).into();
        done["message"]["details"] = json!({"diff": t(5)});
        done["timestamp"] = t(6).into();
        let picture = json!({"message": {"role": "user", "content": [{"type": "image", "data": t(7), "mimeType": t(8)}, {"type": "text", "text": t(9)}]}});
        let entries = [
            json!({"message": {"role": "system", "content": t(0), "sections": {t(1): t(2)}, "toolsRemoved": [{"name": t(3)}],
                "toolsAdded": [{"name": t(4), "description": t(5), "parameters": {t(6): t(7)}}], "timestamp": 1}}),
            user(t(0)), picture, answer, done.clone(), result("other", t(10)), shell,
            json!({"type": "model_change", "provider": t(1), "modelId": t(2)}),
            json!({"type": "thinking_level_change", "thinkingLevel": t(3)}),
            json!({"type": "compaction", "summary": t(4), "firstKeptEntryId": t(5), "tokensBefore": 1}),
            json!({"type": "branch_summary", "fromId": t(6), "summary": t(7)}),
            json!({"type": "custom_message", "customType": t(8), "content": t(9), "display": true}),
            json!({"type": "custom", "customType": t(10), "data": t(11)}),
            json!({"type": "label", "targetId": "00000001", "label": t(0)}),
            json!({"type": "session_info", "name": t(1)}),
            json!({"type": "usage", "kind": t(2), "provider": t(3), "model": t(4), "note": t(5), "usage": {"input": 1}}),
            json!({"type": t(6), "id": t(7), t(8): t(9)}),
            json!({"message": {"role": t(10), "content": t(11)}}),
        ];
        let header = json!({"type": "session", "version": 3, "id": t(0), "timestamp": t(1), "cwd": t(2)});
        let text = session(&entries);
        let text = format!("{header}\n{}", text.split_once('\n').unwrap().1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        is_harmless(&runtime.block_on(page(text)))?;
    }
}

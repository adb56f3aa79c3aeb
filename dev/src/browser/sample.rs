//! A session with everything that a page can show, and with texts that try to load resources.

use serde_json::{Value, json};

/// Number of entries in the initially shown branch, not counting results that are displayed with their calls.
pub(super) const N_SHOWN: usize = 14;

/// An image of a single red pixel.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The session. `server` is the address of a server that the page must not contact.
pub(super) fn session(server: &str) -> String {
    let header = json!({"type": "session", "version": 3, "id": "0197-sample", "timestamp": "2025-06-01T10:00:00.000Z", "cwd": "/home/me/parser"});
    let mut lines = vec![header.to_string()];
    for (id, parent, entry) in entries(server) {
        let mut line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": format!("2025-06-01T10:0{}:00.000Z", lines.len() % 10)});
        for (name, value) in entry.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        lines.push(line.to_string());
    }
    lines.join("\n") + "\n"
}

fn user(text: impl Into<String>) -> Value {
    json!({"message": {"role": "user", "content": text.into(), "timestamp": 1}})
}

fn answer(content: Value) -> Value {
    json!({"message": {"role": "assistant", "content": content, "api": "a", "provider": "anthropic", "model": "claude-sonnet-4-5",
        "stopReason": "stop", "timestamp": 2, "usage": {"input": 2140, "output": 312, "cacheRead": 18400, "cacheWrite": 950,
        "totalTokens": 21802, "cost": {"total": 0.0187}}}})
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
}

fn result(id: &str, name: &str, text: &str, details: Value) -> Value {
    json!({"message": {"role": "toolResult", "toolCallId": id, "toolName": name, "content": [{"type": "text", "text": text}],
        "details": details, "isError": false, "durationMs": 1420, "timestamp": 3}})
}

/// ID, parent and the rest of each entry.
fn entries(server: &str) -> Vec<(&'static str, Value, Value)> {
    let hostile = format!(
        "Do not load <img src=\"{server}/a\"> or ![b]({server}/b.png), \n\n<script>document.title='changed';fetch('{server}/c')</script>\n\n\
         <iframe src='{server}/d'></iframe> <link rel=stylesheet href={server}/e>\n\n[run](javascript:fetch('{server}/f')) \
         <style>@import url({server}/g)</style>"
    );
    let edit =
        "+1 fn next(&mut self) -> Option<Token> {\n-1 fn next(&mut self) -> Token {\n 2     self.peeked.take()\n   ...";
    let failed = json!({"message": {"role": "toolResult", "toolCallId": "c4", "toolName": "bash", "isError": true, "timestamp": 3,
        "content": [{"type": "text", "text": "error[E0308]: mismatched types\n  --> src/lexer.rs:41:9\n\nCommand exited with code 101"}]}});
    vec![
        (
            "s0",
            Value::Null,
            json!({"message": {"role": "system", "content": "You help with code.", "sections": {"date": "2025-06-01"},
            "toolsAdded": [{"name": "bash", "description": "Runs a command.", "parameters": {"type": "object"}}], "timestamp": 1}}),
        ),
        ("m0", "s0".into(), json!({"type": "model_change", "provider": "anthropic", "modelId": "claude-sonnet-4-5"})),
        (
            "u1",
            "m0".into(),
            user(
                "The lexer panics on an empty file.\nPlease make `next` return an `Option`, and show me what changed.",
            ),
        ),
        (
            "a1",
            "u1".into(),
            answer(json!([
                {"type": "thinking", "thinking": "First the file, then the callers. `Option` is the honest type here."},
                {"type": "text", "text": "I'll look at the lexer and at who calls it."},
                call("c1", "read", json!({"path": "src/lexer.rs", "limit": 20})),
                call("c2", "bash", json!({"command": "rg -n 'lexer.next\\(' src | head -n 5", "timeout": 10})),
            ])),
        ),
        (
            "r1",
            "a1".into(),
            result(
                "c1",
                "read",
                "//! Text to tokens.\n\nuse std::iter::Peekable;\n\n/// Reads tokens.\npub struct Lexer<'a> {\n    \
            chars: Peekable<std::str::Chars<'a>>,\n    line: u32, // from 1\n}\n",
                Value::Null,
            ),
        ),
        (
            "r2",
            "r1".into(),
            result(
                "c2",
                "bash",
                "src/parser.rs:12:        let token = self.lexer.next();\nsrc/parser.rs:88:        match self.lexer.next() {",
                Value::Null,
            ),
        ),
        (
            "a2",
            "r2".into(),
            answer(json!([
                {"type": "text", "text": "Two callers. I change the signature first."},
                call("c3", "edit", json!({"path": "src/lexer.rs", "edits": [{"oldText": "-> Token {", "newText": "-> Option<Token> {"}]})),
                call("c4", "bash", json!({"command": "cargo check --quiet"})),
            ])),
        ),
        (
            "r3",
            "a2".into(),
            result("c3", "edit", "Successfully replaced 1 block(s) in src/lexer.rs.", json!({"diff": edit})),
        ),
        ("r4", "r3".into(), failed),
        (
            "a3",
            "r4".into(),
            answer(
                json!([{"type": "text", "text": "## What changed\n\n`Lexer::next` now says when there is **nothing left**:\n\n\
            ```rust\n/// The next token; none at the end.\npub fn next(&mut self) -> Option<Token> {\n    let c = self.chars.next()?;\n    \
            Some(Token::new(c, \"text\", 42))\n}\n```\n\n1. callers use `?`\n2. the parser stops at the end:\n   - [x] `parser.rs`\n   - [ ] `repl.rs`\n\n\
            > An empty file is a program without statements.\n\n| File | Lines | Change |\n|---|--:|:-:|\n| `lexer.rs` | 41 | signature |\n| `parser.rs` | 88 | `match` |\n\n\
            More in the [Rust book](https://doc.rust-lang.org/book/) or at https://docs.rs/logos.\n\n```json\n{\"edition\": \"2024\", \"ok\": true, \"n\": 1.5}\n```\n"}]),
            ),
        ),
        ("u2", "a3".into(), user(hostile)),
        ("x1", "u2".into(), answer(json!([{"type": "text", "text": "This answer is on a branch that was left."}]))),
        ("x2", "x1".into(), user("And this one too")),
        (
            "b1",
            "u2".into(),
            json!({"type": "branch_summary", "fromId": "x2", "summary": "The other way of doing it did **not** work."}),
        ),
        (
            "u3",
            "b1".into(),
            json!({"message": {"role": "user", "timestamp": 1, "content": [
            {"type": "text", "text": "Here is a picture:"}, {"type": "image", "data": RED, "mimeType": "image/png"}]}}),
        ),
        (
            "h1",
            "u3".into(),
            json!({"message": {"role": "bashExecution", "command": "git diff --stat", "output": " src/lexer.rs | 4 ++--\n 1 file changed",
            "exitCode": 0, "cancelled": false, "truncated": false, "timestamp": 4}}),
        ),
        (
            "k1",
            "h1".into(),
            json!({"type": "compaction", "summary": "## Goal\n\nMake the lexer total.", "firstKeptEntryId": "u3", "tokensBefore": 41230}),
        ),
        (
            "e1",
            "k1".into(),
            json!({"type": "custom_message", "customType": "reminder", "content": "Two tests are **still red**.", "display": true}),
        ),
        ("l1", "e1".into(), json!({"type": "label", "targetId": "u1", "label": "start"})),
        ("n1", "l1".into(), json!({"type": "session_info", "name": "A lexer without panics"})),
    ]
}

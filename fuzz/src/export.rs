//! Pages of exported sessions: whatever a message says, elements are closed, none comes from the message, and links lead to the web.
//!
//! Options: who says it.

use std::cell::RefCell;

use pinch_export::{PageTheme, write};
use pinch_session::entry::EntryBody;
use pinch_session::llm::message::Message;
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_stdx::host::Host;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::input::{options, text};

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    let ([role], content) = options(data);
    let content = text(content);
    let message = match role & 3 {
        0 => json!({"role": "user", "content": content, "timestamp": 1}),
        1 => {
            json!({"role": "bashExecution", "command": content, "output": content, "cancelled": false, "timestamp": 1})
        }
        more => {
            let block = match more {
                2 => json!({"type": "text", "text": content}),
                _ => json!({"type": "thinking", "thinking": content}),
            };
            json!({
                "role": "assistant", "content": [block], "api": "a", "provider": "p", "model": content, "stopReason": "stop",
                "timestamp": 1, "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {}},
            })
        }
    };
    let message = Message::from_value(&message).expect("a message");
    let host = Host::builder().clock(1_800_000_000_000, 1_000).seed(1).build();
    let mut log = SessionLog::in_memory(&host, NewSession::in_directory("/work/place"));
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| Builder::new_current_thread().build().expect("a runtime"));
        runtime.block_on(log.append(EntryBody::Message(message.into()))).expect("a message can be appended");
    });
    let mut page = Vec::new();
    write(&log, &PageTheme::default(), &mut page).expect("a page can be written to memory");
    let page = String::from_utf8(page).expect("a page is text");
    let body = page.split_once("<body>").and_then(|(_, rest)| rest.split_once("<script>")).map(|(body, _)| body);
    check_body(body.expect("a page has a body and a script"));
}

/// Elements without an end.
const VOID: [&str; 5] = ["br", "hr", "img", "input", "meta"];

/// Elements that run or load something, or change how the rest is read.
const NEVER: [&str; 12] =
    ["script", "style", "iframe", "object", "embed", "form", "base", "link", "svg", "math", "template", "title"];

fn check_body(body: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in body.split('<').skip(1) {
        let (tag, after) = part.split_once('>').unwrap_or_else(|| panic!("a tag without an end: {part:?}"));
        assert!(!after.contains('>'), "unescaped: {part:?}");
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "not in order: {tag:?}");
            continue;
        }
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{tag:?}");
        assert!(!NEVER.contains(&name), "an element from the message: {tag:?}");
        check_attributes(attributes);
        if !VOID.contains(&name) {
            open.push(name);
        }
    }
    // The script follows the last element of the body, which the page closes after it.
    assert!(open.is_empty(), "not closed: {open:?}");
}

fn check_attributes(attributes: &str) {
    let mut rest = attributes.trim();
    while !rest.is_empty() {
        let name = rest.split([' ', '=']).next().unwrap_or_default();
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "an attribute from the message: {rest:?}");
        assert!(!name.starts_with("on") && name != "srcdoc", "an attribute that runs something: {rest:?}");
        rest = rest[name.len()..].trim_start();
        let Some(value) = rest.strip_prefix('=') else { continue };
        let value = value.strip_prefix('"').unwrap_or_else(|| panic!("a value without quotes: {attributes:?}"));
        let (value, after) = value.split_once('"').unwrap_or_else(|| panic!("a value without an end: {attributes:?}"));
        let value = value.to_ascii_lowercase();
        let is_safe = match name {
            "href" => ["http://", "https://", "mailto:", "#"].iter().any(|start| value.starts_with(start)),
            "src" => value.starts_with("data:image/"),
            _ => true,
        };
        assert!(is_safe, "{name} leads elsewhere: {value:?}");
        rest = after.trim_start();
    }
}

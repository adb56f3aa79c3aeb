//! Parts of a summary that are copied verbatim: tool failures, the newest turns, and the rules of the workspace.

use std::collections::HashSet;
use std::sync::Arc;

use pinch_llm::message::{Block, Message, ToolResult};
use serde_json::Value;

/// Maximum number of failures listed.
const MAX_FAILURES: usize = 8;
/// The longest text per failure, in characters.
const MAX_FAILURE: usize = 240;
/// The longest text per repeated message, in characters.
const MAX_TURN_TEXT: usize = 600;

/// The longest rules of a workspace, in characters.
const MAX_RULES: usize = 2_000;
/// Headings in AGENTS.md whose sections are repeated after a compaction, with their former names.
const RULES: [[&str; 2]; 2] = [["session startup", "every session"], ["red lines", "safety"]];

/// Returns the rules in a workspace's AGENTS.md that a summary must not lose; `None` if there are none.
pub(crate) fn workspace_rules(instructions: &str) -> Option<String> {
    let found = RULES.iter().filter_map(|names| names.iter().find_map(|name| section_of(instructions, name)));
    let rules = found.collect::<Vec<_>>().join("\n\n");
    (!rules.is_empty()).then(|| cut(&rules, MAX_RULES))
}

/// Returns a section of a Markdown document with its heading, up to the next heading of its level or above.
fn section_of(document: &str, name: &str) -> Option<String> {
    let (mut section, mut level, mut is_code) = (String::new(), None, false);
    for line in document.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let n_marks = line.bytes().take_while(|byte| *byte == b'#').count();
        let title = line[n_marks..].strip_prefix(' ').map(str::trim).filter(|_| (1..=6).contains(&n_marks) && !is_code);
        match (level, title) {
            (None, Some(title)) if title.eq_ignore_ascii_case(name) => level = Some(n_marks),
            (Some(of_section), Some(_)) if n_marks <= of_section => break,
            _ => {}
        }
        if level.is_some() {
            section.push_str(line);
            section.push('\n');
        }
    }
    Some(section.trim_end().to_owned()).filter(|section| section.lines().count() > 1)
}

/// Returns the section about failed tools, one line per call; `None` if none failed.
pub fn tool_failures(messages: &[Arc<Message>]) -> Option<String> {
    let mut seen = HashSet::new();
    let failures: Vec<String> = messages
        .iter()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) if result.is_error && !result.tool_call_id.as_str().is_empty() => Some(result),
            _ => None,
        })
        .filter(|result| seen.insert(result.tool_call_id.clone()))
        .map(failure)
        .collect();
    let mut lines: Vec<&str> = failures.iter().take(MAX_FAILURES).map(String::as_str).collect();
    let more = failures.len().saturating_sub(MAX_FAILURES);
    let rest = format!("- ...and {more} more");
    if more > 0 {
        lines.push(&rest);
    }
    (!lines.is_empty()).then(|| format!("## Tool Failures\n{}", lines.join("\n")))
}

fn failure(result: &ToolResult) -> String {
    let details = result.details.as_ref();
    let meta: Vec<String> = ["status", "exitCode"]
        .into_iter()
        .filter_map(|name| {
            let value = details?.get(name)?;
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            Some(format!("{name}={value}"))
        })
        .collect();
    let text = pinch_llm::message::block::join_text(&result.content, " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = match (text.is_empty(), meta.is_empty()) {
        (false, _) => cut(&text, MAX_FAILURE),
        (true, false) => "failed".to_owned(),
        (true, true) => "failed (no output)".to_owned(),
    };
    let meta = if meta.is_empty() { String::new() } else { format!(" ({})", meta.join(" ")) };
    format!("- {}{meta}: {text}", result.tool_name)
}

/// Returns where the turns that are repeated verbatim begin: at the last `n` user messages. If there are fewer, at the newest messages, at
/// most half of them. Something is always left to summarise.
pub(crate) fn recent_turns(messages: &[Arc<Message>], n: usize) -> usize {
    if n == 0 {
        return messages.len();
    }
    let is_user = |at: &usize| matches!(*messages[*at], Message::User(_));
    let start = match (0..messages.len()).rev().filter(is_user).nth(n - 1) {
        Some(at) => at,
        None => messages.len().saturating_sub(2 * n),
    };
    if start == 0 { messages.len().div_ceil(2) } else { start }
}

/// Returns the newest turns, one line per message; `None` if there are none.
pub(crate) fn turns(messages: &[Arc<Message>]) -> Option<String> {
    let lines: Vec<String> = messages
        .iter()
        .filter_map(|message| {
            let (role, text) = match &**message {
                Message::User(user) => ("User", user.content.text(" ")),
                Message::Assistant(answer) => ("Assistant", answer.text(" ")),
                Message::ToolResult(result) => {
                    ("Tool result", pinch_llm::message::block::join_text(&result.content, " "))
                }
                Message::System(_) | Message::Other(_) => return None,
            };
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let n_calls = message.as_assistant().map_or(0, |answer| answer.tool_calls().count());
            let calls = if n_calls > 0 { format!("[{n_calls} tool calls]") } else { String::new() };
            let n_images = match &**message {
                Message::User(user) => user.content.images().count(),
                Message::ToolResult(result) => {
                    result.content.iter().filter(|block| matches!(block, Block::Image(_))).count()
                }
                _ => 0,
            };
            let images = if n_images > 0 { format!("[{n_images} images]") } else { String::new() };
            let words: Vec<String> =
                [cut(&text, MAX_TURN_TEXT), images, calls].into_iter().filter(|text| !text.is_empty()).collect();
            (!words.is_empty()).then(|| format!("- {role}: {}", words.join(" ")))
        })
        .collect();
    (!lines.is_empty()).then(|| format!("## Most Recent Turns\n{}", lines.join("\n")))
}

/// Truncates a text to `max` characters and marks the truncation.
fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(3)).collect();
    format!("{kept}...")
}

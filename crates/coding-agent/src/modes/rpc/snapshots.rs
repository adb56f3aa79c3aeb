//! The state of a session in RPC answers.

use std::borrow::Cow;

use pinch_llm::model::{Model, thinking};
use pinch_stdx::json::write;
use serde_json::{Value, json};

use crate::entry::EntryId;
use crate::session::{SessionStats, SessionView};

/// Returns the conversation as JSON.
pub(super) fn messages(view: &SessionView<'_>) -> Vec<u8> {
    let mut out = b"{\"messages\":[".to_vec();
    for (at, message) in view.messages().iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let before = out.len();
        if write::append(&mut out, message).is_err() {
            out.truncate(before);
            out.extend_from_slice(b"null");
        }
    }
    out.extend_from_slice(b"]}");
    out
}

/// Returns all entries, or those after `since`, as JSON; `None` if that entry does not exist. Lines are copied as stored.
pub(super) fn entries(view: &SessionView<'_>, since: Option<&EntryId>) -> Option<Vec<u8>> {
    let ids: Vec<&EntryId> = view.log.entry_ids().collect();
    let from = match since {
        None => 0,
        Some(since) => ids.iter().rposition(|id| *id == since)? + 1,
    };
    let mut out = b"{\"entries\":[".to_vec();
    for at in from..ids.len() {
        if at > from {
            out.push(b',');
        }
        // By position: an id may occur twice in a damaged file.
        append_line(&mut out, view.log.line_at(at));
    }
    out.extend_from_slice(b"],");
    append_leaf(&mut out, view);
    out.push(b'}');
    Some(out)
}

/// Returns all entries as trees, as JSON.
pub(super) fn tree(view: &SessionView<'_>) -> Vec<u8> {
    /// Pending output: branches can be deeper than the stack.
    enum WriteStep {
        Node(usize),
        Comma,
        End(usize),
    }
    let tree = view.log.tree();
    let mut out = b"{\"tree\":[".to_vec();
    let list = |nodes: &[usize], steps: &mut Vec<WriteStep>| {
        for (at, node) in nodes.iter().enumerate().rev() {
            steps.push(WriteStep::Node(*node));
            if at > 0 {
                steps.push(WriteStep::Comma);
            }
        }
    };
    let mut steps = Vec::new();
    list(&tree.roots, &mut steps);
    while let Some(step) = steps.pop() {
        match step {
            WriteStep::Comma => out.push(b','),
            WriteStep::Node(at) => {
                out.extend_from_slice(b"{\"entry\":");
                append_line(&mut out, view.log.line_at(at));
                out.extend_from_slice(b",\"children\":[");
                steps.push(WriteStep::End(at));
                list(&tree.nodes[at].children, &mut steps);
            }
            WriteStep::End(at) => {
                out.push(b']');
                if let Some(label) = &tree.nodes[at].label {
                    out.extend_from_slice(b",\"label\":");
                    append_text(&mut out, &label.text);
                    out.extend_from_slice(b",\"labelTimestamp\":");
                    append_text(&mut out, &label.timestamp);
                }
                out.push(b'}');
            }
        }
    }
    out.extend_from_slice(b"],");
    append_leaf(&mut out, view);
    out.push(b'}');
    out
}

/// Returns the messages that can be forked before.
pub(super) fn fork_messages(view: &SessionView<'_>) -> Value {
    let list: Vec<Value> =
        view.fork_points().into_iter().map(|(id, text)| json!({"entryId": id.as_str(), "text": text})).collect();
    json!({ "messages": list })
}

/// Returns message counts, tokens and cost.
pub(super) fn stats(stats: &SessionStats) -> Value {
    let spent = &stats.spent;
    let mut value = json!({
        "sessionFile": stats.session_file.as_ref().map(|path| path.to_string_lossy()),
        "sessionId": stats.session_id,
        "userMessages": stats.user_messages,
        "assistantMessages": stats.assistant_messages,
        "toolCalls": stats.tool_calls,
        "toolResults": stats.tool_results,
        "totalMessages": stats.total_messages,
        "tokens": {
            "input": spent.input,
            "output": spent.output,
            "cacheRead": spent.cache_read,
            "cacheWrite": spent.cache_write,
            "total": spent.total(),
        },
        "cost": spent.cost,
    });
    if let Some(usage) = &stats.context {
        value["contextUsage"] =
            json!({"tokens": usage.tokens, "contextWindow": usage.context_window, "percent": usage.percent()});
    }
    without_nulls(&mut value, &["sessionFile"]);
    value
}

/// Returns the thinking levels of a model.
pub(super) fn thinking_levels(model: &Model) -> Value {
    let levels: Vec<&str> = thinking::supported(model).into_iter().map(|level| level.as_str()).collect();
    json!({ "levels": levels })
}

fn append_line(out: &mut Vec<u8>, line: Option<Cow<'_, [u8]>>) {
    match line {
        Some(line) => out.extend_from_slice(line.trim_ascii()),
        None => out.extend_from_slice(b"null"),
    }
}

fn append_leaf(out: &mut Vec<u8>, view: &SessionView<'_>) {
    out.extend_from_slice(b"\"leafId\":");
    match view.log.leaf_id() {
        Some(id) => append_text(out, id.as_str()),
        None => out.extend_from_slice(b"null"),
    }
}

fn append_text(out: &mut Vec<u8>, text: &str) {
    let before = out.len();
    if write::append(out, text).is_err() {
        out.truncate(before);
        out.extend_from_slice(b"\"\"");
    }
}

/// Removes null members that must be absent.
pub(super) fn without_nulls(value: &mut Value, names: &[&str]) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|name, value| !value.is_null() || !names.contains(&name.as_str()));
    }
}

//! Fitting long payloads into a message: they are truncated, with a count of omitted items and the file with all of them.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::link::MAX_LINE;
use super::points;
use crate::compaction::hooks::PendingCompaction;
use crate::entry::Entry;

/// Maximum bytes of conversation in a payload, leaving room for the rest of the message.
const MAX_CONVERSATION: usize = MAX_LINE - (1 << 20);

/// Builds the payload before a compaction: its preparation, and as much of the branch's end as fits.
pub(super) fn compaction(ahead: &PendingCompaction<'_>, branch: &[Arc<Entry>], file: Option<&Path>) -> Value {
    fitted(points::compaction(ahead), branch, file, MAX_CONVERSATION)
}

fn fitted(mut payload: Value, branch: &[Arc<Entry>], file: Option<&Path>, max: usize) -> Value {
    if let Some(file) = file {
        payload["sessionFile"] = file.to_string_lossy().into();
    }
    let preparation = &mut payload["preparation"];
    let mut n_bytes = length(preparation);
    if n_bytes > max {
        // Images make up most of such a length, and are not summarised anyway.
        without_images(preparation);
        n_bytes = length(preparation);
        payload["imagesOmitted"] = true.into();
    }
    if n_bytes > max
        && let Some(messages) = payload["preparation"]["messagesToSummarize"].as_array_mut()
    {
        let mut n_left_out = 0;
        while n_bytes > max && n_left_out < messages.len() {
            n_bytes = n_bytes.saturating_sub(length(&messages[n_left_out]) + 1);
            n_left_out += 1;
        }
        messages.drain(..n_left_out);
        payload["messagesOmitted"] = n_left_out.into();
    }
    let mut room = max.saturating_sub(n_bytes);
    let mut entries: Vec<Value> = Vec::new();
    for entry in branch.iter().rev() {
        let entry = entry.to_value();
        let Some(left) = room.checked_sub(length(&entry) + 1) else { break };
        room = left;
        entries.push(entry);
    }
    entries.reverse();
    if entries.len() < branch.len() {
        payload["branchEntriesOmitted"] = (branch.len() - entries.len()).into();
    }
    payload["branchEntries"] = entries.into();
    payload
}

/// Returns the length of a value as JSON.
fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// Removes image data.
fn without_images(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(without_images),
        Value::Object(members) => {
            let is_image = members.get("type").is_some_and(|kind| kind == "image");
            if let Some(data) = members.get_mut("data").filter(|_| is_image) {
                *data = "".into();
            }
            members.values_mut().for_each(without_images);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entries(n: usize) -> Vec<Arc<Entry>> {
        let one = |n: usize| {
            json!({"type": "custom", "customType": "c", "data": "x".repeat(100), "id": n.to_string(),
            "parentId": null, "timestamp": ""})
        };
        (0..n).map(|n| Arc::new(Entry::from_value(&one(n)).unwrap())).collect()
    }

    #[test]
    fn the_newest_entries_that_fit_are_sent() {
        let payload = json!({"preparation": {"messagesToSummarize": ["m"]}});
        let all = fitted(payload.clone(), &entries(10), Some(Path::new("/s.jsonl")), 1 << 20);
        assert_eq!((all["branchEntries"].as_array().unwrap().len(), &all["branchEntriesOmitted"]), (10, &Value::Null));
        assert_eq!(all["sessionFile"], "/s.jsonl");
        let some = fitted(payload, &entries(10), None, 1000);
        let sent = some["branchEntries"].as_array().unwrap();
        assert!((1..10).contains(&sent.len()) && some.to_string().len() < 1200, "{}", sent.len());
        assert_eq!(sent.last().unwrap()["id"], "9");
        assert_eq!(some["branchEntriesOmitted"], 10 - sent.len());
    }

    #[test]
    fn an_overlong_preparation_loses_images_and_then_its_oldest_messages() {
        let image = json!({"type": "image", "data": "A".repeat(2000), "mimeType": "image/png"});
        let text = |n: usize| json!({"role": "user", "content": n.to_string().repeat(100)});
        let payload = json!({"preparation": {"messagesToSummarize": [{"role": "user", "content": [image]}, text(1)]}});
        let sent = fitted(payload, &[], None, 1000);
        assert_eq!((&sent["imagesOmitted"], &sent["messagesOmitted"]), (&json!(true), &Value::Null));
        assert_eq!(sent["preparation"]["messagesToSummarize"][0]["content"][0]["data"], "");
        let messages: Vec<Value> = (1..=9).map(text).collect();
        let sent = fitted(json!({"preparation": {"messagesToSummarize": messages}}), &[], None, 500);
        let left = sent["preparation"]["messagesToSummarize"].as_array().unwrap();
        assert_eq!((left.last(), &sent["messagesOmitted"]), (Some(&text(9)), &json!(9 - left.len())));
        assert!(sent["preparation"].to_string().len() <= 500 && !left.is_empty());
    }
}

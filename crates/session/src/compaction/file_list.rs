//! Files that a conversation read and changed, carried from summary to summary.

use pinch_llm::message::Message;
use serde_json::{Value, json};

use super::cut_blocks;

/// Paths of one list that are written into a summary; the newest ones. All of them stay in the details.
const MAX_LISTED: usize = 200;

/// Files that were read and files that were changed, oldest first, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileList {
    read: Vec<String>,
    modified: Vec<String>,
}

fn touch(list: &mut Vec<String>, path: &str) {
    list.retain(|known| known != path);
    list.push(path.to_owned());
}

impl FileList {
    /// Adds the lists an earlier summary left in its details.
    pub fn add_details(&mut self, details: Option<&Value>) {
        let paths = |name: &str| details.and_then(|details| details.get(name)).and_then(Value::as_array);
        for path in paths("readFiles").into_iter().flatten().filter_map(Value::as_str) {
            touch(&mut self.read, path);
        }
        for path in paths("modifiedFiles").into_iter().flatten().filter_map(Value::as_str) {
            touch(&mut self.modified, path);
        }
    }

    /// Adds the files that a message's tool calls name.
    pub fn add_calls(&mut self, message: &Message) {
        for call in message.as_assistant().into_iter().flat_map(|assistant| assistant.tool_calls()) {
            let Some(path) = call.arguments.get("path").and_then(Value::as_str) else { continue };
            match call.name.as_str() {
                "read" => touch(&mut self.read, path),
                "write" | "edit" => touch(&mut self.modified, path),
                _ => {}
            }
        }
    }

    /// Files that were only read, sorted.
    pub fn read(&self) -> Vec<String> {
        sorted(self.only_read())
    }

    /// Files that were changed, sorted.
    pub fn modified(&self) -> Vec<String> {
        sorted(self.modified.clone())
    }

    fn only_read(&self) -> Vec<String> {
        self.read.iter().filter(|path| !self.modified.contains(path)).cloned().collect()
    }

    /// The details of a summary.
    pub fn details(&self) -> Value {
        json!({ "readFiles": self.read(), "modifiedFiles": self.modified() })
    }

    /// The end of a summary.
    pub fn text(&self) -> String {
        let newest = |mut list: Vec<String>| sorted(list.split_off(list.len().saturating_sub(MAX_LISTED)));
        format(&newest(self.only_read()), &newest(self.modified.clone()))
    }
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort();
    list
}

/// Writes both lists; an empty one is left out.
pub fn format(read: &[String], modified: &[String]) -> String {
    let mut text = String::new();
    for (name, list) in [("read-files", read), ("modified-files", modified)] {
        if !list.is_empty() {
            text.push_str(&format!("\n\n<{name}>\n{}\n</{name}>", list.join("\n")));
        }
    }
    text
}

/// A summary without the lists at its end.
pub(super) fn strip(summary: &str) -> String {
    cut_blocks(summary, &["read-files", "modified-files"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_not_listed_as_read() {
        let mut files = FileList::default();
        files.add_details(Some(&json!({ "readFiles": ["b", "a", "c"], "modifiedFiles": ["c"] })));
        assert_eq!((files.read(), files.modified()), (vec!["a".to_owned(), "b".into()], vec!["c".to_owned()]));
        assert_eq!(strip(&format!("S{}", files.text())), "S");
    }

    #[test]
    fn texts_list_the_newest_and_details_all() {
        let mut files = FileList::default();
        let paths: Vec<String> = (0..250).map(|n| format!("{n:03}")).collect();
        files.add_details(Some(&json!({ "readFiles": paths })));
        let text = files.text();
        assert!(!text.contains("049") && text.contains("050") && text.contains("249"));
        assert_eq!(files.details()["readFiles"].as_array().map(Vec::len), Some(250));
    }
}

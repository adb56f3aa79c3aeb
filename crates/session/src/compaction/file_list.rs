//! The files that a conversation read and changed, carried over from summary to summary.

use pinch_llm::message::Message;
use serde_json::{Value, json};

use super::cut_blocks;

/// Maximum paths per list in a summary; the newest are kept. The details hold all of them.
const MAX_LISTED: usize = 200;

/// Files read and files changed, oldest first, without duplicates.
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
    /// Adds the lists stored in the details of an earlier summary.
    pub fn add_details(&mut self, details: Option<&Value>) {
        let paths = |name: &str| details.and_then(|details| details.get(name)).and_then(Value::as_array);
        for path in paths("readFiles").into_iter().flatten().filter_map(Value::as_str) {
            touch(&mut self.read, path);
        }
        for path in paths("modifiedFiles").into_iter().flatten().filter_map(Value::as_str) {
            touch(&mut self.modified, path);
        }
    }

    /// Adds the files named in a message's tool calls.
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

    /// Returns the files that were read but not changed, sorted.
    pub fn read(&self) -> Vec<String> {
        sorted(self.only_read())
    }

    /// Returns the changed files, sorted.
    pub fn modified(&self) -> Vec<String> {
        sorted(self.modified.clone())
    }

    fn only_read(&self) -> Vec<String> {
        self.read.iter().filter(|path| !self.modified.contains(path)).cloned().collect()
    }

    /// Returns the lists as details of a summary.
    pub fn details(&self) -> Value {
        json!({ "readFiles": self.read(), "modifiedFiles": self.modified() })
    }

    /// Returns the lists as text to append to a summary.
    pub fn text(&self) -> String {
        let newest = |mut list: Vec<String>| sorted(list.split_off(list.len().saturating_sub(MAX_LISTED)));
        format(&newest(self.only_read()), &newest(self.modified.clone()))
    }
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort();
    list
}

/// Formats both lists; an empty one is omitted.
pub fn format(read: &[String], modified: &[String]) -> String {
    let mut text = String::new();
    for (name, list) in [("read-files", read), ("modified-files", modified)] {
        if !list.is_empty() {
            text.push_str(&format!("\n\n<{name}>\n{}\n</{name}>", list.join("\n")));
        }
    }
    text
}

/// Strips the file lists from the end of a summary.
pub(super) fn strip(summary: &str) -> String {
    cut_blocks(summary, &["read-files", "modified-files"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_not_listed_as_read() {
        let mut files = FileList::default();
        files.add_details(Some(&json!({ "readFiles": ["b", "a", "c"], "modifiedFiles": ["c"] })));
        assert_eq!((files.read(), files.modified()), (vec!["a".to_owned(), "b".into()], vec!["c".to_owned()]));
        assert_eq!(strip(&format!("S{}", files.text())), "S");
    }

    #[test]
    fn the_text_lists_the_newest_files_and_the_details_list_all() {
        let mut files = FileList::default();
        let paths: Vec<String> = (0..250).map(|n| format!("{n:03}")).collect();
        files.add_details(Some(&json!({ "readFiles": paths })));
        let text = files.text();
        assert!(!text.contains("049") && text.contains("050") && text.contains("249"));
        assert_eq!(files.details()["readFiles"].as_array().map(Vec::len), Some(250));
    }
}

//! Session files as written to disk.

use std::path::Path;

use serde_json::Value;

/// A session file, line by line.
pub(crate) struct Transcript {
    lines: Vec<Value>,
}

impl Transcript {
    /// Reads a file and checks that its lines are complete, parents are known, and each finished call has one result.
    #[track_caller]
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'), "the last line is not whole: {text}");
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
            .collect();
        assert_eq!(lines[0]["type"], "session", "{text}");
        let mut ids: Vec<&Value> = Vec::new();
        for line in &lines[1..] {
            let parent = &line["parentId"];
            assert!(parent.is_null() || ids.contains(&parent), "an entry before its parent: {line}");
            assert!(!ids.contains(&&line["id"]), "an id twice: {line}");
            ids.push(&line["id"]);
        }
        Self { lines }
    }

    /// Returns the conversation, one line per message, in file order.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.lines.iter().filter_map(shown).collect()
    }

    /// Returns the lines of a type.
    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind).collect()
    }

    /// Returns the calls without a later result, and the results without an earlier call.
    pub(crate) fn unpaired(&self) -> Vec<String> {
        let mut open: Vec<String> = Vec::new();
        let mut orphans = Vec::new();
        for message in self.lines.iter().map(|line| &line["message"]) {
            let calls = message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "toolCall");
            open.extend(calls.map(|call| call["id"].to_string()));
            if message["role"] == "toolResult" {
                let id = message["toolCallId"].to_string();
                match open.iter().position(|call| *call == id) {
                    Some(at) => drop(open.remove(at)),
                    None => orphans.push(id),
                }
            }
        }
        open.extend(orphans);
        open
    }
}

/// Formats a message as one line: role, how it ended, text.
fn shown(line: &Value) -> Option<String> {
    match line["type"].as_str()? {
        "message" => {}
        "compaction" => return Some("compaction".to_owned()),
        _ => return None,
    }
    let message = &line["message"];
    let role = match message["role"].as_str()? {
        "assistant" => format!("assistant({})", message["stopReason"].as_str().unwrap_or("?")),
        "toolResult" => {
            let failed = if message["isError"] == true { " failed" } else { "" };
            return Some(format!("{}{failed}", message["toolName"].as_str().unwrap_or("?")));
        }
        // The system prompt.
        "system" => return None,
        role => role.to_owned(),
    };
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array()?.iter().map(block).collect::<Vec<_>>().join(" "),
    };
    Some(format!("{role}: {text}"))
}

fn block(block: &Value) -> String {
    match block["type"].as_str() {
        Some("text") => block["text"].as_str().unwrap_or("?").to_owned(),
        Some("toolCall") => format!("<{}>", block["name"].as_str().unwrap_or("?")),
        other => format!("<{}>", other.unwrap_or("?")),
    }
}

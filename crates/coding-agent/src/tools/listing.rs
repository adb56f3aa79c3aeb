//! Common parts of the tools that list things: limits, and notices of what was omitted.

use pinch_agent_core::tool::{JsonObject, ToolOutput};
use serde_json::{Map, Value};

use super::truncate::{HeadLines, MAX_BYTES, format_size};

/// Returns an optional count: a whole number, at least 1.
pub(super) fn limit(input: &JsonObject, default: usize) -> usize {
    input.get("limit").and_then(Value::as_f64).map_or(default, |n| (n.floor().max(1.0)) as usize)
}

/// A list being built.
#[derive(Default)]
pub(super) struct DirectoryListing {
    /// Its lines.
    pub(super) lines: HeadLines,
    notices: Vec<String>,
    late_notices: Vec<String>,
    details: Map<String, Value>,
}

impl DirectoryListing {
    /// Reports that there is more than was requested.
    pub(super) fn limit_reached(&mut self, detail: &str, limit: usize, notice: String) {
        self.details.insert(detail.to_owned(), limit.into());
        self.notices.push(notice);
    }

    /// Adds a notice after the standard ones.
    #[cfg(feature = "search")]
    pub(super) fn also(&mut self, notice: String) {
        self.late_notices.push(notice);
    }

    /// Reports how many unreadable files or directories were skipped.
    #[cfg(feature = "search")]
    pub(super) fn unreadable(&mut self, n: usize) {
        match n {
            0 => {}
            1 => self.also("1 file or directory could not be read".to_owned()),
            n => self.also(format!("{n} files or directories could not be read")),
        }
    }

    /// Adds a machine-readable detail.
    #[cfg(feature = "search")]
    pub(super) fn detail(&mut self, name: &str, value: Value) {
        self.details.insert(name.to_owned(), value);
    }

    /// Returns the result; `nothing` is the text of an empty list.
    pub(super) fn finish(mut self, nothing: &str) -> ToolOutput {
        let mut text = if self.lines.is_empty() { nothing.to_owned() } else { String::new() };
        let cut = self.lines.finish();
        text.push_str(&cut.content);
        if cut.by.is_some() {
            self.notices.push(format!("{} limit reached", format_size(MAX_BYTES)));
            self.details.insert("truncation".into(), cut.to_details());
        }
        self.notices.append(&mut self.late_notices);
        if !self.notices.is_empty() {
            text.push_str(&format!("\n\n[{}]", self.notices.join(". ")));
        }
        ToolOutput { details: (!self.details.is_empty()).then(|| self.details.into()), ..ToolOutput::text(text) }
    }
}

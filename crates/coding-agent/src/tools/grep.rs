//! `grep`: finds lines in files.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolEffect, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use super::listing::{DirectoryListing, limit};
use super::path::WorkingDirectory;
use super::truncate::MAX_LINES;
use super::{ToolParts, folder_or_cwd, not_found, reading, text};
use crate::machine::search::{GrepLine, GrepQuery, SearchItem};
use crate::machine::{FileKind, Machine};

/// Maximum matches if no limit is given.
const DEFAULT_LIMIT: usize = 100;
/// Maximum characters of a line.
const MAX_LINE_CHARS: usize = 500;

/// The `grep` tool.
pub struct GrepTool {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["pattern"],
        "properties": {
            "pattern": {"type": "string", "description": "Regular expression, or plain text with `literal`"},
            "path": {"type": "string", "description": "Folder or file to search (default: the working directory)"},
            "glob": {"type": "string", "description": "Only files that fit this glob, e.g. '*.rs' or 'src/**/*.ts'"},
            "ignoreCase": {"type": "boolean", "description": "Take capital and small letters for the same (default: false)"},
            "literal": {"type": "boolean", "description": "Take the pattern as plain text (default: false)"},
            "context": {"type": "number", "description": "Lines to show before and after each match (default: 0)"},
            "limit": {"type": "number", "description": "Most matches to return (default: 100)"},
        },
    })).lenient();
    let about = "Searches files for a pattern and returns matching lines with file paths and line numbers. Honours .gitignore; \
                 hidden files are searched too. Returns at most 100 matches or 50KB, whichever is less; \
                 lines longer than 500 characters are cut.";
    let mut spec = super::spec("grep", about, parameters);
    spec.effect = ToolEffect::Reads;
    spec
});

impl GrepTool {
    /// Creates the tool.
    pub fn new(parts: &ToolParts) -> Self {
        Self { machine: Arc::clone(&parts.machine), place: parts.place.clone() }
    }
}

impl Tool for GrepTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let work = async {
                let root = self.place.resolve(folder_or_cwd(&input), &*self.machine).await;
                self.grep(query(&input, root)?, limit(&input, DEFAULT_LIMIT)).await
            };
            reading(cx, work).await
        })
    }
}

fn query(input: &JsonObject, root: PathBuf) -> Result<GrepQuery, ToolError> {
    let flag = |name: &str| input.get(name).and_then(Value::as_bool).unwrap_or(false);
    let context = input.get("context").and_then(Value::as_f64).map_or(0, |n| n.max(0.0) as usize);
    let mut query = GrepQuery::new(root, text(input, "pattern")?);
    query.is_literal = flag("literal");
    query.ignore_case = flag("ignoreCase");
    query.glob = input.get("glob").and_then(Value::as_str).map(str::to_owned);
    // More lines than that do not fit into any result.
    query.context = context.min(MAX_LINES);
    query.max_line_chars = MAX_LINE_CHARS;
    Ok(query)
}

impl GrepTool {
    async fn grep(&self, query: GrepQuery, limit: usize) -> Result<ToolOutput, ToolError> {
        let root = query.root.clone();
        let stat = self.machine.stat(&root).await.map_err(|error| not_found(&root, error))?;
        if stat.kind == FileKind::Special {
            let what = format!("{} is not a regular file (a device, pipe or socket)", root.display());
            return Err(ToolError::new(format!("{what}; it cannot be searched")));
        }
        let mut matches = Matches::new(limit, query.context as u64);
        let mut n_unreadable = 0;
        let mut lines = self.machine.grep(query);
        while let Some(seen) = lines.next().await {
            match seen? {
                SearchItem::Hit(line) => matches.push(line),
                // A file named explicitly is the only one to search.
                SearchItem::Unreadable(error) if stat.kind == FileKind::File => return Err(error.into()),
                SearchItem::Unreadable(_) => n_unreadable += 1,
            }
            if matches.is_complete {
                break;
            }
        }
        Ok(matches.finish(n_unreadable))
    }
}

/// The collected lines, up to a number of matches.
struct Matches {
    listing: DirectoryListing,
    limit: usize,
    context: u64,
    n_matches: usize,
    has_more: bool,
    has_cut: bool,
    /// File and line number of the last counted match.
    last: (String, u64),
    /// Whether the list is complete and more matches are known to exist.
    is_complete: bool,
}

impl Matches {
    fn new(limit: usize, context: u64) -> Self {
        Self {
            listing: DirectoryListing::default(),
            limit,
            context,
            n_matches: 0,
            has_more: false,
            has_cut: false,
            last: (String::new(), 0),
            is_complete: false,
        }
    }

    fn push(&mut self, line: GrepLine) {
        if self.n_matches < self.limit {
            if line.is_match {
                self.n_matches += 1;
                self.last = (line.path.clone(), line.number);
            }
            self.show(&line, line.is_match);
            return;
        }
        // After the last match only its context is shown, but whether there is another match must still be determined.
        let is_beside = line.path == self.last.0 && line.number <= self.last.1.saturating_add(self.context);
        self.has_more |= line.is_match;
        if is_beside {
            self.show(&line, false);
        }
        self.is_complete = self.has_more && !is_beside;
    }

    fn show(&mut self, line: &GrepLine, as_match: bool) {
        let GrepLine { path, number, text, .. } = line;
        let cut = if line.is_cut { "... [truncated]" } else { "" };
        self.has_cut |= line.is_cut;
        let shown = match as_match {
            true => format!("{path}:{number}: {text}{cut}"),
            false => format!("{path}-{number}- {text}{cut}"),
        };
        self.listing.lines.push(&shown);
    }

    fn finish(self, n_unreadable: usize) -> ToolOutput {
        let Self { mut listing, limit, .. } = self;
        if self.has_more {
            let more = limit.saturating_mul(2);
            let notice = format!("{limit} matches limit reached. Use limit={more} for more, or refine pattern");
            listing.limit_reached("matchLimitReached", limit, notice);
        }
        if self.has_cut {
            listing.detail("linesTruncated", true.into());
            listing.also(format!("Some lines truncated to {MAX_LINE_CHARS} chars. Use read tool to see full lines"));
        }
        listing.unreadable(n_unreadable);
        listing.finish("No matches found")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds lines of one file, written as `number` or, for matches, `number!`.
    #[track_caller]
    fn check(limit: usize, context: u64, lines: &[&str], expected: &str) {
        let mut matches = Matches::new(limit, context);
        for line in lines {
            let number = line.trim_end_matches('!').parse().unwrap();
            let is_match = line.ends_with('!');
            matches.push(GrepLine { path: "f".into(), number, is_match, text: "x".into(), is_cut: false });
            if matches.is_complete {
                break;
            }
        }
        assert_eq!(matches.finish(0).content[0].as_text().unwrap(), expected);
    }

    const REACHED: &str = "\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]";

    #[test]
    fn the_limit_is_reported_if_there_are_more_matches() {
        check(1, 0, &["1!"], "f:1: x");
        check(1, 0, &["1!", "2!"], &format!("f:1: x{REACHED}"));
        check(1, 1, &["1", "2!", "3", "7", "8!"], &format!("f-1- x\nf:2: x\nf-3- x{REACHED}"));
        check(1, 1, &["1", "2!", "3", "8"], "f-1- x\nf:2: x\nf-3- x");
    }

    #[test]
    fn the_context_of_the_last_match_is_complete() {
        check(1, 2, &["1!", "2!", "3", "4", "5"], &format!("f:1: x\nf-2- x\nf-3- x{REACHED}"));
    }
}

//! `read`: reads a text or image file.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolEffect, ToolError, ToolOutput, ToolSpec};
use pinch_llm::message::Block;
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use super::facts::SessionFacts;
use super::path::WorkingDirectory;
use super::truncate::{Limit, MAX_BYTES, MAX_LINES, format_size, truncate_head};
use super::{ToolParts, accept_file_path, text};
use crate::images::{self, ImageIntake};
use crate::machine::{FileKind, Machine, MachineError};

/// The note about an image for a text-only model.
const BLIND: &str = "\n[Current model does not support images. The image will be omitted from this request.]";

/// The `read` tool.
pub struct ReadTool {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
    facts: SessionFacts,
    images: ImageIntake,
    budget: Option<fn(u64) -> usize>,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| declaration(&format!("at most {MAX_LINES} lines or {}KB, whichever is less", MAX_BYTES / 1024)));
/// The declaration of a tool whose limit depends on the model.
static ADAPTIVE_SPEC: LazyLock<ToolSpec> = LazyLock::new(|| declaration("as much as fits"));

fn declaration(limit: &str) -> ToolSpec {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "File to read, relative to the working directory or absolute"},
            "offset": {"type": "number", "description": "First line to return, counted from 1"},
            "limit": {"type": "number", "description": "Most lines to return"},
        },
    }))
    .lenient();
    let about = format!(
        "Reads a file. Text comes from the start of the file or from `offset`, {limit}; the result says how to go on. Images ({}) are \
         attached.",
        images::FORMATS
    );
    let mut spec = super::spec("read", about, parameters);
    spec.effect = ToolEffect::Reads;
    spec
}

/// Pages that a result may take if its limit depends on the model.
const MAX_PAGES: usize = 4;
/// Extensions of image files.
const IMAGE_EXTENSIONS: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "bmp"];

impl ReadTool {
    /// Creates the tool.
    pub fn new(parts: &ToolParts) -> Self {
        let facts = parts.facts.clone();
        let images = parts.images.clone();
        Self {
            machine: Arc::clone(&parts.machine),
            place: parts.place.clone(),
            facts,
            images,
            budget: parts.read_budget,
        }
    }

    /// Returns the limits of a result. Without a limit of its own, a call gets as many pages as fit into the model's budget.
    fn limits(&self, limit: Option<usize>) -> ReadLimits {
        let Some(budget) = self.budget else { return ReadLimits::FIXED };
        let max_bytes = budget(self.facts.context_window());
        match limit {
            Some(_) => ReadLimits { max_bytes: max_bytes.min(MAX_BYTES), ..ReadLimits::FIXED },
            None => ReadLimits { max_lines: MAX_PAGES * MAX_LINES, max_bytes, is_budget: true },
        }
    }
}

/// The requested lines.
struct ReadWindow {
    offset: usize,
    limit: Option<usize>,
}

/// How much of a file a result contains.
#[derive(Clone, Copy, Debug)]
struct ReadLimits {
    max_lines: usize,
    max_bytes: usize,
    /// Whether the bytes are the model's budget.
    is_budget: bool,
}

impl ReadLimits {
    const FIXED: Self = Self { max_lines: MAX_LINES, max_bytes: MAX_BYTES, is_budget: false };

    /// Size of the buffer: enough to detect where the limit is exceeded.
    fn kept(&self) -> usize {
        self.max_bytes + 4096
    }
}

impl ReadWindow {
    fn of(input: &JsonObject) -> Result<Self, ToolError> {
        let number = |name: &str| input.get(name).and_then(Value::as_f64);
        let limit = match number("limit") {
            Some(limit) if limit < 1.0 => return Err(ToolError::new("limit must be at least 1")),
            limit => limit.map(|n| n as usize),
        };
        Ok(Self { offset: number("offset").filter(|n| *n >= 1.0).map_or(1, |n| n as usize), limit })
    }
}

impl Tool for ReadTool {
    fn spec(&self) -> &ToolSpec {
        if self.budget.is_some() { &ADAPTIVE_SPEC } else { &SPEC }
    }

    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        Ok(accept_file_path(raw))
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let work = async move {
            let given = text(&input, "path")?;
            let window = ReadWindow::of(&input)?;
            let path = self.place.resolve_read(given, &*self.machine).await;
            let mut output = self.read(given, &path, &window).await?;
            // As in pi 1.5.2, the text is also the structured result. An image is not repeated.
            if let [Block::Text(text)] = &output.content[..] {
                output.structured = Some(text.text.clone().into());
            }
            Ok(output)
        };
        Box::pin(super::reading(cx, work))
    }
}

impl ReadTool {
    async fn read(&self, given: &str, path: &Path, window: &ReadWindow) -> Result<ToolOutput, ToolError> {
        let stat = match self.machine.stat(path).await {
            Ok(stat) => stat,
            Err(error) => return Err(self.with_neighbours(path, error).await),
        };
        match stat.kind {
            FileKind::Directory => {
                return Err(ToolError::new("EISDIR: illegal operation on a directory, read"));
            }
            FileKind::Special => {
                let what = format!("{given} is not a regular file (a device, pipe or socket); it cannot be read");
                return Err(ToolError::new(what));
            }
            FileKind::File if !stat.readable => {
                let denied = format!("EACCES: permission denied, access '{}'", path.display());
                return Err(ToolError::new(denied));
            }
            FileKind::File => {}
        }
        let mut pieces = self.machine.read_pieces(path);
        let first = pieces.next().await.transpose()?.unwrap_or_default();
        if let Some(mime_type) = images::sniff(&first) {
            drop(pieces);
            return self.image(path, mime_type).await;
        }
        let has_image_name = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| IMAGE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)));
        if first.is_empty() && has_image_name {
            return Err(ToolError::new(format!("read: image payload is empty ({given})")));
        }
        let mut lines = WindowLines::new(window, self.limits(window.limit));
        lines.push(&first)?;
        drop(first);
        while let Some(piece) = pieces.next().await {
            lines.push(&piece?)?;
        }
        lines.finish(given)
    }

    async fn image(&self, path: &Path, mime_type: &'static str) -> Result<ToolOutput, ToolError> {
        let content = self.machine.read(path, images::MAX_FILE_BYTES).await?;
        let admitted = match self.images.admit(content, mime_type, &self.facts.image_limits()).await {
            Ok(admitted) => admitted,
            Err(refused) => {
                return Ok(ToolOutput::text(format!("Read image file [{mime_type}]\n{}", refused.note())));
            }
        };
        let mut text = format!("Read image file [{}]", admitted.image.mime_type);
        for note in &admitted.notes {
            text.push('\n');
            text.push_str(note);
        }
        if self.facts.is_blind() {
            text.push_str(BLIND);
        }
        Ok(ToolOutput { content: vec![Block::text(text), Block::Image(admitted.image)], ..ToolOutput::default() })
    }

    /// Adds similar names in the directory to the error for a missing file.
    async fn with_neighbours(&self, path: &Path, error: MachineError) -> ToolError {
        let mut text = error.to_string();
        if error.code == "ENOENT"
            && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && let Ok(names) = self.machine.list(folder).await
        {
            let name = name.to_string_lossy().into_owned();
            // The name of a link that leads nowhere is in the directory.
            let names = names.into_iter().filter(|other| *other != name).collect();
            // There may be very many names.
            let close = tokio::task::spawn_blocking(move || close_names(&name, names)).await.unwrap_or_default();
            if !close.is_empty() {
                text.push_str(&format!("\nDid you mean: {}?", close.join(", ")));
            }
        }
        ToolError::new(text)
    }
}

/// Minimum similarity of two names, as the share of common characters.
const ALIKE: f32 = 0.75;
/// Maximum names to compare in detail.
const MAX_COMPARED: usize = 1000;

/// Returns up to three similar names, most similar first.
fn close_names(wanted: &str, names: Vec<String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let lower = names.into_iter().map(|name| (name.to_lowercase(), name));
    let rated = lower.map(|(lower, name)| (most_alike(&wanted, &lower), lower, name));
    let mut likely: Vec<_> = rated.filter(|(most, ..)| *most >= ALIKE).collect();
    likely.sort_by(|a, b| b.0.total_cmp(&a.0));
    likely.truncate(MAX_COMPARED);
    let ratio = |lower: &str| similar::TextDiff::from_chars(wanted.as_str(), lower).ratio();
    let compared = likely.into_iter().map(|(_, lower, name)| (ratio(&lower), name));
    let mut close: Vec<(f32, String)> = compared.filter(|(ratio, _)| *ratio >= ALIKE).collect();
    close.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    close.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Returns a cheap upper bound for the similarity of two names, ignoring the order of characters.
fn most_alike(a: &str, b: &str) -> f32 {
    let mut counts = [0_i32; 256];
    a.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    b.bytes().for_each(|byte| counts[usize::from(byte)] -= 1);
    let n_bytes: i32 = counts.iter().map(|n| n.abs()).sum();
    // A character in only one of them has at most four bytes.
    let per_char = if a.is_ascii() && b.is_ascii() { 1.0 } else { 4.0 };
    let n_chars = a.chars().count() + b.chars().count();
    1.0 - n_bytes as f32 / per_char / n_chars.max(1) as f32
}

/// Collects a range of lines from the chunks of a file of any length; memory is bounded by the limits of a result.
struct WindowLines<'a> {
    window: &'a ReadWindow,
    limits: ReadLimits,
    /// Line feeds seen so far.
    n_feeds: usize,
    /// Buffered bytes of the window, slightly more than a result may contain.
    kept: Vec<u8>,
    /// Length of the window's first line, which may exceed the buffer.
    first_line_bytes: usize,
    /// Bytes of the window, buffered or not.
    window_bytes: usize,
    /// Length of the window's last line so far, and whether a line feed has ended it.
    last_line: (usize, bool),
}

impl<'a> WindowLines<'a> {
    fn new(window: &'a ReadWindow, limits: ReadLimits) -> Self {
        Self {
            window,
            limits,
            n_feeds: 0,
            kept: Vec::new(),
            first_line_bytes: 0,
            window_bytes: 0,
            last_line: (0, false),
        }
    }

    /// Adds a chunk.
    fn push(&mut self, piece: &[u8]) -> Result<(), ToolError> {
        if memchr::memchr(0, piece).is_some() {
            return Err(ToolError::new(
                "This is a binary file (it contains NUL bytes). Look at it with bash, e.g. file or xxd.",
            ));
        }
        let mut rest = piece;
        while !rest.is_empty() {
            let (line, fed, after) = match memchr::memchr(b'\n', rest) {
                Some(at) => (&rest[..at], true, &rest[at + 1..]),
                None => (rest, false, &rest[rest.len()..]),
            };
            let number = self.n_feeds + 1;
            if number >= self.window.offset && self.window.limit.is_none_or(|n| number - self.window.offset < n) {
                if number == self.window.offset {
                    self.first_line_bytes += line.len();
                }
                self.keep(line, fed);
            }
            self.n_feeds += usize::from(fed);
            rest = after;
        }
        Ok(())
    }

    fn keep(&mut self, line: &[u8], fed: bool) {
        self.window_bytes += line.len() + usize::from(fed);
        let (before, was_fed) = self.last_line;
        self.last_line = (line.len() + if was_fed { 0 } else { before }, fed);
        let room = self.limits.kept().saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&line[..line.len().min(room)]);
        if fed && self.kept.len() < self.limits.kept() {
            self.kept.push(b'\n');
        }
    }

    fn finish(self, given: &str) -> Result<ToolOutput, ToolError> {
        let ReadWindow { offset, limit } = *self.window;
        let ReadLimits { max_lines, max_bytes, is_budget } = self.limits;
        let n_lines = self.n_feeds + 1;
        if offset > n_lines {
            return Err(ToolError::new(format!("Offset {offset} is beyond end of file ({n_lines} lines total)")));
        }
        let end = limit.map_or(n_lines, |limit| (offset - 1).saturating_add(limit).min(n_lines));
        // A final line feed creates an empty last line, which counts for the file but not for the truncation.
        let (last_line_bytes, last_was_fed) = self.last_line;
        let ends_empty = last_line_bytes == 0 || (last_was_fed && end == n_lines);
        let window_lines = end - (offset - 1) - usize::from(ends_empty && end > offset);
        let mut text = String::from_utf8_lossy(&self.kept).into_owned();
        // Lines are joined by line feeds: the one after the window's last line belongs to the rest.
        let cut_before_end = end < n_lines;
        if cut_before_end && self.window_bytes <= self.kept.len() && text.ends_with('\n') {
            text.pop();
        }
        if self.first_line_bytes > max_bytes {
            let size = format_size(self.first_line_bytes);
            let hint = format!(
                "[Line {offset} is {size}, exceeds {} limit. Use bash: sed -n '{offset}p' {given} | head -c {max_bytes}]",
                format_size(max_bytes)
            );
            let mut cut = truncate_head(&text, max_lines, max_bytes);
            (cut.total_lines, cut.total_bytes) = (window_lines, self.first_line_bytes.max(self.window_bytes));
            return Ok(with_truncation(hint, cut.to_details()));
        }
        let mut cut = truncate_head(&text, max_lines, max_bytes);
        let last = offset - 1 + cut.output_lines;
        let window_bytes = self.window_bytes - usize::from(cut_before_end);
        (cut.total_lines, cut.total_bytes) = (window_lines, window_bytes);
        match cut.by {
            Some(Limit::Bytes) if is_budget => {
                let notice = format!(
                    "{}\n\n[Read output capped at {} for this call. Use offset={} to continue.]",
                    cut.content,
                    format_size(max_bytes),
                    last + 1
                );
                Ok(with_truncation(notice, cut.to_details()))
            }
            Some(by) => {
                let why =
                    if by == Limit::Bytes { format!(" ({} limit)", format_size(max_bytes)) } else { String::new() };
                let notice = format!(
                    "{}\n\n[Showing lines {offset}-{last} of {n_lines}{why}. Use offset={} to continue.]",
                    cut.content,
                    last + 1
                );
                Ok(with_truncation(notice, cut.to_details()))
            }
            None if cut_before_end => Ok(ToolOutput::text(format!(
                "{}\n\n[{} more lines in file. Use offset={} to continue.]",
                cut.content,
                n_lines - end,
                end + 1
            ))),
            None => Ok(ToolOutput::text(cut.content)),
        }
    }
}

fn with_truncation(text: String, truncation: Value) -> ToolOutput {
    ToolOutput { details: Some(json!({ "truncation": truncation })), ..ToolOutput::text(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, offset: usize, limit: Option<usize>, expected: &str) {
        let window = ReadWindow { offset, limit };
        for piece in [1, 7, file.len().max(1)] {
            let mut lines = WindowLines::new(&window, ReadLimits::FIXED);
            file.as_bytes().chunks(piece).for_each(|piece| lines.push(piece).unwrap());
            let output = lines.finish("f").map_or_else(|e| e.text, |o| o.content[0].as_text().unwrap().to_owned());
            assert_eq!(output, expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn windows_select_and_truncate_lines() {
        check("a\nb\nc", 1, None, "a\nb\nc");
        check("a\nb\n", 1, None, "a\nb\n");
        check("a\nb\nc", 2, Some(1), "b\n\n[1 more lines in file. Use offset=3 to continue.]");
        check("a\nb\nc", 4, None, "Offset 4 is beyond end of file (3 lines total)");
        check("", 1, None, "");
    }

    #[test]
    fn a_budget_ends_at_a_line_and_names_the_next_one() {
        let window = ReadWindow { offset: 2, limit: None };
        let mut lines = WindowLines::new(&window, ReadLimits { max_lines: 100, max_bytes: 1024, is_budget: true });
        lines.push("a line of 16 chr\n".repeat(200).as_bytes()).unwrap();
        let output = lines.finish("f").unwrap();
        let text = output.content[0].as_text().unwrap();
        let notice = "a line of 16 chr\n\n[Read output capped at 1.0KB for this call. Use offset=62 to continue.]";
        assert!(text.ends_with(notice) && text.matches("a line").count() == 60, "{text}");
    }

    #[test]
    fn similar_names_are_suggested() {
        let names = ["main.rs", "Main.rs", "mian.rs", "lib.rs"].map(str::to_owned).to_vec();
        assert_eq!(close_names("main.r", names), ["Main.rs", "main.rs", "mian.rs"]);
    }
}

//! A tool call and its result.

use std::path::Path;

use pinch_agent_core::tool::{JsonObject, ToolOutput};
use pinch_coding_agent::extension::rendering::RendererKey;
use pinch_coding_agent::llm::message::{Block, ToolResult};
use ratatui_core::text::Span;
use serde_json::Value;

use super::ViewCx;
use super::edit_preview::edit_preview;
use super::frame::{boxed, image_rows, inner_columns, paragraphs};
use super::resource::ReadResource;
use crate::Row;
use crate::diff::{self, DiffOptions};
use crate::figures::short_path;
use crate::highlight::{CodeLanguage, Highlighter};
use crate::hyperlink::file_url;
use crate::image::ImageSource;
use crate::text::{SanitizeMode, chop, sanitize, wrap};
use crate::theme::ColorRole;
use crate::transcript::drawing::PartDrawing;
use crate::transcript::texts;

/// Number of lines shown of files, lists and matches in a result, and rows of a command's output.
const FILE_LINES: usize = 10;
const LIST_LINES: usize = 20;
const MATCH_LINES: usize = 15;
const COMMAND_ROWS: usize = 5;
const DIFF_LINES: usize = 60;
/// Number of bytes of arguments kept while they arrive; the preview needs no more.
const MAX_ARGUMENTS: usize = 16 * 1024;

/// View of a tool call.
pub(crate) struct ToolCallView {
    id: String,
    name: String,
    /// The block of the answer in which its arguments arrive.
    block: Option<usize>,
    /// Arguments received so far, up to a limit.
    arriving: String,
    pub(super) arguments: Option<JsonObject>,
    pub(super) output: String,
    pub(super) details: Option<Value>,
    images: Vec<ImageSource>,
    state: ToolState,
    begun_ms: Option<i64>,
    pub(super) duration_ms: Option<i64>,
    expanded: bool,
    /// The call and the result, as the extension of the tool draws them.
    pub(super) drawings: [PartDrawing; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolState {
    Pending,
    Running,
    Done,
    Failed,
}

impl ToolCallView {
    pub(super) fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            block: None,
            arriving: String::new(),
            arguments: None,
            output: String::new(),
            details: None,
            images: Vec::new(),
            state: ToolState::Pending,
            begun_ms: None,
            duration_ms: None,
            expanded: false,
            drawings: Default::default(),
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn images(&self) -> &[ImageSource] {
        &self.images
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn block(&self) -> Option<usize> {
        self.block
    }

    pub(super) fn set_block(&mut self, index: usize) {
        self.block = Some(index);
    }

    /// Appends a part of the arguments, as JSON.
    pub(super) fn push_arguments(&mut self, text: &str) {
        let room = MAX_ARGUMENTS.saturating_sub(self.arriving.len());
        self.arriving.push_str(&text[..text.floor_char_boundary(room.min(text.len()))]);
    }

    pub(super) fn end_block(&mut self, block: &Block) {
        self.block = None;
        if let Block::ToolCall(call) = block {
            call.id.as_str().clone_into(&mut self.id);
            self.name.clone_from(&call.name);
            self.set_arguments(&call.arguments);
        }
    }

    pub(super) fn set_arguments(&mut self, arguments: &JsonObject) {
        self.arguments = Some(arguments.clone());
        self.arriving = String::new();
        self.redraw();
    }

    pub(super) fn start(&mut self, arguments: &JsonObject, now_ms: i64) {
        self.set_arguments(arguments);
        self.block = None;
        self.state = ToolState::Running;
        self.begun_ms = Some(now_ms);
    }

    pub(super) fn update(&mut self, so_far: &ToolOutput) {
        self.take(&so_far.content, so_far.details.as_ref());
    }

    pub(super) fn end(&mut self, output: &ToolOutput, duration_ms: Option<i64>) {
        self.take(&output.content, output.details.as_ref());
        let images = output.content.iter().filter_map(|block| match block {
            Block::Image(image) => Some(ImageSource::new(image)),
            _ => None,
        });
        self.images = images.collect();
        self.duration_ms = duration_ms;
        self.state = if output.failed { ToolState::Failed } else { ToolState::Done };
    }

    fn take(&mut self, content: &[Block], details: Option<&Value>) {
        self.output = content.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n");
        self.details = details.cloned();
        self.redraw();
    }

    /// Has it drawn again by the extension of the tool.
    pub(super) fn redraw(&mut self) {
        self.drawings.iter_mut().for_each(PartDrawing::changed);
    }

    pub(super) fn fail(&mut self, text: &str) {
        text.clone_into(&mut self.output);
        self.state = ToolState::Failed;
        self.redraw();
    }

    pub(super) fn set_result(&mut self, result: &ToolResult) {
        self.take(&result.content, result.details.as_ref());
        self.state = if result.is_error { ToolState::Failed } else { ToolState::Done };
    }

    pub(super) fn set_images(&mut self, images: Vec<ImageSource>) {
        self.images = images;
    }

    pub(super) fn settle(&mut self) {
        if !self.is_settled() {
            self.fail("No result");
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, ToolState::Done | ToolState::Failed)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.state == ToolState::Failed
    }

    /// Returns whether there is a result, or a part of it.
    pub(super) fn has_output(&self) -> bool {
        self.is_settled() || !self.output.is_empty() || self.details.is_some()
    }

    pub(super) fn image_rows(&self, cx: ViewCx<'_>) -> Vec<Row> {
        image_rows(&self.images, cx.theme.fg(ColorRole::ToolOutput), inner_columns(cx), cx, self.is_expanded(cx))
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == ToolState::Running
    }

    pub(super) fn toggle(&mut self) {
        self.expanded = !self.expanded;
    }

    /// Returns a text argument, or its beginning if the arguments are still arriving.
    fn text(&self, key: &str) -> Option<String> {
        match &self.arguments {
            Some(arguments) => match arguments.get(key)? {
                Value::String(text) => Some(text.clone()),
                Value::Null => None,
                _ => Some("[invalid arg]".to_owned()),
            },
            None => arriving_text(&self.arriving, key),
        }
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.arguments.as_ref()?.get(key)?.as_u64()
    }

    /// Returns the path that it is about, with `~` for the home directory.
    fn path(&self, cx: ViewCx<'_>) -> String {
        let path = self.text("path").or_else(|| self.text("file_path"));
        path.map_or_else(|| "...".to_owned(), |path| short_path(Path::new(&path), cx.options.home.as_deref()))
    }

    /// Turns a path into a link to its file, if possible.
    fn linked(&self, path: Span<'static>, cx: ViewCx<'_>) -> Span<'static> {
        let url = || {
            let given = self.text("path").or_else(|| self.text("file_path"))?;
            file_url(Path::new(&given), cx.options.link_base.as_deref()?)
        };
        // While arguments arrive, the path may be incomplete.
        let url = self.arguments.as_ref().and_then(|_| url());
        let style = url.and_then(|url| cx.theme.link(&url, path.style)).unwrap_or(path.style);
        path.style(style)
    }

    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(&self.name);
        match &self.arguments {
            Some(arguments) => arguments.values().for_each(|value| texts::in_value(value, each)),
            None => each(&self.arriving),
        }
        each(&self.output);
        if let Some(details) = &self.details {
            texts::in_value(details, each);
        }
    }

    pub(super) fn rows(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        match cx.options.drawings.renderer(&RendererKey::Tool(self.name.clone())) {
            Some((look, renderer)) => self.drawn_rows(look, &renderer, cx),
            None => self.usual_rows(cx),
        }
    }

    fn usual_rows(&self, cx: ViewCx<'_>) -> Vec<Row> {
        let columns = inner_columns(cx);
        if let Some(resource) = self.folded_resource(cx) {
            return boxed(resource.rows(columns, cx), self.background(), cx);
        }
        let mut rows = self.title_rows(cx);
        rows.extend(self.result_rows(cx));
        rows.extend(self.time_row(cx));
        boxed(rows, self.background(), cx)
    }

    pub(super) fn title_rows(&self, cx: ViewCx<'_>) -> Vec<Row> {
        self.title(cx).iter().flat_map(|line| wrap(line, inner_columns(cx))).collect()
    }

    pub(super) fn result_rows(&self, cx: ViewCx<'_>) -> Vec<Row> {
        let columns = inner_columns(cx);
        let output = cx.theme.fg(ColorRole::ToolOutput);
        let mut rows = Vec::new();
        // Errors are always shown.
        if !cx.options.hide_output || self.is_expanded(cx) || self.state == ToolState::Failed {
            rows.extend(self.preview(cx, columns));
            rows.extend(self.result(cx, columns));
            rows.extend(self.image_rows(cx));
        } else {
            rows.extend(self.images.iter().flat_map(|image| paragraphs(&image.label(), output, columns, 0)));
        }
        rows
    }

    pub(super) fn background(&self) -> ColorRole {
        match self.state {
            ToolState::Pending | ToolState::Running => ColorRole::ToolPendingBg,
            ToolState::Done => ColorRole::ToolSuccessBg,
            ToolState::Failed => ColorRole::ToolErrorBg,
        }
    }

    /// Returns the resource that it reads, if only a line is shown for it.
    fn folded_resource(&self, cx: ViewCx<'_>) -> Option<ReadResource> {
        if self.name != "read" || self.arguments.is_none() || self.is_expanded(cx) || self.state == ToolState::Failed {
            return None;
        }
        ReadResource::of(&self.text("path").or_else(|| self.text("file_path"))?)
    }

    fn title(&self, cx: ViewCx<'_>) -> Vec<Vec<Span<'static>>> {
        let theme = cx.theme;
        let clean = |text: String| sanitize(&text, SanitizeMode::Output).into_owned();
        let name = |name: &str| {
            Span::styled(format!("{} ", sanitize(name, SanitizeMode::Output)), theme.bold(ColorRole::ToolTitle))
        };
        let accent = |text: String| Span::styled(clean(text).replace('\n', " "), theme.fg(ColorRole::Accent));
        let muted = |text: String| Span::styled(text, theme.fg(ColorRole::Muted));
        let limit = |prefix: &str| self.number("limit").map(|n| format!("{prefix} limit {n}")).unwrap_or_default();
        let place = || self.text("path").map_or_else(|| ".".to_owned(), |_| self.path(cx));
        match self.name.as_str() {
            "bash" | "exec" => {
                let command = clean(self.text("command").unwrap_or_else(|| "...".to_owned()));
                let mut lines: Vec<Vec<Span<'static>>> = command
                    .lines()
                    .enumerate()
                    .map(|(at, line)| {
                        let sign = if at == 0 { "$ " } else { "  " };
                        vec![Span::styled(format!("{sign}{line}"), theme.bold(ColorRole::ToolTitle))]
                    })
                    .collect();
                if let (Some(seconds), Some(last)) = (self.number("timeout"), lines.last_mut()) {
                    last.push(muted(format!(" (timeout {seconds}s)")));
                }
                lines
            }
            "read" => {
                let range = match (self.number("offset"), self.number("limit")) {
                    (None, None) => String::new(),
                    (start, None) => format!(":{}", start.unwrap_or(1)),
                    (start, Some(n)) => format!(":{}-{}", start.unwrap_or(1), start.unwrap_or(1) + n.max(1) - 1),
                };
                vec![vec![
                    name("read"),
                    self.linked(accent(self.path(cx)), cx),
                    Span::styled(range, theme.fg(ColorRole::Warning)),
                ]]
            }
            tool @ ("write" | "edit" | "ls") => {
                let path = if tool == "ls" { place() } else { self.path(cx) };
                vec![vec![name(tool), self.linked(accent(path), cx), muted(limit(""))]]
            }
            "grep" => {
                let glob = self.text("glob").map(|glob| format!(" ({glob})")).unwrap_or_default();
                let pattern = self.text("pattern").unwrap_or_else(|| "...".to_owned());
                vec![vec![name("grep"), accent(format!("/{pattern}/ in {}{glob}", place())), muted(limit(""))]]
            }
            "find" => {
                let pattern = self.text("pattern").unwrap_or_else(|| "...".to_owned());
                vec![vec![name("find"), accent(format!("{pattern} in {}", place())), muted(limit(""))]]
            }
            other => {
                let mut lines = vec![vec![name(other)]];
                if let Some(arguments) = self.arguments.as_ref().filter(|arguments| !arguments.is_empty()) {
                    let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
                    let shown = if self.is_expanded(cx) { usize::MAX } else { FILE_LINES };
                    lines.extend(clean(text).lines().take(shown).map(|line| vec![muted(line.to_owned())]));
                }
                lines
            }
        }
    }

    pub(super) fn is_expanded(&self, cx: ViewCx<'_>) -> bool {
        self.expanded || cx.options.expanded
    }

    /// Previews a call before there is a result: the beginning of a file to be written, or what is to be replaced.
    fn preview(&self, cx: ViewCx<'_>, columns: usize) -> Vec<Row> {
        if self.name == "edit" && matches!(self.state, ToolState::Pending | ToolState::Running) {
            let diff = self.arguments.as_ref().and_then(edit_preview);
            return diff.map(|diff| self.diff_rows(&diff, columns, cx)).unwrap_or_default();
        }
        if self.name != "write" || self.state == ToolState::Failed {
            return Vec::new();
        }
        let Some(content) = self.text("content") else { return Vec::new() };
        let path = self.text("path").or_else(|| self.text("file_path")).unwrap_or_default();
        file_rows(&content, &path, FILE_LINES, columns, cx, self.is_expanded(cx))
    }

    fn result(&self, cx: ViewCx<'_>, columns: usize) -> Vec<Row> {
        let output = self.output.trim_end();
        if output.is_empty() {
            return Vec::new();
        }
        if self.state == ToolState::Failed && self.name != "bash" {
            return limited(output, DIFF_LINES, ColorRole::Error, columns, cx, self.is_expanded(cx));
        }
        let detail = |key: &str| self.details.as_ref().and_then(|details| details.get(key));
        match self.name.as_str() {
            "write" => Vec::new(),
            "edit" => match detail("diff").and_then(Value::as_str) {
                Some(diff) => self.diff_rows(diff, columns, cx),
                None => limited(output, FILE_LINES, ColorRole::ToolOutput, columns, cx, self.is_expanded(cx)),
            },
            "read" => {
                let path = self.text("path").or_else(|| self.text("file_path")).unwrap_or_default();
                file_rows(output, &path, FILE_LINES, columns, cx, self.is_expanded(cx))
            }
            "bash" | "exec" => self.command_rows(output, columns, cx),
            "grep" => limited(output, MATCH_LINES, ColorRole::ToolOutput, columns, cx, self.is_expanded(cx)),
            "find" | "ls" => limited(output, LIST_LINES, ColorRole::ToolOutput, columns, cx, self.is_expanded(cx)),
            _ => limited(output, FILE_LINES, ColorRole::ToolOutput, columns, cx, self.is_expanded(cx)),
        }
    }

    fn diff_rows(&self, diff: &str, columns: usize, cx: ViewCx<'_>) -> Vec<Row> {
        let max_lines = if self.is_expanded(cx) { None } else { Some(DIFF_LINES) };
        let mut rows = diff::rows(diff, &DiffOptions { columns, max_lines }, cx.theme);
        let hidden = max_lines.map_or(0, |max| diff.lines().count().saturating_sub(max));
        rows.extend(more_row(hidden, "more", columns, cx));
        rows
    }

    /// Returns the last rows of a command's output.
    fn command_rows(&self, output: &str, columns: usize, cx: ViewCx<'_>) -> Vec<Row> {
        let style = cx.theme.fg(ColorRole::ToolOutput);
        let clean = sanitize(output, SanitizeMode::Output);
        let mut lines: Vec<&str> = clean.lines().collect();
        let n_lines = lines.len();
        if !self.is_expanded(cx) && n_lines > COMMAND_ROWS {
            lines.drain(..n_lines - COMMAND_ROWS);
        }
        let mut n_left_out = n_lines - lines.len();
        let mut rows: Vec<Row> =
            lines.iter().flat_map(|line| chop(&[Span::styled((*line).to_owned(), style)], columns)).collect();
        if !self.is_expanded(cx) && rows.len() > COMMAND_ROWS {
            let cut = rows.len() - COMMAND_ROWS;
            rows.drain(..cut);
            n_left_out += cut;
        }
        let mut shown = more_row(n_left_out, "earlier", columns, cx);
        shown.extend(rows);
        shown
    }

    fn time_row(&self, cx: ViewCx<'_>) -> Option<Row> {
        if self.name != "bash" {
            return None;
        }
        let seconds = |ms: i64| format!("{:.1}s", ms.max(0) as f64 / 1000.0);
        let text = match (self.state, self.begun_ms, self.duration_ms) {
            (ToolState::Running, Some(begun), _) => format!("Elapsed {}", seconds(cx.now_ms - begun)),
            (_, _, Some(ms)) if ms >= 1000 => format!("Took {}", seconds(ms)),
            _ => return None,
        };
        Some(crate::text::truncate(&Row::styled(text, cx.theme.fg(ColorRole::Muted)), inner_columns(cx), ""))
    }
}

/// Returns a text argument from incomplete JSON, as far as it has arrived.
fn arriving_text(json: &str, key: &str) -> Option<String> {
    let (_, rest) = json.split_once(&format!("\"{key}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let mut end = rest.len();
    let mut is_escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    // An incomplete escape is omitted.
    let mut text = &rest[..end];
    for _ in 0..7 {
        if let Ok(text) = serde_json::from_str::<String>(&format!("\"{text}\"")) {
            return Some(text);
        }
        text = &text[..text.floor_char_boundary(text.len().saturating_sub(1))];
    }
    None
}

/// Returns a row that says how much more there is.
fn more_row(n: usize, which: &str, columns: usize, cx: ViewCx<'_>) -> Vec<Row> {
    if n == 0 {
        return Vec::new();
    }
    let noun = if n == 1 { "line" } else { "lines" };
    paragraphs(&format!("... ({n} {which} {noun}, {})", cx.expand_hint()), cx.theme.fg(ColorRole::Muted), columns, 0)
}

/// Returns the first lines of a text.
fn limited(text: &str, max: usize, token: ColorRole, columns: usize, cx: ViewCx<'_>, is_expanded: bool) -> Vec<Row> {
    let clean = sanitize(text, SanitizeMode::Output);
    let max = if is_expanded { usize::MAX } else { max };
    let style = cx.theme.fg(token);
    let lines = clean.lines().take(max);
    let mut rows: Vec<Row> = lines.flat_map(|line| chop(&[Span::styled(line.to_owned(), style)], columns)).collect();
    rows.extend(more_row(clean.lines().count().saturating_sub(max), "more", columns, cx));
    rows
}

/// Returns the first lines of a file, highlighted.
fn file_rows(text: &str, path: &str, max: usize, columns: usize, cx: ViewCx<'_>, is_expanded: bool) -> Vec<Row> {
    let clean = sanitize(text, SanitizeMode::Output);
    let max = if is_expanded { usize::MAX } else { max };
    let mut highlighter = Highlighter::new(CodeLanguage::of_file(path, clean.lines().next()));
    let lines = clean.lines().take(max);
    let mut rows: Vec<Row> = lines.flat_map(|line| chop(&highlighter.line(line, cx.theme), columns)).collect();
    rows.extend(more_row(clean.lines().count().saturating_sub(max), "more", columns, cx));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_they_arrive() {
        for (json, expected) in [
            ("{\"path\": \"a.rs\", \"content\": \"x\\ny", Some("x\ny")),
            ("{\"content\": \"half an escape \\u26", Some("half an escape ")),
            ("{\"content\": \"done\", \"path\"", Some("done")),
            ("{\"content\"", None),
            ("{\"path\": \"a.rs\"", None),
        ] {
            assert_eq!(arriving_text(json, "content").as_deref(), expected, "{json}");
        }
    }
}

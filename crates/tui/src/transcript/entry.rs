//! Entries of the transcript.

mod edit_preview;
mod frame;
mod answer;
mod bash;
mod custom;
mod skill;
mod resource;
mod tool;
mod tool_drawing;
mod message;
mod take;

use std::ops::Range;
use std::sync::Arc;

use pinch_agent_core::tool::{JsonObject, ToolError, ToolOutput};
use pinch_coding_agent::tools::bash::UserCommand;
use pinch_llm::event::BlockKind;
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, ToolResult};

pub(super) use self::answer::AnswerView;
use self::bash::Bash;
use self::custom::CustomView;
use self::frame::{boxed, image_rows, inner_columns, paragraphs};
pub(super) use self::message::{failure_of, of_messages};
use self::skill::SkillView;
pub(crate) use self::skill::typed_prompt;
use self::tool::ToolCallView;
use super::drawing::DrawingTicket;
use super::{TranscriptOptions, texts};
use crate::Row;
use crate::image::ImageSource;
use crate::keymap::{KeyAction, Keymap};
use crate::markdown::{Markdown, MarkdownOptions};
use crate::sgr;
use crate::text::truncate;
use crate::theme::{ColorRole, Palette};

/// Context for drawing entries.
#[derive(Clone, Copy)]
pub(crate) struct ViewCx<'a> {
    pub(crate) columns: usize,
    pub(crate) theme: &'a Palette,
    pub(crate) keymap: &'a Keymap,
    pub(crate) options: &'a TranscriptOptions,
    pub(crate) now_ms: i64,
    /// Whether the rows go into the scrollback.
    pub(crate) is_final: bool,
}

impl ViewCx<'_> {
    /// Returns the hint about the key that expands output.
    pub(crate) fn expand_hint(&self) -> String {
        format!("{} to expand", self.keymap.hint(KeyAction::ToolsExpand))
    }
}

/// Kind of a notice of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    Status,
    Warning,
    Error,
    /// Resources loaded at the start.
    Resources,
}

/// One entry.
pub(crate) enum TranscriptEntry {
    Header {
        name: String,
        hints: String,
    },
    /// Lines that an extension has drawn.
    DrawnHeader(Vec<String>),
    Rule,
    /// Messages that are not shown yet.
    Earlier(Vec<Arc<Message>>),
    Notice {
        kind: NoticeKind,
        text: String,
    },
    /// A Markdown text of the interface.
    Text(Box<AnswerView>),
    User {
        text: String,
        images: Vec<ImageSource>,
    },
    /// The text of a skill that the user named in a prompt.
    Skill(SkillView),
    AnswerView(Box<AnswerView>),
    Tool(Box<ToolCallView>),
    Bash(Box<Bash>),
    /// A message of an extension.
    Custom(Box<CustomView>),
    /// A summary: a label, a collapsed form, and the whole.
    Labelled {
        label: String,
        line: String,
        whole: String,
        expanded: bool,
    },
}

impl TranscriptEntry {
    pub(super) fn notice(kind: NoticeKind, text: &str) -> Self {
        Self::Notice { kind, text: text.to_owned() }
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Text(Box::new(AnswerView::text(text)))
    }

    pub(super) fn answer() -> Self {
        Self::AnswerView(Box::new(AnswerView::begun()))
    }

    pub(super) fn tool(id: &str, name: &str) -> Self {
        Self::Tool(Box::new(ToolCallView::new(id, name)))
    }

    pub(super) fn bash(command: &str, exclude: bool) -> Self {
        Self::Bash(Box::new(Bash::begun(command, exclude)))
    }

    /// Returns the rows, with a blank one before all but the first entry.
    pub(super) fn rows(&mut self, cx: ViewCx<'_>, is_first: bool) -> Vec<Row> {
        self.rows_in(0..usize::MAX, cx, is_first)
    }

    /// Returns a range of the rows; if there can be many, the cost does not depend on the others.
    pub(super) fn rows_in(&mut self, range: Range<usize>, cx: ViewCx<'_>, is_first: bool) -> Vec<Row> {
        let n_blank = self.n_before(cx, is_first);
        let inner = range.start.saturating_sub(n_blank)..range.end.saturating_sub(n_blank);
        let mut rows = match self {
            Self::AnswerView(answer) | Self::Text(answer) => answer.rows_in(inner, cx),
            _ => self.content(cx).into_iter().take(inner.end).skip(inner.start).collect(),
        };
        if range.start < n_blank && range.end > 0 && !rows.is_empty() {
            rows.insert(0, if cx.options.plain { Row::from(self.role()) } else { Row::default() });
        }
        rows
    }

    /// Returns the number of rows before its own first one: a blank one, or the one that names its role.
    fn n_before(&self, cx: ViewCx<'_>, is_first: bool) -> usize {
        usize::from(if cx.options.plain { !self.role().is_empty() } else { !is_first })
    }

    /// Returns its role, for plain output.
    fn role(&self) -> &'static str {
        match self {
            Self::User { .. } | Self::Skill(_) => "You:",
            Self::AnswerView(_) => "Assistant:",
            Self::Tool(_) => "Tool:",
            Self::Bash(_) => "Command:",
            _ => "",
        }
    }

    /// Returns how many of the first rows never change.
    pub(super) fn n_final(&mut self, cx: ViewCx<'_>, is_first: bool) -> usize {
        match self {
            Self::AnswerView(answer) => match answer.n_final(cx) {
                0 => 0,
                n => n + usize::from(if cx.options.plain { true } else { !is_first }),
            },
            _ => 0,
        }
    }

    fn content(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        let theme = cx.theme;
        match self {
            Self::Header { name, hints } => {
                let mut rows = paragraphs(name, theme.bold(ColorRole::Accent), cx.columns, 1);
                if !hints.is_empty() {
                    rows.extend(paragraphs(hints, theme.fg(ColorRole::Dim), cx.columns, 1));
                }
                rows
            }
            Self::DrawnHeader(lines) => {
                lines.iter().map(|line| truncate(&sgr::row(line, theme), cx.columns, "")).collect()
            }
            Self::Rule => vec![Row::styled("─".repeat(cx.columns), theme.fg(ColorRole::BorderMuted))],
            Self::Earlier(messages) => {
                let n = messages.len();
                let key = cx.keymap.hint(KeyAction::Transcript);
                let noun = if n == 1 { "message" } else { "messages" };
                let text = format!("… {n} earlier {noun} ({key} to show the whole conversation)");
                paragraphs(&text, theme.fg(ColorRole::Dim), cx.columns, 1)
            }
            Self::Notice { kind, text } => {
                let (prefix, style) = match kind {
                    NoticeKind::Status | NoticeKind::Resources => ("", theme.fg(ColorRole::Dim)),
                    NoticeKind::Warning => ("Warning: ", theme.fg(ColorRole::Warning)),
                    NoticeKind::Error => ("Error: ", theme.fg(ColorRole::Error)),
                };
                let text = text.strip_prefix(prefix.trim_end()).map_or(text.as_str(), str::trim_start);
                paragraphs(&format!("{prefix}{text}"), style, cx.columns, 1)
            }
            Self::Text(text) | Self::AnswerView(text) => text.rows_in(0..usize::MAX, cx),
            Self::User { text, images } => {
                let options = MarkdownOptions::colored(ColorRole::UserMessageText);
                let columns = inner_columns(cx);
                let mut rows = Markdown::of(text, options).rows(columns, theme);
                let style = theme.fg(ColorRole::UserMessageText);
                rows.extend(image_rows(images, style, columns, cx, cx.options.expanded));
                boxed(rows, ColorRole::UserMessageBg, cx)
            }
            Self::Skill(skill) => skill.rows(cx),
            Self::Tool(tool) => tool.rows(cx),
            Self::Bash(bash) => bash.rows(cx),
            Self::Custom(custom) => custom.rows(cx),
            Self::Labelled { label, line, whole, expanded } => {
                let inner = inner_columns(cx);
                let mut rows = paragraphs(&format!("[{label}]"), theme.bold(ColorRole::CustomMessageLabel), inner, 0);
                let text = theme.fg(ColorRole::CustomMessageText);
                if *expanded || cx.options.expanded {
                    let options = MarkdownOptions::colored(ColorRole::CustomMessageText);
                    rows.extend(Markdown::of(whole, options).rows(inner, theme));
                } else {
                    rows.extend(paragraphs(&format!("{line} ({})", cx.expand_hint()), text, inner, 0));
                }
                boxed(rows, ColorRole::CustomMessageBg, cx)
            }
        }
    }

    /// Returns its images.
    pub(super) fn images(&self) -> &[ImageSource] {
        match self {
            Self::User { images, .. } => images,
            Self::Tool(tool) => tool.images(),
            _ => &[],
        }
    }

    /// Calls back with every text that is shown, or would be if expanded.
    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        match self {
            Self::Header { name, hints } => [name, hints].into_iter().for_each(|text| each(text)),
            Self::DrawnHeader(lines) => lines.iter().for_each(|line| each(line)),
            Self::Rule => {}
            Self::Earlier(messages) => messages.iter().for_each(|message| texts::in_message(message, each)),
            Self::Notice { text, .. } | Self::User { text, .. } => each(text),
            Self::Text(answer) | Self::AnswerView(answer) => answer.texts(each),
            Self::Skill(skill) => skill.texts(each),
            Self::Tool(tool) => tool.texts(each),
            Self::Bash(bash) => bash.texts(each),
            Self::Custom(custom) => custom.texts(each),
            Self::Labelled { label, line, whole, .. } => [label, line, whole].into_iter().for_each(|text| each(text)),
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        match self {
            Self::AnswerView(answer) => answer.is_finished(),
            Self::Tool(tool) => tool.is_settled(),
            Self::Bash(bash) => bash.is_finished(),
            _ => true,
        }
    }

    /// Has it drawn by its extension, if it has one and the entry does not change any more. Returns whether that takes some time.
    pub(super) fn awaits_drawing(&mut self, cx: ViewCx<'_>) -> bool {
        match self {
            Self::Custom(custom) if custom.has_renderer(cx) => {
                custom.rows(cx);
                custom.is_awaited()
            }
            Self::Tool(tool) if tool.is_settled() && tool.has_renderer(cx) => {
                tool.rows(cx);
                tool.is_awaited()
            }
            _ => false,
        }
    }

    /// Takes what an extension has drawn, if it is for this entry. Returns whether it is.
    pub(super) fn arrived(&mut self, ticket: &DrawingTicket, lines: &Option<Vec<String>>) -> bool {
        match self {
            Self::Custom(custom) => custom.arrived(ticket, lines),
            Self::Tool(tool) => tool.arrived(ticket, lines),
            _ => false,
        }
    }

    /// Returns whether an extension has drawn it, or a part of it.
    pub(super) fn is_drawn(&self) -> bool {
        match self {
            Self::Custom(custom) => custom.can_expand(),
            Self::Tool(tool) => tool.is_drawn(),
            _ => false,
        }
    }

    pub(super) fn redraw_call(&mut self) {
        self.with_tool(ToolCallView::redraw);
    }

    /// Marks the entry as never to be finished.
    pub(super) fn settle(&mut self) {
        match self {
            Self::AnswerView(answer) if !answer.is_finished() => answer.finish(None, false),
            Self::Tool(tool) => tool.settle(),
            _ => {}
        }
    }

    /// Drops rows that can be rebuilt.
    pub(super) fn release(&mut self) {
        if let Self::Text(answer) | Self::AnswerView(answer) = self {
            answer.release();
        }
    }

    pub(super) fn is_notice(&self) -> bool {
        matches!(self, Self::Header { .. } | Self::DrawnHeader(_) | Self::Notice { .. })
    }

    pub(super) fn is_status(&self) -> bool {
        matches!(self, Self::Notice { kind: NoticeKind::Status, .. })
    }

    pub(super) fn can_expand(&self) -> bool {
        match self {
            Self::Custom(custom) => custom.can_expand(),
            _ => matches!(self, Self::Skill(_) | Self::Tool(_) | Self::Bash(_) | Self::Labelled { .. }),
        }
    }

    pub(super) fn toggle(&mut self) {
        match self {
            Self::Skill(skill) => skill.toggle(),
            Self::Tool(tool) => tool.toggle(),
            Self::Bash(bash) => bash.toggle(),
            Self::Custom(custom) => custom.toggle(),
            Self::Labelled { expanded, .. } => *expanded = !*expanded,
            _ => {}
        }
    }

    pub(super) fn answer_text(&self) -> Option<String> {
        match self {
            Self::AnswerView(answer) => answer.plain_text(),
            _ => None,
        }
    }

    /// Returns the answer that is still arriving, if this is one.
    pub(super) fn open_answer(&mut self) -> Option<&mut AnswerView> {
        match self {
            Self::AnswerView(answer) if !answer.is_finished() => Some(answer),
            _ => None,
        }
    }

    pub(super) fn is_open_answer(&self) -> bool {
        matches!(self, Self::AnswerView(answer) if !answer.is_finished())
    }

    pub(super) fn push_delta(&mut self, index: usize, text: &str) {
        if let Self::AnswerView(answer) = self {
            answer.push(index, text);
        }
    }

    pub(super) fn begin_block(&mut self, index: usize, kind: &BlockKind, now_ms: i64) {
        if let Self::AnswerView(answer) = self {
            answer.begin_block(index, kind, now_ms);
        }
    }

    pub(super) fn end_block(&mut self, index: usize, block: &Block, now_ms: i64) {
        if let Self::AnswerView(answer) = self {
            answer.end_block(index, block, Some(now_ms));
        }
    }

    pub(super) fn end_answer(&mut self, message: &AssistantMessage) {
        if let Self::AnswerView(answer) = self {
            let has_calls = message.tool_calls().next().is_some();
            let failure = failure_of(message).filter(|_| !has_calls);
            answer.finish(failure.as_deref(), message.stop_reason == StopReason::Length);
        }
    }

    fn as_tool(&self) -> Option<&ToolCallView> {
        match self {
            Self::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    fn with_tool(&mut self, change: impl FnOnce(&mut ToolCallView)) {
        if let Self::Tool(tool) = self {
            change(tool);
        }
    }

    pub(super) fn call_id(&self) -> Option<&str> {
        self.as_tool().map(ToolCallView::id)
    }

    /// Returns the id of a call that has not ended.
    pub(super) fn open_call(&self) -> Option<&str> {
        self.as_tool().filter(|tool| !tool.is_settled()).map(ToolCallView::id)
    }

    pub(super) fn running_tool(&self) -> Option<&str> {
        self.as_tool().filter(|tool| tool.is_running()).map(ToolCallView::name)
    }

    /// Returns whether this is the call whose arguments are still arriving in this block of the answer.
    pub(super) fn takes_arguments(&self, index: usize) -> bool {
        self.as_tool().is_some_and(|tool| tool.block() == Some(index))
    }

    pub(super) fn set_block(&mut self, index: usize) {
        self.with_tool(|tool| tool.set_block(index));
    }

    pub(super) fn push_arguments(&mut self, text: &str) {
        self.with_tool(|tool| tool.push_arguments(text));
    }

    pub(super) fn end_call(&mut self, block: &Block) {
        self.with_tool(|tool| tool.end_block(block));
    }

    pub(super) fn set_arguments(&mut self, arguments: &JsonObject) {
        self.with_tool(|tool| tool.set_arguments(arguments));
    }

    pub(super) fn start_tool(&mut self, arguments: &JsonObject, now_ms: i64) {
        self.with_tool(|tool| tool.start(arguments, now_ms));
    }

    pub(super) fn update_tool(&mut self, so_far: &ToolOutput) {
        self.with_tool(|tool| tool.update(so_far));
    }

    pub(super) fn end_tool(&mut self, output: &ToolOutput, duration_ms: Option<i64>) {
        self.with_tool(|tool| tool.end(output, duration_ms));
    }

    pub(super) fn fail_tool(&mut self, text: &str) {
        self.with_tool(|tool| tool.fail(text));
    }

    pub(super) fn set_result(&mut self, result: &ToolResult, images: Vec<ImageSource>) {
        self.with_tool(|tool| {
            tool.set_result(result);
            tool.set_images(images);
        });
    }

    pub(super) fn is_running_bash(&self) -> bool {
        matches!(self, Self::Bash(bash) if !bash.is_finished())
    }

    pub(super) fn push_output(&mut self, text: &str) {
        if let Self::Bash(bash) = self {
            bash.push(text);
        }
    }

    pub(super) fn end_bash(&mut self, end: &Result<UserCommand, ToolError>) {
        if let Self::Bash(bash) = self {
            bash.end(end);
        }
    }
}

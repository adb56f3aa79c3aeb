//! A call of a tool and its result.

use pinch_agent_core::tool::{JsonObject, ToolOutput};
use pinch_llm::message::{Block, ToolResult};
use serde_json::Value;

use super::ViewCx;
use super::frame::{boxed, paragraphs};
use crate::Row;
use crate::theme::Token;

const PREVIEW: usize = 10;

/// The view.
pub(in crate::app) struct ToolCall {
    id: String,
    name: String,
    block: Option<usize>,
    arguments: JsonObject,
    output: String,
    state: ToolState,
    expanded: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolState {
    Pending,
    Running,
    Done,
    Failed,
}

impl ToolCall {
    pub(super) fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            block: None,
            arguments: JsonObject::new(),
            output: String::new(),
            state: ToolState::Pending,
            expanded: false,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
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

    pub(super) fn push_arguments(&mut self, _text: &str) {}

    pub(super) fn end_block(&mut self, block: &Block) {
        self.block = None;
        if let Block::ToolCall(call) = block {
            self.id = call.id.as_str().to_owned();
            self.name.clone_from(&call.name);
            self.set_arguments(&call.arguments);
        }
    }

    pub(super) fn set_arguments(&mut self, arguments: &JsonObject) {
        self.arguments.clone_from(arguments);
    }

    pub(super) fn start(&mut self, arguments: &JsonObject, _now_ms: i64) {
        self.set_arguments(arguments);
        self.state = ToolState::Running;
    }

    pub(super) fn update(&mut self, so_far: &ToolOutput) {
        self.output = text_of(&so_far.content);
    }

    pub(super) fn end(&mut self, output: &ToolOutput, _duration_ms: Option<i64>) {
        self.output = text_of(&output.content);
        self.state = if output.failed { ToolState::Failed } else { ToolState::Done };
    }

    pub(super) fn fail(&mut self, text: &str) {
        self.output = text.to_owned();
        self.state = ToolState::Failed;
    }

    pub(super) fn set_result(&mut self, result: &ToolResult) {
        self.output = text_of(&result.content);
        self.state = if result.is_error { ToolState::Failed } else { ToolState::Done };
    }

    pub(super) fn settle(&mut self) {
        if !self.is_settled() {
            self.fail("No result");
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, ToolState::Done | ToolState::Failed)
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == ToolState::Running
    }

    pub(super) fn toggle(&mut self) {
        self.expanded = !self.expanded;
    }

    pub(super) fn rows(&self, cx: ViewCx<'_>) -> Vec<Row> {
        let theme = cx.theme;
        let inner = cx.columns.saturating_sub(2).max(1);
        let argument = ["command", "path", "file_path", "pattern"];
        let argument = argument.iter().find_map(|key| self.arguments.get(*key).and_then(Value::as_str));
        let title = match argument {
            Some(argument) if self.name == "bash" => format!("$ {argument}"),
            Some(argument) => format!("{} {argument}", self.name),
            None => format!("{} {}", self.name, Value::Object(self.arguments.clone())),
        };
        let mut rows = paragraphs(&title, theme.bold(Token::ToolTitle), inner, 0);
        let lines: Vec<&str> = self.output.trim_end().lines().collect();
        let shown = if self.expanded || cx.options.expanded { lines.len() } else { PREVIEW };
        for line in lines.iter().take(shown) {
            rows.extend(paragraphs(line, theme.fg(Token::ToolOutput), inner, 0));
        }
        if lines.len() > shown {
            let more = format!("... ({} more lines, {})", lines.len() - shown, cx.expand_hint());
            rows.extend(paragraphs(&more, theme.fg(Token::Muted), inner, 0));
        }
        let background = match self.state {
            ToolState::Pending | ToolState::Running => Token::ToolPendingBg,
            ToolState::Done => Token::ToolSuccessBg,
            ToolState::Failed => Token::ToolErrorBg,
        };
        boxed(rows, background, cx)
    }
}

fn text_of(content: &[Block]) -> String {
    content.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n")
}

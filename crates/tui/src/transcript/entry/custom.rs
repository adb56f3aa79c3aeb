//! A message of an extension.

use pinch_coding_agent::extension::rendering::{RenderRoom, RenderSubject, RendererKey};
use pinch_llm::message::Content;
use serde_json::Value;

use super::ViewCx;
use super::frame::{boxed, inner_columns, paragraphs};
use crate::Row;
use crate::markdown::{Markdown, MarkdownOptions};
use crate::theme::ColorRole;
use crate::transcript::drawing::{DrawingTicket, DrawnPart, PartDrawing};

/// View of a message of an extension.
pub(crate) struct CustomView {
    custom_type: String,
    content: Content,
    details: Option<Value>,
    drawing: PartDrawing,
    expanded: bool,
}

impl CustomView {
    pub(super) fn new(custom_type: &str, content: Content, details: Option<Value>) -> Self {
        let drawing = PartDrawing::default();
        Self { custom_type: custom_type.to_owned(), content, details, drawing, expanded: false }
    }

    /// Returns whether an extension draws messages of this type.
    pub(super) fn has_renderer(&self, cx: ViewCx<'_>) -> bool {
        cx.options.drawings.renderer(&RendererKey::Message(self.custom_type.clone())).is_some()
    }

    /// Returns the rows: as its extension draws it, or a label and the text.
    pub(super) fn rows(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        let key = RendererKey::Message(self.custom_type.clone());
        if let Some((_, renderer)) = cx.options.drawings.renderer(&key) {
            let room = RenderRoom { columns: cx.columns, is_expanded: self.expanded || cx.options.expanded };
            let (custom_type, content, details) = (&self.custom_type, &self.content, &self.details);
            let subject = || RenderSubject::Message {
                custom_type: custom_type.clone(),
                content: content.clone(),
                details: details.clone(),
            };
            match self.drawing.part(room, &renderer, (&cx.options.drawings, cx.theme), subject) {
                DrawnPart::Later => return Vec::new(),
                DrawnPart::Rows(rows) => return rows,
                DrawnPart::Usual => {}
            }
        }
        let inner = inner_columns(cx);
        let label = format!("[{}]", self.custom_type);
        let mut rows = paragraphs(&label, cx.theme.bold(ColorRole::CustomMessageLabel), inner, 0);
        let options = MarkdownOptions::colored(ColorRole::CustomMessageText);
        rows.extend(Markdown::of(&self.content.text("\n"), options).rows(inner, cx.theme));
        boxed(rows, ColorRole::CustomMessageBg, cx)
    }

    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        each(&self.custom_type);
        each(&self.content.text("\n"));
    }

    /// Returns whether its extension draws it, perhaps in two forms.
    pub(super) fn can_expand(&self) -> bool {
        self.drawing.is_drawn()
    }

    pub(super) fn toggle(&mut self) {
        self.expanded = !self.expanded;
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.drawing.is_awaited()
    }

    pub(super) fn arrived(&mut self, ticket: &DrawingTicket, lines: &Option<Vec<String>>) -> bool {
        self.drawing.arrived(ticket, lines)
    }
}

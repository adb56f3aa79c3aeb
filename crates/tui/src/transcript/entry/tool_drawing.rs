//! Tool calls as the extension of the tool draws them.

use std::sync::Arc;

use pinch_coding_agent::extension::rendering::{
    RenderRoom, RenderSubject, RenderedCall, Renderer, RendererKey, ToolLook,
};
use pinch_coding_agent::llm::message::Block;

use super::ViewCx;
use super::frame::{boxed, inner_columns};
use super::tool::ToolCallView;
use crate::Row;
use crate::transcript::drawing::{DrawingTicket, DrawnPart, PartDrawing};

impl ToolCallView {
    /// Returns whether an extension draws the calls of this tool.
    pub(super) fn has_renderer(&self, cx: ViewCx<'_>) -> bool {
        cx.options.drawings.renderer(&RendererKey::Tool(self.name().to_owned())).is_some()
    }

    /// Returns whether something is to be drawn that has not arrived yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.drawings.iter().any(PartDrawing::is_awaited)
    }

    /// Returns whether an extension has drawn a part of it.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawings.iter().any(PartDrawing::is_drawn)
    }

    pub(super) fn arrived(&mut self, ticket: &DrawingTicket, lines: &Option<Vec<String>>) -> bool {
        self.drawings.iter_mut().any(|drawing| drawing.arrived(ticket, lines))
    }

    /// Returns the rows as an extension draws them, with the usual ones for what it does not draw.
    pub(super) fn drawn_rows(&mut self, look: ToolLook, renderer: &Arc<dyn Renderer>, cx: ViewCx<'_>) -> Vec<Row> {
        let columns = if look.is_bare { cx.columns } else { inner_columns(cx) };
        let room = RenderRoom { columns, is_expanded: self.is_expanded(cx) };
        let board = (&cx.options.drawings, cx.theme);
        let [mut call, mut result] = std::mem::take(&mut self.drawings);
        let mut rows = match look.draws_call {
            true => match call.part(room, renderer, board, || RenderSubject::ToolCall(self.rendered_call())) {
                DrawnPart::Later => Vec::new(),
                DrawnPart::Usual => self.title_rows(cx),
                DrawnPart::Rows(rows) => rows,
            },
            false => self.title_rows(cx),
        };
        if !look.draws_result {
            rows.extend(self.result_rows(cx));
        } else if self.has_output() {
            match result.part(room, renderer, board, || self.rendered_result()) {
                DrawnPart::Later => {}
                DrawnPart::Usual => rows.extend(self.result_rows(cx)),
                DrawnPart::Rows(drawn) => rows.extend(drawn.into_iter().chain(self.image_rows(cx))),
            }
        }
        self.drawings = [call, result];
        if look.is_bare { rows } else { boxed(rows, self.background(), cx) }
    }

    fn rendered_call(&self) -> RenderedCall {
        RenderedCall {
            call_id: self.id().to_owned(),
            tool: self.name().to_owned(),
            args: self.arguments.clone().unwrap_or_default(),
            args_complete: self.arguments.is_some(),
            has_started: self.is_running() || self.is_settled(),
            duration_ms: self.duration_ms.and_then(|ms| u64::try_from(ms).ok()),
        }
    }

    fn rendered_result(&self) -> RenderSubject {
        RenderSubject::ToolResult {
            call: self.rendered_call(),
            content: vec![Block::text(&self.output)],
            details: self.details.clone(),
            is_error: self.has_failed(),
            is_partial: !self.is_settled(),
        }
    }
}

//! Lets a process draw parts of a conversation.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::link::Link;
use super::points::{member, object};
use crate::extension::ExtensionError;
use crate::extension::rendering::{RenderRoom, RenderSubject, RenderedCall, Renderer, ToolLook};

/// Reads which parts of a tool's calls a process draws.
pub(super) fn tool_look(tool: &Value) -> Result<ToolLook, ExtensionError> {
    let parts: Vec<String> = member(tool, "renders")?.unwrap_or_default();
    let draws = |part: &str| parts.iter().any(|one| one == part);
    let is_bare = member::<String>(tool, "renderShell")?.as_deref() == Some("self");
    Ok(ToolLook { draws_call: draws("call"), draws_result: draws("result"), is_bare })
}

/// Returns what draws everything that a process has declared to draw.
pub(super) fn renderer(link: &Arc<Link>) -> Arc<dyn Renderer> {
    Arc::new(ProcessRenderer(Arc::clone(link)))
}

struct ProcessRenderer(Arc<Link>);

impl Renderer for ProcessRenderer {
    fn render<'a>(
        &'a self,
        subject: &'a RenderSubject,
        room: RenderRoom,
    ) -> BoxFuture<'a, Result<Option<Vec<String>>, ExtensionError>> {
        Box::pin(async move {
            let (method, mut params) = describe(subject);
            params["columns"] = room.columns.into();
            params["expanded"] = room.is_expanded.into();
            // It may use the colours of the theme.
            if let Ok(cx) = self.0.cx_of(None, None) {
                self.0.tell_screen(&cx.ui());
            }
            let answer = self.0.request(method, params).await?;
            member(&answer, "lines")
        })
    }
}

fn describe(subject: &RenderSubject) -> (&'static str, Value) {
    let of_call = |call: &RenderedCall| {
        object([
            ("toolCallId", Some(call.call_id.as_str().into())),
            ("toolName", Some(call.tool.as_str().into())),
            ("args", Some(Value::Object(call.args.clone()))),
            ("argsComplete", Some(call.args_complete.into())),
            ("executionStarted", Some(call.has_started.into())),
            ("durationMs", call.duration_ms.map(Value::from)),
        ])
    };
    match subject {
        RenderSubject::Message { custom_type, content, details } => {
            ("render/message", json!({"customType": custom_type, "content": content, "details": details}))
        }
        RenderSubject::ToolCall(call) => ("render/toolCall", of_call(call)),
        RenderSubject::ToolResult { call, content, details, is_error, is_partial } => {
            let mut params = of_call(call);
            params["result"] = json!({"content": content, "details": details});
            params["isError"] = (*is_error).into();
            params["isPartial"] = (*is_partial).into();
            ("render/toolResult", params)
        }
    }
}

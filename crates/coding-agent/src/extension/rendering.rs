//! What extensions draw of a conversation: their messages, and calls of their tools.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::JsonObject;
use pinch_llm::message::{Block, Content};
use serde_json::Value;

use super::error::ExtensionError;

/// Draws parts of a conversation as lines.
pub trait Renderer: Send + Sync {
    /// Returns the lines, whose colours and attributes (SGR) are kept; no lines hide the part, and `None` leaves it as usual.
    ///
    /// Front ends show nothing in the meantime, and the usual form if it fails or takes more than a second: the future is dropped then.
    fn render<'a>(
        &'a self,
        subject: &'a RenderSubject,
        room: RenderRoom,
    ) -> BoxFuture<'a, Result<Option<Vec<String>>, ExtensionError>>;
}

/// The room for lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderRoom {
    /// Maximum width of a line; longer ones are cut off.
    pub columns: usize,
    /// Whether output is expanded.
    pub is_expanded: bool,
}

/// A part of a conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RenderSubject {
    /// A message of an extension.
    Message {
        /// Its type.
        custom_type: String,
        /// Its content.
        content: Content,
        /// Its details, if any.
        details: Option<Value>,
    },
    /// A call of a tool.
    ToolCall(RenderedCall),
    /// The result of a tool, or what it has reported so far.
    ToolResult {
        /// The call.
        call: RenderedCall,
        /// Text and images.
        content: Vec<Block>,
        /// Its details, if any.
        details: Option<Value>,
        /// Whether it failed.
        is_error: bool,
        /// Whether the tool is still running.
        is_partial: bool,
    },
}

/// A call of a tool, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedCall {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// The arguments; empty while they arrive.
    pub args: JsonObject,
    /// Whether the arguments are complete.
    pub args_complete: bool,
    /// Whether the tool has been started.
    pub has_started: bool,
    /// How long it took, in milliseconds; `None` while it is running, and for calls of earlier runs of the program.
    pub duration_ms: Option<u64>,
}

/// Which parts of a tool's calls its extension draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolLook {
    /// The call.
    pub draws_call: bool,
    /// The result.
    pub draws_result: bool,
    /// Whether there is no frame around both.
    pub is_bare: bool,
}

/// What is drawn by an extension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RendererKey {
    /// Messages of a type.
    Message(String),
    /// Calls of a tool.
    Tool(String),
}

/// A registered renderer.
#[derive(Clone)]
pub(super) struct RegisteredRenderer {
    pub(super) key: RendererKey,
    pub(super) look: ToolLook,
    pub(super) renderer: Arc<dyn Renderer>,
}

/// The renderers of a session's extensions.
#[derive(Clone, Default)]
pub struct Renderers(HashMap<RendererKey, (ToolLook, Arc<dyn Renderer>)>);

impl Renderers {
    /// Collects renderers; the first one for something wins.
    pub(super) fn of<'a>(registered: impl Iterator<Item = &'a RegisteredRenderer>) -> Self {
        let mut renderers = HashMap::new();
        for RegisteredRenderer { key, look, renderer } in registered {
            renderers.entry(key.clone()).or_insert_with(|| (*look, Arc::clone(renderer)));
        }
        Self(renderers)
    }

    /// Returns the renderer of something, and which parts of a tool's calls it draws.
    pub fn get(&self, key: &RendererKey) -> Option<(ToolLook, Arc<dyn Renderer>)> {
        self.0.get(key).cloned()
    }
}

impl fmt::Debug for Renderers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

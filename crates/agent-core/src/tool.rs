//! Tools: what a model may have done.

use std::fmt;

use futures::future::BoxFuture;
use pinch_llm::message::{Block, ToolDecl, Usage};
use pinch_llm::schema::Schema;
use serde_json::{Map, Value};

pub mod cx;
pub mod func;
pub mod set;

pub use cx::{Progress, Reports, ToolCx};
#[cfg(feature = "schemars")]
pub use func::tool_fn;
pub use func::{CallContext, FnTool};
pub use set::ToolSet;

/// A JSON object: the arguments of a call.
pub type JsonObject = Map<String, Value>;

/// Something a model may have done. What a tool needs (a folder, a queue, a store) it gets when it is built; [`ToolCx`] holds only what
/// belongs to one call.
pub trait Tool: Send + Sync {
    /// Name, description and parameters.
    fn spec(&self) -> &ToolSpec;

    /// Mends raw arguments before they are checked against the schema: old spellings, say.
    ///
    /// # Errors
    /// The text becomes the call's result; the tool is not run.
    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        Ok(raw)
    }

    /// Does the work. `input` fits the schema.
    ///
    /// When [`ToolCx::cancel`] is cancelled the tool has a short grace to clean up; then its future is dropped.
    ///
    /// # Errors
    /// The text becomes the call's result, marked as a failure; the run goes on.
    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What is known about a tool without running it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name the model uses.
    pub name: String,
    /// The name shown to people.
    pub label: String,
    /// What the tool does, for the model.
    pub description: String,
    /// The arguments' schema.
    pub parameters: Schema,
    /// Whether calls of it may run beside others.
    pub mode: ToolMode,
    /// What it does to the world.
    pub effect: ToolEffect,
    /// Constrained sampling wishes, as they stand in a tool declaration.
    pub constrained_sampling: Option<Value>,
    /// The schema of [`ToolOutput::structured`], for programs that call the tool.
    pub output_schema: Option<Schema>,
}

impl ToolSpec {
    /// A parallel tool that changes things; the label is the name.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Schema) -> Self {
        let name = name.into();
        Self {
            label: name.clone(),
            name,
            description: description.into(),
            parameters,
            mode: ToolMode::Parallel,
            effect: ToolEffect::Mutates,
            constrained_sampling: None,
            output_schema: None,
        }
    }

    /// The declaration a model is given.
    pub fn declaration(&self) -> ToolDecl {
        let parameters = std::sync::Arc::clone(self.parameters.raw());
        let mut declaration = ToolDecl::new(self.name.as_str(), self.description.as_str(), parameters);
        declaration.constrained_sampling = self.constrained_sampling.clone();
        declaration
    }
}

/// Whether calls of a tool may run beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolMode {
    /// Side by side with other calls of the same message.
    #[default]
    Parallel,
    /// One such call makes the whole message's calls run one after another.
    Sequential,
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolEffect {
    /// It only looks.
    Reads,
    /// It changes files or state.
    #[default]
    Mutates,
    /// It speaks to the outside.
    Sends,
}

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Data for programs; never sent to a model.
    pub details: Option<Value>,
    /// The result as data, for programs that call tools; `content` says the same to a model.
    pub structured: Option<Value>,
    /// The call failed, and says so without an error: `content` and `details` stay.
    pub failed: bool,
    /// No model call need follow, if every call of the message says so.
    pub end_run: bool,
    /// Model work done inside the tool.
    pub usage: Option<Usage>,
}

impl ToolOutput {
    /// One text, without details.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Value> for ToolOutput {
    /// JSON text for the model, and the value for programs.
    fn from(value: Value) -> Self {
        Self { structured: Some(value.clone()), ..Self::text(value.to_string()) }
    }
}

/// Why a call failed, in words for the model.
///
/// It is no [`std::error::Error`] itself, so that `?` turns every error into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// What the model reads.
    pub text: String,
}

impl ToolError {
    /// A failure with its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The call was cancelled.
    pub fn aborted() -> Self {
        Self::new("Operation aborted")
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    /// The error's own words.
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ToolError> for ToolOutput {
    /// A failed call's output: its text, and empty details as the original writes them.
    fn from(error: ToolError) -> Self {
        Self {
            content: vec![Block::text(error.text)],
            details: Some(Value::Object(Map::new())),
            failed: true,
            ..Self::default()
        }
    }
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({})", self.spec().name)
    }
}

//! Tools that a model may call.

use std::fmt;

use futures::future::BoxFuture;
use pinch_llm::message::{Block, ToolDecl, Usage};
use pinch_llm::schema::Schema;
use serde_json::{Map, Value};

pub mod cx;
pub mod external;
pub mod func;
pub mod set;

pub use cx::{Progress, Reports, ToolCx};
pub use external::ExternalTool;
#[cfg(feature = "schemars")]
pub use func::tool_fn;
pub use func::{CallContext, FnTool};
pub use set::{ForwardedCall, ToolGateway, ToolSet};

/// A JSON object: the arguments of a call.
pub type JsonObject = Map<String, Value>;

/// Something that a model may call. A tool gets its dependencies (a directory, a queue, a store) when it is built; [`ToolCx`] contains only
/// the state of one call.
pub trait Tool: Send + Sync {
    /// Returns name, description and parameters.
    fn spec(&self) -> &ToolSpec;

    /// Prepares raw arguments before they are validated against the schema, e.g. converts old spellings.
    ///
    /// # Errors
    /// The error text becomes the call's result; the tool is not run.
    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        Ok(raw)
    }

    /// Runs the tool. `input` matches the schema.
    ///
    /// When [`ToolCx::cancel`] is cancelled, the tool has a short grace period to clean up; then its future is dropped.
    ///
    /// # Errors
    /// The error text becomes the call's result, marked as a failure; the run continues.
    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Returns the tools that are called through this one, if it is a gateway. A tool that wraps another returns that of the other.
    fn gateway(&self) -> Option<&dyn ToolGateway> {
        None
    }
}

/// The description of a tool.
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
    /// Whether its calls may run in parallel with others.
    pub mode: ToolMode,
    /// Its effect.
    pub effect: ToolEffect,
    /// Constrained sampling settings, as written in a tool declaration.
    pub constrained_sampling: Option<Value>,
    /// The schema of [`ToolOutput::structured`], for programs that call the tool.
    pub output_schema: Option<Schema>,
}

impl ToolSpec {
    /// Creates a parallel, mutating tool whose label is its name.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: impl Into<Schema>) -> Self {
        let name = name.into();
        Self {
            label: name.clone(),
            name,
            description: description.into(),
            parameters: parameters.into(),
            mode: ToolMode::Parallel,
            effect: ToolEffect::Mutates,
            constrained_sampling: None,
            output_schema: None,
        }
    }

    /// Returns the declaration for a model.
    pub fn declaration(&self) -> ToolDecl {
        let mut declaration = ToolDecl::new(self.name.as_str(), self.description.as_str(), self.parameters.clone());
        declaration.constrained_sampling = self.constrained_sampling.clone();
        declaration
    }
}

/// How calls of a tool are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolMode {
    /// In parallel with other calls of the same message.
    #[default]
    Parallel,
    /// One such call makes all calls of the message run one after another.
    Sequential,
    /// Not run by the agent: the caller runs it and adds the result to the conversation. The run ends at the first answer with such a call,
    /// after its other calls; [`RunEnd::pending_calls`](crate::event::RunEnd::pending_calls) lists them. See [`ExternalTool`].
    External,
}

/// The effect of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolEffect {
    /// Only reads.
    Reads,
    /// Changes files or state.
    #[default]
    Mutates,
    /// Sends data to the outside.
    Sends,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Data for programs; never sent to a model.
    pub details: Option<Value>,
    /// Structured result, for programs that call tools; `content` has the same information for a model.
    pub structured: Option<Value>,
    /// Whether the call failed without an error: `content` and `details` are kept.
    pub failed: bool,
    /// Ends the run if every call of the message sets it.
    pub end_run: bool,
    /// Model work done inside the tool.
    pub usage: Option<Usage>,
}

impl ToolOutput {
    /// Creates an output of one text, without details.
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
    /// Creates JSON text for the model, and the value for programs.
    fn from(value: Value) -> Self {
        Self { structured: Some(value.clone()), ..Self::text(value.to_string()) }
    }
}

/// The reason why a call failed, as text for the model.
///
/// It does not implement [`std::error::Error`] itself, so that `?` converts every error into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The text that the model reads.
    pub text: String,
}

impl ToolError {
    /// Creates a failure with its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Creates the error of a cancelled call.
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
    /// Uses the text of the error.
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ToolError> for ToolOutput {
    /// Creates a failed call's output: its text, and empty details as in the original.
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

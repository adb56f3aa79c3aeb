//! Tools made from functions.

use std::fmt;
use std::future::Future;

use futures::future::BoxFuture;
use pinch_llm::ids::ToolCallId;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{JsonObject, Progress, Tool, ToolCx, ToolEffect, ToolError, ToolMode, ToolOutput, ToolSpec};

/// Context of a tool function's call: [`ToolCx`] as an owned value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallContext {
    /// The call.
    pub call: ToolCallId,
    /// Cancelled with the run: the function then has a short grace period to clean up.
    pub cancel: Cancel,
    /// Receives partial results.
    pub progress: Progress,
    /// Clock, ids and environment.
    pub host: Host,
}

/// A tool made from a function; see `tool_fn` and [`FnTool::new`].
pub struct FnTool {
    spec: ToolSpec,
    run: Box<ToolFn>,
}

type ToolFn = dyn Fn(JsonObject, CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// Makes a tool from an async function. The schema is derived from the type of its arguments.
///
/// ```
/// use pinch_agent_core::tool_fn;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Args {
///     /// The first number.
///     a: f64,
///     /// The second number.
///     b: f64,
/// }
///
/// let add = tool_fn("add", "Add two numbers.", |args: Args, _cx| async move { Ok((args.a + args.b).to_string()) });
/// ```
///
/// The function returns anything that converts to a [`ToolOutput`], such as a text or a JSON value; `?` converts every error to a
/// [`ToolError`].
#[cfg(feature = "schemars")]
pub fn tool_fn<A, F, R, O>(name: impl Into<String>, description: impl Into<String>, function: F) -> FnTool
where
    A: DeserializeOwned + schemars::JsonSchema,
    F: Fn(A, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput>,
{
    let schema = pinch_llm::schema::Schema::new(pinch_llm::schema::derived::schema_of::<A>());
    FnTool::new(ToolSpec::new(name, description, schema), function)
}

impl FnTool {
    /// Makes a tool from an async function and a specification with a custom schema. The arguments are deserialized from a JSON object that
    /// matches the schema; with `serde_json::Value` they are passed unchanged.
    pub fn new<A, F, R, O>(spec: ToolSpec, function: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let run = move |input: JsonObject, cx: CallContext| -> BoxFuture<'static, _> {
            match serde_json::from_value(Value::Object(input)) {
                Ok(args) => {
                    let work = function(args, cx);
                    Box::pin(async move { work.await.map(Into::into) })
                }
                Err(why) => Box::pin(async move { Err(ToolError::new(format!("invalid arguments: {why}"))) }),
            }
        };
        Self { spec, run: Box::new(run) }
    }

    /// Sets whether calls may run in parallel with others.
    #[must_use]
    pub fn mode(mut self, mode: ToolMode) -> Self {
        self.spec.mode = mode;
        self
    }

    /// Sets the effect of the tool.
    #[must_use]
    pub fn effect(mut self, effect: ToolEffect) -> Self {
        self.spec.effect = effect;
        self
    }
}

impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let cx = CallContext {
            call: cx.call.clone(),
            cancel: cx.cancel.clone(),
            progress: cx.progress.clone(),
            host: cx.host.clone(),
        };
        (self.run)(input, cx)
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

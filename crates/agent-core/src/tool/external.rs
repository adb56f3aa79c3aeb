//! Tools that the caller of the agent runs.

use super::{JsonObject, Tool, ToolCx, ToolError, ToolMode, ToolOutput, ToolSpec};
use futures::future::BoxFuture;

/// A tool whose calls end the run so that the caller can run them: see [`ToolMode::External`].
#[derive(Clone, Debug)]
pub struct ExternalTool(ToolSpec);

impl ExternalTool {
    /// Creates the tool with this specification. Arguments are validated before a call counts as pending.
    pub fn new(mut spec: ToolSpec) -> Self {
        spec.mode = ToolMode::External;
        Self(spec)
    }
}

impl Tool for ExternalTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            Err(ToolError::new(format!("The tool {} can only be called by the model itself", self.0.name)))
        })
    }
}

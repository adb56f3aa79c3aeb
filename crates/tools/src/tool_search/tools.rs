//! The tools `tool_search`, `tool_describe` and `tool_call`.

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use pinch_agent_core::tool::{
    ForwardedCall, JsonObject, Tool, ToolCx, ToolEffect, ToolError, ToolGateway, ToolOutput, ToolSet, ToolSpec,
};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};

use super::MAX_LIMIT;
use super::catalog::{CatalogReply, ToolCatalog};

/// Name of the tool that finds deferred tools.
pub const TOOL_SEARCH: &str = "tool_search";
/// Name of the tool that describes deferred tools.
pub const TOOL_DESCRIBE: &str = "tool_describe";
/// Name of the tool that calls deferred tools.
pub const TOOL_CALL: &str = "tool_call";
/// Names of the three tools.
pub const SEARCH_TOOLS: [&str; 3] = [TOOL_SEARCH, TOOL_DESCRIBE, TOOL_CALL];

/// Maximum number of queries of a search.
const MAX_QUERIES: usize = 16;
/// Maximum number of tools to describe at once.
const MAX_IDS: usize = 8;

static SEARCH: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool should do, in a few words"},
            "queries": {
                "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_QUERIES,
                "description": format!("Several searches at once, at most {MAX_QUERIES}, instead of query"),
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "Maximum number of hits per search"},
        },
    });
    let about = "Find more tools by what they do. Use it when no tool you have fits; then read the parameters with tool_describe and call \
                 the tool with tool_call.";
    reading(TOOL_SEARCH, about, parameters)
});

static DESCRIBE: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Id of a tool, as returned by tool_search"},
            "ids": {
                "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_IDS,
                "description": format!("Several tools at once, at most {MAX_IDS}, instead of id"),
            },
        },
    });
    reading(TOOL_DESCRIBE, "Read the description and the parameters of a tool that tool_call can call.", parameters)
});

static CALL: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = json!({
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "description": "Id of the tool, as returned by tool_search"},
            "args": {"type": "object", "description": "Its arguments, matching the schema from tool_describe"},
        },
    });
    let about = "Call a tool that is not in your list, by its id. The result is that of the tool.";
    // An unknown tool does nothing; a known one has its own effect.
    reading(TOOL_CALL, about, parameters)
});

fn reading(name: &str, about: &str, parameters: Value) -> ToolSpec {
    let mut spec = ToolSpec::new(name, about, Schema::new(parameters).lenient());
    spec.effect = ToolEffect::Reads;
    spec
}

/// Returns the three tools for a catalog, in the order of [`SEARCH_TOOLS`].
pub fn search_tools(catalog: &Arc<ToolCatalog>) -> [Arc<dyn Tool>; 3] {
    [
        Arc::new(SearchTool(Arc::clone(catalog))),
        Arc::new(DescribeTool(Arc::clone(catalog))),
        Arc::new(CallTool(Arc::clone(catalog))),
    ]
}

struct SearchTool(Arc<ToolCatalog>);

impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &SEARCH
    }

    fn run<'a>(&'a self, input: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let queries = texts(&input, "query", "queries")?;
            let limit = input.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
            Ok(self.0.search(&queries, limit).into())
        })
    }
}

struct DescribeTool(Arc<ToolCatalog>);

impl Tool for DescribeTool {
    fn spec(&self) -> &ToolSpec {
        &DESCRIBE
    }

    fn run<'a>(&'a self, input: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let ids = texts(&input, "id", "ids")?;
            self.0.describe(&ids).map(ToolOutput::from).map_err(ToolError::new)
        })
    }
}

/// Calls deferred tools: the loop forwards its calls, and runs it only if there is no such tool.
struct CallTool(Arc<ToolCatalog>);

impl Tool for CallTool {
    fn spec(&self) -> &ToolSpec {
        &CALL
    }

    fn run<'a>(&'a self, input: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
            // Hooks may have changed the arguments, so that they name a tool now; its own call has not passed them.
            let why = match self.0.find(id) {
                Some(_) => format!("{id} was not called. Call it again with the id and its arguments"),
                None => self.0.unknown(id),
            };
            Err(ToolError::new(why))
        })
    }

    fn gateway(&self) -> Option<&dyn ToolGateway> {
        Some(self)
    }
}

impl ToolGateway for CallTool {
    fn tools(&self) -> &ToolSet {
        self.0.tools()
    }

    fn listed(&self) -> &ToolSet {
        self.0.listed()
    }

    fn target(&self, arguments: &JsonObject) -> Option<ForwardedCall> {
        let tool = self.0.find(arguments.get("id")?.as_str()?)?;
        let arguments = match arguments.get("args") {
            None | Some(Value::Null) => JsonObject::new(),
            Some(Value::Object(arguments)) => arguments.clone(),
            // Some models write objects as JSON text.
            Some(Value::String(text)) => serde_json::from_str(text).ok()?,
            Some(_) => return None,
        };
        Some(ForwardedCall { tool: Arc::clone(tool), arguments })
    }
}

impl From<CatalogReply> for ToolOutput {
    fn from(reply: CatalogReply) -> Self {
        Self { details: Some(reply.details), ..Self::text(reply.text) }
    }
}

/// Returns the texts of a member, or of another one that is a list; blank ones are left out.
fn texts<'a>(input: &'a JsonObject, one: &str, several: &str) -> Result<Vec<&'a str>, ToolError> {
    let list = input.get(several).and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = input
        .get(one)
        .into_iter()
        .chain(list)
        .filter_map(Value::as_str)
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .take(MAX_QUERIES)
        .collect();
    match texts.is_empty() {
        true => Err(ToolError::new(format!("{one} or {several} required"))),
        false => Ok(texts),
    }
}

#[cfg(test)]
mod tests;

//! Tools: one made from a function, one from a type with a handwritten schema.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolEffect};
use pinch_agent_core::{FnTool, Tool, ToolCx, ToolError, ToolOutput, ToolSpec, tool_fn};
use pinch_embed::EngineBuilder;
use pinch_embed::tools::pipeline::PluginTools;
use pinch_llm::schema::Schema;
use serde_json::json;

/// Arguments of [`word_count`].
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct WordCount {
    /// The text whose words are counted.
    pub text: String,
}

/// Counts words.
pub fn word_count() -> FnTool {
    let count = |args: WordCount, _cx| async move { Ok(args.text.split_whitespace().count().to_string()) };
    tool_fn("word_count", "Count the words of a text.", count).effect(ToolEffect::Reads)
}

/// Adds tools with their place in the engine's order: one of a channel, and a plugin's, whose second one must be named to be offered.
pub fn add_tools(builder: EngineBuilder) -> EngineBuilder {
    let post = |text: WordCount, _cx| async move { Ok(format!("posted {}", text.text)) };
    let garden = PluginTools {
        id: "garden".to_owned(),
        tools: vec![Arc::new(word_count()), Arc::new(ForkDeleteTool::default())],
        optional: vec!["delete".to_owned()],
    };
    builder.channel_tool(tool_fn("post", "Post a text.", post)).plugin_tools(garden).owner_only(["post"])
}

/// Pretends to delete things.
#[derive(Debug)]
pub struct ForkDeleteTool(ToolSpec);

impl Default for ForkDeleteTool {
    fn default() -> Self {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        Self(ToolSpec::new("delete", "Delete a file.", Schema::new(schema)))
    }
}

impl Tool for ForkDeleteTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, input: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::text(format!("deleted {}", input["path"]))) })
    }
}

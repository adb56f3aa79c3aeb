//! Grammar tools, whose argument is a text: the model writes the text directly instead of as JSON.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::message::{Message, ToolDecl};
use crate::normalise::system;
use crate::request::Request;

/// Default name of the argument.
const DEFAULT_ARGUMENT: &str = "input";

/// Tools declared as custom ones, and the names of their arguments.
#[derive(Debug, Default)]
pub(in crate::wire) struct GrammarTools {
    arguments: HashMap<String, String>,
}

impl GrammarTools {
    /// Returns the grammar tools in a list, if the model supports them.
    pub(in crate::wire) fn of<'t>(request: &Request, tools: impl IntoIterator<Item = &'t ToolDecl>) -> Self {
        if !request.model.dialect.schema.grammar_tools {
            return Self::default();
        }
        let arguments = tools.into_iter().filter_map(|tool| {
            grammar(tool)?;
            Some((tool.name.clone(), argument(tool)?.to_owned()))
        });
        Self { arguments: arguments.collect() }
    }

    /// Returns the grammar tools at the end of a request.
    pub(in crate::wire) fn of_request(request: &Request) -> Self {
        let changes = request.messages.iter().any(|message| {
            matches!(&**message, Message::System(change) if change.tools_added.iter().any(|tool| grammar(tool).is_some()))
        });
        if !changes {
            return Self::of(request, request.tools.iter());
        }
        let all = system::collapse(&request.system, &request.tools, &request.messages);
        Self::of(request, &all.current.tools)
    }

    pub(in crate::wire) fn has(&self, tool: &str) -> bool {
        self.arguments.contains_key(tool)
    }

    /// Returns the name of a tool's argument.
    pub(in crate::wire) fn argument_of(&self, tool: &str) -> &str {
        self.arguments.get(tool).map_or(DEFAULT_ARGUMENT, String::as_str)
    }

    /// Returns the text argument of a call, if it has no others.
    pub(in crate::wire) fn text_of<'c>(&self, tool: &str, arguments: &'c Map<String, Value>) -> Option<&'c str> {
        let text = arguments.get(self.argument_of(tool))?.as_str()?;
        (arguments.len() == 1).then_some(text)
    }

    /// Encodes the tool as a custom one; returns none if it has no grammar for OpenAI.
    pub(in crate::wire) fn write(&self, tool: &ToolDecl) -> Option<Value> {
        let (syntax, definition) = grammar(tool).filter(|_| self.has(&tool.name))?;
        let format = json!({"type": "grammar", "syntax": syntax, "definition": definition});
        Some(json!({"type": "custom", "name": tool.name, "description": tool.description, "format": format}))
    }
}

/// Returns the tool's grammar in an OpenAI syntax.
fn grammar(tool: &ToolDecl) -> Option<(&'static str, &str)> {
    let sampling = tool.constrained_sampling.as_ref().filter(|sampling| sampling["type"] == "grammar")?;
    let variant = |name: &str| sampling["variants"][name].as_str().filter(|text| !text.is_empty());
    variant("openai_lark").map(|text| ("lark", text)).or_else(|| variant("openai_regex").map(|text| ("regex", text)))
}

/// Returns the name of the tool's only argument, if that is a text.
fn argument(tool: &ToolDecl) -> Option<&str> {
    let properties = tool.parameters.raw()["properties"].as_object().filter(|properties| properties.len() == 1)?;
    let (name, schema) = properties.iter().next()?;
    (schema["type"] == "string").then_some(name)
}

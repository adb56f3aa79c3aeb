//! Normalizes the arguments of file tools written for other agents.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::{Map, Value, json};

/// A parameter and its aliases; errors name the first alias.
struct ParameterNames {
    name: &'static str,
    others: &'static [&'static str],
    may_be_empty: bool,
}

const PATH: ParameterNames =
    ParameterNames { name: "path", others: &["file_path", "filePath", "file"], may_be_empty: false };
const OLD_TEXT: ParameterNames =
    ParameterNames { name: "oldText", others: &["old_string", "old_text", "oldString"], may_be_empty: false };
const NEW_TEXT: ParameterNames =
    ParameterNames { name: "newText", others: &["new_string", "new_text", "newString"], may_be_empty: true };
const CONTENT: ParameterNames = ParameterNames { name: "content", others: &[], may_be_empty: true };

/// Returns the parameters of a file tool; `None` for other tools.
fn parameters(tool: &str) -> Option<&'static [ParameterNames]> {
    Some(match tool {
        "read" => &[PATH],
        "write" => &[PATH, CONTENT],
        "edit" => &[PATH, OLD_TEXT, NEW_TEXT],
        _ => return None,
    })
}

/// Renames the arguments of `read`, `write` and `edit` to the tools' own names and checks that the required ones are present. Text in
/// content blocks is joined. Arguments of other tools are returned unchanged.
///
/// # Errors
/// Names the missing parameters.
pub fn file_arguments(tool: &str, raw: &Value) -> Result<JsonObject, ToolError> {
    let Value::Object(raw) = raw else {
        return Err(ToolError::new(format!("Missing parameters for {tool}")));
    };
    let Some(parameters) = parameters(tool) else { return Ok(raw.clone()) };
    let mut arguments = raw.clone();
    for parameter in parameters {
        for other in parameter.others {
            let Some(value) = arguments.shift_remove(*other) else { continue };
            if !arguments.contains_key(parameter.name) {
                arguments.insert(parameter.name.to_owned(), value);
            }
        }
    }
    for name in ["content", "oldText", "newText"] {
        if let Some(text) = arguments.get(name).and_then(joined_blocks) {
            arguments.insert(name.to_owned(), text.into());
        }
    }
    let has_edits = tool == "edit" && arguments.contains_key("edits");
    let missing: Vec<String> = parameters
        .iter()
        .filter(|parameter| !(has_edits && parameter.name != "path"))
        .filter(|parameter| !is_given(parameter, &arguments))
        .map(|parameter| match parameter.others.first() {
            Some(other) => format!("{} ({} or {other})", parameter.name, parameter.name),
            None => parameter.name.to_owned(),
        })
        .collect();
    if missing.is_empty() {
        return Ok(arguments);
    }
    let plural = if missing.len() == 1 { "" } else { "s" };
    let received: Vec<&str> = raw.keys().map(String::as_str).collect();
    let received = if received.is_empty() { String::new() } else { format!(" (received: {})", received.join(", ")) };
    let missing = missing.join(", ");
    Err(ToolError::new(format!(
        "Missing required parameter{plural}: {missing}{received}. Supply correct parameters before retrying."
    )))
}

fn is_given(parameter: &ParameterNames, arguments: &JsonObject) -> bool {
    match arguments.get(parameter.name) {
        Some(Value::String(text)) => parameter.may_be_empty || !text.trim().is_empty(),
        _ => false,
    }
}

/// Joins the text of one block or a list of blocks.
fn joined_blocks(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) => block_text(value).map(str::to_owned),
        Value::Array(blocks) if !blocks.is_empty() => blocks.iter().map(block_text).collect(),
        _ => None,
    }
}

fn block_text(block: &Value) -> Option<&str> {
    let is =
        |key: &str, words: &[&str]| block.get(key).and_then(Value::as_str).is_some_and(|word| words.contains(&word));
    let key = match () {
        () if is("type", &["text", "input_text"]) => "text",
        () if is("kind", &["text"]) => "value",
        () => return None,
    };
    block.get(key)?.as_str()
}

/// A file tool that also accepts the parameter names of other agents. Its schema lists them and requires neither spelling.
struct AliasedTool {
    inner: Arc<dyn Tool>,
    spec: ToolSpec,
    /// Whether the tool accepts `oldText` and `newText` only within `edits`.
    takes_edits: bool,
}

/// A cache of schemas built by [`aliased`]. Runs share the schemas of their tools, and thereby also these.
static ALIASED: Mutex<Vec<AliasedSchema>> = Mutex::new(Vec::new());

/// A schema with aliases, and the schema it was built from.
struct AliasedSchema {
    of: Weak<Value>,
    parameters: &'static [ParameterNames],
    schema: Schema,
}

/// Maximum number of cached schemas.
const MAX_ALIASED: usize = 64;

/// Wraps a file tool to accept the parameter names of other agents; other tools are returned unchanged.
pub fn with_aliases(tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
    let Some(parameters) = parameters(&tool.spec().name) else { return tool };
    let properties = tool.spec().parameters.raw().get("properties").and_then(Value::as_object);
    let Some(properties) = properties else { return tool };
    let takes_edits = properties.contains_key("edits") && !properties.contains_key("oldText");
    let mut spec = tool.spec().clone();
    spec.parameters = remembered(&spec.parameters, parameters);
    // A strict schema requires every property, and no call has all spellings.
    spec.constrained_sampling = None;
    Arc::new(AliasedTool { inner: tool, spec, takes_edits })
}

/// Returns [`aliased`] of a schema, computed once while the schema is in use.
fn remembered(original: &Schema, parameters: &'static [ParameterNames]) -> Schema {
    let mut known = ALIASED.lock().unwrap_or_else(PoisonError::into_inner);
    // No other schema can have the address of a cached one, because the weak reference keeps the allocation.
    let is_same = |known: &&AliasedSchema| {
        std::ptr::eq(known.of.as_ptr(), Arc::as_ptr(original.raw()))
            && std::ptr::eq(known.parameters, parameters)
            && known.schema.is_lenient() == original.is_lenient()
    };
    if let Some(known) = known.iter().find(is_same) {
        return known.schema.clone();
    }
    let schema = aliased(original, parameters);
    known.retain(|known| known.of.strong_count() > 0);
    if known.len() < MAX_ALIASED {
        known.push(AliasedSchema { of: Arc::downgrade(original.raw()), parameters, schema: schema.clone() });
    }
    schema
}

/// Extends a schema with the aliases of these parameters, none of them required.
fn aliased(original: &Schema, parameters: &[ParameterNames]) -> Schema {
    let mut schema = Value::clone(original.raw());
    let mut renamed = Vec::new();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for parameter in parameters {
            let Some(property) = properties.get(parameter.name).cloned() else { continue };
            for other in parameter.others {
                properties.insert((*other).to_owned(), property.clone());
                renamed.push(parameter.name);
            }
        }
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !name.as_str().is_some_and(|name| renamed.contains(&name)));
    }
    match original.is_lenient() {
        true => Schema::new(schema).lenient(),
        false => Schema::new(schema),
    }
}

impl Tool for AliasedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, raw: JsonObject) -> Result<JsonObject, ToolError> {
        let mut arguments = file_arguments(&self.spec.name, &Value::Object(raw))?;
        if self.takes_edits && !arguments.contains_key("edits") {
            let pair: Map<String, Value> = ["oldText", "newText"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), arguments.shift_remove(name)?)))
                .collect();
            arguments.insert("edits".to_owned(), json!([pair]));
        }
        self.inner.prepare(arguments)
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.inner.run(input, cx)
    }
}

#[cfg(test)]
mod tests {
    use pinch_agent_core::tool::FnTool;

    use super::*;

    #[track_caller]
    fn check(tool: &str, raw: Value, expect: Result<Value, &str>) {
        let found = file_arguments(tool, &raw).map(Value::Object).map_err(|error| error.text);
        assert_eq!(found, expect.map_err(str::to_owned), "{tool} {raw}");
    }

    #[test]
    fn aliases_and_blocks_are_accepted() {
        check("read", json!({"filePath": "a", "limit": 3}), Ok(json!({"limit": 3, "path": "a"})));
        check("read", json!({"path": "p", "file": "f"}), Ok(json!({"path": "p"})));
        let blocks = json!([{"type": "text", "text": "a\n"}, {"kind": "text", "value": "b"}]);
        check("write", json!({"path": "p", "content": blocks}), Ok(json!({"path": "p", "content": "a\nb"})));
        check("edit", json!({"path": "p", "edits": []}), Ok(json!({"path": "p", "edits": []})));
        check("exec", json!({"file": "x"}), Ok(json!({"file": "x"})));
    }

    #[test]
    fn missing_parameters_are_named_with_the_received_ones() {
        let text = "Missing required parameters: path (path or file_path), oldText (oldText or old_string) (received: newText). \
                    Supply correct parameters before retrying.";
        check("edit", json!({"newText": ""}), Err(text));
        let text =
            "Missing required parameter: content (received: path, content). Supply correct parameters before retrying.";
        check("write", json!({"path": "p", "content": 7}), Err(text));
        check("read", json!([]), Err("Missing parameters for read"));
    }

    #[test]
    fn either_spelling_matches_the_schema() {
        let schema = json!({
            "type": "object",
            "required": ["path", "content"],
            "properties": {"path": {"type": "string", "description": "File"}, "content": {"type": "string"}},
        });
        let spec = ToolSpec::new("write", "Writes", Schema::new(schema));
        let tool: Arc<dyn Tool> = Arc::new(FnTool::new(spec, |input: JsonObject, _| async move {
            Ok::<_, ToolError>(Value::Object(input).to_string())
        }));
        let aliased = with_aliases(tool);
        let schema = aliased.spec().parameters.raw();
        assert_eq!(schema["required"], json!(["content"]));
        assert_eq!(schema["properties"]["file_path"], schema["properties"]["path"]);
        let raw = json!({"file_path": "a", "content": ""});
        let prepared = aliased.prepare(raw.as_object().unwrap().clone());
        assert_eq!(prepared.map(Value::Object), Ok(json!({"content": "", "path": "a"})));
    }

    #[test]
    fn the_aliased_schema_is_built_once() {
        let read = |schema: &Schema| {
            let spec = ToolSpec::new("read", "", schema.clone());
            with_aliases(Arc::new(FnTool::new(spec, |_: JsonObject, _| async { Ok(ToolOutput::text("")) })))
        };
        let schema = Schema::new(json!({"type": "object", "properties": {"path": {"type": "string"}}}));
        let raw = |tool: &Arc<dyn Tool>| Arc::clone(tool.spec().parameters.raw());
        let (first, second) = (read(&schema), read(&schema));
        assert!(Arc::ptr_eq(&raw(&first), &raw(&second)));
        let lenient = read(&schema.clone().lenient());
        assert!(lenient.spec().parameters.is_lenient() && !first.spec().parameters.is_lenient());
        let other = read(&Schema::new(json!({"type": "object", "properties": {"path": {"type": "number"}}})));
        assert_eq!(raw(&other)["properties"]["file_path"], json!({"type": "number"}));
    }
}

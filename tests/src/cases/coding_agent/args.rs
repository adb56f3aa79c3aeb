//! Cases of kind `cli_args`: parsing a command line.

use pinch_cli::options::CliOptions;
use serde_json::{Map, Value, json};

/// The parsed options, under the names that the recordings use: only those that were set, and four fields that are always present.
pub(super) fn read(input: &Value) -> Value {
    let args = input["argv"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let options = CliOptions::parse(args);
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| drop(shown.insert(name.to_owned(), value));
    put("messages", json!(options.messages));
    put("fileArgs", json!(options.files));
    let unknown = options.unknown.iter().map(|(name, value)| match value {
        Some(value) => (name.clone(), json!(value)),
        None => (name.clone(), json!(true)),
    });
    put("unknownFlags", Value::Object(unknown.collect()));
    let kind = |is_error: bool| if is_error { "error" } else { "warning" };
    let complaints = options.complaints.iter().map(|one| json!({"type": kind(one.is_error), "message": one.text}));
    put("diagnostics", complaints.collect());
    let texts = [
        ("provider", &options.provider),
        ("model", &options.model),
        ("apiKey", &options.api_key),
        ("systemPrompt", &options.system_prompt),
        ("session", &options.session),
        ("sessionId", &options.session_id),
        ("fork", &options.fork),
        ("name", &options.name),
        ("export", &options.export),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            put(name, json!(value));
        }
    }
    let lists = [
        ("models", options.models.as_deref()),
        ("tools", options.tools.as_deref()),
        ("excludeTools", options.exclude_tools.as_deref()),
        ("appendSystemPrompt", given(&options.append_system_prompt)),
        ("extensions", given(&options.extensions)),
        ("skills", given(&options.skills)),
        ("promptTemplates", given(&options.prompt_templates)),
        ("themes", given(&options.themes)),
    ];
    for (name, list) in lists {
        if let Some(list) = list {
            put(name, json!(list));
        }
    }
    let switches = [
        ("print", options.print),
        ("continue", options.continue_last),
        ("resume", options.resume),
        ("noSession", options.no_session),
        ("noTools", options.no_tools),
        ("noBuiltinTools", options.no_builtin_tools),
        ("noExtensions", options.no_extensions),
        ("noSkills", options.no_skills),
        ("noPromptTemplates", options.no_prompt_templates),
        ("noThemes", options.no_themes),
        ("noContextFiles", options.no_context_files),
        ("verbose", options.verbose),
        ("offline", options.offline),
        ("help", options.help),
        ("version", options.version),
    ];
    for (name, on) in switches {
        if on {
            put(name, true.into());
        }
    }
    if let Some(mode) = options.mode {
        put("mode", mode.as_str().into());
    }
    if let Some(level) = options.thinking {
        put("thinking", level.as_str().into());
    }
    if let Some(dir) = &options.session_dir {
        put("sessionDir", dir.to_string_lossy().into());
    }
    if let Some(trusted) = options.trust {
        put("projectTrustOverride", trusted.into());
    }
    if let Some(search) = &options.list_models {
        put("listModels", search.as_ref().map_or(Value::Bool(true), |search| json!(search)));
    }
    Value::Object(shown)
}

fn given(list: &[String]) -> Option<&[String]> {
    (!list.is_empty()).then_some(list)
}

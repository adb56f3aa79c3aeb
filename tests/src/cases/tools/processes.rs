//! `pty-keys`, `process-log`, `process-name`, `workspace-paths`.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::{JsonObject, Progress, Tool, ToolCx, ToolOutput};
use pinch_coding_agent::machine::LocalMachine;
use pinch_coding_agent::tools::bash::Shell;
use pinch_coding_agent::tools::path::WorkingDirectory;
use pinch_coding_agent::tools::{ToolParts, coding_tools};
use pinch_ports::Caller;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_tools::exec::modes::{ExecAsk, ExecSecurity};
use pinch_tools::paths::PathRoot;
use pinch_tools::pipeline::ToolLayers;
use pinch_tools::policy::{PolicyRequest, ToolPolicies};
use pinch_tools::process::{
    BackgroundTool, CommandOptions, ExecTool, ProcessRegistry, encode_keys, encode_paste, session_name, slice_log,
};
use serde_json::{Value, json};

use super::super::Case;
use super::{block_on, only, texts};

pub(super) fn keys(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["keys", "literal", "hex", "text", "bracketed"])?;
    if let Some(text) = input["text"].as_str() {
        let data = encode_paste(text, input["bracketed"] != false);
        return Ok(json!({"data": String::from_utf8_lossy(&data), "warnings": []}));
    }
    let encoded = encode_keys(input["literal"].as_str(), &texts(&input["hex"]), &texts(&input["keys"]));
    // Cases write bytes as characters.
    let data = match String::from_utf8(encoded.data.clone()) {
        Ok(text) => text,
        Err(_) => encoded.data.iter().map(|byte| char::from(*byte)).collect(),
    };
    Ok(json!({"data": data, "warnings": encoded.warnings}))
}

pub(super) fn log(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["text", "offset", "limit"])?;
    let number = |key: &str| input[key].as_u64().and_then(|n| usize::try_from(n).ok());
    let found = slice_log(input["text"].as_str().ok_or("no text")?, number("offset"), number("limit"));
    Ok(json!({"slice": found.slice, "totalLines": found.total_lines, "totalChars": found.total_chars}))
}

pub(super) fn name(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["command"])?;
    Ok(json!({"name": session_name(input["command"].as_str().ok_or("no command")?)}))
}

/// The tools offered to a run, in a workspace that is not the process's working directory.
pub(super) fn workspace(input: &Value, expect: &Value) -> Result<(), String> {
    only(input, &["tool", "params", "files", "workspaceOnly", "sandbox"])?;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let base = dir.path().canonicalize().map_err(|error| error.to_string())?;
    let (ws, sb) = (base.join("ws"), base.join("sb"));
    let root = if input["sandbox"].is_object() { &sb } else { &ws };
    for place in [&ws, &sb] {
        std::fs::create_dir(place).map_err(|error| error.to_string())?;
    }
    let filled = |text: &str| text.replace("<ws>", &ws.to_string_lossy()).replace("<sb>", &sb.to_string_lossy());
    let named = |text: &str| text.replace(&*ws.to_string_lossy(), "<ws>").replace(&*sb.to_string_lossy(), "<sb>");
    for (path, text) in input["files"].as_object().into_iter().flatten() {
        let path = root.join(filled(path));
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text.as_str().unwrap_or_default()))
            .map_err(|error| error.to_string())?;
    }
    let tool = input["tool"].as_str().ok_or("no tool")?;
    let params: Value =
        serde_json::from_str(&filled(&input["params"].to_string())).map_err(|error| error.to_string())?;
    let is_confined = input["workspaceOnly"] == true || input["sandbox"].is_object();
    let path = ["path", "file_path"].iter().find_map(|key| params[*key].as_str()).unwrap_or_default().to_owned();
    let actual = block_on(async {
        let place = PathRoot::new(root);
        if is_confined
            && tool != "exec"
            && let Err(error) = place.contain(&path, &LocalMachine).await
        {
            return json!({"ok": false, "error": named(&error.to_string())});
        }
        let before = modified(root, &place.absolute(&path));
        match call(root, tool, params.as_object().cloned().unwrap_or_default(), is_confined).await {
            Err(error) => json!({"ok": false, "error": named(&error)}),
            Ok(output) if output.failed => json!({"ok": false, "error": named(&text_of(&output))}),
            Ok(output) if tool == "exec" => json!({"ok": true, "cwd": named(text_of(&output).trim())}),
            Ok(_) => {
                let path = place.absolute(&path);
                let is_touched = path.exists() && (tool == "read" || modified(root, &path) != before || tool == "edit");
                json!({"ok": true, "path": is_touched.then(|| named(&path.to_string_lossy()))})
            }
        }
    })?;
    super::check(expect, &actual)
}

fn modified(root: &Path, path: &Path) -> Option<Vec<u8>> {
    std::fs::read(root.join(path)).ok()
}

fn text_of(output: &ToolOutput) -> String {
    output.content.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n")
}

async fn call(root: &Path, tool: &str, params: JsonObject, is_confined: bool) -> Result<ToolOutput, String> {
    let shell = Shell { program: "/bin/sh".into(), prefix: None, env: Vec::new(), temp: root.to_owned() };
    let place = WorkingDirectory { cwd: root.to_owned(), home: None };
    let parts = ToolParts::new(Arc::new(LocalMachine), place, shell);
    let registry = ProcessRegistry::default();
    let mut options = CommandOptions::new(root, vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    options.security = ExecSecurity::Full;
    options.ask = ExecAsk::Off;
    options.root = is_confined.then(|| root.to_owned());
    let process = BackgroundTool::new(registry.clone(), options.scope.clone());
    let layers = ToolLayers {
        base: coding_tools(&parts),
        replacements: vec![Arc::new(ExecTool::new(Arc::new(LocalMachine), registry, options)), Arc::new(process)],
        ..ToolLayers::default()
    };
    let (policies, _) = ToolPolicies::read(&json!({}));
    let caller = Caller::new().owner();
    let offered = layers.offer(&policies.resolve(&PolicyRequest::new(&caller, "anthropic", "claude-opus-4-5")));
    let tool: &Arc<dyn Tool> = offered.tools.get(tool).ok_or_else(|| format!("there is no tool {tool}"))?;
    let (cancel, host, progress) = (Cancel::new(), Host::system(), Progress::ignored());
    let call = "call-1".into();
    let cx = ToolCx { call: &call, cancel: &cancel, progress: &progress, host: &host };
    let input = tool.prepare(params).map_err(|error| error.text)?;
    tool.run(input, &cx).await.map_err(|error| error.text)
}

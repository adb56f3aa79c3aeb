//! `prompt`, `prompt-runtime`, `bootstrap`.

use pinch_embed::config::prompt::BootstrapLimits;
use pinch_embed::prompt::bootstrap::{InjectedFile, WorkspaceFile, inject};
use pinch_embed::prompt::runtime_line::runtime_line;
use pinch_embed::prompt::{PromptMode, ReactionLevel, RuntimeInfo, SandboxPrompt, SystemPromptParams, ToolSummary};
use pinch_embed::replies::ReasoningLevel;
use serde_json::{Value, json};

use super::super::Case;
use super::{only, texts};

const MEMBERS: [&str; 25] = [
    "workspaceDir",
    "defaultThinkLevel",
    "reasoningLevel",
    "extraSystemPrompt",
    "ownerNumbers",
    "reasoningTagHint",
    "toolNames",
    "toolSummaries",
    "modelAliasLines",
    "userTimezone",
    "userTime",
    "userTimeFormat",
    "contextFiles",
    "skillsPrompt",
    "heartbeatPrompt",
    "docsPath",
    "workspaceNotes",
    "ttsHint",
    "promptMode",
    "runtimeInfo",
    "messageToolHints",
    "sandboxInfo",
    "reactionGuidance",
    "memoryCitationsMode",
    "productName",
];

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn params(input: &Value) -> Result<SystemPromptParams, String> {
    only(input, &MEMBERS)?;
    let mut params = SystemPromptParams::default();
    params.product = text(&input["productName"]);
    params.workspace_dir = text(&input["workspaceDir"]).unwrap_or_default();
    params.thinking = text(&input["defaultThinkLevel"]).unwrap_or_default();
    params.reasoning = match input["reasoningLevel"].as_str() {
        Some("on") => ReasoningLevel::On,
        Some("stream") => ReasoningLevel::Stream,
        _ => ReasoningLevel::Off,
    };
    params.extra = text(&input["extraSystemPrompt"]);
    params.owners = texts(&input["ownerNumbers"]);
    params.reasoning_tags = input["reasoningTagHint"].as_bool().unwrap_or(false);
    params.tools = input["toolNames"].as_array().filter(|names| !names.is_empty()).map(|names| {
        let names = names.iter().filter_map(Value::as_str);
        let summary = |name: &str| text(&input["toolSummaries"][name]);
        names.map(|name| ToolSummary { name: name.to_owned(), summary: summary(name) }).collect()
    });
    params.model_aliases = texts(&input["modelAliasLines"]);
    params.time_zone = text(&input["userTimezone"]);
    params.skills = text(&input["skillsPrompt"]).unwrap_or_default();
    params.heartbeat = text(&input["heartbeatPrompt"]);
    params.docs = text(&input["docsPath"]);
    params.workspace_notes = texts(&input["workspaceNotes"]);
    params.voice_hint = text(&input["ttsHint"]);
    params.message_hints = texts(&input["messageToolHints"]);
    params.cites_memories = input["memoryCitationsMode"] != "off";
    let mode = input["promptMode"].as_str().unwrap_or("full");
    params.mode = PromptMode::parse(mode).ok_or_else(|| format!("no mode is called {mode:?}"))?;
    params.runtime = runtime_info(&input["runtimeInfo"])?;
    let reactions = &input["reactionGuidance"];
    params.reactions = reactions["level"].as_str().and_then(ReactionLevel::parse).zip(text(&reactions["channel"]));
    params.sandbox = sandbox(&input["sandboxInfo"])?;
    let files = input["contextFiles"].as_array().into_iter().flatten();
    params.files = files
        .map(|file| InjectedFile {
            name: text(&file["path"]).unwrap_or_default(),
            path: text(&file["path"]).unwrap_or_default().into(),
            text: text(&file["content"]).unwrap_or_default(),
            is_missing: false,
            raw_chars: 0,
            is_truncated: false,
            is_near_limit: false,
        })
        .collect();
    Ok(params)
}

fn sandbox(info: &Value) -> Result<Option<SandboxPrompt>, String> {
    let members = [
        "enabled",
        "workspaceDir",
        "workspaceAccess",
        "agentWorkspaceMount",
        "elevated",
        "browserBridgeUrl",
        "browserNoVncUrl",
        "hostBrowserAllowed",
        "containerWorkspaceDir",
    ];
    only(info, &members)?;
    let elevated = &info["elevated"];
    let level = text(&elevated["defaultLevel"]).filter(|_| elevated["allowed"] == true);
    Ok((info["enabled"] == true).then(|| SandboxPrompt {
        workspace: text(&info["workspaceDir"]),
        access: text(&info["workspaceAccess"]),
        mount: text(&info["agentWorkspaceMount"]),
        host_browser: info["hostBrowserAllowed"].as_bool(),
        elevated: level,
        backend: None,
    }))
}

fn runtime_info(info: &Value) -> Result<RuntimeInfo, String> {
    let members = [
        "agentId",
        "host",
        "repoRoot",
        "os",
        "arch",
        "node",
        "model",
        "defaultModel",
        "shell",
        "channel",
        "capabilities",
    ];
    only(info, &members)?;
    Ok(RuntimeInfo {
        agent: text(&info["agentId"]),
        host: text(&info["host"]),
        repo: text(&info["repoRoot"]),
        os: text(&info["os"]),
        arch: text(&info["arch"]),
        node: text(&info["node"]),
        pinch: None,
        model: text(&info["model"]),
        default_model: text(&info["defaultModel"]),
        shell: text(&info["shell"]),
        channel: text(&info["channel"]),
        capabilities: texts(&info["capabilities"]),
    })
}

pub(super) fn runtime(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["runtimeInfo", "channel", "capabilities", "thinkLevel"])?;
    let mut info = runtime_info(&input["runtimeInfo"])?;
    info.channel = text(&input["channel"]).or(info.channel);
    if input["capabilities"].is_array() {
        info.capabilities = texts(&input["capabilities"]);
    }
    Ok(json!({"line": runtime_line(&info, input["thinkLevel"].as_str().unwrap_or("off"))}))
}

pub(super) fn sections(input: &Value, expect: &Value) -> Result<(), String> {
    only(expect, &["sectionsInOrder", "absent", "contains", "notContains"])?;
    let prompt = params(input)?.sections().whole();
    let lines: Vec<&str> = prompt.lines().collect();
    let mut from = 0;
    for heading in texts(&expect["sectionsInOrder"]) {
        match lines[from..].iter().position(|line| *line == heading) {
            Some(at) => from += at + 1,
            None => return Err(format!("{heading:?} is not there, or not in its place, in\n{prompt}")),
        }
    }
    if let Some(heading) = texts(&expect["absent"]).iter().find(|heading| lines.contains(&heading.as_str())) {
        return Err(format!("{heading:?} is there"));
    }
    if let Some(missing) = texts(&expect["contains"]).iter().find(|part| !prompt.contains(part.as_str())) {
        return Err(format!("{missing:?} is not in\n{prompt}"));
    }
    match texts(&expect["notContains"]).iter().find(|part| prompt.contains(part.as_str())) {
        Some(part) => Err(format!("{part:?} is there")),
        None => Ok(()),
    }
}

pub(super) fn bootstrap(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["fileName", "content", "maxChars", "file", "totalMaxChars"])?;
    let file = match &input["file"] {
        Value::Null => {
            let name = text(&input["fileName"]).ok_or("no name")?;
            WorkspaceFile { path: name.clone().into(), name, text: text(&input["content"]) }
        }
        file => {
            only(file, &["name", "path", "missing", "content"])?;
            let name = text(&file["name"]).ok_or("no name")?;
            let path = text(&file["path"]).unwrap_or_else(|| name.clone()).into();
            WorkspaceFile { name, path, text: text(&file["content"]).filter(|_| file["missing"] != true) }
        }
    };
    let usual = BootstrapLimits::default();
    let chars = |name: &str, or: usize| input[name].as_u64().map_or(or, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let limits = BootstrapLimits { file: chars("maxChars", usual.file), total: chars("totalMaxChars", usual.total) };
    let injected = inject([file], limits);
    Ok(injected.iter().map(|file| json!({"path": file.name, "content": file.text})).collect())
}

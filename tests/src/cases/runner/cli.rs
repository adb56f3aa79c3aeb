//! Command-line agents: the command for a prompt, and runs with a program whose output a case defines.

use std::os::unix::fs::PermissionsExt as _;

use pinch_embed::run::RunError;
use pinch_embed::runtime::cli::args::{CliTurn, command_line};
use serde_json::{Value, json};

use super::super::only;
use super::world;
use super::{CaseOutcome, check, config};

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    Some(CaseOutcome::from(match area {
        "cli-backend-args" => arguments(given).and_then(|args| check(expect, &args.into())),
        "cli-backend-output" => output(given).and_then(|reply| check(expect, &reply)),
        _ => return None,
    }))
}

fn arguments(given: &Value) -> Result<Vec<String>, String> {
    only(
        given,
        &[
            "backend",
            "model",
            "systemPrompt",
            "prompt",
            "images",
            "newSessionId",
            "cliSessionId",
            "cliBackends",
            "config",
        ],
    )?;
    let backends = [&given["cliBackends"], &given["config"]].into_iter().find(|value| value.is_object());
    let document = json!({"agents": {"defaults": {"cliBackends": backends}}});
    let backends = config(document).agents.defaults.cli_backends;
    let name = given["backend"].as_str().unwrap_or("");
    let backend = backends.get(name).ok_or_else(|| format!("there is no backend {name}"))?;
    let images: Vec<String> =
        given["images"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let turn = CliTurn {
        model: given["model"].as_str().unwrap_or(""),
        system_prompt: given["systemPrompt"].as_str(),
        prompt: given["prompt"].as_str().unwrap_or(""),
        images: &images,
        known_session: given["cliSessionId"].as_str(),
        new_session: given["newSessionId"].as_str().unwrap_or("new"),
    };
    Ok(std::iter::once(backend.command.clone()).chain(command_line(backend, &turn).args).collect())
}

fn output(given: &Value) -> Result<Value, String> {
    only(given, &["backend", "mode", "stdout", "exit", "stderr"])?;
    let text = |error: std::io::Error| error.to_string();
    let dir = tempfile::tempdir().map_err(text)?;
    let file = |name: &str| -> Result<String, String> {
        let path = dir.path().join(name);
        std::fs::write(&path, given[name].as_str().unwrap_or("")).map_err(text)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let (stdout, stderr, exit) = (file("stdout")?, file("stderr")?, given["exit"].as_i64().unwrap_or(0));
    let program = dir.path().join("agent");
    std::fs::write(&program, format!("#!/bin/sh\n/bin/cat '{stdout}'\n/bin/cat '{stderr}' >&2\nexit {exit}\n"))
        .map_err(text)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).map_err(text)?;
    let by_form = if given["mode"] == "jsonl" { "codex-cli" } else { "claude-cli" };
    let backend = given["backend"].as_str().unwrap_or(by_form);
    let form = given.get("mode").cloned().unwrap_or_else(|| "json".into());
    let document = json!({"agents": {"defaults": {
        "model": {"primary": format!("{backend}/m")},
        "workspace": "~/workspace",
        "cliBackends": {backend: {"command": program, "output": form}},
    }}});
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(text)?;
    let engine = world::builder(dir.path(), document).build();
    let done = runtime.block_on(engine.run(engine.request("s1", None, None, "hi")).finish());
    match done {
        Ok(result) => {
            let usage = result.meta.agent.usage;
            Ok(json!({
                "text": result.payloads.first().map_or("", |payload| payload.reply.text.as_str()),
                "sessionId": result.meta.agent.session_id,
                "usage": {
                    "input": usage.input,
                    "output": usage.output,
                    "cacheRead": usage.cache_read,
                    "cacheWrite": usage.cache_write,
                    "total": usage.total_tokens,
                },
            }))
        }
        Err(RunError::Failover(error)) => Ok(json!({"failover": {
            "reason": error.reason.map(|reason| reason.as_str()),
            "status": error.status.or_else(|| error.reason?.status()),
        }})),
        Err(error) => Err(error.to_string()),
    }
}

//! Kinds for packages, versions and keys.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pinch_coding_agent::packages::source::GitSource;
use pinch_coding_agent::packages::version::is_newer;
use pinch_coding_agent::startup_moves::keybindings;
use pinch_testing::cases::compare::same;
use pinch_testing::cases::program::pinch;
use serde_json::{Map, Value, json};

use super::files;
use super::pure::texts;
use crate::cases::{Case, CaseOutcome};

/// Upper limit for any command.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Runs a case; `None` if it is of another kind.
pub(super) fn run(case: &Case<'_>) -> Option<CaseOutcome> {
    let input = &case.case["input"];
    let ours = &case.case["ours"];
    let wanted = if ours.is_null() { &case.case["expect"] } else { ours };
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let value = match case.kind {
        "git_source" => git_source(text("source")),
        "version_newer" => json!(is_newer(text("candidate"), text("current"))),
        "keybindings_migration" => return Some(migrated(input, wanted).into()),
        "package_command" => return Some(command(input, wanted).into()),
        _ => return None,
    };
    Some(same(wanted, &json!({"ok": true, "value": value})).into())
}

fn git_source(text: &str) -> Value {
    let Some(git) = GitSource::parse(text) else { return Value::Null };
    let mut value = json!({
        "type": "git", "repo": git.repo, "host": git.host, "path": git.path, "pinned": git.reference.is_some(),
    });
    if let Some(reference) = git.reference {
        value["ref"] = reference.into();
    }
    value
}

/// Compares including the order of keys.
fn migrated(input: &Value, wanted: &Value) -> Result<(), String> {
    let empty = Map::new();
    let (config, has_changed) = keybindings::migrate(input["config"].as_object().unwrap_or(&empty));
    let config = Value::Object(config);
    same(wanted, &json!({"ok": true, "value": {"config": config, "migrated": has_changed}}))?;
    let (expected, got) = (wanted["value"]["config"].to_string(), config.to_string());
    if expected == got { Ok(()) } else { Err(format!("expected {expected}, got {got}")) }
}

fn command(input: &Value, wanted: &Value) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    let got = runtime.block_on(ran(input))?;
    let mut wanted = wanted.clone();
    // The program's name in usage and help lines is replaced by ours.
    for stream in ["stdout", "stderr"] {
        let text = wanted[stream].as_str().unwrap_or_default().trim();
        let text = text
            .replace("Usage: pi ", "Usage: pinch ")
            .replace("\"pi ", "\"pinch ")
            .replace("|self|pi]", "|self|pinch]");
        wanted[stream] = text.into();
    }
    same(&wanted, &got)
}

async fn ran(input: &Value) -> Result<Value, String> {
    let program = pinch()?;
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let place = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).and_then(|()| path.canonicalize()).map_err(|why| why.to_string())
    };
    let (cwd, agent, home) = (place("work")?, place("agent")?, place("home")?);
    let fill = |text: &str| text.replace("$CWD", &shown(&cwd)).replace("$AGENT_DIR", &shown(&agent));
    files::write(&cwd, &input["files"])?;
    files::write(&agent, &input["agentFiles"])?;
    let mut command = tokio::process::Command::new(program);
    command
        .args(texts(&input["args"]).iter().map(|arg| fill(arg)))
        .current_dir(&cwd)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .env("PI_CODING_AGENT_DIR", &agent)
        .env("PI_OFFLINE", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(MAX_TIME, command.output()).await;
    let output = output.map_err(|_| format!("not over after {MAX_TIME:?}"))?.map_err(|why| why.to_string())?;
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(&shown(&cwd), "$CWD").replace(&shown(&agent), "$AGENT_DIR");
        text.trim().to_owned()
    };
    Ok(json!({"stdout": text(&output.stdout), "stderr": text(&output.stderr), "exitCode": output.status.code()}))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

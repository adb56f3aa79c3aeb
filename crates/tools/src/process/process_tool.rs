//! `process`: manages background commands.

use std::sync::LazyLock;
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use pinch_machine::{Exit, ProcessEnd};
use serde_json::{Map, Value, json};

use super::keys::{encode_keys, encode_paste};
use super::log::slice_log;
use super::name::session_name;
use super::registry::{ProcessRegistry, TrackedCommand};

/// The `process` tool, for the commands of one scope.
pub struct BackgroundTool {
    registry: ProcessRegistry,
    scope: String,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["action"],
        "properties": {
            "action": {"type": "string", "description": "list, poll, log, write, send-keys, submit, paste, kill, clear or remove"},
            "sessionId": {"type": "string", "description": "The command, for all actions but list"},
            "data": {"type": "string", "description": "What to write"},
            "keys": texts,
            "hex": texts,
            "literal": {"type": "string", "description": "Text for send-keys"},
            "text": {"type": "string", "description": "Text for paste"},
            "bracketed": {"type": "boolean", "description": "Mark the text as pasted (default)"},
            "eof": {"type": "boolean", "description": "End the input after writing"},
            "offset": {"type": "number", "description": "First line of log, from 0"},
            "limit": {"type": "number", "description": "Number of lines of log"},
            "timeout": {"type": "number", "description": "Milliseconds that poll waits for output"},
        },
    }))
    .lenient();
    ToolSpec::new(
        "process",
        "Looks after commands that run in the background: lists them, reads their output, writes to them, ends them.",
        parameters,
    )
});

/// Default number of log lines without an offset and a limit.
const LOG_LINES: usize = 200;
/// Maximum milliseconds that `poll` waits.
const MAX_WAIT_MS: f64 = 120_000.0;
/// Characters of output per command in a list.
const TAIL: usize = 2000;

impl BackgroundTool {
    /// Creates the tool for the commands of a scope.
    pub fn new(registry: ProcessRegistry, scope: impl Into<String>) -> Self {
        Self { registry, scope: scope.into() }
    }

    async fn act(&self, input: &JsonObject, cx: &ToolCx<'_>) -> Result<ToolOutput, ToolError> {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let action = text("action").unwrap_or_default();
        if action == "list" {
            return Ok(self.list(cx));
        }
        if !["poll", "log", "write", "send-keys", "submit", "paste", "kill", "clear", "remove"].contains(&action) {
            return Ok(failed(format!("Unknown action {action}")));
        }
        let Some(id) = text("sessionId").map(str::trim).filter(|id| !id.is_empty()) else {
            return Ok(failed("sessionId is required for this action."));
        };
        let Some(session) = self.registry.find(&self.scope, id) else {
            let what = if matches!(action, "write" | "send-keys" | "submit" | "paste" | "kill") {
                "active session"
            } else {
                "session"
            };
            return Ok(failed(format!("No {what} found for {id}")));
        };
        if !session.log().is_backgrounded {
            return Ok(failed(format!("Session {id} is not backgrounded.")));
        }
        let texts = |key: &str| -> Vec<String> {
            input
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        match action {
            "poll" => self.poll(&session, input, cx).await,
            "log" => Ok(log(&session, input)),
            "write" => {
                let data = text("data").unwrap_or_default();
                let ends = input.get("eof") == Some(&Value::Bool(true));
                let closed = if ends { " (stdin closed)" } else { "" };
                let done = format!("Wrote {} bytes to session {id}.{closed}", data.len());
                Ok(write(&session, data.as_bytes(), ends, done).await)
            }
            "send-keys" => {
                let keys = encode_keys(text("literal"), &texts("hex"), &texts("keys"));
                if keys.data.is_empty() {
                    return Ok(failed("No key data provided."));
                }
                let warnings = keys.warnings.iter().map(|warning| format!("\n{warning}")).collect::<String>();
                let done = format!("Sent {} bytes to session {id}.{warnings}", keys.data.len());
                Ok(write(&session, &keys.data, false, done).await)
            }
            "submit" => Ok(write(&session, b"\r", false, format!("Submitted session {id} (sent CR).")).await),
            "paste" => match text("text").filter(|text| !text.is_empty()) {
                None => Ok(failed("No paste text provided.")),
                Some(pasted) => {
                    let data = encode_paste(pasted, input.get("bracketed") != Some(&Value::Bool(false)));
                    let done = format!("Pasted {} characters to session {id}.", pasted.chars().count());
                    Ok(write(&session, &data, false, done).await)
                }
            },
            "kill" => {
                if !session.is_running() {
                    return Ok(failed(format!("No active session found for {id}")));
                }
                session.kill().await;
                Ok(with_status("failed", format!("Killed session {id}."), &session))
            }
            "clear" if session.is_running() => Ok(failed(format!("Session {id} is still running; kill or remove it."))),
            _ => {
                let was_running = session.is_running();
                if was_running {
                    session.kill().await;
                }
                self.registry.forget(id);
                let word = if action == "clear" { "Cleared" } else { "Removed" };
                Ok(with_status(
                    if was_running { "failed" } else { "completed" },
                    format!("{word} session {id}."),
                    &session,
                ))
            }
        }
    }

    fn list(&self, cx: &ToolCx<'_>) -> ToolOutput {
        let now = cx.host.now_ms();
        let sessions = self.registry.list(&self.scope, now);
        let mut lines = Vec::new();
        let mut details = Vec::new();
        for session in &sessions {
            let status = status(session);
            let log = session.log();
            let ended_at = log.end.as_ref().map(|(_, at)| *at);
            let (tail, is_truncated) = (log.tail(TAIL), log.is_truncated);
            drop(log);
            let runtime = ended_at.unwrap_or(now).saturating_sub(session.started_ms);
            let name = session_name(&session.command).unwrap_or_else(|| session.command.clone());
            lines.push(format!("{} {:<9} {} :: {name}", session.id, status, compact(runtime)));
            details.push(json!({
                "sessionId": session.id, "status": status, "pid": session.pid, "startedAt": session.started_ms, "endedAt": ended_at,
                "runtimeMs": runtime, "cwd": session.cwd, "command": session.command, "name": name, "tail": tail, "truncated": is_truncated,
                "exitCode": exit_code(session), "exitSignal": exit_signal(session),
            }));
        }
        let text = if lines.is_empty() { "No running or recent sessions.".to_owned() } else { lines.join("\n") };
        ToolOutput { details: Some(json!({"status": "completed", "sessions": details})), ..ToolOutput::text(text) }
    }

    async fn poll(
        &self,
        session: &TrackedCommand,
        input: &JsonObject,
        cx: &ToolCx<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let wait = input.get("timeout").and_then(Value::as_f64).unwrap_or(0.0).clamp(0.0, MAX_WAIT_MS);
        let waiting = async {
            loop {
                let changed = session.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if !session.is_running() || !session.log().pending.is_empty() {
                    return;
                }
                changed.await;
            }
        };
        let waited = cx.cancel.run(tokio::time::timeout(Duration::from_secs_f64(wait / 1000.0), waiting)).await;
        // No new output in time is a valid result too.
        if waited.is_err() {
            return Err(ToolError::aborted());
        }
        let mut log = session.log();
        let fresh: String = log.pending.drain(..).collect();
        let aggregated = log.text();
        drop(log);
        let fresh = fresh.trim_end();
        let end = match (exit_code(session), exit_signal(session), session.is_running()) {
            (_, _, true) => "Process still running.".to_owned(),
            (_, Some(signal), _) => format!("Process exited with signal {signal}."),
            (code, None, _) => format!("Process exited with code {}.", code.unwrap_or(0)),
        };
        let shown = if fresh.is_empty() { "(no new output)" } else { fresh };
        let mut output = with_status(status(session), format!("{shown}\n\n{end}"), session);
        if let Some(Value::Object(details)) = &mut output.details {
            details.insert("aggregated".into(), aggregated.into());
        }
        Ok(output)
    }
}

fn log(session: &TrackedCommand, input: &JsonObject) -> ToolOutput {
    let number = |key: &str| {
        let n = input.get(key).and_then(Value::as_f64).filter(|n| *n >= 0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; a cast saturates")]
        n.map(|n| n as usize)
    };
    let (offset, limit) = (number("offset"), number("limit"));
    let state = session.log();
    let (text, is_truncated) = (state.text(), state.is_truncated);
    drop(state);
    let is_default = offset.is_none() && limit.is_none();
    let found = slice_log(&text, offset, if is_default { Some(LOG_LINES) } else { limit });
    let mut shown = if found.slice.is_empty() { "(no output yet)".to_owned() } else { found.slice };
    if is_default && found.total_lines > LOG_LINES {
        shown.push_str(&format!(
            "\n\n[Showing the last {LOG_LINES} of {} lines. Use offset and limit for others.]",
            found.total_lines
        ));
    }
    let mut output = with_status(status(session), shown, session);
    if let Some(Value::Object(details)) = &mut output.details {
        let more = [
            ("total", json!(found.total_lines)),
            ("totalLines", json!(found.total_lines)),
            ("totalChars", json!(found.total_chars)),
            ("truncated", json!(is_truncated)),
        ];
        details.extend(more.map(|(key, value)| (key.to_owned(), value)));
    }
    output
}

async fn write(session: &TrackedCommand, data: &[u8], ends: bool, done: String) -> ToolOutput {
    if !session.is_running() {
        return failed(format!("No active session found for {}", session.id));
    }
    match session.write(data, ends).await {
        Some(()) => with_status("running", done, session),
        None => failed(format!("Session {} stdin is not writable.", session.id)),
    }
}

fn failed(text: impl Into<String>) -> ToolOutput {
    ToolOutput { details: Some(json!({"status": "failed"})), failed: true, ..ToolOutput::text(text) }
}

fn with_status(status: &str, text: String, session: &TrackedCommand) -> ToolOutput {
    let details = Map::from_iter([
        ("status".to_owned(), status.into()),
        ("sessionId".to_owned(), session.id.as_str().into()),
        ("exitCode".to_owned(), exit_code(session).into()),
        ("exitSignal".to_owned(), exit_signal(session).into()),
        ("name".to_owned(), session_name(&session.command).into()),
    ]);
    ToolOutput { details: Some(Value::Object(details)), ..ToolOutput::text(text) }
}

fn exit_of(session: &TrackedCommand) -> Option<Exit> {
    match session.log().end.as_ref()? {
        (Ok(ProcessEnd::Exited(exit) | ProcessEnd::TimedOut(exit) | ProcessEnd::Cancelled(_, exit)), _) => Some(*exit),
        (Err(_), _) => None,
    }
}

fn exit_code(session: &TrackedCommand) -> Option<i32> {
    match exit_of(session)? {
        Exit::Code(code) => Some(code),
        Exit::Signal(_) => None,
    }
}

fn exit_signal(session: &TrackedCommand) -> Option<String> {
    exit_of(session)?.signal_name()
}

fn status(session: &TrackedCommand) -> &'static str {
    match &session.log().end {
        None => "running",
        Some((Ok(ProcessEnd::Exited(Exit::Code(0))), _)) => "completed",
        Some(_) => "failed",
    }
}

/// Formats a duration like `1m5s`.
fn compact(ms: i64) -> String {
    let secs = ms / 1000;
    match secs {
        0 => format!("{ms}ms"),
        1..60 => format!("{secs}s"),
        60..3600 => format!("{}m{}s", secs / 60, secs % 60),
        _ => format!("{}h{}m", secs / 3600, secs % 3600 / 60),
    }
}

impl Tool for BackgroundTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.act(&input, cx).await })
    }
}

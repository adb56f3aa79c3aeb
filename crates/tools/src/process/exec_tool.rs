//! `exec`: runs a command.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use pinch_machine::{CommandSpec, Exit, FileKind, Machine, ProcessEnd, TerminalSize};
use pinch_stdx::cancel::CancelReason;
use serde_json::{Value, json};

use super::host::tightened;
use super::options::CommandOptions;
use super::permission::CommandCall;
use super::registry::{CommandStart, ProcessRegistry, TrackedCommand};
use super::retry;
use crate::paths::PathRoot;

/// The `exec` tool.
pub struct ExecTool {
    machine: Arc<dyn Machine>,
    registry: ProcessRegistry,
    options: CommandOptions,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["command"],
        "properties": {
            "command": {"type": "string", "description": "Shell command to run"},
            "workdir": {"type": "string", "description": "Directory to run it in"},
            "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Variables to set"},
            "yieldMs": {"type": "number", "description": "Milliseconds to wait before it goes to the background (10 to 120000)"},
            "background": {"type": "boolean", "description": "Let it go to the background at once"},
            "host": {"type": "string", "description": "Where it runs: sandbox or gateway (the machine outside)"},
            "elevated": {"type": "boolean", "description": "Run it outside of the sandbox, if that is allowed"},
            "security": {"type": "string", "description": "Stricter rules: deny, allowlist or full"},
            "ask": {"type": "string", "description": "Ask a person more often: off, on-miss or always"},
            "pty": {"type": "boolean", "description": "Run it on a terminal, for programs that need one"},
            "timeout": {"type": "number", "description": "Seconds after which it is ended; 0 for never"},
        },
    }))
    .lenient();
    let about = "Runs a shell command and returns its output. A command that takes long goes on in the background; process looks after it.";
    ToolSpec::new("exec", about, parameters)
});

/// Terminal size of commands that request one.
const TERMINAL: TerminalSize = TerminalSize { columns: 120, rows: 30 };
/// Default terminal type, unless the environment sets one.
const TERM: &str = "xterm-256color";
/// Range of milliseconds that a call may wait before its command moves to the background.
const YIELD_MS: (f64, f64) = (10.0, 120_000.0);
/// Names of the timeout: OpenClaw has renamed it.
const TIMEOUTS: [&str; 3] = ["timeout", "timeoutSeconds", "timeoutSec"];
/// Maximum timeout of a command in seconds.
const MAX_TIMEOUT_SECS: f64 = 2_147_483.0;
/// Characters of output in progress reports and in results of running commands.
const TAIL: usize = 2000;
/// Why a person is asked about a command that failed in the sandbox.
const RETRY: &str = "it failed in the sandbox and would run once more, outside of it";
/// Interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(250);

impl ExecTool {
    /// Creates the tool. Commands belong to the registry, shared with `process`.
    pub fn new(machine: Arc<dyn Machine>, registry: ProcessRegistry, options: CommandOptions) -> Self {
        Self { machine, registry, options }
    }

    async fn exec(&self, input: &JsonObject, cx: &ToolCx<'_>) -> Result<ToolOutput, ToolError> {
        let command = input.get("command").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if command.is_empty() {
            return Err(ToolError::new("Provide a command to start."));
        }
        cx.cancel.check().map_err(|_| ToolError::aborted())?;
        let mut warnings: Vec<String> = Vec::new();
        let is_given = |key: &str| input.get(key).is_some_and(|value| !value.is_null() && *value != Value::Bool(false));
        if !self.options.allow_background && (is_given("background") || is_given("yieldMs")) {
            warnings.push("Warning: background execution is disabled; running synchronously.".to_owned());
        }
        let options = &self.options;
        let rules = tightened(input, (options.security, options.ask));
        let chosen = options.hosts.choose(input, rules, &options.scope)?;
        let machine = chosen.outside.as_ref().unwrap_or(&self.machine);
        let cwd = self.workdir(input.get("workdir").and_then(Value::as_str), &**machine, &mut warnings).await;
        let env = self.environment(input)?;
        let is_inside = options.hosts.outside.is_some() && chosen.outside.is_none();
        let mut call = CommandCall {
            has_own_programs: is_inside && options.hosts.has_own_programs,
            command,
            cwd: &cwd,
            env: &env,
            sets_env: input.get("env").and_then(Value::as_object).is_some_and(|env| !env.is_empty()),
            security: chosen.security,
            ask: chosen.ask,
            reason: None,
        };
        let output = self.run_on(chosen.outside.as_ref(), &call, input, warnings.clone(), cx).await?;
        if !is_inside || !retry::was_denied(&output) {
            return Ok(output);
        }
        let Some(outside) = options.hosts.retry(input, rules) else { return Ok(output) };
        (call.security, call.ask, call.reason) = (outside.security, outside.ask, Some(RETRY));
        call.has_own_programs = false;
        warnings.push("Note: the command failed in the sandbox; after an approval, it ran again outside.".to_owned());
        match self.run_on(outside.outside.as_ref(), &call, input, warnings, cx).await {
            Ok(output) => Ok(output),
            // Without the approval, the first failure is the result.
            Err(_) if !cx.cancel.is_cancelled() => Ok(output),
            Err(error) => Err(error),
        }
    }

    /// Runs a command if it is permitted: outside, or on the usual machine.
    async fn run_on(
        &self,
        outside: Option<&Arc<dyn Machine>>,
        call: &CommandCall<'_>,
        input: &JsonObject,
        mut warnings: Vec<String>,
        cx: &ToolCx<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let CommandCall { command, cwd, env, .. } = *call;
        let permit = self.options.permit(call, cx).await?;
        let shell = self.options.shell.clone();
        let spec =
            CommandSpec::new(shell, vec!["-c".into(), command.to_owned()], cwd.to_owned(), env.to_vec()).ending_rest();
        let timeout = match TIMEOUTS.iter().find_map(|name| input.get(*name)).and_then(Value::as_f64) {
            Some(secs) if secs > 0.0 => Some(Duration::from_secs_f64(secs.min(MAX_TIMEOUT_SECS))),
            Some(0.0) => None,
            Some(_) | None => self.options.timeout,
        };
        let machine = outside.unwrap_or(&self.machine);
        let is_inside = self.options.hosts.outside.is_some() && outside.is_none();
        let wants_terminal = input.get("pty") == Some(&Value::Bool(true));
        if wants_terminal && is_inside {
            warnings.push("Warning: there are no terminals in the sandbox; running without one.".to_owned());
        }
        permit.check(&self.options, call)?;
        let how = || CommandStart {
            shown: command,
            scope: &self.options.scope,
            timeout,
            limits: self.options.limits,
            notices: self.options.exit_notices,
        };
        let start = |spec| self.registry.start(&**machine, spec, how(), cx.host);
        let on_terminal = match wants_terminal && !is_inside {
            true => Some(start(on_terminal(spec.clone())).await),
            false => None,
        };
        let session = match on_terminal {
            Some(Ok(session)) => session,
            Some(Err(error)) if error.code == "ENOTSUP" => {
                warnings.push("Warning: this build has no terminals; running without one.".to_owned());
                start(spec.with_input()).await?
            }
            Some(Err(error)) => return Err(error.into()),
            None => start(spec.with_input()).await?,
        };
        let output = self.follow(&session, input, &warnings, timeout, cx).await;
        // A command that ended while its call was waiting is forgotten.
        if !session.log().is_backgrounded {
            self.registry.forget(&session.id);
        }
        output
    }

    /// Returns the directory on a machine where a command runs: the one that the call names, or else the usual one, with a warning.
    async fn workdir(&self, workdir: Option<&str>, machine: &dyn Machine, warnings: &mut Vec<String>) -> PathBuf {
        let Some(workdir) = workdir.map(str::trim).filter(|workdir| !workdir.is_empty()) else {
            return self.options.cwd.clone();
        };
        let options = &self.options;
        let place = PathRoot {
            root: options.root.clone().unwrap_or_else(|| PathBuf::from("/")),
            cwd: options.cwd.clone(),
            home: options.home.clone(),
        };
        let found = match &options.root {
            Some(_) => place.contain(workdir, machine).await.ok().map(|found| found.path),
            None => Some(place.absolute(workdir)),
        };
        if let Some(path) = found
            && machine.stat(&path).await.is_ok_and(|stat| stat.kind == FileKind::Directory)
        {
            return path;
        }
        let fallback = options.cwd.display();
        warnings.push(format!("Warning: workdir \"{workdir}\" is unavailable; using \"{fallback}\"."));
        options.cwd.clone()
    }

    fn environment(&self, input: &JsonObject) -> Result<Vec<(String, String)>, ToolError> {
        let given = input.get("env").and_then(Value::as_object).into_iter().flatten();
        let overrides: Vec<(String, String)> =
            given.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
        let host = self.options.host_env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Ok(self.options.environment.build(host, &overrides)?)
    }

    /// Waits until a command ends or moves to the background.
    async fn follow(
        &self,
        session: &Arc<TrackedCommand>,
        input: &JsonObject,
        warnings: &[String],
        timeout: Option<Duration>,
        cx: &ToolCx<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let yield_after = match (input.get("background"), input.get("yieldMs").and_then(Value::as_f64)) {
            (Some(Value::Bool(true)), _) => Duration::ZERO,
            (_, Some(ms)) => Duration::from_secs_f64(ms.clamp(YIELD_MS.0, YIELD_MS.1) / 1000.0),
            (_, None) => self.options.yield_after,
        };
        let waits = async {
            let ended = session.ended();
            tokio::pin!(ended);
            loop {
                if tokio::time::timeout(REPORT_EVERY, &mut ended).await.is_ok() {
                    return;
                }
                let tail = session.log().tail(TAIL);
                cx.progress.report(ToolOutput::text(shown(warnings, &tail)));
            }
        };
        let watched = async {
            match self.options.allow_background {
                true => tokio::time::timeout(yield_after, waits).await.is_ok(),
                false => {
                    waits.await;
                    true
                }
            }
        };
        match cx.cancel.run(watched).await {
            Err(_) => {
                session.kill().await;
                Err(ToolError::aborted())
            }
            Ok(false) => {
                let mut log = session.log();
                // It may have just ended.
                if log.end.is_none() {
                    log.is_backgrounded = true;
                    let tail = log.tail(TAIL);
                    drop(log);
                    return Ok(running(session, warnings, &tail));
                }
                drop(log);
                Ok(ended(session, warnings, timeout))
            }
            Ok(true) => Ok(ended(session, warnings, timeout)),
        }
    }
}

/// Runs the command on a terminal.
fn on_terminal(mut spec: CommandSpec) -> CommandSpec {
    let is_named = |name: &str, value: &str| name == "TERM" && !value.is_empty() && value != "dumb";
    if !spec.env.iter().any(|(name, value)| is_named(name, value)) {
        spec.env.retain(|(name, _)| name != "TERM");
        spec.env.push(("TERM".to_owned(), TERM.to_owned()));
    }
    spec.on_terminal(TERMINAL)
}

fn shown(warnings: &[String], output: &str) -> String {
    let lines: Vec<&str> =
        warnings.iter().map(String::as_str).chain([output]).filter(|text| !text.is_empty()).collect();
    lines.join("\n")
}

/// Returns the result of a command that moved to the background.
fn running(session: &TrackedCommand, warnings: &[String], tail: &str) -> ToolOutput {
    let pid = session.pid.map_or_else(|| "n/a".to_owned(), |pid| pid.to_string());
    let text = format!(
        "Command still running (session {}, pid {pid}). Use process (list/poll/log/write/kill/clear/remove) for follow-up.",
        session.id
    );
    let details = json!({
        "status": "running", "sessionId": session.id, "pid": session.pid, "startedAt": session.started_ms, "cwd": session.cwd, "tail": tail,
    });
    ToolOutput { details: Some(details), ..ToolOutput::text(shown(warnings, &text)) }
}

/// Returns the result of a command that ended. A failed command becomes a failed result with all of its output.
fn ended(session: &TrackedCommand, warnings: &[String], timeout: Option<Duration>) -> ToolOutput {
    let log = session.log();
    let output = log.text();
    let output = output.trim();
    let (end, ended_ms) =
        log.end.clone().unwrap_or((Err("the command is still running".to_owned()), session.started_ms));
    drop(log);
    let (reason, exit_code) = match &end {
        Ok(ProcessEnd::Exited(Exit::Code(0))) => (None, Some(0)),
        Ok(ProcessEnd::Exited(Exit::Code(code))) => (Some(format!("Command exited with code {code}")), Some(*code)),
        Ok(ProcessEnd::Exited(exit)) => {
            (Some(format!("Command aborted by signal {}", exit.signal_name().unwrap_or_default())), None)
        }
        Ok(ProcessEnd::TimedOut(_)) => {
            (Some(format!("Command timed out after {} seconds", timeout.unwrap_or_default().as_secs_f64())), None)
        }
        Ok(ProcessEnd::Cancelled(CancelReason::User, _)) => {
            (Some("Command aborted by signal SIGKILL".to_owned()), None)
        }
        Ok(ProcessEnd::Cancelled(..)) => (Some("Command aborted before exit code was captured".to_owned()), None),
        Err(error) => (Some(error.clone()), None),
    };
    let details = json!({
        "status": if reason.is_none() { "completed" } else { "failed" },
        "exitCode": exit_code,
        "timedOut": matches!(end, Ok(ProcessEnd::TimedOut(_))),
        "durationMs": ended_ms - session.started_ms,
        "aggregated": output,
        "cwd": session.cwd,
    });
    let mut text = shown(warnings, if output.is_empty() && reason.is_none() { "(no output)" } else { output });
    if let Some(reason) = &reason {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(reason);
    }
    ToolOutput { details: Some(details), failed: reason.is_some(), ..ToolOutput::text(text) }
}

impl Tool for ExecTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.exec(&input, cx).await })
    }
}

#[cfg(test)]
mod tests;

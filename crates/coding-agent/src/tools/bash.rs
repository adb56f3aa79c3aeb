//! `bash`: runs a shell command.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::path::Place;
use super::truncate::{Limit, MAX_BYTES, MAX_LINES, format_size, truncate_tail};
use super::{ToolParts, missing_folder, text};
use crate::machine::{CommandSpec, ExitStatus, Machine, Process};

mod output;

use output::Output;

/// How commands are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// The shell; a command is given to it with `-c`.
    pub program: PathBuf,
    /// Put before every command, on lines of its own.
    pub prefix: Option<String>,
    /// The whole environment of commands.
    pub env: Vec<(String, String)>,
    /// Where long output is kept.
    pub temp: PathBuf,
}

/// Seconds a command may be given at most: more does not fit into the timers of the programs this one replaces.
const MAX_TIMEOUT_SECS: f64 = 2_147_483.647;
/// How long a command that is ended may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long output is listened to after the command has ended, for what its children still have to say.
const LINGER: Duration = Duration::from_millis(100);
/// Time between two reports of the output so far.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The tool.
pub struct BashTool {
    spec: ToolSpec,
    machine: Arc<dyn Machine>,
    place: Place,
    shell: Shell,
}

impl BashTool {
    /// Builds it.
    pub fn new(parts: &ToolParts) -> Self {
        let parameters = Schema::lenient(json!({
            "type": "object",
            "required": ["command"],
            "properties": {
                "command": {"type": "string", "description": "Shell command to run"},
                "timeout": {"type": "number", "description": "Seconds after which the command is ended (none by default)"},
            },
        }));
        let about = format!(
            "Runs a shell command in the working directory and returns its output, standard output and error together. \
             Of long output the last {MAX_LINES} lines or {}KB are returned, whichever is less; all of it is kept in a temporary file \
             whose path the result names.",
            MAX_BYTES / 1024
        );
        let mut spec = ToolSpec::new("bash", about, parameters);
        spec.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
        Self { spec, machine: Arc::clone(&parts.machine), place: parts.place.clone(), shell: parts.shell.clone() }
    }
}

/// How waiting for a command came to its end.
enum End {
    Exited(ExitStatus),
    TimedOut,
    Aborted,
}

impl Tool for BashTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            cx.cancel.check().map_err(|_| ToolError::aborted())?;
            let command = text(&input, "command")?;
            let timeout = timeout(&input)?;
            if self.machine.stat(&self.place.cwd).await.is_err() {
                return Err(missing_folder(&self.place.cwd));
            }
            let command = match &self.shell.prefix {
                Some(prefix) => format!("{prefix}\n{command}"),
                None => command.to_owned(),
            };
            let spec = CommandSpec {
                program: self.shell.program.clone(),
                args: vec!["-c".into(), command],
                cwd: self.place.cwd.clone(),
                env: self.shell.env.clone(),
            };
            let mut process = self.machine.spawn(spec).await?;
            cx.progress.report(ToolOutput::default());
            let mut output = Output::new(&self.shell.temp, cx.host);
            let end = follow(&mut *process, &mut output, timeout, cx).await?;
            drop(process);
            Ok(result(output, &end, timeout))
        })
    }
}

fn timeout(input: &JsonObject) -> Result<Option<f64>, ToolError> {
    match input.get("timeout").and_then(Value::as_f64) {
        None => Ok(None),
        Some(secs) if secs > 0.0 && secs <= MAX_TIMEOUT_SECS => Ok(Some(secs)),
        Some(secs) => Err(ToolError::new(format!(
            "Invalid timeout: {secs}. It must be a number of seconds above 0 and at most {MAX_TIMEOUT_SECS}."
        ))),
    }
}

/// Collects output until the command has ended, and ends it when it must.
async fn follow(
    process: &mut dyn Process,
    output: &mut Output,
    timeout: Option<f64>,
    cx: &ToolCx<'_>,
) -> Result<End, ToolError> {
    let out_of_time = timeout.map(|secs| Instant::now() + Duration::from_secs_f64(secs));
    let mut next_report = Instant::now();
    let mut unreported = false;
    let end = loop {
        tokio::select! {
            biased;
            _ = cx.cancel.cancelled() => break End::Aborted,
            () = sleep_until(out_of_time) => break End::TimedOut,
            () = sleep_until(unreported.then_some(next_report)) => {
                cx.progress.report(output.so_far());
                unreported = false;
                next_report = Instant::now() + REPORT_EVERY;
            }
            piece = process.output() => match piece {
                Some(piece) => {
                    output.push(&piece)?;
                    unreported = true;
                }
                None => break End::Exited(process.wait().await?),
            },
            status = process.wait() => {
                let status = status?;
                linger(process, output).await?;
                break End::Exited(status);
            }
        }
    };
    if !matches!(end, End::Exited(_)) {
        process.kill(GRACE).await;
        linger(process, output).await?;
    }
    if unreported {
        cx.progress.report(output.so_far());
    }
    Ok(end)
}

/// Takes what is still on its way. A child in the background may hold the pipe open for ever; that must not hold the tool.
async fn linger(process: &mut dyn Process, output: &mut Output) -> Result<(), ToolError> {
    let until = Instant::now() + LINGER;
    while let Ok(Some(piece)) = tokio::time::timeout_at(until, process.output()).await {
        output.push(&piece)?;
    }
    Ok(())
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The result: the end of the output, what was cut, and how the command ended.
fn result(mut output: Output, end: &End, timeout: Option<f64>) -> ToolOutput {
    let (mut shown, details) = output.finish();
    let status = match end {
        End::Exited(ExitStatus::Code(0)) => None,
        End::Exited(ExitStatus::Code(code)) => Some(format!("Command exited with code {code}")),
        End::Exited(status @ ExitStatus::Signal(signal)) => {
            Some(format!("Command terminated by signal {signal} (exit code {})", status.code()))
        }
        End::TimedOut => Some(format!("Command timed out after {} seconds", timeout.unwrap_or_default())),
        End::Aborted => Some("Command aborted".to_owned()),
    };
    let may_be_empty = matches!(end, End::TimedOut | End::Aborted);
    if shown.is_empty() && !may_be_empty {
        shown.push_str("(no output)");
    }
    let failed = status.is_some();
    if let Some(status) = status {
        if !shown.is_empty() {
            shown.push_str("\n\n");
        }
        shown.push_str(&status);
    }
    let details = match (details, failed) {
        (Some(details), _) => Some(details),
        (None, true) => Some(json!({})),
        (None, false) => None,
    };
    ToolOutput { details, failed, ..ToolOutput::text(shown) }
}

/// What was cut from output, in words, and as details.
fn notice(output: &str, total_lines: usize, total_bytes: usize, path: &str) -> Option<(String, Value, String)> {
    let mut cut = truncate_tail(output, MAX_LINES, MAX_BYTES);
    // What is held may be less than all there was.
    (cut.total_lines, cut.total_bytes) = (total_lines, total_bytes);
    if cut.by.is_none() && total_bytes <= MAX_BYTES && total_lines <= MAX_LINES {
        return None;
    }
    let by = cut.by.unwrap_or(Limit::Bytes);
    cut.by = Some(by);
    let start = total_lines - cut.output_lines + 1;
    let notice = if cut.last_line_partial {
        let line = output.rsplit('\n').next().unwrap_or_default();
        format!(
            "[Showing last {} of line {total_lines} (line is {}). Full output: {path}]",
            format_size(cut.content.len()),
            format_size(line.len())
        )
    } else if by == Limit::Lines {
        format!("[Showing lines {start}-{total_lines} of {total_lines}. Full output: {path}]")
    } else {
        let limit = format_size(MAX_BYTES);
        format!("[Showing lines {start}-{total_lines} of {total_lines} ({limit} limit). Full output: {path}]")
    };
    let details = json!({"truncation": cut.to_details(), "fullOutputPath": path});
    Some((notice, details, cut.content))
}

//! `bash`: runs a shell command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::process::tail::{Cleaning, OutputTail, TailLimits};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::facts::{SESSION_VARIABLES, SessionFacts};
use super::path::WorkingDirectory;
use super::truncate::{Limit, MAX_BYTES, MAX_LINES, format_size, truncate_tail};
use super::{ToolParts, missing_folder, text};
use crate::machine::{CommandSpec, Exit, Machine, Process, ProcessEnd};

mod structured;

/// How commands run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// The shell; commands are passed with `-c`.
    pub program: PathBuf,
    /// Text inserted before every command, on separate lines.
    pub prefix: Option<String>,
    /// The complete environment of commands.
    pub env: Vec<(String, String)>,
    /// Directory for long output.
    pub temp: PathBuf,
}

/// Why there is no shell to run commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoShell {
    /// The configured program does not exist.
    #[error("Custom shell path not found: {}. Set \"shellPath\" in settings.json to an existing shell, or remove it", path.display())]
    NotFound {
        /// The configured path.
        path: PathBuf,
    },
    /// None is configured, and there is none in the usual places.
    #[error("Found neither /bin/bash nor /bin/sh. Set \"shellPath\" in settings.json to an existing shell")]
    NotInstalled,
}

impl Shell {
    /// Returns the program that runs commands: the configured one, or the usual one.
    ///
    /// # Errors
    /// [`NoShell`] if it does not exist.
    pub fn program(configured: Option<&Path>) -> Result<PathBuf, NoShell> {
        match configured {
            Some(path) if path.exists() => Ok(path.to_owned()),
            Some(path) => Err(NoShell::NotFound { path: path.to_owned() }),
            None => Self::usual_program().ok_or(NoShell::NotInstalled),
        }
    }

    /// Returns the shell to use if none is configured, or `None` if there is none in the usual places.
    pub fn usual_program() -> Option<PathBuf> {
        ["/bin/bash", "/usr/bin/bash", "/bin/sh"].map(PathBuf::from).into_iter().find(|path| path.exists())
    }

    /// Returns the environment of commands: that of this process, marked as run by an agent.
    pub fn environment<'a>(own: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
        // The names and values that programs run by pi check for.
        let marks = [("AI_AGENT", "pi"), ("PI_CODING_AGENT", "true")];
        let own = own.into_iter().filter(|(name, _)| !marks.iter().any(|(mark, _)| mark == name));
        own.chain(marks).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

impl Shell {
    /// Prepends a directory of programs to the `PATH`, unless it is already on it. Without a `PATH` the shell uses its own default, which
    /// is kept.
    pub fn with_programs(mut env: Vec<(String, String)>, folder: &Path) -> Vec<(String, String)> {
        if let Some((_, path)) = env.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("PATH"))
            && !std::env::split_paths(path.as_str()).any(|known| known == folder)
        {
            let rest = std::env::split_paths(path.as_str());
            let joined = std::env::join_paths(std::iter::once(folder.to_owned()).chain(rest));
            if let Some(joined) = joined.ok().and_then(|joined| joined.into_string().ok()) {
                *path = joined;
            }
        }
        env
    }
}

/// Maximum timeout of a command in seconds: larger values do not fit into the timers of the programs this one replaces.
const MAX_TIMEOUT_SECS: f64 = 2_147_483.647;
/// How long a command may take to exit when stopped.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum bytes of output saved to a file.
const MAX_SPILL: u64 = 1024 * 1024 * 1024;
/// Interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The `bash` tool.
#[derive(Clone)]
pub struct BashTool {
    machine: Arc<dyn Machine>,
    place: WorkingDirectory,
    shell: Shell,
    facts: SessionFacts,
}

/// The declaration sent to the model, the same in every session.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["command"],
        "properties": {
            "command": {"type": "string", "description": "Shell command to run"},
            "timeout": {"type": "number", "description": "Seconds after which the command is ended (none by default)"},
        },
    }))
    .lenient();
    let about = format!(
        "Runs a shell command in the working directory and returns its output, standard output and error together. \
         Of long output the last {MAX_LINES} lines or {}KB are returned, whichever is less; all of it is kept in a temporary file \
         whose path the result names.",
        MAX_BYTES / 1024
    );
    let mut spec = super::spec("bash", about, parameters);
    spec.output_schema = Some(structured::schema());
    spec
});

impl BashTool {
    /// Returns the same tool on another machine.
    #[must_use]
    pub fn on(&self, machine: Arc<dyn Machine>) -> Self {
        Self { machine, ..self.clone() }
    }

    /// Creates the tool.
    pub fn new(parts: &ToolParts) -> Self {
        Self {
            machine: Arc::clone(&parts.machine),
            place: parts.place.clone(),
            shell: parts.shell.clone(),
            facts: parts.facts.clone(),
        }
    }
}

impl Tool for BashTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            cx.cancel.check().map_err(|_| ToolError::aborted())?;
            let command = text(&input, "command")?;
            let timeout = timeout(&input)?;
            let began = Instant::now();
            let mut process = self.start(command).await?;
            cx.progress.report(ToolOutput::default());
            let (output, end) = follow(&mut *process, self.new_tail(Cleaning::None), timeout, cx).await?;
            let structured = match &end {
                ProcessEnd::Exited(exit) => Some(structured::content(&output, exit.status(), began.elapsed())),
                ProcessEnd::TimedOut(_) | ProcessEnd::Cancelled(..) => None,
            };
            Ok(ToolOutput { structured, ..result(&output, end, timeout) })
        })
    }
}

impl BashTool {
    /// Runs a command that the user typed. Its output is stripped of terminal sequences; `on_text` receives it as it arrives. Cancelling
    /// kills the command with all its descendants.
    ///
    /// # Errors
    /// Fails if it cannot be started. A command that exits with an error is not an error.
    pub async fn run_for_user(
        &self,
        command: &str,
        on_text: &mut (dyn FnMut(&str) + Send),
        cancel: &Cancel,
    ) -> Result<UserCommand, ToolError> {
        let mut process = self.start(command).await?;
        let mut tail = self.new_tail(Cleaning::Terminal);
        let mut take = |piece: &[u8]| match tail.push(piece) {
            text if text.is_empty() => {}
            text => on_text(&text),
        };
        let end = process.pump(cancel, None, GRACE, &mut take).await?;
        match tail.finish() {
            text if text.is_empty() => {}
            text => on_text(&text),
        }
        let cut = truncate_tail(tail.text(), MAX_LINES, MAX_BYTES);
        Ok(UserCommand {
            truncated: cut.by.is_some() || !tail.is_whole(),
            output: cut.content,
            exit_code: match end {
                ProcessEnd::Exited(exit) => Some(i64::from(exit.status())),
                ProcessEnd::TimedOut(_) | ProcessEnd::Cancelled(..) => None,
            },
            cancelled: matches!(end, ProcessEnd::Cancelled(..)),
            full_output_path: tail.spill_path().map(PathBuf::from),
        })
    }

    /// Starts a command in the working directory.
    async fn start(&self, command: &str) -> Result<Box<dyn Process>, ToolError> {
        if self.machine.stat(&self.place.cwd).await.is_err() {
            return Err(missing_folder(&self.place.cwd));
        }
        let command = match &self.shell.prefix {
            Some(prefix) => format!("{prefix}\n{command}"),
            None => command.to_owned(),
        };
        let (program, args) = (self.shell.program.clone(), vec!["-c".into(), command]);
        let spec = CommandSpec::new(program, args, self.place.cwd.clone(), self.environment());
        self.machine.spawn(spec).await.map_err(|error| match error.code {
            "ENOENT" => ToolError::new(format!("Custom shell path not found: {}", self.shell.program.display())),
            _ => error.into(),
        })
    }

    /// Returns the shell's environment with the facts about the session.
    fn environment(&self) -> Vec<(String, String)> {
        let inherited = self.shell.env.iter().filter(|(name, _)| !SESSION_VARIABLES.contains(&name.as_str()));
        inherited.cloned().chain(self.facts.variables()).collect()
    }

    fn new_tail(&self, cleaning: Cleaning) -> OutputTail {
        let limits = TailLimits {
            max_bytes: MAX_BYTES,
            max_lines: MAX_LINES,
            max_spill: MAX_SPILL,
            spill_dir: self.machine.temp_dir().unwrap_or(&self.shell.temp).to_owned(),
            spill_prefix: "pinch-bash-".into(),
        };
        OutputTail::new(limits, cleaning)
    }
}

/// The result of a user command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserCommand {
    /// The end of its output.
    pub output: String,
    /// Its exit code, or 128 plus the signal number if a signal killed it; `None` if the user cancelled it.
    pub exit_code: Option<i64>,
    /// Whether the user cancelled it.
    pub cancelled: bool,
    /// Whether `output` is truncated.
    pub truncated: bool,
    /// File with the complete output, if it is long.
    pub full_output_path: Option<PathBuf>,
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

/// The output so far, and whether its newest part was reported.
struct OutputTracker {
    tail: OutputTail,
    unreported: bool,
}

/// Collects output until the command has exited, reporting progress.
async fn follow(
    process: &mut dyn Process,
    tail: OutputTail,
    timeout: Option<f64>,
    cx: &ToolCx<'_>,
) -> Result<(OutputTail, ProcessEnd), ToolError> {
    let seen = Mutex::new(OutputTracker { tail, unreported: false });
    let lock = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    let report = || {
        let mut seen = lock();
        if std::mem::take(&mut seen.unreported) {
            cx.progress.report(so_far(&seen.tail));
        }
    };
    let mut take = |piece: &[u8]| {
        let mut seen = lock();
        drop(seen.tail.push(piece));
        seen.unreported = true;
    };
    let end = {
        let mut pump = process.pump(cx.cancel, timeout.map(Duration::from_secs_f64), GRACE, &mut take);
        loop {
            tokio::select! {
                end = &mut pump => break end?,
                () = tokio::time::sleep(REPORT_EVERY) => report(),
            }
        }
    };
    report();
    let mut tail = seen.into_inner().unwrap_or_else(PoisonError::into_inner).tail;
    drop(tail.finish());
    Ok((tail, end))
}

/// Returns the end of the output, truncated to the limits of a result, with a notice.
fn cut(tail: &OutputTail) -> (String, Option<(String, Value)>) {
    let (total_lines, total_bytes) = (tail.n_lines() as usize, tail.n_bytes() as usize);
    let mut cut = truncate_tail(tail.text(), MAX_LINES, MAX_BYTES);
    if cut.by.is_none() && tail.is_whole() {
        return (cut.content, None);
    }
    // The buffer may hold less than the complete output.
    (cut.total_lines, cut.total_bytes) = (total_lines, total_bytes);
    let by = *cut.by.get_or_insert(Limit::Bytes);
    let start = total_lines - cut.output_lines + 1;
    let shown = if cut.last_line_partial {
        // The line may be longer than its buffered part.
        let line = usize::try_from(tail.n_bytes_of_last_line()).unwrap_or(usize::MAX);
        let (part, whole) = (format_size(cut.content.len()), format_size(line));
        format!("last {part} of line {total_lines} (line is {whole})")
    } else if by == Limit::Lines {
        format!("lines {start}-{total_lines} of {total_lines}")
    } else {
        format!("lines {start}-{total_lines} of {total_lines} ({} limit)", format_size(MAX_BYTES))
    };
    let mut details = json!({ "truncation": cut.to_details() });
    let place = match (tail.spill_path(), tail.spill_error()) {
        (Some(path), _) => {
            details["fullOutputPath"] = path.to_string_lossy().into();
            match tail.n_bytes_before_cut() {
                None => format!("Full output: {}", path.display()),
                Some(kept) => {
                    let kept = format_size(usize::try_from(kept).unwrap_or(usize::MAX));
                    format!("The first {kept} of the output, the rest was not kept: {}", path.display())
                }
            }
        }
        (None, Some(error)) => format!("cannot save the rest: {error}"),
        (None, None) => "The rest was not kept".to_owned(),
    };
    (cut.content, Some((format!("[Showing {shown}. {place}]"), details)))
}

fn so_far(tail: &OutputTail) -> ToolOutput {
    let (text, notice) = cut(tail);
    ToolOutput { details: Some(notice.map_or_else(|| json!({}), |(_, details)| details)), ..ToolOutput::text(text) }
}

/// Returns the result: the end of the output, a notice of truncation, and how the command ended.
fn result(tail: &OutputTail, end: ProcessEnd, timeout: Option<f64>) -> ToolOutput {
    let (mut shown, notice) = cut(tail);
    let status = match end {
        ProcessEnd::Exited(Exit::Code(0)) => None,
        // Like shells, report a death by signal as an exit code.
        ProcessEnd::Exited(exit) => Some(format!("Command exited with code {}", exit.status())),
        ProcessEnd::TimedOut(_) => Some(format!("Command timed out after {} seconds", timeout.unwrap_or_default())),
        ProcessEnd::Cancelled(..) => Some("Command aborted".to_owned()),
    };
    if shown.is_empty() && matches!(end, ProcessEnd::Exited(_)) {
        shown.push_str("(no output)");
    }
    // A cancelled or timed out command has the details of an error; one that exits with an error has a result.
    let mut details = (!matches!(end, ProcessEnd::Exited(_))).then(|| json!({}));
    if let Some((notice, more)) = notice {
        shown.push_str(&format!("\n\n{notice}"));
        details = Some(more);
    }
    let failed = status.is_some();
    if let Some(status) = status {
        if !shown.is_empty() {
            shown.push_str("\n\n");
        }
        shown.push_str(&status);
    }
    ToolOutput { details, failed, ..ToolOutput::text(shown) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_shell_is_reported_with_its_remedy() {
        let error = Shell::program(Some(Path::new("/no/such/shell"))).unwrap_err();
        let expected = "Custom shell path not found: /no/such/shell. Set \"shellPath\" in settings.json to an existing \
                        shell, or remove it";
        assert_eq!(error.to_string(), expected);
        assert_eq!(Shell::program(Some(Path::new("/bin/sh"))).unwrap(), Path::new("/bin/sh"));
    }
}

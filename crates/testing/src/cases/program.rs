//! Runs `pinch`, or another program for comparison, in separate directories against a scripted server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::notation;
use crate::server::Recorded;
use places::Places;

pub mod lines;
pub mod places;
pub mod server;
mod talk;

/// Maximum duration of a run.
const MAX_TIME: Duration = Duration::from_secs(60);

/// A program to run: pinch, or another one for comparison.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Path of the executable.
    pub path: PathBuf,
    /// Arguments before those of a case.
    pub first_args: Vec<OsString>,
    /// Additional environment variables.
    pub variables: Vec<(&'static str, OsString)>,
}

/// The output of one run.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// The exit code as in shells: above 128 if a signal ended the program.
    pub exit_code: Option<i32>,
}

/// The outcome of a case.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// All requests to the model, in order.
    pub requests: Vec<Recorded>,
    /// Standard output of the last run.
    pub stdout: String,
    /// Its JSON lines, if any.
    pub lines: Vec<Value>,
    /// Standard error of the last run.
    pub stderr: String,
    /// Exit code of the last run.
    pub exit_code: Option<i32>,
    /// All runs, in order.
    pub runs: Vec<RunOutput>,
    /// The content of the files that the case requests, by name.
    pub files_after: Value,
    /// The session files below the agent directory: their relative paths and content.
    pub sessions: Vec<(String, String)>,
    /// The working directory.
    pub cwd: String,
    /// The agent directory.
    pub agent_dir: String,
    /// The home directory.
    pub home: String,
    /// The port of the scripted server.
    pub port: u16,
}

impl ProgramOutput {
    /// Returns the last run's standard output as JSON, line by line.
    pub fn stdout_lines(&self) -> Vec<Value> {
        match self.lines.is_empty() {
            true => self.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
            false => self.lines.clone(),
        }
    }

    /// Replaces placeholders for the directories and the port in the expected value.
    pub fn put_in(&self, expected: &mut Value) {
        let port = self.port.to_string();
        let cwd_dir = format!("--{}--", self.cwd.trim_start_matches(['/', '\\']).replace(['/', '\\', ':'], "-"));
        let known = [
            ("sessions/<cwd-dir>", format!("sessions/{cwd_dir}")),
            ("$HOME", self.home.clone()),
            ("$CWD", self.cwd.clone()),
            ("$AGENT_DIR", self.agent_dir.clone()),
            ("<port>", port),
        ];
        notation::put_in(expected, &known.each_ref().map(|(name, value)| (*name, value.as_str())));
    }
}

/// Returns the exit code of a program ended by a signal, as in shells.
fn signal_code(status: std::process::ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    return None;
}

/// Returns the `pinch` built beside the current program; builds it if it is missing.
///
/// # Errors
///
/// Returns an error if it is missing and cannot be built.
pub fn pinch() -> Result<&'static Path, String> {
    static PINCH: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PINCH.get_or_init(find_or_build).as_deref().map_err(Clone::clone)
}

fn find_or_build() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|why| format!("cannot find the running program: {why}"))?;
    let folder = own.parent().ok_or("the running program has no directory")?;
    // Tests are one directory deeper.
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let pinch = folder.join(format!("pinch{}", std::env::consts::EXE_SUFFIX));
    if pinch.exists() {
        return Ok(pinch);
    }
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "pinch-cli", "--profile", profile, "--target-dir"]);
    cargo.arg(folder.parent().unwrap_or(folder)).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let status = cargo.status().map_err(|why| format!("cannot start cargo: {why}"))?;
    if status.success() && pinch.exists() {
        Ok(pinch)
    } else {
        Err(format!("{} is missing: run cargo build -p pinch-cli", pinch.display()))
    }
}

/// Runs the input of a case, with the settings that its file has for all cases.
///
/// # Errors
///
/// Returns an error if the case cannot be set up, or the program does not exit in time.
pub fn run(file: &Value, input: &Value) -> Result<ProgramOutput, String> {
    run_as(&Program { path: pinch()?.to_owned(), ..Program::default() }, file, input)
}

/// Runs a program with the input of a case.
///
/// # Errors
///
/// Returns an error if the case cannot be set up, or the program does not exit in time.
pub fn run_as(program: &Program, file: &Value, input: &Value) -> Result<ProgramOutput, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    runtime.block_on(run_all(program, file, input))
}

async fn run_all(program: &Program, file: &Value, input: &Value) -> Result<ProgramOutput, String> {
    let is_old = !file["fixtures"]["rpcModelsJson"].is_null();
    let calls = if is_old { server::Calls::One } else { server::Calls::Numbered };
    let server = server::start(&input["serverScript"], calls).await?;
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let places = Places::new(folder.path(), server.port())?;
    places.write_configuration(file, input)?;
    let whole_runs = input["runs"].as_array().cloned().unwrap_or_else(|| vec![json!({"args": input["args"]})]);
    let (mut lines, mut runs) = (Vec::new(), Vec::new());
    for one in &whole_runs {
        places.write_files(&places.cwd, &one["files"])?;
        let args = one["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut command = tokio::process::Command::new(&program.path);
        command
            .args(&program.first_args)
            .args(args.map(|arg| places.fill(arg)))
            .current_dir(&places.cwd)
            .env_clear()
            .envs(places.variables())
            .envs(program.variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (name, value) in input["env"].as_object().into_iter().flatten() {
            command.env(name, places.fill(value.as_str().unwrap_or_default()));
        }
        let n_asked = server.requests().len();
        let is_talk = input["lines"].is_array();
        let piped = one["stdin"].as_str().or(input["stdin"].as_str());
        command.stdin(if is_talk || piped.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().map_err(|why| why.to_string())?;
        let work = async {
            if is_talk {
                let talk = talk::ProgramDialogue::new(&mut child, &input["replies"])?;
                lines = talk.run(&child, &input["lines"], input, |text| places.fill(text)).await?;
            } else if let (Some(text), Some(mut to)) = (piped, child.stdin.take()) {
                to.write_all(text.as_bytes()).await.map_err(|why| why.to_string())?;
            }
            let after = [&one["signalAfter"], &input["signalAfter"]].into_iter().find(|after| after.is_object());
            if let Some((after, signal)) =
                after.filter(|_| !is_talk).and_then(|after| Some((after, after["signal"].as_str()?)))
            {
                tokio::time::sleep(Duration::from_millis(after["ms"].as_u64().unwrap_or(300))).await;
                talk::send_signal(&child, signal)?;
            } else if let Some(signal) = one["signal"].as_str() {
                // All requests are being answered, and the actions they cause have started.
                server
                    .wait_for_requests(n_asked + usize::try_from(one["atRequest"].as_u64().unwrap_or(1)).unwrap_or(1))
                    .await;
                tokio::time::sleep(Duration::from_millis(one["after"].as_u64().unwrap_or(300))).await;
                talk::send_signal(&child, signal)?;
            }
            child.wait_with_output().await.map_err(|why| why.to_string())
        };
        let output = tokio::time::timeout(MAX_TIME, work).await;
        let output = output.map_err(|_| format!("not over after {MAX_TIME:?}"))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let exit_code = output.status.code().or_else(|| signal_code(output.status));
        let ended = RunOutput { stdout: text(&output.stdout), stderr: text(&output.stderr), exit_code };
        if !is_talk {
            lines = ended.stdout.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        }
        runs.push(ended);
    }
    let last = |text: fn(&RunOutput) -> &String| runs.last().map(text).cloned().unwrap_or_default();
    Ok(ProgramOutput {
        requests: server.requests(),
        stdout: last(|run| &run.stdout),
        lines,
        stderr: last(|run| &run.stderr),
        exit_code: runs.last().and_then(|run| run.exit_code),
        runs,
        files_after: places.read_files(&input["filesToCompare"]),
        sessions: places.read_sessions(),
        cwd: places.cwd.to_string_lossy().into_owned(),
        agent_dir: places.agent.to_string_lossy().into_owned(),
        home: places.home.to_string_lossy().into_owned(),
        port: places.port,
    })
}

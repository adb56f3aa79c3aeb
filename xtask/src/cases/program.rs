//! Runs `pinch` in folders of its own against the scripted server.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use pinch_testing::server::Recorded;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::cargo;
use crate::cases::Case;
use crate::cases::sessions::notation;

pub(crate) mod lines;
mod server;
mod talk;

/// No run of the program takes longer.
const MAX_TIME: Duration = Duration::from_secs(60);

/// What came of a case.
pub(crate) struct Ran {
    /// All requests to the model, in order.
    pub(crate) requests: Vec<Recorded>,
    /// What the last run wrote to standard output.
    pub(crate) stdout: String,
    /// The same as lines of JSON, where it is.
    pub(crate) lines: Vec<Value>,
    /// What the last run wrote to standard error.
    pub(crate) stderr: String,
    /// What every run wrote to standard error, in order.
    pub(crate) all_stderr: Vec<String>,
    /// How the last run ended.
    pub(crate) exit_code: Option<i32>,
    /// The content of the files that the case asks for, by name.
    pub(crate) files_after: Value,
    /// The session files below the agent's folder, by name: their paths there and their content.
    pub(crate) sessions: Vec<(String, String)>,
    /// The working directory.
    pub(crate) cwd: String,
    /// The agent's folder.
    pub(crate) agent_dir: String,
    /// The port of the scripted server.
    pub(crate) port: u16,
}

impl Ran {
    /// What stands for the folders and the port in what a case expects.
    pub(crate) fn put_in(&self, expected: &mut Value) {
        let port = self.port.to_string();
        let cwd_dir = format!("--{}--", self.cwd.trim_start_matches(['/', '\\']).replace(['/', '\\', ':'], "-"));
        let known = [
            ("sessions/<cwd-dir>", format!("sessions/{cwd_dir}")),
            ("$CWD", self.cwd.clone()),
            ("$AGENT_DIR", self.agent_dir.clone()),
            ("<port>", port),
        ];
        notation::put_in(expected, &known.each_ref().map(|(name, value)| (*name, value.as_str())));
    }
}

/// The code of a program that a signal ended, as shells tell it.
fn signal_code(status: std::process::ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    return None;
}

/// Where the program is; built when it is not there. Under test the tests' own build is taken.
pub(crate) fn pinch() -> Result<&'static Path, String> {
    static PINCH: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = PINCH.get_or_init(|| {
        let folder = cargo::target_dir().map_err(|why| format!("{why:#}"))?.join("debug");
        let program = folder.join(format!("pinch{}", std::env::consts::EXE_SUFFIX));
        if !(cfg!(test) && program.exists()) {
            match cargo::run(&["build", "--quiet", "-p", "pinch-cli"], &[]) {
                Ok(true) => {}
                Ok(false) => return Err("pinch does not build".to_owned()),
                Err(why) => return Err(format!("{why:#}")),
            }
        }
        Ok(program)
    });
    found.as_deref().map_err(Clone::clone)
}

/// Runs all that a case says.
pub(crate) fn run(case: &Case<'_>) -> Result<Ran, String> {
    let program = pinch()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    runtime.block_on(run_all(case, program))
}

async fn run_all(case: &Case<'_>, program: &Path) -> Result<Ran, String> {
    let input = &case.case["input"];
    let is_old = !case.file["fixtures"]["rpcModelsJson"].is_null();
    let calls = if is_old { server::Calls::One } else { server::Calls::Numbered };
    let server = server::start(&input["serverScript"], calls).await?;
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let place = |name: &str| -> Result<PathBuf, String> {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).map_err(|why| why.to_string())?;
        path.canonicalize().map_err(|why| why.to_string())
    };
    let places = Places { cwd: place("work")?, agent: place("agent")?, home: place("home")?, port: server.port() };
    places.write_configuration(case.file, input)?;
    let whole_runs = input["runs"].as_array().cloned().unwrap_or_else(|| vec![json!({"args": input["args"]})]);
    let (mut stdout, mut lines, mut all_stderr, mut exit_code) = (String::new(), Vec::new(), Vec::new(), None);
    for one in &whole_runs {
        places.write_files(&places.cwd, &one["files"])?;
        let args = one["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut command = tokio::process::Command::new(program);
        command
            .args(args.map(|arg| places.fill(arg)))
            .current_dir(&places.cwd)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &places.home)
            .env("PI_CODING_AGENT_DIR", &places.agent)
            .env("PI_OFFLINE", "1")
            .env("TZ", "UTC")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (name, value) in input["env"].as_object().into_iter().flatten() {
            command.env(name, places.fill(value.as_str().unwrap_or_default()));
        }
        let is_talk = input["lines"].is_array();
        let piped = input["stdin"].as_str();
        command.stdin(if is_talk || piped.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().map_err(|why| why.to_string())?;
        let work = async {
            if is_talk {
                let talk = talk::Talk::new(&mut child, &input["replies"])?;
                lines = talk.run(&child, &input["lines"], input, |text| places.fill(text)).await?;
            } else if let (Some(text), Some(mut to)) = (piped, child.stdin.take()) {
                to.write_all(text.as_bytes()).await.map_err(|why| why.to_string())?;
            }
            child.wait_with_output().await.map_err(|why| why.to_string())
        };
        let output = tokio::time::timeout(MAX_TIME, work).await;
        let output = output.map_err(|_| format!("not over after {MAX_TIME:?}"))??;
        stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if !is_talk {
            lines = stdout.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
        }
        all_stderr.push(String::from_utf8_lossy(&output.stderr).into_owned());
        exit_code = output.status.code().or_else(|| signal_code(output.status));
    }
    Ok(Ran {
        requests: server.requests(),
        stdout,
        lines,
        stderr: all_stderr.last().cloned().unwrap_or_default(),
        all_stderr,
        exit_code,
        files_after: places.read_files(&input["filesToCompare"]),
        sessions: places.read_sessions(),
        cwd: places.cwd.to_string_lossy().into_owned(),
        agent_dir: places.agent.to_string_lossy().into_owned(),
        port: places.port,
    })
}

/// The folders of a case.
struct Places {
    cwd: PathBuf,
    agent: PathBuf,
    home: PathBuf,
    port: u16,
}

impl Places {
    fn write_configuration(&self, file: &Value, input: &Value) -> Result<(), String> {
        let fixtures = &file["fixtures"];
        let usual = |name: &str, old: &str| {
            if fixtures[name].is_null() { fixtures[old].clone() } else { fixtures[name].clone() }
        };
        let models = match &input["modelsJson"] {
            Value::Null => usual("modelsJson", "rpcModelsJson"),
            own => own.clone(),
        };
        self.write(&self.agent.join("models.json"), &self.fill(&models.to_string()))?;
        let mut settings = usual("settings", "rpcSettings").as_object().cloned().unwrap_or_default();
        settings.extend(input["settings"].as_object().cloned().unwrap_or_default());
        self.write(&self.agent.join("settings.json"), &self.fill(&Value::Object(settings).to_string()))?;
        self.write_files(&self.agent, &fixtures["rpcAgentDirFiles"])?;
        self.write_files(&self.agent, &input["agentFiles"])?;
        self.write_files(&self.cwd, &input["files"])
    }

    fn write_files(&self, folder: &Path, files: &Value) -> Result<(), String> {
        for (name, content) in files.as_object().into_iter().flatten() {
            let path = folder.join(self.fill(name));
            match content.as_str() {
                Some(text) => self.write(&path, &self.fill(text))?,
                None => {
                    let bytes =
                        content["base64"].as_str().and_then(from_base64).ok_or("a file is neither text nor base64")?;
                    self.write_bytes(&path, &bytes)?;
                }
            }
        }
        Ok(())
    }

    /// The content of named files; null where there is none.
    fn read_files(&self, names: &Value) -> Value {
        let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        let content = |name: &str| std::fs::read(self.cwd.join(name)).ok();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        names.map(|name| (name.to_owned(), Value::from(content(name).map(text)))).collect()
    }

    /// The session files of all working directories.
    fn read_sessions(&self) -> Vec<(String, String)> {
        let root = self.agent.join("sessions");
        let list = |folder: &Path| {
            std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
        };
        let folders: Vec<PathBuf> = list(&root);
        let files = folders.iter().flat_map(|folder| list(folder));
        let mut sessions: Vec<(String, String)> = files
            .filter_map(|file| {
                let name = file.strip_prefix(&root).ok()?.to_string_lossy().into_owned();
                Some((name, std::fs::read_to_string(file).ok()?))
            })
            .collect();
        sessions.sort();
        sessions
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), String> {
        self.write_bytes(path, text.as_bytes())
    }

    fn write_bytes(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let folder = path.parent().ok_or("a file without a folder")?;
        std::fs::create_dir_all(folder).map_err(|why| why.to_string())?;
        std::fs::write(path, bytes).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Puts the folders and the port where a text names them.
    fn fill(&self, text: &str) -> String {
        text.replace("$CWD", &self.cwd.to_string_lossy())
            .replace("$AGENT_DIR", &self.agent.to_string_lossy())
            .replace("$HOME", &self.home.to_string_lossy())
            .replace("<port>", &self.port.to_string())
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

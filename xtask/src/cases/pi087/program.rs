//! Runs `pinch` in folders of its own against the scripted server.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use pinch_testing::server::Recorded;
use serde_json::{Value, json};

use super::server;
use crate::cargo;
use crate::cases::Case;

/// No run of the program takes longer.
const MAX_TIME: Duration = Duration::from_secs(60);

/// What came of a case.
pub(super) struct Ran {
    /// All requests to the model, in order.
    pub(super) requests: Vec<Recorded>,
    /// What the last run wrote to standard output.
    pub(super) stdout: String,
    /// What the last run wrote to standard error.
    pub(super) stderr: String,
    /// What every run wrote to standard error, in order.
    pub(super) all_stderr: Vec<String>,
    /// How the last run ended.
    pub(super) exit_code: Option<i32>,
    /// The content of the files that the case asks for, by name.
    pub(super) files_after: Value,
    /// The session files below the agent's folder, by name: their paths there and their content.
    pub(super) sessions: Vec<(String, String)>,
    /// The working directory.
    pub(super) cwd: String,
}

/// Where the program is; built when it is not there. Under test the tests' own build is taken.
pub(in crate::cases) fn pinch() -> Result<&'static Path, String> {
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
pub(super) fn run(case: &Case<'_>) -> Result<Ran, String> {
    let program = pinch()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    runtime.block_on(run_all(case, program))
}

async fn run_all(case: &Case<'_>, program: &Path) -> Result<Ran, String> {
    let input = &case.case["input"];
    let server = server::start(&input["serverScript"]).await?;
    let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
    let place = |name: &str| -> Result<PathBuf, String> {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).map_err(|why| why.to_string())?;
        path.canonicalize().map_err(|why| why.to_string())
    };
    let places = Places { cwd: place("work")?, agent: place("agent")?, home: place("home")?, port: server.port() };
    places.write_configuration(case.file, input)?;
    let whole_runs = input["runs"].as_array().cloned().unwrap_or_else(|| vec![json!({"args": input["args"]})]);
    let (mut stdout, mut all_stderr, mut exit_code) = (String::new(), Vec::new(), None);
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
            .stdin(Stdio::null())
            .kill_on_drop(true);
        for (name, value) in input["env"].as_object().into_iter().flatten() {
            command.env(name, places.fill(value.as_str().unwrap_or_default()));
        }
        let output = tokio::time::timeout(MAX_TIME, command.output()).await;
        let output = output.map_err(|_| format!("not over after {MAX_TIME:?}"))?.map_err(|why| why.to_string())?;
        stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        all_stderr.push(String::from_utf8_lossy(&output.stderr).into_owned());
        exit_code = output.status.code();
    }
    Ok(Ran {
        requests: server.requests(),
        stdout,
        stderr: all_stderr.last().cloned().unwrap_or_default(),
        all_stderr,
        exit_code,
        files_after: places.read_files(&input["filesToCompare"]),
        sessions: places.read_sessions(),
        cwd: places.cwd.to_string_lossy().into_owned(),
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
        let models = if input["modelsJson"].is_null() { &fixtures["modelsJson"] } else { &input["modelsJson"] };
        self.write(&self.agent.join("models.json"), &self.fill(&models.to_string()))?;
        let mut settings = fixtures["settings"].as_object().cloned().unwrap_or_default();
        settings.extend(input["settings"].as_object().cloned().unwrap_or_default());
        self.write(&self.agent.join("settings.json"), &self.fill(&Value::Object(settings).to_string()))?;
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

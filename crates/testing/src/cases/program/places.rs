//! The directories in which a program runs, and their contents.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The directories of a case.
#[derive(Clone, Debug)]
pub struct Places {
    /// The working directory.
    pub cwd: PathBuf,
    /// The agent directory.
    pub agent: PathBuf,
    /// The home directory.
    pub home: PathBuf,
    /// The port of the scripted server.
    pub port: u16,
}

impl Places {
    /// Creates them below a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if a directory cannot be created.
    pub fn new(folder: &Path, port: u16) -> Result<Self, String> {
        let place = |name: &str| -> Result<PathBuf, String> {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).map_err(|why| why.to_string())?;
            path.canonicalize().map_err(|why| why.to_string())
        };
        Ok(Self { cwd: place("work")?, agent: place("agent")?, home: place("home")?, port })
    }

    /// Returns the complete environment of a program that runs here.
    pub fn variables(&self) -> [(&'static str, OsString); 5] {
        [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.home.clone().into()),
            ("PI_CODING_AGENT_DIR", self.agent.clone().into()),
            ("PI_OFFLINE", "1".into()),
            ("TZ", "UTC".into()),
        ]
    }

    /// Writes models, settings and the files of a case.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be written, or is neither text nor base64.
    pub fn write_configuration(&self, file: &Value, input: &Value) -> Result<(), String> {
        let fixtures = &file["fixtures"];
        let usual = |name: &str, old: &str| {
            if fixtures[name].is_null() { fixtures[old].clone() } else { fixtures[name].clone() }
        };
        let models = match &input["modelsJson"] {
            Value::Null => usual("modelsJson", "rpcModelsJson"),
            // A text is the name of a fixture.
            Value::String(name) => fixtures[name.as_str()].clone(),
            own => own.clone(),
        };
        self.write(&self.agent.join("models.json"), &self.fill(&models.to_string()))?;
        let mut settings = usual("settings", "rpcSettings").as_object().cloned().unwrap_or_default();
        let own = input["settings"].as_str().map_or(&input["settings"], |name| &fixtures[name]);
        settings.extend(own.as_object().cloned().unwrap_or_default());
        self.write(&self.agent.join("settings.json"), &self.fill(&Value::Object(settings).to_string()))?;
        self.write_files(&self.agent, &fixtures["rpcAgentDirFiles"])?;
        self.write_files(&self.agent, &input["agentFiles"])?;
        self.write_files(&self.cwd, &input["files"])
    }

    pub(super) fn write_files(&self, folder: &Path, files: &Value) -> Result<(), String> {
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

    /// Reads the named files; null for a missing one.
    pub(super) fn read_files(&self, names: &Value) -> Value {
        let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        let content = |name: &str| std::fs::read(self.cwd.join(name)).ok();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        names.map(|name| (name.to_owned(), Value::from(content(name).map(text)))).collect()
    }

    /// Reads the session files of all working directories.
    pub(super) fn read_sessions(&self) -> Vec<(String, String)> {
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

    /// Replaces placeholders for the directories and the port in a text.
    pub fn fill(&self, text: &str) -> String {
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

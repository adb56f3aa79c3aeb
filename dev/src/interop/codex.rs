//! Codex as the backend of an agent: pinch runs the real program, which asks a scripted server of the Responses API.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use pinch_testing::server::{Recorded, Server, ServerReply};
use pinch_testing::wires::responses::ResponsesResponse;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::npm;
use super::table::ResultTable;

/// The version of Codex.
const VERSION: &str = "0.171.0";

/// The model, of which Codex knows nothing.
const MODEL: &str = "scripted-1";

/// Name and function of a check.
type CodexCheck = (&'static str, fn(&CodexAgent) -> anyhow::Result<String>);

const CHECKS: [CodexCheck; 4] = [
    ("an answer", answers),
    ("a conversation is resumed", resumes),
    ("a prompt that looks like an option", dashes),
    ("a lost conversation begins again", begins_again),
];

/// Runs the checks.
pub(super) fn run() -> anyhow::Result<bool> {
    let folder = super::folder("codex")?.join(VERSION);
    npm::install(&folder, &[&format!("@openai/codex@{VERSION}")])?;
    if !crate::cargo::run(&["build", "--quiet", "-p", "pinch-cli"])? {
        bail!("cannot build pinch");
    }
    let codex = folder.join("node_modules/.bin/codex");
    let pinch = crate::cargo::target_dir()?.join("debug/pinch");
    let mut table = ResultTable::default();
    for (name, check) in CHECKS {
        let result = CodexAgent::new(&codex, &pinch).and_then(|agent| check(&agent));
        table.row(&format!("codex {VERSION}"), name, result.map_err(|why| format!("{why:#}")));
    }
    Ok(table.finish())
}

/// An agent whose backend is Codex, with its state and its server.
struct CodexAgent {
    pinch: PathBuf,
    folder: TempDir,
    server: Server,
    // Drives the server.
    _runtime: Runtime,
}

/// One answered message.
struct CodexTurn {
    text: String,
    usage: Value,
    /// The texts of the user and the model in its last request.
    texts: Vec<String>,
}

impl CodexAgent {
    fn new(codex: &Path, pinch: &Path) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let server = runtime.block_on(Server::start())?;
        server.answer_with(|request| Some(answer(request)));
        let folder = tempfile::tempdir()?;
        let home = folder.path().join("codex");
        std::fs::create_dir_all(&home)?;
        let config = format!(
            "model = \"{MODEL}\"\nmodel_provider = \"loopback\"\n\n[model_providers.loopback]\nname = \"loopback\"\n\
             base_url = \"{}/v1\"\nwire_api = \"responses\"\n",
            server.url()
        );
        std::fs::write(home.join("config.toml"), config)?;
        let backend = json!({"command": codex, "env": {"CODEX_HOME": home}});
        let defaults = json!({
            "model": {"primary": format!("codex-cli/{MODEL}")}, "workspace": folder.path().join("workspace"),
            "cliBackends": {"codex-cli": backend},
        });
        std::fs::write(folder.path().join("pinch.json"), json!({"agents": {"defaults": defaults}}).to_string())?;
        Ok(Self { pinch: pinch.to_owned(), folder, server, _runtime: runtime })
    }

    /// Runs one message.
    fn turn(&self, message: &str) -> anyhow::Result<CodexTurn> {
        let state = self.folder.path();
        let before = self.server.requests().len();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let output = Command::new(&self.pinch)
            .args(["agent", "--json", "--session-key", "agent:main:chat", &format!("--message={message}")])
            .env_clear()
            .envs([("PATH", path), ("HOME", state.into()), ("PINCH_STATE_DIR", state.into())])
            .current_dir(state)
            .stdin(Stdio::null())
            .output()
            .context("cannot start pinch")?;
        let printed: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            format!("pinch ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))
        })?;
        ensure!(output.status.success(), "pinch ended with {}: {printed}", output.status);
        let requests = self.server.requests().split_off(before);
        let last = requests.iter().rfind(|request| request.method == "POST").context("Codex sent no request")?.json();
        Ok(CodexTurn {
            text: printed["payloads"][0]["text"].as_str().unwrap_or_default().to_owned(),
            usage: printed["meta"]["agentMeta"]["usage"].clone(),
            texts: texts(&last),
        })
    }
}

/// The texts of the user and the model in a request, without what Codex itself adds.
fn texts(request: &Value) -> Vec<String> {
    let items = request["input"].as_array().into_iter().flatten();
    let blocks = items.filter(|item| item["role"] == "user" || item["role"] == "assistant");
    let texts = blocks.flat_map(|item| item["content"].as_array().into_iter().flatten());
    let texts = texts.filter_map(|block| block["text"].as_str()).map(str::trim);
    texts.filter(|text| !text.starts_with('<') && !text.starts_with('#')).map(str::to_owned).collect()
}

/// Answers every request with the number of messages in it.
fn answer(request: &Recorded) -> ServerReply {
    if request.method != "POST" {
        return ServerReply::json(200, &json!({"models": []}));
    }
    let n = texts(&request.json()).len();
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
    let frames =
        ResponsesResponse::new(&format!("resp_{n}"), MODEL).usage(&usage).text(&format!("Answer {n}.")).completed();
    ServerReply::sse(frames.concat())
}

fn answers(agent: &CodexAgent) -> anyhow::Result<String> {
    let turn = agent.turn("hello")?;
    ensure!(turn.text == "Answer 1.", "the text is {:?}", turn.text);
    ensure!(turn.texts == ["hello"], "Codex sent {:?}", turn.texts);
    ensure!(turn.usage["input"] == 10 && turn.usage["output"] == 5, "the usage is {}", turn.usage);
    Ok("the run ends with its text and its tokens".to_owned())
}

fn resumes(agent: &CodexAgent) -> anyhow::Result<String> {
    agent.turn("first")?;
    let turn = agent.turn("second")?;
    ensure!(turn.texts == ["first", "Answer 1.", "second"], "Codex sent {:?}", turn.texts);
    ensure!(turn.text == "Answer 3.", "the text is {:?}", turn.text);
    let turn = agent.turn("third")?;
    ensure!(turn.texts.len() == 5 && turn.text == "Answer 5.", "Codex sent {:?}: {:?}", turn.texts, turn.text);
    Ok("three turns are one conversation".to_owned())
}

fn dashes(agent: &CodexAgent) -> anyhow::Result<String> {
    for message in ["--help me", "- a list"] {
        let turn = agent.turn(message)?;
        ensure!(turn.texts.last().map(String::as_str) == Some(message), "Codex sent {:?}", turn.texts);
    }
    Ok("it is a prompt, also when resuming".to_owned())
}

fn begins_again(agent: &CodexAgent) -> anyhow::Result<String> {
    agent.turn("first")?;
    std::fs::remove_dir_all(agent.folder.path().join("codex/sessions")).context("Codex stored no conversation")?;
    for file in std::fs::read_dir(agent.folder.path().join("codex"))?.flatten() {
        if file.file_name().to_string_lossy().contains(".sqlite") {
            std::fs::remove_file(file.path())?;
        }
    }
    let turn = agent.turn("second")?;
    ensure!(turn.texts == ["second"] && turn.text == "Answer 1.", "Codex sent {:?}: {:?}", turn.texts, turn.text);
    Ok("the prompt is asked once more, in a new one".to_owned())
}

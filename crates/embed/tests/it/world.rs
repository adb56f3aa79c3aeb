//! An engine on a scripted server and a temporary directory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt;
use pinch_agent_core::event::AgentEvent;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::tools::CODING;
use pinch_embed::config::Config;
use pinch_embed::engine::{Engine, EngineBuilder, EngineRun};
use pinch_embed::run::{RunError, RunRequest, RunResult};
use pinch_embed::runner::RunEvent;
use pinch_llm::event::StreamEvent;
use pinch_stdx::fs::{Access, write_atomic};
use pinch_stdx::host::Host;
use pinch_testing::server::{Gate, Recorded, Server, ServerReply};
use pinch_testing::wires::{anthropic, completions};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::transcript::Transcript;

/// The first model.
pub(crate) const MODEL: &str = "claude-sonnet-4-5";

/// The second model: another provider with another wire format.
pub(crate) const FALLBACK: &str = "local/small";

/// Time limit for operations that should be quick.
const HANGS: Duration = Duration::from_secs(60);

/// A server, a directory, and an engine that uses both.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) engine: Engine,
    dir: TempDir,
    config: Value,
}

impl World {
    /// Creates a world whose first model has two profiles, `first` and `second`.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Creates a world with a changed configuration.
    pub(crate) async fn with(change: impl FnOnce(&mut Value)) -> Self {
        let server = Server::start().await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut config = json!({
            "agents": {"defaults": {
                "workspace": dir.path().join("workspace"),
                "model": {"primary": format!("anthropic/{MODEL}")},
            }},
            "auth": {"profiles": [
                {"id": "first", "provider": "anthropic", "apiKey": "key-1"},
                {"id": "second", "provider": "anthropic", "apiKey": "key-2"},
            ]},
            "models": {"providers": {
                "anthropic": {"baseUrl": server.url()},
                "local": {
                    "baseUrl": format!("{}/v1", server.url()), "api": "openai-completions", "apiKey": "key-3",
                    "models": [{"id": "small", "contextWindow": 100_000, "maxTokens": 4_000}],
                },
            }},
        });
        change(&mut config);
        // Conversations here are short; keep few tokens, so that there is something to compact.
        let settings = json!({"compaction": {"keepRecentTokens": 200}});
        let world = Self { engine: engine(dir.path(), &config), server, dir, config };
        world.write("state/agents/main/agent/settings.json", &settings.to_string());
        Self { engine: engine(world.dir.path(), &world.config), ..world }
    }

    /// Starts a run and waits until its answer has begun. It continues when the gate opens.
    pub(crate) async fn answering(&self, request: RunRequest) -> (Gate, EngineRun) {
        let gate = Gate::new();
        self.server.reply(ServerReply::events().gated(&gate, answer("m1", "One moment, please, I think.")));
        let mut run = self.engine.run(request);
        gate.open_times(4);
        pull_to_text(&mut run).await;
        (gate, run)
    }

    /// Changes the configuration and builds the engine again.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.config);
        self.engine = builder(self.dir.path(), &self.config).build();
    }

    /// Creates another engine on the same directory, as after a restart.
    pub(crate) fn restarted(&self) -> Engine {
        engine(self.dir.path(), &self.config)
    }

    /// Creates an engine on the same directory and server without any tools of the host; a test registers its own.
    pub(crate) fn built(&self, register: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Engine {
        register(builder(self.dir.path(), &self.config)).build()
    }

    /// Returns the configuration.
    pub(crate) fn document(&self) -> Value {
        self.config.clone()
    }

    /// Returns a builder on the same directory with another configuration.
    pub(crate) fn configured(&self, document: &Value) -> EngineBuilder {
        builder(self.dir.path(), document)
    }

    /// Returns a path in the directory.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_atomic(&path, text.as_bytes(), Access::Keep).unwrap();
    }

    /// Answers any number of requests for summaries, in addition to the replies to turns.
    pub(crate) fn reply_to_turns(&self, summary: &'static str, replies: impl IntoIterator<Item = ServerReply>) {
        let turns: Mutex<VecDeque<ServerReply>> = Mutex::new(replies.into_iter().collect());
        self.server.answer_with(move |request| match is_turn(request) {
            true => turns.lock().unwrap().pop_front(),
            false => Some(stream(answer("summary", summary))),
        });
    }

    /// Creates a request for a run that is named after its session.
    pub(crate) fn request(&self, session: &str, prompt: &str) -> RunRequest {
        self.engine.request(session, None, None, prompt).run_id(session)
    }

    pub(crate) fn start(&self, session: &str, prompt: &str) -> EngineRun {
        self.engine.run(self.request(session, prompt))
    }

    /// Runs a prompt to its end.
    pub(crate) async fn ask(&self, session: &str, prompt: &str) -> Result<RunResult, RunError> {
        within(self.start(session, prompt).finish()).await
    }

    pub(crate) fn session_file(&self, session: &str) -> PathBuf {
        self.dir.path().join(format!("state/agents/main/sessions/{session}.jsonl"))
    }

    /// Returns the content of a session's file, checked line by line.
    pub(crate) fn transcript(&self, session: &str) -> Transcript {
        Transcript::read(&self.session_file(session))
    }

    /// Returns `usageStats` of the profile file.
    pub(crate) fn health(&self) -> Value {
        let path = self.dir.path().join("state/agents/main/agent/auth-profiles.json");
        let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        file["usageStats"].clone()
    }

    /// Returns the API keys of the requests so far, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.server.requests().iter().map(key_of).collect()
    }
}

fn engine(dir: &Path, config: &Value) -> Engine {
    let engine = builder(dir, config).builtin_tools(CODING).build();
    assert!(engine.problems().is_empty(), "{:?}", engine.problems());
    engine
}

fn builder(dir: &Path, config: &Value) -> EngineBuilder {
    // No environment: keys of the person who runs the tests must not be used.
    let host = Host::builder().home(dir).temp(dir).build();
    let document = config.as_object().unwrap().clone();
    let (config, problems) = Config::from_document(document, &dir.join("pinch.json"));
    assert!(problems.is_empty(), "{problems:?}");
    Engine::builder(dir.join("state")).host(host).config(config)
}

/// Returns whether a request is a turn, which has tools; a request for a summary has none.
pub(crate) fn is_turn(request: &Recorded) -> bool {
    request.json().get("tools").is_some()
}

/// Returns the API key of a request.
pub(crate) fn key_of(request: &Recorded) -> String {
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    request.header("x-api-key").or(bearer).unwrap_or("none").to_owned()
}

/// Limits the time for an operation.
#[track_caller]
pub(crate) fn within<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move { tokio::time::timeout(HANGS, work).await.unwrap_or_else(|_| panic!("{place} hangs")) }
}

/// Pulls a run until it streams a piece of text, and returns that piece.
pub(crate) async fn pull_to_text(run: &mut EngineRun) -> String {
    while let Some(event) = within(run.next()).await {
        let RunEvent::Session(event) = event else { continue };
        if let SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::Delta { text, .. })) = *event {
            return text.into();
        }
    }
    panic!("the run ended without a text");
}

/// Returns the texts of the payloads, with an `!` before failures.
pub(crate) fn payload_texts(result: &RunResult) -> Vec<String> {
    result
        .payloads
        .iter()
        .map(|payload| format!("{}{}", if payload.is_error { "!" } else { "" }, payload.reply.text))
        .collect()
}

/// Returns the attempts, one per line: `profile provider/model outcome action`.
pub(crate) fn attempts(result: &RunResult) -> Vec<String> {
    let line = |report: &pinch_embed::run::result::AttemptReport| {
        let profile = report.profile.as_ref().map_or("-", |id| id.as_str());
        format!("{profile} {}/{} {} {}", report.provider, report.model, report.outcome, report.action)
    };
    result.meta.attempts.iter().map(line).collect()
}

/// Returns an answer of the first model, as frames.
pub(crate) fn answer(id: &str, text: &str) -> Vec<String> {
    anthropic::AnthropicResponse::new(id).with_chunks(3).text(text).stop("end_turn")
}

/// Returns a tool call of the first model, as frames.
pub(crate) fn call(id: &str, tool: &str, arguments: &Value) -> Vec<String> {
    anthropic::AnthropicResponse::new(id)
        .text("One moment.")
        .tool_call(&format!("toolu_{id}"), tool, &arguments.to_string())
        .stop("tool_use")
}

/// Returns an answer of the second model, as frames.
pub(crate) fn fallback_answer(text: &str) -> Vec<String> {
    completions::CompletionsResponse::new("c1", "small")
        .text(text)
        .finish("stop")
        .usage(&json!({"prompt_tokens": 20, "completion_tokens": 5}))
        .done()
}

/// Sends frames in one piece.
pub(crate) fn stream(frames: Vec<String>) -> ServerReply {
    ServerReply::sse(frames.concat())
}

/// Returns a refusal in Anthropic's format.
pub(crate) fn refusal(status: u16, kind: &str, message: &str) -> ServerReply {
    ServerReply::json(status, &json!({"type": "error", "error": {"type": kind, "message": message}}))
}

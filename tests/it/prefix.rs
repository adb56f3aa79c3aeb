//! Prompts are stable: equal inputs give equal bytes, and each request starts with the content of the previous one. Providers charge a
//! fraction for cached input, so this is worth about a tenth of every bill.

use std::sync::Arc;

use futures::StreamExt;
use pinch_embed::agent_core::ToolSet;
use pinch_embed::coding_agent::auth::{Authorised, FixedAuth};
use pinch_embed::coding_agent::machine::LocalMachine;
use pinch_embed::coding_agent::prompt::{PromptParts, PromptSections as SystemPrompt};
use pinch_embed::coding_agent::recovery::RecoveryPlan;
use pinch_embed::coding_agent::session::{AgentSession, Prompt, SessionParts};
use pinch_embed::coding_agent::session_log::{NewSession, SessionLog};
use pinch_embed::coding_agent::store::{JsonlStore, SessionRef};
use pinch_embed::coding_agent::tools::bash::Shell;
use pinch_embed::coding_agent::tools::path::WorkingDirectory;
use pinch_embed::coding_agent::tools::{ToolParts, coding_tools};
use pinch_embed::llm::model::Model;
use pinch_embed::llm::provider::ProviderRegistry;
use pinch_embed::llm::request::Auth;
use pinch_embed::stdx::host::Host;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::{anthropic, completions};
use serde_json::{Value, json};
use tempfile::TempDir;

const APIS: [&str; 2] = ["anthropic-messages", "openai-completions"];

/// A separate user with their own directory, server and clock.
struct PrefixSetup {
    folder: TempDir,
    server: Server,
    api: &'static str,
}

impl PrefixSetup {
    async fn new(api: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "what is in it\n").unwrap();
        Self { folder, server: Server::start().await.unwrap(), api }
    }

    fn host() -> Host {
        Host::builder().clock(1_700_000_000_000, 1_000).seed(7).build()
    }

    fn store(&self) -> Arc<JsonlStore> {
        Arc::new(JsonlStore::flat(self.folder.path().join("sessions")))
    }

    /// The tools and the prompt of the coding agent, at a path that is the same in every test.
    fn tools(&self) -> ToolSet {
        coding_tools(&ToolParts::new(
            Arc::new(LocalMachine),
            WorkingDirectory { cwd: self.folder.path().to_owned(), home: None },
            Shell { program: "/bin/sh".into(), prefix: None, env: Vec::new(), temp: std::env::temp_dir() },
        ))
    }

    async fn session(&self, log: SessionLog) -> AgentSession {
        let record = json!({
            "id": "m1", "api": self.api, "provider": "local", "baseUrl": self.server.url(),
            "contextWindow": 200_000, "maxTokens": 8192,
        });
        let model = Arc::new(Model::from_record(&record).unwrap());
        let provider = ProviderRegistry::builtin().get(&model.api).unwrap();
        let tools = self.tools();
        let cwd = std::path::Path::new("/project");
        let prompt = PromptParts { addendum: Some("Mind the gap."), ..PromptParts::new(&tools, cwd) };
        let provider = Arc::new(Authorised::new(provider, Arc::new(FixedAuth(Auth::key("none")))));
        let mut parts = SessionParts::new(Self::host(), log, model, provider);
        parts.system = SystemPrompt::coding(&prompt);
        parts.tools = tools;
        parts.plan = RecoveryPlan::report();
        AgentSession::start(parts).await.unwrap()
    }

    fn say(&self, text: &str) {
        self.server.reply(ServerReply::sse(match self.api {
            "anthropic-messages" => anthropic::AnthropicResponse::new("r").text(text).stop("end_turn").concat(),
            _ => completions::CompletionsResponse::new("r", "m1").text(text).finish("stop").done().concat(),
        }));
    }

    fn call(&self, id: &str) {
        let arguments = r#"{"path":"a.txt"}"#;
        self.server.reply(ServerReply::sse(match self.api {
            "anthropic-messages" => {
                anthropic::AnthropicResponse::new("r").tool_call(id, "read", arguments).stop("tool_use").concat()
            }
            _ => completions::CompletionsResponse::new("r", "m1")
                .tool_call(id, "read", arguments)
                .finish("tool_calls")
                .done()
                .concat(),
        }));
    }

    /// Sends two prompts, the first of which calls a tool; the program is restarted between them if `reopened` is set.
    async fn two_prompts(&self, reopened: bool) {
        let new = NewSession::in_directory("/project");
        let log = SessionLog::create(&Self::host(), self.store(), new).await.unwrap();
        let mut session = self.session(log).await;
        self.call("call_1");
        self.say("It says: what is in it.");
        self.say("Bye.");
        pull(&mut session, "What is in a.txt?").await;
        if reopened {
            let at = SessionRef::Path(session.path().unwrap());
            drop(session);
            let log = SessionLog::open(&Self::host(), self.store(), &at, "/project").await.unwrap();
            session = self.session(log).await;
        }
        pull(&mut session, "Thanks.").await;
    }

    fn bodies(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| String::from_utf8(request.body).unwrap()).collect()
    }
}

async fn pull(session: &mut AgentSession, text: &str) {
    let mut run = session.prompt(Prompt::text(text));
    while let Some(event) = run.next().await {
        event.unwrap();
    }
}

/// The conversation of a request without its cache markers, which move with the end of the conversation.
fn unmarked(body: &str) -> (Value, Vec<Value>) {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.shift_remove("cache_control");
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut body: Value = serde_json::from_str(body).unwrap();
    strip(&mut body);
    let messages = body.as_object_mut().unwrap().shift_remove("messages").unwrap();
    (body, messages.as_array().unwrap().clone())
}

#[tokio::test]
async fn equal_inputs_give_equal_bytes() {
    for api in APIS {
        let (one, other) = (PrefixSetup::new(api).await, PrefixSetup::new(api).await);
        one.two_prompts(false).await;
        other.two_prompts(false).await;
        let (one, other) = (one.bodies(), other.bodies());
        assert_eq!(one.len(), 3, "{api}");
        assert_eq!(one, other, "{api}");
    }
}

#[tokio::test]
async fn a_program_that_is_started_anew_asks_the_same() {
    for api in APIS {
        let (one, other) = (PrefixSetup::new(api).await, PrefixSetup::new(api).await);
        one.two_prompts(false).await;
        other.two_prompts(true).await;
        assert_eq!(one.bodies(), other.bodies(), "{api}");
    }
}

#[tokio::test]
async fn each_request_repeats_the_one_before() {
    for api in APIS {
        let setup = PrefixSetup::new(api).await;
        setup.two_prompts(false).await;
        let bodies = setup.bodies();
        for pair in bodies.windows(2) {
            let ((before, said_before), (after, said_after)) = (unmarked(&pair[0]), unmarked(&pair[1]));
            assert_eq!(before, after, "{api}: what surrounds the messages stays");
            assert!(said_after.len() > said_before.len(), "{api}");
            assert_eq!(said_after[..said_before.len()], said_before, "{api}: what was said stays as it was");
            // Also byte by byte: nothing differs up to the first message with a marker.
            let same = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
            let messages = pair[0].find("\"messages\"").unwrap();
            assert!(same > messages, "{api}: only {same} bytes are the same, the messages begin at {messages}");
        }
    }
}

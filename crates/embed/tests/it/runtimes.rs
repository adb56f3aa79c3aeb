//! Every runtime passes the conformance suite.

use futures::future::BoxFuture;
use pinch_embed::engine::EngineBuilder;
use pinch_embed::runtime::Capabilities;
use pinch_embed::runtime::scripted::{self, ScriptedAttempt, ScriptedRuntime};
use pinch_embed::runtime_suite::{self, RuntimeBed, RuntimeFixture, RuntimeTurn};
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_testing::server::{Gate, ServerReply};

use crate::world::{World, answer, call, refusal, stream};

type Register<'a> = Box<dyn FnOnce(EngineBuilder) -> EngineBuilder + Send + 'a>;

/// Sessions of `pinch-coding-agent` on a server.
struct Native;

impl RuntimeFixture for Native {
    fn id(&self) -> &'static str {
        "native"
    }

    fn engine<'a>(&'a self, turns: Vec<RuntimeTurn>, register: Register<'a>) -> BoxFuture<'a, RuntimeBed> {
        Box::pin(async {
            let world = World::new().await;
            let never = Gate::new();
            for (n, turn) in turns.into_iter().enumerate() {
                let id = format!("m{n}");
                world.server.reply(match turn {
                    RuntimeTurn::Answer(text) => stream(answer(&id, text)),
                    RuntimeTurn::Refusal(text) => {
                        // The other profile is refused, too.
                        world.server.reply(refusal(400, "invalid_request_error", text)).repeat_last();
                        continue;
                    }
                    RuntimeTurn::Hang(text) => {
                        never.open_times(4);
                        ServerReply::events().gated(&never, answer(&id, text))
                    }
                    RuntimeTurn::Call(tool, arguments) => stream(call(&id, tool, &arguments)),
                    other => panic!("{other:?}"),
                });
            }
            RuntimeBed { engine: world.built(register), keep: Box::new((world, never)) }
        })
    }
}

#[tokio::test]
async fn the_native_runtime_passes_the_suite() {
    runtime_suite::check(&Native).await;
}

/// A command-line agent, played by a shell script.
#[cfg(unix)]
struct Cli;

#[cfg(unix)]
impl RuntimeFixture for Cli {
    fn id(&self) -> &'static str {
        "cli"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn runs_tools(&self) -> bool {
        false
    }

    fn accepts_messages(&self) -> bool {
        false
    }

    fn engine<'a>(&'a self, turns: Vec<RuntimeTurn>, register: Register<'a>) -> BoxFuture<'a, RuntimeBed> {
        Box::pin(async {
            // The turns that are left are files, in order.
            let next = r#"turn=$(ls "$DIR"/turns/* | head -n 1); mv "$turn" "$DIR/taken"; . "$DIR/taken""#;
            let world = crate::cli_agents::robot(next, crate::cli_agents::echo_backend(), |_| {}).await;
            for (n, turn) in turns.into_iter().enumerate() {
                let script = match turn {
                    RuntimeTurn::Answer(text) => format!("printf '{{\"result\": \"{text}\"}}'"),
                    RuntimeTurn::Refusal(text) => format!("echo '{text}' >&2; exit 1"),
                    RuntimeTurn::Hang(text) => format!("echo '{text}'; exec sleep 600"),
                    RuntimeTurn::Call(..) => "exit 1".to_owned(),
                    other => panic!("{other:?}"),
                };
                world.write(&format!("turns/{n}"), &script);
            }
            RuntimeBed { engine: world.built(register), keep: Box::new(world) }
        })
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_runtime_for_command_line_agents_passes_the_suite() {
    runtime_suite::check(&Cli).await;
}

struct Scripted;

impl RuntimeFixture for Scripted {
    fn id(&self) -> &'static str {
        scripted::ID
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn runs_tools(&self) -> bool {
        false
    }

    fn accepts_messages(&self) -> bool {
        false
    }

    fn engine<'a>(&'a self, turns: Vec<RuntimeTurn>, register: Register<'a>) -> BoxFuture<'a, RuntimeBed> {
        Box::pin(async {
            let world = World::with(|config| config["agents"]["defaults"]["runtime"] = scripted::ID.into()).await;
            let attempts = turns.into_iter().map(|turn| match turn {
                RuntimeTurn::Answer(text) => ScriptedAttempt::answer(text),
                RuntimeTurn::Refusal(text) => {
                    ScriptedAttempt::failing(LlmError::new("anthropic".into(), LlmErrorKind::InvalidRequest, text))
                }
                RuntimeTurn::Hang(text) => ScriptedAttempt::hanging(text),
                RuntimeTurn::Call(..) => ScriptedAttempt::answer("It calls no tools."),
                other => panic!("{other:?}"),
            });
            let runtime = std::sync::Arc::new(ScriptedRuntime::new(attempts).claims(Capabilities::NONE));
            let engine = world.built(|builder| register(builder.runtime(scripted::ID, runtime)));
            RuntimeBed { engine, keep: Box::new(world) }
        })
    }
}

#[tokio::test]
async fn the_scripted_runtime_passes_the_suite() {
    runtime_suite::check(&Scripted).await;
}

//! An extension in Rust: asks before a command removes files, and adds a command.
//!
//! ```sh
//! cargo run -p pinch-coding-agent --example extension
//! ```

#![expect(clippy::print_stdout, reason = "an example prints what happens")]

use std::sync::Arc;

use pinch_coding_agent::agent_core::hooks::{BeforeTool, PendingCall};
use pinch_coding_agent::extension::{
    Command, CommandCx, Extension, ExtensionCx, ExtensionError, ExtensionHandle, HandlerFuture, Point, Points,
    Registrations,
};
use pinch_coding_agent::llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_coding_agent::runtime::AskError;
use pinch_coding_agent::{AgentSessionOptions, Host, create_agent_session};
use serde_json::json;

struct GuardExtension;

impl Extension for GuardExtension {
    fn name(&self) -> &str {
        "guard"
    }

    fn points(&self) -> Points {
        Points::of([Point::ToolCall])
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        to.command(Arc::new(Rename));
        Ok(())
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        Box::pin(async move {
            let command = call.input.get("command").and_then(|command| command.as_str()).unwrap_or_default();
            if !command.starts_with("rm ") || cx.ui().confirm("Remove files?", command, None).await {
                return Ok(BeforeTool::Allow);
            }
            println!("denied: {command}");
            Ok(BeforeTool::deny("the user did not allow it"))
        })
    }
}

/// `/rename NAME` names the session.
struct Rename;

impl Command for Rename {
    fn name(&self) -> &str {
        "rename"
    }

    fn run<'a>(&'a self, args: &'a str, cx: &'a CommandCx) -> HandlerFuture<'a, ()> {
        Box::pin(async move { cx.set_session_name(args).await })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = json!({"command": "rm -r build"}).as_object().cloned().unwrap_or_default();
    let provider = ScriptedProvider::new([
        ScriptedReply::call("c1", "bash", arguments),
        ScriptedReply::text("It was not allowed."),
    ]);
    let options = AgentSessionOptions::in_memory(Host::builder().build(), "/")
        .model(ScriptedProvider::model("scripted"))
        .provider(Arc::new(provider))
        .extension(Arc::new(GuardExtension));
    let mut agent = create_agent_session(options).await?;
    println!("{}", agent.ask("Clean up.").await?);
    // An extension's command handles the prompt: no model is called.
    assert!(matches!(agent.ask("/rename tidy").await, Err(AskError::NoAnswer)));
    println!("the session is called {}", agent.session().log().name().unwrap_or_default());
    agent.close().await;
    Ok(())
}

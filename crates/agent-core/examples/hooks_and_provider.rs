//! The loop's events, a hook that checks every tool call, and a custom provider that counts calls.
//!
//! ```sh
//! cargo run -p pinch-agent-core --features schemars --example hooks_and_provider -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

#[path = "support/args.rs"]
mod args;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::hooks::{BeforeTool, PendingCall};
use pinch_agent_core::{AgentEvent, Hooks, tool_fn};
use pinch_llm::event::{EventStream, StreamEvent};
use pinch_llm::message::Message;
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_llm::stdx::cancel::Cancel;

/// Denies every call that would delete something important.
struct DeleteGuard;

impl Hooks for DeleteGuard {
    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        Box::pin(async move {
            if call.input["path"] == "/" {
                return BeforeTool::deny("the root directory must stay");
            }
            BeforeTool::Allow
        })
    }
}

/// Counts requests to the inner provider.
struct CountingProvider {
    inner: Arc<dyn Provider>,
    n_calls: AtomicUsize,
}

impl Provider for CountingProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        self.n_calls.fetch_add(1, Ordering::Relaxed);
        self.inner.stream(request, cancel)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct DeleteTool {
    /// The file or directory.
    path: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let delete = tool_fn("delete", "Pretend to delete a file or directory.", |args: DeleteTool, _cx| async move {
        Ok(format!("deleted {}", args.path))
    });
    let mut agent =
        args::agent()?.system("You delete what you are told to.").tool(delete).hooks(DeleteGuard).build()?;
    let counting = Arc::new(CountingProvider { inner: Arc::clone(&agent.provider), n_calls: AtomicUsize::new(0) });
    agent.provider = Arc::clone(&counting) as Arc<dyn Provider>;

    let question = Arc::new(Message::user("Delete / and /tmp/a.txt.", agent.host.now_ms()));
    let mut run = agent.run(vec![question], Cancel::new())?;
    while let Some(event) = run.next().await {
        match event {
            AgentEvent::MessageUpdate(StreamEvent::Delta { text, .. }) => print!("{text}"),
            AgentEvent::ToolEnd { start, output, .. } => {
                let outcome = if output.failed { "failed" } else { "succeeded" };
                println!("\n{} {outcome}: {}", start.name, output.content[0].as_text().unwrap_or_default());
            }
            AgentEvent::AgentEnd(end) => {
                if let Some(error) = end.error {
                    return Err(error.into());
                }
            }
            _ => {}
        }
    }
    println!("\n({} requests)", counting.n_calls.load(Ordering::Relaxed));
    Ok(())
}

//! A broker that asks for approval of commands in the terminal. A program passes it to `EngineBuilder::approvals`.
//!
//! ```sh
//! cargo run -p pinch-ports --example terminal_approvals
//! ```

use std::io::Write as _;
use std::time::Duration;

use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::BoxFuture;
use pinch_ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest};

struct AskInTerminal;

impl ApprovalBroker for AskInTerminal {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        let question = format!("{}\nin {}: {}\n[y]es, [a]lways, [N]o? ", request.command, request.cwd, request.reason);
        let (answer, answered) = oneshot::channel();
        // Reading a line blocks, so it has a thread of its own. If the request is withdrawn, nobody receives the answer.
        std::thread::spawn(move || _ = answer.send(ask(&question)));
        Box::pin(async { answered.await.unwrap_or(ApprovalDecision::Deny) })
    }
}

fn ask(question: &str) -> ApprovalDecision {
    let (mut out, mut line) = (std::io::stdout(), String::new());
    let is_read =
        write!(out, "{question}").and_then(|()| out.flush()).and_then(|()| std::io::stdin().read_line(&mut line));
    match (is_read, line.trim()) {
        (Ok(_), "y" | "yes") => ApprovalDecision::AllowOnce,
        (Ok(_), "a" | "always") => ApprovalDecision::AllowAlways,
        _ => ApprovalDecision::Deny,
    }
}

fn main() -> std::io::Result<()> {
    let request =
        ApprovalRequest::new("git push", "/srv/site", "git is not on the allow list", Duration::from_secs(120));
    let decision = block_on(AskInTerminal.request(&request));
    writeln!(std::io::stdout(), "{decision:?}")
}

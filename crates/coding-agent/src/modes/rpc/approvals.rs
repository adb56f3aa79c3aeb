//! Tool calls waiting for the client's approval.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::extension::ui::{Approval, ToolApproval};
use crate::protocol::command::{Hello, ToolDecision, ToolReply};

/// The capability with which a client requests approvals.
pub(super) const CAPABILITY: &str = "tool_approval";

/// Default time limit of an approval.
const USUAL_LIMIT: Duration = Duration::from_secs(600);

/// The result a model reads for a call that was not approved.
const DENIED: &str = "The user did not allow this call.";
pub(super) const LATE: &str = "Nobody allowed this call in time.";
pub(super) const GONE: &str = "Nobody is there to allow this call.";

/// Which calls need approval, and which are pending.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    are_wanted: bool,
    limit: Option<Duration>,
    is_closed: bool,
    /// The session in which the tools below were approved.
    session_id: String,
    approved: HashSet<String>,
    waiting: HashMap<String, PendingApproval>,
}

#[derive(Debug)]
struct PendingApproval {
    tool: String,
    session_id: String,
    tx: oneshot::Sender<Approval>,
}

/// The result of requesting an approval.
pub(super) enum Begun {
    /// No approval is needed.
    Known(Approval),
    /// The client is asked.
    Asks {
        /// Receives the answer; closed if there will be none.
        answer: oneshot::Receiver<Approval>,
        /// Time limit of the answer.
        limit: Duration,
    },
}

impl Approvals {
    pub(super) fn hello(&mut self, hello: &Hello) {
        if let Some(capabilities) = &hello.capabilities {
            self.are_wanted = capabilities.iter().any(|name| name == CAPABILITY);
        }
        self.limit = hello.approval_limit.or(self.limit);
    }

    pub(super) fn begin(&mut self, id: &str, call: ToolApproval<'_>) -> Begun {
        if call.session_id != self.session_id {
            call.session_id.clone_into(&mut self.session_id);
            self.approved.clear();
        }
        if !self.are_wanted || self.approved.contains(call.tool) {
            return Begun::Known(Approval::Granted);
        }
        if self.is_closed {
            return Begun::Known(Approval::Denied { reason: GONE.to_owned() });
        }
        let (tx, answer) = oneshot::channel();
        let waiting = PendingApproval { tool: call.tool.to_owned(), session_id: call.session_id.to_owned(), tx };
        self.waiting.insert(id.to_owned(), waiting);
        Begun::Asks { answer, limit: self.limit.unwrap_or(USUAL_LIMIT) }
    }

    pub(super) fn reply(&mut self, reply: ToolReply) {
        let Some(PendingApproval { tool, session_id, tx }) = self.waiting.remove(&reply.id) else { return };
        let approval = match reply.decision {
            ToolDecision::Approve => Approval::Granted,
            ToolDecision::ApproveForSession => {
                if session_id == self.session_id {
                    self.approved.insert(tool);
                }
                Approval::Granted
            }
            ToolDecision::Deny { reason } => {
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                Approval::Denied { reason: reason.unwrap_or_else(|| DENIED.to_owned()) }
            }
        };
        // The call may have been cancelled meanwhile.
        drop(tx.send(approval));
    }

    pub(super) fn forget(&mut self, id: &str) {
        self.waiting.remove(id);
    }

    /// Closes all requests.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
    }
}

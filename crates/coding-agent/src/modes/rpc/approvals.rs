//! Calls that wait for a client to approve them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::extension::ui::{Approval, ToolApproval};
use crate::protocol::command::{Hello, ToolDecision, ToolReply};

/// The capability by which a client asks to be asked.
pub(super) const CAPABILITY: &str = "tool_approval";

/// How long a call waits for its approval, unless the client says otherwise.
const USUAL_LIMIT: Duration = Duration::from_secs(600);

/// What the model reads of a call that was not approved.
const DENIED: &str = "The user did not allow this call.";
pub(super) const LATE: &str = "Nobody allowed this call in time.";
pub(super) const GONE: &str = "Nobody is there to allow this call.";

/// Which calls need an approval, and which wait for one.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    are_wanted: bool,
    limit: Option<Duration>,
    is_closed: bool,
    /// The session that the tools below were approved for.
    session_id: String,
    approved: HashSet<String>,
    waiting: HashMap<String, PendingApproval>,
}

#[derive(Debug)]
struct PendingApproval {
    tool: String,
    session_id: String,
    tell: oneshot::Sender<Approval>,
}

/// How an approval begins.
pub(super) enum Begun {
    /// No approval is needed.
    Known(Approval),
    /// The client is asked.
    Asks {
        /// Where the answer arrives; closed when there will be none.
        answer: oneshot::Receiver<Approval>,
        /// How long it is waited for.
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
        let (tell, answer) = oneshot::channel();
        let waiting = PendingApproval { tool: call.tool.to_owned(), session_id: call.session_id.to_owned(), tell };
        self.waiting.insert(id.to_owned(), waiting);
        Begun::Asks { answer, limit: self.limit.unwrap_or(USUAL_LIMIT) }
    }

    pub(super) fn reply(&mut self, reply: ToolReply) {
        let Some(PendingApproval { tool, session_id, tell }) = self.waiting.remove(&reply.id) else { return };
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
        // The call may have been given up meanwhile.
        drop(tell.send(approval));
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

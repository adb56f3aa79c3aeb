//! Asking a person before something is done.

use std::time::Duration;

use futures::future::BoxFuture;

/// A question: may this command run?
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The command.
    pub command: String,
    /// The directory it would run in.
    pub cwd: String,
    /// Why it is asked.
    pub reason: String,
    /// The programs that it starts, as far as they were found.
    pub programs: Vec<String>,
    /// The session that it belongs to.
    pub session_key: Option<String>,
    /// After this time nobody waits for the answer.
    pub expires_in: Duration,
}

impl ApprovalRequest {
    /// A question about a command.
    pub fn new(
        command: impl Into<String>,
        cwd: impl Into<String>,
        reason: impl Into<String>,
        expires_in: Duration,
    ) -> Self {
        Self {
            command: command.into(),
            cwd: cwd.into(),
            reason: reason.into(),
            programs: Vec::new(),
            session_key: None,
            expires_in,
        }
    }
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// This time.
    AllowOnce,
    /// This time, and from now on with exactly these arguments in this directory.
    AllowAlways,
    /// No.
    Deny,
}

/// Asks a person. Whoever asks waits; dropping the future withdraws the question.
pub trait ApprovalBroker: Send + Sync {
    /// Asks, and returns the answer. A broker that cannot reach anybody denies.
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision>;
}

/// Denies everything: nobody can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl ApprovalBroker for DenyAll {
    fn request<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async { ApprovalDecision::Deny })
    }
}

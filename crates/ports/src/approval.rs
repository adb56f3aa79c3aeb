//! Approval of commands by a person.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::session_key::SessionKey;

/// A request for a person to approve a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The command.
    pub command: String,
    /// The directory it would run in.
    pub cwd: String,
    /// Why approval is needed.
    pub reason: String,
    /// The programs that it starts, as far as they are known.
    pub programs: Vec<String>,
    /// How much is at stake, for how the request is shown.
    pub severity: ApprovalSeverity,
    /// The session that it belongs to.
    pub session_key: Option<SessionKey>,
    /// How long the requester waits for the answer.
    pub expires_in: Duration,
}

impl ApprovalRequest {
    /// Creates a request to approve a command.
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
            severity: ApprovalSeverity::default(),
            session_key: None,
            expires_in,
        }
    }
}

/// How much is at stake in an approval request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalSeverity {
    /// Nothing can be lost.
    Info,
    /// It should be looked at.
    #[default]
    Warning,
    /// A mistake would be serious.
    Critical,
}

impl ApprovalSeverity {
    /// Returns OpenClaw's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Info, Self::Warning, Self::Critical].into_iter().find(|severity| severity.name() == name)
    }
}

/// The answer to an approval request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// Allow this time.
    AllowOnce,
    /// Allow now and in future, with exactly these arguments in this directory.
    AllowAlways,
    /// Do not allow.
    Deny,
}

/// Asks a person for approval. The requester waits; dropping the future withdraws the request.
pub trait ApprovalBroker: Send + Sync {
    /// Asks a person and returns the answer. A broker that cannot reach anybody denies.
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision>;

    /// Returns whether anybody can be asked at all.
    fn is_available(&self) -> bool {
        true
    }
}

/// Denies every request, for hosts where nobody can be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl ApprovalBroker for DenyAll {
    fn request<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async { ApprovalDecision::Deny })
    }

    fn is_available(&self) -> bool {
        false
    }
}

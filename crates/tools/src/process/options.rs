//! How commands run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_ports::{ApprovalBroker, DenyAll};

use super::host::CommandHosts;
use crate::exec::environment::ChildEnvironment;
use crate::exec::modes::{ExecAsk, ExecSecurity};
use crate::exec::safe_bins::SafeBins;

/// How commands run.
#[derive(Clone)]
#[non_exhaustive]
pub struct CommandOptions {
    /// The directory they run in, unless a call names another.
    pub cwd: PathBuf,
    /// The directory that they must run in or below; `None` for any.
    pub root: Option<PathBuf>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The shell.
    pub shell: PathBuf,
    /// Variables of the host.
    pub host_env: Vec<(String, String)>,
    /// Which of those commands get.
    pub environment: ChildEnvironment,
    /// Where they run.
    pub hosts: CommandHosts,
    /// Which commands may run.
    pub security: ExecSecurity,
    /// When a person is asked.
    pub ask: ExecAsk,
    /// Where approvals are kept.
    pub approvals_file: Option<PathBuf>,
    /// Who is asked.
    pub approvals: Arc<dyn ApprovalBroker>,
    /// How long an answer is awaited.
    pub approval_timeout: Duration,
    /// Programs that need no approval.
    pub safe_bins: SafeBins,
    /// The agent whose approvals hold.
    pub agent: String,
    /// Who may see the commands: usually the session's key.
    pub scope: String,
    /// Whether commands may go to the background: whether `process` is offered.
    pub allow_background: bool,
    /// How long a call waits before its command goes to the background.
    pub yield_after: Duration,
    /// How long commands may run.
    pub timeout: Duration,
}

impl CommandOptions {
    /// The defaults: no command runs unless it is on the allow list, and nobody is asked.
    pub fn new(cwd: impl Into<PathBuf>, host_env: Vec<(String, String)>) -> Self {
        Self {
            cwd: cwd.into(),
            root: None,
            home: None,
            shell: PathBuf::from("/bin/sh"),
            host_env,
            environment: ChildEnvironment::default(),
            hosts: CommandHosts::default(),
            security: ExecSecurity::Allowlist,
            ask: ExecAsk::OnMiss,
            approvals_file: None,
            approvals: Arc::new(DenyAll),
            approval_timeout: Duration::from_secs(30 * 60),
            safe_bins: SafeBins::default(),
            agent: "main".to_owned(),
            scope: "agent:main".to_owned(),
            allow_background: true,
            yield_after: Duration::from_secs(10),
            timeout: Duration::from_secs(1800),
        }
    }
}

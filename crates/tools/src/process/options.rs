//! Options for running commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_ports::{ApprovalBroker, DenyAll};

use super::host::CommandHosts;
use super::registry::{CommandLimits, ExitNotices};
use crate::exec::analysis::CommandSyntax;
use crate::exec::environment::ChildEnvironment;
use crate::exec::modes::{ExecAsk, ExecSecurity};
use crate::exec::safe_bins::SafeBins;

/// Options for running commands.
#[derive(Clone)]
#[non_exhaustive]
pub struct CommandOptions {
    /// Default working directory.
    pub cwd: PathBuf,
    /// Directory that must contain the working directory; `None` for any.
    pub root: Option<PathBuf>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The shell.
    pub shell: PathBuf,
    /// Environment variables of the host.
    pub host_env: Vec<(String, String)>,
    /// Which variables commands get.
    pub environment: ChildEnvironment,
    /// Where commands run.
    pub hosts: CommandHosts,
    /// Which commands may run.
    pub security: ExecSecurity,
    /// When to ask a person.
    pub ask: ExecAsk,
    /// Path of the approvals file.
    pub approvals_file: Option<PathBuf>,
    /// Asks for approvals.
    pub approvals: Arc<dyn ApprovalBroker>,
    /// How long to wait for an answer.
    pub approval_timeout: Duration,
    /// Programs that need no approval.
    pub safe_bins: SafeBins,
    /// Names of the programs of skills. They need no approval if the approvals file has `autoAllowSkills`.
    pub skill_bins: Vec<String>,
    /// The agent whose approvals apply.
    pub agent: String,
    /// The scope in which commands are visible: usually the session key.
    pub scope: String,
    /// Whether commands may move to the background, that is, whether `process` is offered.
    pub allow_background: bool,
    /// How long a call waits before its command moves to the background.
    pub yield_after: Duration,
    /// Default timeout of commands; `None`: none.
    pub timeout: Option<Duration>,
    /// Limits on what is stored about a command.
    pub limits: CommandLimits,
    /// Which commands are understood under an allow list.
    pub syntax: CommandSyntax,
    /// Whether code on the command line of an interpreter, like `python -c`, needs an approval even if everything else may run.
    pub strict_inline_eval: bool,
    /// Which ends of background commands are reported.
    pub exit_notices: ExitNotices,
}

impl CommandOptions {
    /// Returns the defaults: only commands on the allow list run, and nobody is asked.
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
            skill_bins: Vec::new(),
            agent: "main".to_owned(),
            scope: "agent:main".to_owned(),
            allow_background: true,
            yield_after: Duration::from_secs(10),
            timeout: Some(Duration::from_secs(1800)),
            limits: CommandLimits::default(),
            syntax: if cfg!(windows) { CommandSyntax::Windows } else { CommandSyntax::Scripts },
            strict_inline_eval: false,
            exit_notices: ExitNotices::default(),
        }
    }
}

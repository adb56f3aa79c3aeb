//! The tools `exec`, `process` and `apply_patch` of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinch_agent_core::tool::Tool;
use pinch_coding_agent::machine::{Machine, RootedMachine};
use pinch_coding_agent::tools::file_queue::FileQueue;
use pinch_ports::ApprovalBroker;
use pinch_tools::exec::analysis::CommandSyntax;
use pinch_tools::exec::environment::ChildEnvironment;
use pinch_tools::exec::modes::{ModeError, modes_of_session};
use pinch_tools::exec::safe_bins::SafeBins;
use pinch_tools::patch::{ApplyPatchTool, PatchTarget};
use pinch_tools::policy::PermissionMode;
use pinch_tools::process::{BackgroundTool, CommandHosts, CommandOptions, ExecTool, ProcessRegistry};

use crate::config::exec::{ExecConfig, PatchModels};
use crate::config::exec_variables::ExecVariables;
use crate::run::tools::{APPLY_PATCH, ToolPair};

/// Names of these tools.
pub(crate) const NAMES: [&str; 3] = ["exec", "process", APPLY_PATCH];

/// How long a call may wait before its command moves to the background.
const YIELD_AFTER: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(120));

/// Parts for creating these tools.
pub(crate) struct CommandParts<'a> {
    pub(crate) config: &'a ExecConfig,
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) workspace: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) shell: PathBuf,
    /// Environment variables of the host.
    pub(crate) env: Vec<(String, String)>,
    /// Limits set in the environment.
    pub(crate) variables_of_exec: &'a ExecVariables,
    /// Variables set by skills, which commands get in addition to those of the host.
    pub(crate) variables: Vec<(String, String)>,
    /// Programs that skills name.
    pub(crate) skill_bins: Vec<String>,
    pub(crate) registry: ProcessRegistry,
    pub(crate) approvals: Arc<dyn ApprovalBroker>,
    pub(crate) approvals_file: PathBuf,
    pub(crate) agent: String,
    /// Visibility scope of the commands of this run.
    pub(crate) scope: String,
    pub(crate) files: FileQueue,
    pub(crate) hosts: CommandHosts,
    /// Upper limit for the permissions of the session.
    pub(crate) mode: Option<PermissionMode>,
    /// Whether patches may only change files in the workspace, regardless of other settings.
    pub(crate) workspace_only: bool,
    /// Directory for the journals of patches that may change any file; `None` in a sandbox, which does not contain it.
    pub(crate) patch_journals: Option<PathBuf>,
}

/// The tools for commands and patches.
#[derive(Default)]
pub(crate) struct CommandTools {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// `exec`, and its replacement if policies remove `process`: commands then stay in the foreground.
    pub(crate) foreground: Option<ToolPair>,
    /// Which models may apply patches.
    pub(crate) patches: PatchModels,
}

impl CommandParts<'_> {
    /// Creates the tools with these names.
    pub(crate) fn tools(self, names: &[&str]) -> Result<CommandTools, ModeError> {
        let has = |name: &str| names.contains(&name);
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let mut foreground = None;
        let (security, ask) = modes_of_session(self.mode, self.config.configured_modes()?);
        if has(APPLY_PATCH) {
            let in_workspace = self.workspace_only || self.config.patch_workspace_only.unwrap_or(true);
            let place = PatchTarget {
                cwd: self.workspace.to_owned(),
                home: self.home.map(Into::into),
                root: in_workspace.then(|| self.workspace.to_owned()),
                journals: self.patch_journals.filter(|dir| {
                    // Without it, fewer files are completed after a crash.
                    !in_workspace && pinch_stdx::fs::create_private_dir(dir).is_ok()
                }),
            };
            // The tool checks paths to explain what is wrong with them; links may change after that.
            let machine: Arc<dyn Machine> = match in_workspace {
                true => Arc::new(RootedMachine::new(Arc::clone(&self.machine), self.workspace)),
                false => Arc::clone(&self.machine),
            };
            tools.push(Arc::new(ApplyPatchTool::new(machine, place, self.files)));
        }
        if has("exec") {
            let names: Vec<String> = self.variables.iter().map(|(name, _)| name.clone()).collect();
            let env = self.env.into_iter().filter(|(name, _)| !names.contains(name)).chain(self.variables).collect();
            let mut options = CommandOptions::new(self.workspace, env);
            options.hosts = self.hosts;
            options.root = self.mode.filter(|mode| mode.is_rooted()).map(|_| self.workspace.to_owned());
            options.home = self.home.map(Into::into);
            options.shell = self.shell;
            options.environment = ChildEnvironment {
                named: self.config.pass_env.iter().flatten().cloned().chain(names).collect(),
                path_prepend: self.config.path_prepend.clone().unwrap_or_default(),
            };
            (options.security, options.ask) = (security, ask);
            options.approvals_file = Some(self.approvals_file);
            options.approvals = self.approvals;
            let bins = SafeBins::default();
            options.safe_bins = SafeBins {
                names: self.config.safe_bins.clone().unwrap_or(bins.names),
                trusted_directories: self.config.safe_bin_dirs.clone().unwrap_or_default(),
            };
            options.skill_bins = self.skill_bins;
            options.agent = self.agent;
            options.scope.clone_from(&self.scope);
            options.allow_background = has("process");
            options.exit_notices = self.config.exit_notices();
            let set = self.variables_of_exec;
            let yield_after = self.config.yield_after.or(set.yield_after).unwrap_or(options.yield_after);
            options.yield_after = yield_after.clamp(YIELD_AFTER.0, YIELD_AFTER.1);
            options.timeout = match self.config.timeout {
                Some(timeout) => Some(timeout).filter(|timeout| !timeout.is_zero()),
                None => options.timeout,
            };
            if self.config.scripts == Some(false) && options.syntax == CommandSyntax::Scripts {
                options.syntax = CommandSyntax::Simple;
            }
            options.strict_inline_eval = self.config.strict_inline_eval.unwrap_or(false);
            options.limits = set.limits(self.config.keep);
            let exec = |options| -> Arc<dyn Tool> {
                Arc::new(ExecTool::new(Arc::clone(&self.machine), self.registry.clone(), options))
            };
            let mut alone = options.clone();
            alone.allow_background = false;
            let usual = exec(options);
            foreground = Some(ToolPair { usual: Arc::clone(&usual), instead: exec(alone) });
            tools.push(usual);
        }
        if has("process") {
            tools.push(Arc::new(BackgroundTool::new(self.registry, self.scope)));
        }
        Ok(CommandTools { tools, foreground, patches: self.config.patches.clone() })
    }
}

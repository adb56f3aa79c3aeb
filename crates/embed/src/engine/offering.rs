//! Tools of a run before policies apply, and the machines they act on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_agent_core::tool::Tool;
use pinch_coding_agent::images::{ImageIntake, ImageProcessing};
use pinch_coding_agent::machine::{Machine, ProtectedMachine, RootedMachine};
use pinch_coding_agent::settings::Settings;
use pinch_coding_agent::tools::ToolParts;
use pinch_coding_agent::tools::bash::Shell;
use pinch_coding_agent::tools::facts::SessionFacts;
use pinch_coding_agent::tools::path::WorkingDirectory;
use pinch_tools::ask_user::AskUserTool;
use pinch_tools::exec::approvals::{ApprovalDefaults, ApprovalsFile};
use pinch_tools::exec::modes::{ExecAsk, ExecSecurity, ModeError, modes_of_session};
use pinch_tools::loops::{LoopConfig, LoopGuard};
use pinch_tools::patch::{JournalPlace, finish_interrupted};
use pinch_tools::policy::PermissionMode;
use pinch_tools::process::{CommandHosts, ElevatedRules};
use pinch_tools::results::read_budget;
use pinch_tools::workspace_paths::in_workspace;
use serde_json::Value;

use super::directories::own_files;
use super::prompting;
use super::sandboxed::RunSandbox;
use crate::config::Config;
use crate::config::exec::ExecConfig;
use crate::config::tool_search::ToolSearchConfig;
use crate::key::AgentId;
use crate::models::implicit;
use crate::parts::Parts;
use crate::parts::commands::{CommandParts, CommandTools};
use crate::parts::notes;
use crate::run::request::RunTrigger;
use crate::run::tools::ToolOffer;
use crate::run::{RunError, RunRequest};
use crate::skills::AgentSkills;

/// File with approvals in the state directory.
const APPROVALS: &str = "exec-approvals.json";

/// Machines that the tools of a run act on.
pub(super) struct RunMachines {
    /// Machine for file tools: the whole file system, or only the workspace.
    pub(super) files: Arc<dyn Machine>,
    commands: Arc<dyn Machine>,
    /// The machine outside the sandbox, if commands run in one.
    outside: Option<Arc<dyn Machine>>,
    /// Whether other programs are installed where commands run than outside.
    has_own_programs: bool,
    workspace_only: bool,
}

impl RunMachines {
    /// Returns the machine of the run's sandbox, or the one chosen by the host.
    pub(super) fn of(
        parts: &Parts,
        request: &RunRequest,
        workspace: &Path,
        agent: &AgentId,
        sandbox: Option<&RunSandbox>,
    ) -> Self {
        let outside = (parts.registered.machine_for)(request);
        let (commands, outside) = match sandbox {
            Some(sandbox) => (Arc::clone(&sandbox.machine), Some(outside)),
            None => (outside, None),
        };
        let commands = match has_limits(parts, request, agent) {
            true => {
                let files = deciding_files(parts, workspace, agent);
                Arc::new(ProtectedMachine::new(commands, files).except(workspace))
            }
            false => commands,
        };
        let own = parts.config.agents.get(agent).and_then(|agent| agent.workspace_only);
        let is_rooted = request.permission_mode.is_some_and(PermissionMode::is_rooted);
        let workspace_only = is_rooted || own.unwrap_or(parts.config.workspace_only);
        let files: Arc<dyn Machine> = match workspace_only {
            true => Arc::new(RootedMachine::new(Arc::clone(&commands), workspace)),
            false => Arc::clone(&commands),
        };
        let has_own_programs = sandbox.is_some_and(|sandbox| sandbox.has_own_programs);
        Self { files, commands, outside, has_own_programs, workspace_only }
    }
}

/// Returns whether the commands of a run are limited, so that files that decide about them must not be changed by other tools.
fn has_limits(parts: &Parts, request: &RunRequest, agent: &AgentId) -> bool {
    // Invalid modes end the run.
    let Ok(exec) = exec_config(&parts.config, request, agent) else { return true };
    let mode = request.permission_mode;
    let is_full = |modes| modes_of_session(mode, modes) == (ExecSecurity::Full, ExecAsk::Off);
    let is_limited = exec.configured_modes().map_or(true, |modes| !is_full(modes));
    is_limited && parts.registered.toolbox.command_tools(has_rules(&exec, mode)).contains(&"exec")
}

/// Returns the files and directories that decide what an agent may do, or that name programs which run in a later run: the engine's own,
/// those of plugins, and the settings and extensions of the workspace.
fn deciding_files(parts: &Parts, workspace: &Path, agent: &AgentId) -> Vec<PathBuf> {
    let mut files = own_files(parts);
    let in_workspace = [".pinch", ".pi"]
        .into_iter()
        .flat_map(|dir| ["settings.json", "mcp.json", "extensions"].map(|name| workspace.join(dir).join(name)));
    files.extend(in_workspace);
    // Approvals that cannot be read allow nothing.
    let approvals = ApprovalsFile::load(&parts.state_dir.join(APPROVALS)).unwrap_or_default();
    if approvals.effective(agent.as_str(), ApprovalDefaults::default()).auto_allow_skills {
        files.extend(prompting::skill_places(parts, agent, workspace).trusted_directories());
    }
    files
}

/// Returns whether the configuration or a request restricts which commands run.
pub(super) fn restricts_commands(config: &Config, request: &RunRequest, agent: &AgentId) -> bool {
    let Ok(exec) = exec_config(config, request, agent) else { return true };
    let is_open =
        |modes: Option<(ExecSecurity, ExecAsk)>| modes.is_none_or(|modes| modes == (ExecSecurity::Full, ExecAsk::Off));
    exec.strict_inline_eval == Some(true) || !exec.configured_modes().is_ok_and(is_open)
}

fn exec_config(config: &Config, request: &RunRequest, agent: &AgentId) -> Result<ExecConfig, ModeError> {
    let configured = config.agents.get(agent).map_or_else(|| config.exec.clone(), |own| own.exec.over(&config.exec));
    configured.overridden(&request.exec_overrides)
}

fn invalid_modes(error: &ModeError) -> RunError {
    RunError::Config(format!("{error}. No command runs until this is corrected"))
}

fn has_rules(exec: &ExecConfig, mode: Option<PermissionMode>) -> bool {
    exec.has_rules() || mode.is_some_and(|mode| mode != PermissionMode::Full)
}

/// State that the tools of a run share with its session.
#[derive(Clone)]
pub(super) struct SharedWithSession {
    pub(super) facts: SessionFacts,
    pub(super) images: ImageIntake,
}

impl SharedWithSession {
    pub(super) fn new(settings: &Settings) -> Self {
        let treatment = if settings.images.auto_resize { ImageProcessing::Resized } else { ImageProcessing::Checked };
        Self { facts: SessionFacts::default(), images: ImageIntake::new(treatment) }
    }
}

/// Returns the tools of a run.
pub(super) fn offer(
    parts: &Parts,
    request: &RunRequest,
    workspace: &Path,
    machines: RunMachines,
    (shared, skills): (&SharedWithSession, &AgentSkills),
) -> Result<ToolOffer, RunError> {
    let registered = &parts.registered;
    let place = WorkingDirectory { cwd: workspace.to_owned(), home: parts.host.home().map(Into::into) };
    let shell = shell(parts, &skills.variables, machines.outside.is_some())?;
    let commands = command_tools(parts, request, workspace, &machines, (shell.program.clone(), skills))?;
    let patches = commands.patches.clone();
    let mut tool_parts = ToolParts::new(machines.files, place, shell);
    tool_parts.files = registered.files.clone();
    tool_parts.facts = shared.facts.clone();
    tool_parts.images = shared.images.clone();
    tool_parts.read_budget = Some(read_budget);
    let mut layers = registered.toolbox.of_run(request, &tool_parts, commands.tools);
    if machines.workspace_only {
        layers.base = layers.base.iter().map(|tool| in_workspace(Arc::clone(tool), workspace)).collect();
    }
    layers.services.extend(ask_user(parts, request));
    let (layers, foreground) = match &request.memory_flush_write_path {
        Some(path) if request.trigger == RunTrigger::Memory => (notes::only_notes(layers, &tool_parts, path), None),
        _ => (layers, commands.foreground),
    };
    Ok(ToolOffer::new(layers, foreground, Arc::clone(&parts.config.tools), request.caller.clone())
        .in_mode(request.permission_mode)
        .at_depth(request.spawn_depth)
        .patches_by(patches)
        .reserved_for_owner(parts.registered.toolbox.owner_only())
        .searched(tool_search(&parts.config, &request.agent(&parts.config.agents))))
}

/// Returns the number of hits of a search for tools, if the agent's tools are searched for.
fn tool_search(config: &Config, agent: &AgentId) -> Option<usize> {
    ToolSearchConfig::of_agent(config.tool_search, config.agents.get(agent).map(|agent| agent.tool_search))
}

/// Creates the loop detection for the calls of one run.
pub(super) fn loop_guard(config: &Config, agent: &AgentId, request: &RunRequest) -> LoopGuard {
    let of_agent = config.agents.get(agent).map_or(&Value::Null, |agent| &agent.loop_detection);
    let guard = LoopGuard::new(LoopConfig::read(&config.loop_detection, of_agent));
    guard.begin_run(&request.run_id);
    guard
}

/// Returns the tools of a run that follow the command rules.
fn command_tools(
    parts: &Parts,
    request: &RunRequest,
    workspace: &Path,
    machines: &RunMachines,
    (shell, skills): (PathBuf, &AgentSkills),
) -> Result<CommandTools, RunError> {
    let (registered, config) = (&parts.registered, &parts.config);
    let agent = request.agent(&config.agents);
    let exec = exec_config(config, request, &agent).map_err(|error| invalid_modes(&error))?;
    let mode = request.permission_mode;
    let names = registered.toolbox.command_tools(has_rules(&exec, mode));
    let mut hosts = CommandHosts::default();
    hosts.outside.clone_from(&machines.outside);
    hosts.has_own_programs = machines.has_own_programs;
    hosts.configured = exec.host.filter(|_| !request.requires_sandbox).unwrap_or_default();
    hosts.elevated = elevated(config, request, &agent);
    let own = CommandParts {
        config: &exec,
        hosts,
        mode,
        machine: Arc::clone(&machines.commands),
        workspace,
        workspace_only: machines.workspace_only,
        home: parts.host.home(),
        shell,
        variables: skills.variables.clone(),
        skill_bins: skills.programs.clone(),
        variables_of_exec: &registered.exec_variables,
        env: parts.host.env().to_vec(),
        registry: registered.processes.clone(),
        approvals: Arc::clone(&registered.approvals),
        approvals_file: parts.state_dir.join(APPROVALS),
        agent: agent.as_str().to_owned(),
        scope: request.scope_key().to_owned(),
        files: registered.files.clone(),
        patch_journals: machines.outside.is_none().then(|| patch_journals(parts)),
    };
    own.tools(&names).map_err(|error| invalid_modes(&error))
}

/// Returns the directory for journals of patches that may change files outside of the workspace.
fn patch_journals(parts: &Parts) -> PathBuf {
    parts.state_dir.join("patches")
}

/// Completes patches that a crash has interrupted, so that the model does not see files of which some are patched and others not. A sandbox
/// does not contain the journals of patches outside of the workspace.
pub(super) async fn finish_patches(parts: &Parts, workspace: &Path, machine: &dyn Machine, is_sandboxed: bool) {
    let journals = patch_journals(parts);
    let outside = (!is_sandboxed).then(|| JournalPlace::private(&journals));
    for place in std::iter::once(JournalPlace::within(workspace)).chain(outside) {
        match finish_interrupted(place, machine).await {
            Ok(0) => {}
            Ok(n) => tracing::warn!(n, ?place, "completed patches that were interrupted"),
            Err(error) => tracing::warn!(%error, "could not complete a patch that was interrupted"),
        }
    }
}

/// Returns the tool that asks the person whose message started the run, if anybody can be asked.
fn ask_user(parts: &Parts, request: &RunRequest) -> Option<Arc<dyn Tool>> {
    let broker = parts.registered.questions.clone()?;
    let is_asking = request.trigger == RunTrigger::User && !request.disable_tools;
    is_asking.then(|| Arc::new(AskUserTool::new(broker, request.session_key.clone())) as Arc<dyn Tool>)
}

/// Returns whether the commands of a run may leave its sandbox.
pub(super) fn elevated(config: &Config, request: &RunRequest, agent: &AgentId) -> ElevatedRules {
    let level = request.elevated_level.or(config.agents.defaults.elevated_level).unwrap_or_default();
    let of_agent = config.agents.get(agent).map(|agent| &agent.elevated);
    let mut rules = config.elevated.rules(of_agent, &request.caller, level);
    // A mode confined to the workspace does not permit leaving the sandbox.
    rules.is_allowed &= !request.permission_mode.is_some_and(PermissionMode::is_rooted) && !request.requires_sandbox;
    rules
}

/// Returns the names of environment variables with credentials of providers, which commands must not see.
pub(super) fn credential_variables(parts: &Parts) -> BTreeSet<String> {
    let mut credentials = parts.registry.key_variables();
    credentials.extend(parts.profiles.key_variables());
    credentials.extend(implicit::variables().map(str::to_owned));
    credentials
}

/// Returns the shell for commands.
fn shell(parts: &Parts, variables: &[(String, String)], is_sandboxed: bool) -> Result<Shell, RunError> {
    let program =
        Shell::program(parts.settings.shell_path.as_deref()).map_err(|error| RunError::Config(error.to_string()))?;
    let rule = &parts.settings.shell_environment;
    let rule = if is_sandboxed { rule.in_sandbox() } else { rule.clone() };
    let env = rule.select(parts.host.env().iter(), &credential_variables(parts));
    // Variables set by skills are meant for commands.
    let env = Shell::environment(
        env.into_iter().chain(variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
    );
    let prefix = parts.settings.shell_command_prefix.clone();
    Ok(Shell { program, prefix, env, temp: parts.host.temp().to_owned() })
}

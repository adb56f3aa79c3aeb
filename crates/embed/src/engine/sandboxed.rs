//! The sandbox of a run: whether it has one, its working directory, and the machine inside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::machine::Machine;
use pinch_sandbox::choose::SandboxBackend;
use pinch_sandbox::config::SandboxConfig;
use pinch_sandbox::confinement::{Confinement, NetworkAccess, PathAccess};
use pinch_sandbox::container::{ContainerOptions, check_network, container_environment};
use pinch_sandbox::contract::SandboxUnavailable;
use pinch_sandbox::facts::SandboxFacts;
use pinch_sandbox::scope::{SandboxScope, WorkspaceAccess, is_sandboxed};
use pinch_stdx::fs::{create_private_dir, real_path};

use super::directories::own_files;
use crate::config::paths::expand_home;
use crate::key::{self, AgentId};
use crate::parts::Parts;
use crate::parts::copies::WorkspaceCopy;
use crate::parts::sandboxes::RequiredSandbox;
use crate::prompt::{SandboxPrompt, bootstrap};
use crate::run::{RunError, RunRequest};
use crate::skills::{AgentSkills, SkillOrigin};

/// The sandbox that a run needs.
pub(super) struct SandboxPlan {
    config: SandboxConfig,
    scope_key: String,
    /// Workspace of the agent.
    agent_workspace: PathBuf,
    /// Working directory of the tools: the agent's workspace, or a copy.
    pub(super) workspace: PathBuf,
    /// Directory of the copies.
    root: PathBuf,
}

/// The sandbox of a run.
pub(super) struct RunSandbox {
    pub(super) machine: Arc<dyn Machine>,
    /// What the model is told about it.
    pub(super) facts: SandboxFacts,
    pub(super) backend: String,
    /// Whether its programs are those of an image, not of this machine.
    pub(super) has_own_programs: bool,
    /// Environment variables of its commands.
    pub(super) variables: Vec<(String, String)>,
}

impl RunSandbox {
    /// Describes the sandbox for the system prompt.
    pub(super) fn prompt(&self) -> SandboxPrompt {
        let SandboxFacts { workspace, access, agent_mount, elevated, .. } = &self.facts;
        SandboxPrompt {
            workspace: Some(workspace.display().to_string()),
            access: Some(access.as_str().to_owned()),
            mount: agent_mount.as_ref().map(|dir| dir.display().to_string()),
            elevated: elevated.clone(),
            backend: Some(self.backend.clone()),
            ..SandboxPrompt::default()
        }
    }
}

/// The backend without a sandbox.
const NO_BACKEND: &str = "none";

/// Returns the sandbox that a run needs, if any. Creates nothing.
pub(super) fn plan(
    parts: &Parts,
    request: &RunRequest,
    agent: &AgentId,
    agent_workspace: &Path,
) -> Option<SandboxPlan> {
    let mut config = parts.config.sandbox.of(agent).clone();
    if request.requires_sandbox && config.workspace_access == WorkspaceAccess::ReadWrite {
        config.workspace_access = WorkspaceAccess::ReadOnly;
    }
    let main_key = &parts.config.session.main_key;
    let canonical = |name: &str| key::canonical(name, agent, main_key).unwrap_or_else(|| name.to_owned());
    let named = request.session_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
    // Without a key, the session is identified only by its id.
    let session_key = named.map_or_else(|| format!("agent:{agent}:session:{}", request.session_id), canonical);
    let is_off = config.backend.as_deref().is_some_and(|name| name.trim() == NO_BACKEND);
    let is_configured = !is_off && is_sandboxed(config.mode, Some(&session_key), &canonical("main"));
    if !is_configured && !request.requires_sandbox {
        return None;
    }
    let scope_key = match config.scope {
        // The agent of this run, even if the session began with another one.
        SandboxScope::Agent => format!("agent:{agent}"),
        SandboxScope::Session | SandboxScope::Shared => config.scope.key(&session_key),
    };
    let root = match &config.workspace_root {
        Some(root) => parts.state_dir.join(expand_home(root, parts.host.home())),
        None => parts.state_dir.join("sandboxes"),
    };
    let workspace = match config.workspace_access {
        WorkspaceAccess::ReadWrite => agent_workspace.to_owned(),
        WorkspaceAccess::None | WorkspaceAccess::ReadOnly => config.scope.workspace(&root, &scope_key),
    };
    Some(SandboxPlan { config, scope_key, agent_workspace: agent_workspace.to_owned(), workspace, root })
}

impl SandboxPlan {
    /// Enters the sandbox. The workspace of the agent must exist.
    ///
    /// # Errors
    /// [`RunError::Config`] if the sandbox is unavailable. The run must not continue without it.
    pub(super) async fn enter(&self, parts: &Parts, skills: &AgentSkills) -> Result<RunSandbox, RunError> {
        let backend = self.backend()?;
        if self.workspace != self.agent_workspace {
            self.record_copy(parts).await;
            create_private_dir(&self.workspace)
                .and_then(|()| bootstrap::seed(&self.agent_workspace, &self.workspace))
                .map_err(|error| {
                    let shown = self.workspace.display();
                    RunError::Config(format!("cannot create the workspace of the sandbox {shown}: {error}"))
                })?;
        }
        let confinement = self.confinement(parts, skills)?;
        self.check_contents(parts)?;
        let asked = RequiredSandbox {
            // One scope has several sandboxes if agents with different workspaces share it.
            key: format!("{}\n{}", self.scope_key, self.workspace.display()),
            backend,
            confinement,
            containers: self.containers(parts),
            path: parts.host.env().get("PATH").unwrap_or(USUAL_PATH),
            prune: self.config.prune,
            now_ms: parts.host.now_ms(),
        };
        let entered = parts.registered.sandboxes.enter(asked).await.map_err(|error| self.unavailable(&error))?;
        let is_copy = self.workspace != self.agent_workspace;
        let mount = is_copy && self.config.workspace_access == WorkspaceAccess::ReadOnly;
        let environment = container_environment(&self.config.container.env);
        for what in environment.blocked.iter().chain(&environment.warnings) {
            tracing::warn!(what, "a variable of the sandbox's configuration");
        }
        let mut facts = SandboxFacts::new(self.workspace.clone(), self.config.workspace_access);
        // Containers show it there as well.
        facts.agent_mount = mount.then(|| self.agent_workspace.clone());
        Ok(RunSandbox {
            machine: entered.machine,
            variables: environment.allowed,
            facts,
            backend: entered.backend.to_owned(),
            has_own_programs: entered.has_own_programs,
        })
    }

    /// Records that the copy is used. Without the registry, no copies are removed.
    async fn record_copy(&self, parts: &Parts) {
        let copy = WorkspaceCopy {
            workspace: self.workspace.clone(),
            root: self.root.clone(),
            max_age_days: self.config.prune.copy_days,
            now_ms: parts.host.now_ms(),
        };
        let state_dir = parts.state_dir.clone();
        let recorded = tokio::task::spawn_blocking(move || copy.record(&state_dir)).await;
        if let Err(error) = recorded.unwrap_or_else(|panicked| Err(panicked.into())) {
            tracing::warn!(%error, "the registry of the sandboxes' workspaces cannot be used");
        }
    }

    fn backend(&self) -> Result<SandboxBackend, RunError> {
        let Some(name) = &self.config.backend else { return Ok(SandboxBackend::Auto) };
        if name.trim() == NO_BACKEND {
            return Err(RunError::Config(format!(
                "this run requires a sandbox, and the configuration has none: set agents.defaults.sandbox.backend to another value than \
                 {NO_BACKEND}"
            )));
        }
        SandboxBackend::parse(name).ok_or_else(|| {
            let known = SandboxBackend::ALL.map(SandboxBackend::as_str).join(", ");
            RunError::Config(format!(
                "unknown sandbox backend {name:?}. Set agents.defaults.sandbox.backend to one of {known}, {NO_BACKEND}"
            ))
        })
    }

    /// Returns the container options of the run.
    fn containers(&self, parts: &Parts) -> ContainerOptions {
        let options = ContainerOptions::new(self.config.container.clone(), &self.scope_key)
            .scope(self.config.scope, &self.scope_key)
            .host(parts.host.home().map(Into::into), parts.host.env().to_vec(), parts.host.now_ms());
        match self.workspace == self.agent_workspace {
            true => options,
            false => options.agent_workspace(&self.agent_workspace, self.config.workspace_access),
        }
    }

    /// Returns what the run may read and write.
    fn confinement(&self, parts: &Parts, skills: &AgentSkills) -> Result<Confinement, RunError> {
        let container = &self.config.container;
        check_network(&container.network, container.allow_namespace_join)
            .map_err(|error| RunError::Config(error.to_string()))?;
        let network =
            NetworkAccess::of(&self.config).map_err(|error| RunError::Config(format!("sandbox.domains: {error}")))?;
        let mut asked = Confinement::new(&self.workspace).network(network);
        if let Some(home) = parts.host.home() {
            asked = asked.toolchains_of(home);
        }
        if self.config.hide_processes {
            asked = asked.hide_processes();
        }
        if self.config.workspace_access == WorkspaceAccess::ReadOnly {
            asked = asked.root(&self.agent_workspace, PathAccess::Read);
        }
        for (path, access) in self.extra_roots(parts) {
            if path.exists() {
                asked = asked.root(path, access);
            } else {
                tracing::warn!(path = %path.display(), "sandbox.extraRoots names a path that does not exist; it is not visible inside");
            }
        }
        Ok(self.skill_dirs(skills).into_iter().fold(asked, |asked, dir| asked.root(dir, PathAccess::Read)))
    }

    /// Returns the directories of usable skills outside the workspace.
    fn skill_dirs(&self, skills: &AgentSkills) -> Vec<PathBuf> {
        let workspace = real_path(&self.agent_workspace);
        let usable = skills.skills.iter().filter(|status| status.ineligible.is_none()).map(|status| &status.skill);
        let mut dirs: Vec<PathBuf> = usable
            .filter_map(|skill| {
                let dir = real_path(skill.path.parent()?);
                // Skills in the workspace were put there by whoever works there, and may be links.
                let is_own = matches!(skill.origin, SkillOrigin::Project | SkillOrigin::Workspace);
                (!is_own || dir.starts_with(&workspace)).then_some(dir)
            })
            // Skills of a snapshot may be gone.
            .filter(|dir| !dir.starts_with(real_path(&self.workspace)) && dir.is_dir())
            .collect();
        dirs.sort_unstable();
        dirs.dedup();
        dirs
    }

    /// Returns the additional files and directories. Relative ones are in the workspace of the agent.
    fn extra_roots(&self, parts: &Parts) -> Vec<(PathBuf, PathAccess)> {
        let home = parts.host.home();
        let resolved = |(written, access): &(String, PathAccess)| {
            (self.agent_workspace.join(expand_home(Path::new(written), home)), *access)
        };
        self.config.extra_roots.iter().map(resolved).collect()
    }

    /// Fails if the sandbox would expose this engine's credentials.
    fn check_contents(&self, parts: &Parts) -> Result<(), RunError> {
        let mut shown = vec![self.workspace.clone()];
        if self.config.workspace_access != WorkspaceAccess::None {
            shown.push(self.agent_workspace.clone());
        }
        shown.extend(self.extra_roots(parts).into_iter().map(|(path, _)| path));
        let hidden: Vec<PathBuf> = parts.host.home().map(Path::to_owned).into_iter().chain(own_files(parts)).collect();
        for dir in &shown {
            if let Some(hidden) = hidden.iter().find(|hidden| real_path(hidden).starts_with(real_path(dir))) {
                return Err(RunError::Config(format!(
                    "the sandbox would contain {}, because {} is shown inside. Choose another workspace, change extraRoots, or move what \
                     decides about runs out of it",
                    hidden.display(),
                    dir.display()
                )));
            }
        }
        Ok(())
    }

    fn unavailable(&self, error: &SandboxUnavailable) -> RunError {
        RunError::Config(format!(
            "{error}. To solve this, {}. Nothing runs outside while agents.defaults.sandbox.mode is \"{}\"",
            error.remedy,
            self.config.mode.as_str()
        ))
    }
}

/// The `PATH` if the environment has none.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

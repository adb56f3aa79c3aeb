//! The `sandbox` sections of a configuration: `agents.defaults.sandbox`, and that of an agent, which overrides it field by field.
//!
//! Unreadable values are reported, and the strictest value is used instead.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::scope::{PathAccess, SandboxMode, SandboxScope, WorkspaceAccess};

mod members;
mod container;
mod browser;

pub use browser::SandboxBrowser;
pub use container::{ContainerConfig, ContainerLimit, Ulimit};
pub use members::SandboxProblem;

use members::{SectionMembers, SectionReader};

/// How an agent's sessions are sandboxed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SandboxConfig {
    /// Which sessions are sandboxed.
    pub mode: SandboxMode,
    /// Which sessions share a sandbox.
    pub scope: SandboxScope,
    /// How much a sandbox sees of the agent's workspace.
    pub workspace_access: WorkspaceAccess,
    /// Directory for copies of workspaces; the host's default if not set.
    pub workspace_root: Option<PathBuf>,
    /// Which sessions the session tools show to a sandboxed session: `spawned` or `all`.
    pub session_tools_visibility: SessionToolsVisibility,
    /// The requested backend; the host's choice if not set.
    pub backend: Option<String>,
    /// Servers to which network access is limited; `None` if only the container settings limit it.
    pub domains: Option<Vec<String>>,
    /// Whether processes outside must be hidden; a backend that cannot do that is refused.
    pub hide_processes: bool,
    /// Additional files and directories, as written, where `~` is the home directory.
    pub extra_roots: Vec<(String, PathAccess)>,
    /// Container settings.
    pub container: ContainerConfig,
    /// The browser's container.
    pub browser: SandboxBrowser,
    /// When to remove containers and copies.
    pub prune: SandboxPrune,
}

/// Which sessions the session tools show to a sandboxed session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionToolsVisibility {
    /// The sessions it spawned.
    #[default]
    Spawned,
    /// All sessions.
    All,
}

impl SessionToolsVisibility {
    /// Returns the value used in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawned => "spawned",
            Self::All => "all",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        match word.trim() {
            "spawned" => Some(Self::Spawned),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

/// When to remove sandboxes; 0 means never.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SandboxPrune {
    /// Hours since last use.
    pub idle_hours: f64,
    /// Days since creation.
    pub max_age_days: f64,
    /// Days since a copy of a workspace was last used: `maxAgeDays` if it is set explicitly. By default copies are kept, because agents may
    /// have their notes there.
    pub copy_days: f64,
}

impl Default for SandboxPrune {
    fn default() -> Self {
        Self { idle_hours: 24.0, max_age_days: 7.0, copy_days: 0.0 }
    }
}

impl Default for ContainerConfig {
    /// Returns the value of an empty configuration.
    fn default() -> Self {
        SandboxConfig::default().container
    }
}

impl Default for SandboxConfig {
    /// Returns the value of an empty configuration.
    fn default() -> Self {
        Self::read(&Value::Null, "").0
    }
}

impl SandboxConfig {
    /// Reads the configuration of an agent: its own section over that of all agents. If all agents share one sandbox, `docker`, `browser`
    /// and `prune` of single agents are ignored.
    pub fn read(document: &Value, agent: &str) -> (Self, Vec<SandboxProblem>) {
        let mut reader = SectionReader::default();
        let defaults = reader.section(&document["agents"]["defaults"]["sandbox"], "agents.defaults.sandbox");
        let own = own_section(&document["agents"], agent);
        let own = match &own {
            Some((section, path)) => reader.section(section, path),
            None => SectionMembers::none(),
        };
        (Self::merged(&mut reader, &defaults, &own), reader.problems)
    }

    fn merged(reader: &mut SectionReader, defaults: &SectionMembers<'_>, own: &SectionMembers<'_>) -> Self {
        let levels = [own, defaults];
        let none = SectionMembers::none();
        let mode = match reader.word(levels, "mode", SandboxMode::parse, "off, non-main or all; all is used") {
            Ok(mode) => mode.unwrap_or_default(),
            Err(()) => SandboxMode::All,
        };
        // An invalid value may have been meant to enable the sandbox.
        let mode = if defaults.is_broken() || own.is_broken() { SandboxMode::All } else { mode };
        let scope = scope(reader, levels);
        let access = reader.word(levels, "workspaceAccess", WorkspaceAccess::parse, "none, ro or rw; none is used");
        let visibility = reader.word(
            levels,
            "sessionToolsVisibility",
            SessionToolsVisibility::parse,
            "spawned or all; spawned is used",
        );
        let workspace_root = reader.text(levels, "workspaceRoot").map(PathBuf::from);
        let backend = reader.text(levels, "backend");
        let domains = reader.strict_texts(levels, "domains");
        let hide_processes = reader.strict_flag(levels, "hideProcesses");
        let extra_roots = reader.strict_texts(levels, "extraRoots").unwrap_or_default();
        let own = if scope == SandboxScope::Shared { &none } else { own };
        let mut sections = |key: &str| (reader.member(own, key), reader.member(defaults, key));
        let (containers, browsers, prunes) = (sections("docker"), sections("browser"), sections("prune"));
        Self {
            mode,
            scope,
            workspace_access: access.ok().flatten().unwrap_or_default(),
            workspace_root,
            session_tools_visibility: visibility.ok().flatten().unwrap_or_default(),
            backend,
            domains,
            hide_processes,
            extra_roots: extra_roots.iter().map(|root| parse_root(root)).collect(),
            container: ContainerConfig::read(reader, &containers.0, &containers.1),
            browser: SandboxBrowser::read(reader, [&browsers.0, &browsers.1]),
            prune: prune(reader, [&prunes.0, &prunes.1]),
        }
    }
}

/// Parses a path that may be followed by `:ro` or `:rw`.
fn parse_root(text: &str) -> (String, PathAccess) {
    let text = text.trim();
    match text.strip_suffix(":rw") {
        Some(path) => (path.to_owned(), PathAccess::Write),
        None => (text.strip_suffix(":ro").unwrap_or(text).to_owned(), PathAccess::Read),
    }
}

/// Returns an agent's section and its path: in `agents.list` or `agents.entries`.
fn own_section<'a>(agents: &'a Value, agent: &str) -> Option<(&'a Value, String)> {
    let agent = agent.trim().to_lowercase();
    let is_it = |id: &str| id.trim().to_lowercase() == agent;
    let mut list = agents["list"].as_array().into_iter().flatten().enumerate();
    let listed = list.find(|(_, entry)| entry["id"].as_str().is_some_and(is_it));
    if let Some((at, entry)) = listed {
        return Some((&entry["sandbox"], format!("agents.list[{at}].sandbox")));
    }
    let entries: Option<&Map<String, Value>> = agents["entries"].as_object();
    let (id, entry) = entries?.iter().find(|(id, _)| is_it(id))?;
    Some((&entry["sandbox"], format!("agents.entries.{id}.sandbox")))
}

/// Reads `scope`, or its predecessor `perSession`.
fn scope(reader: &mut SectionReader, levels: [&SectionMembers<'_>; 2]) -> SandboxScope {
    match reader.word(levels, "scope", SandboxScope::parse, "session, agent or shared; session is used") {
        Ok(Some(scope)) => scope,
        Err(()) => SandboxScope::Session,
        Ok(None) => match reader.flag(levels, "perSession") {
            Some(true) => SandboxScope::Session,
            Some(false) => SandboxScope::Shared,
            None => SandboxScope::Agent,
        },
    }
}

fn prune(reader: &mut SectionReader, levels: [&SectionMembers<'_>; 2]) -> SandboxPrune {
    let default = SandboxPrune::default();
    let max_age_days = reader.number(levels, "maxAgeDays");
    SandboxPrune {
        idle_hours: reader.number(levels, "idleHours").unwrap_or(default.idle_hours),
        max_age_days: max_age_days.unwrap_or(default.max_age_days),
        copy_days: max_age_days.unwrap_or(default.copy_days),
    }
}

#[cfg(test)]
mod tests;

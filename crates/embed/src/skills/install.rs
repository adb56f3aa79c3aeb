//! Commands of package managers that install what a skill requires.

use std::fmt;

use pinch_stdx::host::Host;

use super::agent_skills::{is_program, platform};
use super::load::LoadedSkill;
use super::metadata::SkillInstaller;
use crate::config::skills::{NodeManager, SkillsConfig};

/// Which installer of a skill to use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct InstallChoice<'a> {
    /// Id of the installer, or its number from 1 on; `None`: the first whose package manager is there, Homebrew before others unless the
    /// settings say otherwise.
    pub wanted: Option<&'a str>,
    /// The settings of skills.
    pub config: &'a SkillsConfig,
    /// The machine.
    pub host: &'a Host,
}

impl<'a> InstallChoice<'a> {
    /// Chooses among all installers for this machine.
    pub fn new(config: &'a SkillsConfig, host: &'a Host) -> Self {
        Self { wanted: None, config, host }
    }
}

/// A command that installs something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstallCommand {
    /// The program of the package manager.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl fmt::Display for InstallCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.arguments.join(" "))
    }
}

/// Why nothing can be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallRefusal {
    /// The skill names no installer for this system.
    #[error("the skill names no installer for this system")]
    NoInstaller,
    /// There is no such installer.
    #[error("the skill has no installer {wanted:?} for this system; it has: {}", known.join(", "))]
    Unknown {
        /// The wanted one.
        wanted: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// The package managers are missing.
    #[error("none of the package managers is installed: {}", .0.join(", "))]
    NoManager(Vec<String>),
    /// It must be downloaded.
    #[error("it must be downloaded by hand from {0}")]
    Download(String),
    /// The installer does not name a package.
    #[error("its installer {0} names no valid package")]
    Invalid(String),
}

impl LoadedSkill {
    /// Returns the command that installs what this skill requires. Scripts of Node.js packages are not run.
    ///
    /// # Errors
    /// [`InstallRefusal`].
    pub fn install_command(&self, choice: &InstallChoice<'_>) -> Result<InstallCommand, InstallRefusal> {
        let node = choice.config.node_manager;
        let path = choice.host.env().get("PATH").unwrap_or_default();
        let is_for_here =
            |installer: &&SkillInstaller| installer.os.is_empty() || installer.os.iter().any(|os| os == platform());
        let here: Vec<&SkillInstaller> = self.metadata.install.iter().filter(is_for_here).collect();
        if here.is_empty() {
            return Err(InstallRefusal::NoInstaller);
        }
        let id = |at: usize| here[at].id.clone().unwrap_or_else(|| (at + 1).to_string());
        if let Some(wanted) = choice.wanted {
            let found = (0..here.len()).find(|at| id(*at) == wanted || (at + 1).to_string() == wanted);
            let known = || (0..here.len()).map(id).collect();
            let unknown = || InstallRefusal::Unknown { wanted: wanted.to_owned(), known: known() };
            return command(here[found.ok_or_else(unknown)?], node);
        }
        let mut ordered = here.clone();
        ordered.sort_by_key(|installer| choice.config.avoids_brew || installer.kind != "brew");
        let mut first = Err(InstallRefusal::NoInstaller);
        let mut missing = Vec::new();
        for installer in ordered {
            match command(installer, node) {
                Ok(command) if is_program(path, command.program) => return Ok(command),
                Ok(command) => missing.push(command.program.to_owned()),
                refused if first == Err(InstallRefusal::NoInstaller) => first = refused,
                Err(_) => {}
            }
        }
        if missing.is_empty() { first } else { Err(InstallRefusal::NoManager(missing)) }
    }
}

fn command(installer: &SkillInstaller, node: NodeManager) -> Result<InstallCommand, InstallRefusal> {
    let named = |member: &str| installer.what.get(member).and_then(|value| value.as_str()).map(str::trim);
    let package = |member: &str| {
        let name = named(member).filter(|name| is_package(name));
        name.map(str::to_owned).ok_or_else(|| InstallRefusal::Invalid(installer.kind.clone()))
    };
    let with = |program, before: &[&str], package: String| {
        let arguments = before.iter().map(|argument| (*argument).to_owned()).chain([package]).collect();
        InstallCommand { program, arguments }
    };
    Ok(match installer.kind.as_str() {
        "brew" => with("brew", &["install"], package("formula")?),
        "go" => with("go", &["install"], package("module")?),
        "uv" => with("uv", &["tool", "install"], package("package")?),
        "node" => {
            let before: &[&str] = match node {
                NodeManager::Npm => &["install", "--global", "--ignore-scripts"],
                NodeManager::Pnpm | NodeManager::Bun => &["add", "--global", "--ignore-scripts"],
                NodeManager::Yarn => &["global", "add", "--ignore-scripts"],
            };
            with(node.as_str(), before, package("package")?)
        }
        _ => return Err(InstallRefusal::Download(named("url").unwrap_or("its home page").to_owned())),
    })
}

/// Returns whether a text is the name of a package, and not an option.
fn is_package(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "@/._-+~^=<>!,[]".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_allowed)
}

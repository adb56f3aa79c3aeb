//! What a working directory says before anything is loaded: settings, and whether the project counts.

use std::path::{Path, PathBuf};

use pinch_stdx::host::Host;

use super::ServiceOptions;
use crate::packages::Packages;
use crate::resources::trust::{self, DefaultTrust, Project, TrustDecision, TrustQuestion, TrustStore};
use crate::resources::{ResourceInputs, ResourceSettings};
use crate::settings::{Scope, SettingsFiles, SettingsManager};

/// The settings of a user in a working directory. Those of the project are among them where it is trusted.
#[derive(Clone, Debug)]
pub struct FolderSettings {
    pub(super) options: ServiceOptions,
    pub(super) cwd: PathBuf,
    pub(super) project: Project,
    pub(super) trust: TrustDecision,
    pub(super) settings: SettingsManager,
}

impl FolderSettings {
    /// Reads settings and decides about the project without asking anybody. What is wrong in documents stops nothing and is answered in
    /// sentences for people.
    pub fn read(options: &ServiceOptions, cwd: &Path) -> (Self, Vec<String>) {
        let ServiceOptions { host, agent_dir, .. } = options;
        let (store, of_trust) = TrustStore::load(&agent_dir.join("trust.json"));
        let settings =
            SettingsManager::load(&SettingsFiles { global: agent_dir.join("settings.json"), project: None }, host);
        let project = Project::look(cwd, host.home());
        let default = settings.settings().default_project_trust;
        let question = TrustQuestion { project: &project, given: options.trust, extension: None, default };
        let trust = trust::decide(&question, &store);
        if let Some(dir) = project.dir().filter(|_| trust.is_trusted()) {
            settings.add_project(&dir.join("settings.json"));
        }
        let of_settings = settings.drain_problems();
        let problems = of_trust.iter().map(ToString::to_string).chain(of_settings.iter().map(ToString::to_string));
        let problems = problems.collect();
        let host = settings.settings().network.proxy.as_deref().and_then(|proxy| with_proxy(host, proxy));
        let options = ServiceOptions { host: host.unwrap_or_else(|| options.host.clone()), ..options.clone() };
        (Self { options, cwd: cwd.to_owned(), project, trust, settings }, problems)
    }

    /// What the user wants here.
    pub fn settings(&self) -> &SettingsManager {
        &self.settings
    }

    /// The packages of the user in this folder. Where there is no project, none can be trusted.
    pub fn packages(&self) -> Packages {
        let dir = self.project.dir().map(Path::to_owned);
        let trusted = dir.is_some() && self.trust.is_trusted();
        let dir = dir.unwrap_or_else(|| self.cwd.join(".pi"));
        let ServiceOptions { host, agent_dir, .. } = &self.options;
        let npm_command = self.settings.settings().npm_command.clone().filter(|argv| !argv.is_empty());
        Packages { npm_command, ..Packages::new(host.clone(), self.cwd.clone(), agent_dir.clone(), dir, trusted) }
    }

    /// What resources are loaded from.
    pub(super) fn resource_inputs(&self) -> ResourceInputs {
        let options = &self.options;
        let of = |scope| self.settings.resources(scope);
        let (home, project) = (options.host.home(), self.project.clone());
        let mut inputs = ResourceInputs::of_project(&self.cwd, &options.agent_dir, home, project);
        inputs.trusted = self.trust.is_trusted();
        let is_always = self.settings.settings().default_project_trust == DefaultTrust::Always;
        inputs.links_lead_out =
            self.trust == TrustDecision::Decided(true) || self.trust == TrustDecision::NotNeeded && is_always;
        inputs.settings = ResourceSettings { user: of(Scope::Global), project: of(Scope::Project) };
        inputs.command_line = options.paths.clone();
        inputs.without = options.without;
        inputs.system_prompt = options.system_prompt.clone();
        inputs.append_system_prompt = options.append_system_prompt.clone();
        inputs
    }
}

/// The host with the proxy of the settings; variables that name one are stronger.
fn with_proxy(host: &Host, proxy: &str) -> Option<Host> {
    let proxy = Some(proxy.trim()).filter(|proxy| !proxy.is_empty())?;
    let unset = ["HTTP_PROXY", "HTTPS_PROXY"].into_iter().filter(|name| host.env().get(name).is_none());
    let env = host.env().with(unset.map(|name| (name, proxy)));
    Some(host.with_env(env))
}

//! What is known about a working directory before anything is loaded: settings, and project trust.

use std::path::{Path, PathBuf};

use pinch_stdx::host::Host;
use serde_json::Map;

use super::options::{ResourceOptions, ServiceOptions};
use crate::packages::Packages;
use crate::resources::sandboxed;
use crate::resources::trust::{self, DefaultTrust, Project, TrustDecision, TrustInputs, TrustStore};
use crate::resources::{ResourceInputs, ResourceSettings, ResourceSwitches};
use crate::settings::{SettingsManager, SettingsScope};

/// The user's settings in a working directory, including those of a trusted project.
#[derive(Clone, Debug)]
pub struct DirectorySettings {
    pub(super) options: ServiceOptions,
    pub(super) cwd: PathBuf,
    pub(super) project: Project,
    pub(super) trust: TrustDecision,
    pub(super) settings: SettingsManager,
}

impl DirectorySettings {
    /// Reads settings and decides whether the project is trusted, without asking. Problems in documents are returned as sentences for
    /// people; they are not fatal.
    pub fn read(options: &ServiceOptions, cwd: &Path) -> (Self, Vec<String>) {
        let ServiceOptions { host, agent_dir, .. } = options;
        let (mut store, mut of_trust) = match agent_dir {
            Some(dir) => TrustStore::load(&dir.join("trust.json")),
            None => (TrustStore::in_memory(), Vec::new()),
        };
        let settings = match (&options.settings, agent_dir) {
            (Some(given), _) => given.clone(),
            (None, Some(dir)) => SettingsManager::of_user(dir, host),
            (None, None) => SettingsManager::in_memory(Map::new(), Map::new(), host),
        };
        let project = match agent_dir {
            Some(_) => Project::look(cwd, host.home()),
            None => Project::none(cwd),
        };
        if let Some(dir) = agent_dir.as_deref().filter(|_| options.trust.is_none()) {
            of_trust.extend(sandboxed::doubt(dir, &project, &mut store));
        }
        let default = settings.settings().default_project_trust;
        let question = TrustInputs { project: &project, given: options.trust, extension: None, default };
        let trust = trust::decide(&question, &store);
        if let Some(dir) = project.dir().filter(|_| trust.is_trusted() && options.settings.is_none()) {
            settings.add_project(&dir.join("settings.json"));
        }
        let of_settings = settings.drain_problems();
        let problems = of_trust.iter().map(ToString::to_string).chain(of_settings.iter().map(ToString::to_string));
        let problems = problems.collect();
        let host = settings.settings().network.proxy.as_deref().and_then(|proxy| with_proxy(host, proxy));
        let options = ServiceOptions { host: host.unwrap_or_else(|| options.host.clone()), ..options.clone() };
        (Self { options, cwd: cwd.to_owned(), project, trust, settings }, problems)
    }

    /// Returns the host, with the proxy from the settings.
    pub fn host(&self) -> &Host {
        &self.options.host
    }

    /// Returns the settings.
    pub fn settings(&self) -> &SettingsManager {
        &self.settings
    }

    /// Returns the user's packages in this directory, or `None` without an agent directory. A missing project is not trusted.
    pub fn packages(&self) -> Option<Packages> {
        let ServiceOptions { host, agent_dir, .. } = &self.options;
        let agent_dir = agent_dir.clone()?;
        let dir = self.project.dir().map(Path::to_owned);
        let trusted = dir.is_some() && self.trust.is_trusted();
        let dir = dir.unwrap_or_else(|| self.cwd.join(".pi"));
        let npm_command = self.settings.settings().npm_command.clone().filter(|argv| !argv.is_empty());
        Some(Packages { npm_command, ..Packages::new(host.clone(), self.cwd.clone(), agent_dir, dir, trusted) })
    }

    /// Returns the resources of this directory and the settings that enable and disable them, or `None` without an agent directory.
    pub fn resource_switches(&self) -> Option<ResourceSwitches> {
        let agent_dir = self.options.agent_dir.clone()?;
        let dir = self.project.dir().map_or_else(|| self.cwd.join(".pi"), Path::to_owned);
        let inputs = self.resource_inputs(&ResourceOptions::default());
        Some(ResourceSwitches::new(&inputs, self.options.host.clone(), agent_dir, dir))
    }

    /// Returns the inputs for loading resources.
    pub(super) fn resource_inputs(&self, resources: &ResourceOptions) -> ResourceInputs {
        let of = |scope| self.settings.resources(scope);
        let (home, project) = (self.options.host.home(), self.project.clone());
        let mut inputs = match &self.options.agent_dir {
            Some(dir) => ResourceInputs::of_project(&self.cwd, dir, home, project),
            None => ResourceInputs::nothing(&self.cwd),
        };
        inputs.trusted = self.trust.is_trusted();
        let is_always = self.settings.settings().default_project_trust == DefaultTrust::Always;
        inputs.links_lead_out =
            self.trust == TrustDecision::Decided(true) || self.trust == TrustDecision::NotNeeded && is_always;
        inputs.settings = ResourceSettings { user: of(SettingsScope::Global), project: of(SettingsScope::Project) };
        inputs.command_line = resources.paths.clone();
        if self.options.agent_dir.is_some() {
            inputs.without = resources.without;
        }
        inputs.system_prompt = resources.system_prompt.clone();
        inputs.append_system_prompt = resources.append_system_prompt.clone();
        inputs
    }
}

/// Returns a host with the proxy from the settings; environment variables take precedence.
fn with_proxy(host: &Host, proxy: &str) -> Option<Host> {
    let proxy = Some(proxy.trim()).filter(|proxy| !proxy.is_empty())?;
    let unset = ["HTTP_PROXY", "HTTPS_PROXY"].into_iter().filter(|name| host.env().get(name).is_none());
    let env = host.env().with(unset.map(|name| (name, proxy)));
    Some(host.with_env(env))
}

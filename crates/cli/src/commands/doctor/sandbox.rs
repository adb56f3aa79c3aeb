//! Checks sandbox support on this machine.

use pinch_embed::coding_agent::settings::SettingsManager;
use pinch_embed::config::Config;
use pinch_sandbox::choose::{SandboxBackend, container_sandboxes, enter, sandboxes};
use pinch_sandbox::config::SandboxConfig;
use pinch_sandbox::confinement::{Confinement, NetworkAccess};
use pinch_sandbox::container::ContainerOptions;
use pinch_sandbox::scope::SandboxMode;

use super::context::DoctorContext;
use super::report::{DoctorSection, FindingStatus};
use crate::commands::agent;
use crate::sandbox::{container_options, network};

/// Tries the backends of `--sandbox`, and enters those that the settings and the configuration of embedded runs ask for.
pub(super) async fn look(context: &DoctorContext) -> DoctorSection {
    let host = &context.host;
    let mut section = DoctorSection::new("Sandbox");
    let path = host.env().get("PATH").unwrap_or_default();
    // Problems in documents are reported with the documents.
    let settings = SettingsManager::of_user(&context.folders.agent_dir, host).settings().sandbox.clone();
    let options_for = |backend| container_options(backend, &settings, &context.folders, host);
    let containers = options_for(SandboxBackend::Docker);
    for sandbox in sandboxes(path).into_iter().chain(container_sandboxes(path, &containers)) {
        match sandbox.probe().await {
            Ok(probe) => {
                let missing = probe.guarantees.missing();
                let text = match missing.is_empty() {
                    true => probe.version,
                    false => format!("{}; does not {}", probe.version, missing.join(", ")),
                };
                section.add(FindingStatus::Ok, sandbox.name(), text);
            }
            Err(error) => {
                section.add(FindingStatus::Note, sandbox.name(), format!("{}; {}", error.reason, error.remedy));
            }
        }
    }
    match settings.backend.as_str() {
        "none" => {
            let text =
                "none, unless --sandbox or the setting \"sandbox\" asks for one: tools run with your permissions";
            section.add(FindingStatus::Note, "in use", text);
        }
        backend => {
            let access = network(&settings).map_err(|failure| failure.text);
            let options = options_for(SandboxBackend::parse(backend).unwrap_or_default());
            let entered = entered(context, backend, access, &options).await;
            add(&mut section, "in use", entered, "as the settings say");
        }
    }
    for (name, config) in embedded(context) {
        let backend = config.backend.as_deref().unwrap_or(SandboxBackend::Auto.as_str());
        let options = ContainerOptions::new(config.container.clone(), "doctor");
        let options = options.host(host.home().map(Into::into), host.env().to_vec(), host.now_ms());
        let access = NetworkAccess::of(&config).map_err(|error| error.to_string());
        let entered = entered(context, backend, access, &options).await;
        add(&mut section, &name, entered, "for embedded runs");
    }
    section
}

fn add(section: &mut DoctorSection, name: &str, entered: Result<String, String>, who: &str) {
    match entered {
        Ok(backend) => section.add(FindingStatus::Ok, name, format!("{backend}, {who}")),
        Err(why) => section.add(FindingStatus::Fail, name, why),
    }
}

/// Returns the sandboxes of embedded runs, one for each that agents share.
fn embedded(context: &DoctorContext) -> Vec<(String, SandboxConfig)> {
    let host = &context.host;
    let state_dir = agent::state_dir(None, host).ok();
    let config = state_dir.and_then(|dir| agent::load_config(None, &dir, host).ok()).map(|(config, _)| config);
    let Config { sandbox, agents, .. } = config.unwrap_or_default();
    let mut found: Vec<(String, SandboxConfig)> = Vec::new();
    for id in std::iter::once(agents.default_id()).chain(agents.list.iter().map(|agent| agent.id.clone())) {
        let config = sandbox.of(&id);
        if config.mode != SandboxMode::Off && found.iter().all(|(_, known)| known != config) {
            found.push((format!("agent {id}"), config.clone()));
        }
    }
    found
}

/// Enters a sandbox with an empty workspace, and leaves it.
async fn entered(
    context: &DoctorContext,
    backend: &str,
    network: Result<NetworkAccess, String>,
    containers: &ContainerOptions,
) -> Result<String, String> {
    let known = SandboxBackend::parse(backend).ok_or_else(|| format!("there is no sandbox {backend:?}"))?;
    let workspace = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let asked = Confinement::new(workspace.path()).network(network?);
    let path = context.host.env().get("PATH").unwrap_or_default();
    let entered = enter(known, path, containers, &asked).await;
    entered.map(|entered| entered.backend.to_owned()).map_err(|error| format!("{error}; {}", error.remedy))
}

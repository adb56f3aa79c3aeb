//! Checks sandbox support on this machine.

use pinch_embed::coding_agent::settings::SettingsManager;
use pinch_sandbox::choose::{container_sandboxes, sandboxes};
use pinch_sandbox::config::ContainerConfig;
use pinch_sandbox::container::ContainerOptions;

use super::context::DoctorContext;
use super::report::{DoctorSection, FindingStatus};

/// Tries the backends of `--sandbox`, and reports the one in the settings.
pub(super) async fn look(context: &DoctorContext) -> DoctorSection {
    let host = &context.host;
    let mut section = DoctorSection::new("Sandbox");
    let path = host.env().get("PATH").unwrap_or_default();
    let containers = ContainerOptions::new(ContainerConfig::default(), "").host(None, host.env().to_vec(), 0);
    for sandbox in sandboxes(path).into_iter().chain(container_sandboxes(path, &containers)) {
        match sandbox.probe().await {
            Ok(probe) => section.add(FindingStatus::Ok, sandbox.name(), probe.version),
            Err(error) => {
                section.add(FindingStatus::Note, sandbox.name(), format!("{}; {}", error.reason, error.remedy));
            }
        }
    }
    // Problems in documents are reported with the documents.
    let backend = SettingsManager::of_user(&context.folders.agent_dir, host).settings().sandbox.backend.clone();
    match backend.as_str() {
        "none" => {
            let text =
                "none, unless --sandbox or the setting \"sandbox\" asks for one: tools run with your permissions";
            section.add(FindingStatus::Note, "in use", text);
        }
        backend => section.add(FindingStatus::Ok, "in use", format!("{backend}, as the settings say")),
    }
    section
}

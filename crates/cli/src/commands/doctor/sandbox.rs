//! What this machine has to keep tools apart from the rest of it.

use pinch_embed::stdx::host::Host;
use pinch_sandbox::choose::{container_sandboxes, sandboxes};
use pinch_sandbox::config::ContainerConfig;
use pinch_sandbox::container::ContainerOptions;

use super::report::{DoctorSection, FindingStatus};

/// Tries the backends of `--sandbox`.
pub(super) async fn look(host: &Host) -> DoctorSection {
    let mut section = DoctorSection::new("Sandbox");
    let path = host.env().get("PATH").unwrap_or_default();
    let env = host.env().iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let containers = ContainerOptions::new(ContainerConfig::default(), "").host(None, env, 0);
    for sandbox in sandboxes(path).into_iter().chain(container_sandboxes(path, &containers)) {
        match sandbox.probe().await {
            Ok(probe) => section.add(FindingStatus::Ok, sandbox.name(), probe.version),
            Err(error) => {
                section.add(FindingStatus::Note, sandbox.name(), format!("{}; {}", error.reason, error.remedy));
            }
        }
    }
    let text = "none, unless --sandbox or the setting \"sandbox\" asks for one: tools run with your permissions";
    section.add(FindingStatus::Note, "in use", text);
    section
}

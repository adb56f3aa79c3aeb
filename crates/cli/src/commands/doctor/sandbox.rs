//! What this machine has to keep tools apart from the rest of it.

use pinch_embed::stdx::host::Host;
use pinch_sandbox::choose::sandboxes;

use super::programs::{ProgramVersion, version};
use super::report::{DoctorSection, FindingStatus};

/// Tries the backends of `--sandbox`, and looks for containers.
pub(super) async fn look(host: &Host) -> DoctorSection {
    let mut section = DoctorSection::new("Sandbox");
    for sandbox in sandboxes(host.env().get("PATH").unwrap_or_default()) {
        match sandbox.probe().await {
            Ok(probe) => section.add(FindingStatus::Ok, sandbox.name(), probe.version),
            Err(error) => {
                section.add(FindingStatus::Note, sandbox.name(), format!("{}; {}", error.reason, error.remedy));
            }
        }
    }
    let (docker, podman) = tokio::join!(version("docker", host), version("podman", host));
    for (name, found) in [("docker", docker), ("podman", podman)] {
        match found {
            ProgramVersion::Is(text) => section.add(FindingStatus::Ok, name, text),
            ProgramVersion::Silent => section.add(FindingStatus::Note, name, "does not report its version in time"),
            ProgramVersion::Missing => section.add(FindingStatus::Note, name, "not installed"),
        }
    }
    let text = "none, unless --sandbox or the setting \"sandbox\" asks for one: tools run with your permissions";
    section.add(FindingStatus::Note, "in use", text);
    section
}

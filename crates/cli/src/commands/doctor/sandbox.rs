//! What this machine has to keep tools apart from the rest of it.

use pinch_embed::stdx::host::Host;

use super::programs::{ProgramVersion, version};
use super::report::{DoctorSection, FindingStatus};

/// Looks for containers, bubblewrap and Landlock.
pub(super) async fn look(host: &Host) -> DoctorSection {
    let mut section = DoctorSection::new("Sandbox");
    let (docker, podman, bubblewrap) =
        tokio::join!(version("docker", host), version("podman", host), version("bwrap", host));
    for (name, found) in [("docker", docker), ("podman", podman), ("bubblewrap", bubblewrap)] {
        match found {
            ProgramVersion::Is(text) => section.add(FindingStatus::Ok, name, text),
            ProgramVersion::Silent => section.add(FindingStatus::Note, name, "does not report its version in time"),
            ProgramVersion::Missing => section.add(FindingStatus::Note, name, "not installed"),
        }
    }
    #[cfg(target_os = "linux")]
    kernel(&mut section);
    let text = "none: tools run with your permissions. Run pinch in a container to isolate them";
    section.add(FindingStatus::Note, "in use", text);
    section
}

/// What the kernel offers, as its files say.
#[cfg(target_os = "linux")]
fn kernel(section: &mut DoctorSection) {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    match read("/sys/kernel/security/lsm") {
        Some(all) if all.split(',').any(|one| one == "landlock") => {
            section.add(FindingStatus::Ok, "landlock", "enabled")
        }
        Some(_) => section.add(FindingStatus::Note, "landlock", "not enabled in this kernel"),
        None => section.add(FindingStatus::Note, "landlock", "unknown: /sys/kernel/security/lsm is not readable"),
    }
    let says = |path: &str, value: &str| read(path).is_some_and(|text| text == value);
    let is_off = says("/proc/sys/kernel/unprivileged_userns_clone", "0")
        || says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
        || says("/proc/sys/user/max_user_namespaces", "0");
    let (mark, text) = if is_off { (FindingStatus::Note, "restricted") } else { (FindingStatus::Ok, "available") };
    section.add(mark, "user namespaces", text);
}

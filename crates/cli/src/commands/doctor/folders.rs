//! Checks directories: whether they exist and are writable, and whether others can read secrets.

use std::path::Path;

use super::context::DoctorContext;
use super::report::{DoctorSection, FindingStatus};
use crate::commands::agent;

/// Checks the directories.
pub(super) fn look(context: &DoctorContext) -> DoctorSection {
    let mut section = DoctorSection::new("Directories");
    let agent_dir = &context.folders.agent_dir;
    folder(&mut section, "agent directory", agent_dir);
    folder(&mut section, "sessions", &context.session_dir);
    embedded(&mut section, context);
    match &context.project_dir {
        Some(dir) => {
            let is_trusted = context.services.trust().is_trusted();
            let text = if is_trusted {
                "its settings and resources are loaded"
            } else {
                "not trusted: only its context files are loaded"
            };
            section.add(FindingStatus::Note, "project", format!("{}, {text}", dir.display()));
        }
        None => section.add(FindingStatus::Note, "project", "none in this directory"),
    }
    private(&mut section, "auth.json", &agent_dir.join("auth.json"), 0o077, "600");
    private(&mut section, "agent directory", agent_dir, 0o022, "700");
    private(&mut section, "sessions", &context.session_dir, 0o022, "700");
    section
}

/// Checks the state directory of embedded runs, and mentions OpenClaw's if it exists and is not used.
fn embedded(section: &mut DoctorSection, context: &DoctorContext) {
    let state_dir = match agent::state_dir(None, &context.host) {
        Ok(dir) => dir,
        Err(failure) => return section.add(FindingStatus::Fail, "state directory", failure.text),
    };
    folder(section, "state directory", &state_dir);
    let of_openclaw = context.host.home().map(|home| home.join(".openclaw")).filter(|dir| dir.is_dir());
    if let Some(dir) = of_openclaw.filter(|dir| *dir != state_dir) {
        let text = format!("{0} is not used. To share it, set PINCH_STATE_DIR={0}", dir.display());
        section.add(FindingStatus::Note, "OpenClaw", text);
    }
}

/// Checks a writable directory; a missing one will be created.
fn folder(section: &mut DoctorSection, name: &str, path: &Path) {
    let shown = path.display();
    let Some(there) = path.ancestors().find(|folder| folder.exists()) else {
        return section.add(FindingStatus::Fail, name, format!("cannot create {shown}: no parent directory exists"));
    };
    if !there.is_dir() {
        return section.add(FindingStatus::Fail, name, format!("{} is not a directory. Move it away", there.display()));
    }
    // Creating and removing a file is more reliable than checking mode bits.
    match (tempfile::tempfile_in(there), there == path) {
        (Ok(_), true) => section.add(FindingStatus::Ok, name, shown.to_string()),
        (Ok(_), false) => section.add(FindingStatus::Ok, name, format!("{shown}, not created yet")),
        (Err(error), _) => {
            section.add(FindingStatus::Fail, name, format!("cannot write to {}: {error}", there.display()));
        }
    }
}

/// Checks that others have no access.
#[cfg(unix)]
fn private(section: &mut DoctorSection, name: &str, path: &Path, forbidden: u32, mode: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(meta) = std::fs::metadata(path) else { return };
    let found = meta.permissions().mode() & 0o777;
    if found & forbidden != 0 {
        let text = format!("accessible to other users (mode {found:o}). Run chmod {mode} {}", path.display());
        section.add(FindingStatus::Warn, name, text);
    }
}

#[cfg(not(unix))]
fn private(_: &mut DoctorSection, _: &str, _: &Path, _: u32, _: &str) {}

//! Checks programs that tools, packages and extensions use, and their versions.

use std::process::Stdio;
use std::time::Duration;

use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::process::{ChildTree, ProcessEnd};

use super::report::{DoctorSection, FindingStatus};

/// Time limit for printing a version.
const LIMIT: Duration = Duration::from_millis(1_500);
/// Maximum bytes of output that are kept.
const MAX_OUTPUT: usize = 4_096;

/// Queries the programs' versions concurrently.
pub(super) async fn look(host: &Host, needs_node: bool) -> DoctorSection {
    let mut section = DoctorSection::new("Programs");
    let (node, npm, git, bash) =
        tokio::join!(version("node", host), version("npm", host), version("git", host), version("bash", host));
    let mut add = |name: &str, found: ProgramVersion, needed: FindingStatus, what_for: &str| match found {
        ProgramVersion::Is(text) => section.add(FindingStatus::Ok, name, text),
        ProgramVersion::Silent => section.add(FindingStatus::Warn, name, "does not report its version in time"),
        ProgramVersion::Missing => section.add(needed, name, format!("not on PATH; {what_for}")),
    };
    let of_node = if needs_node { FindingStatus::Fail } else { FindingStatus::Note };
    add("bash", bash, FindingStatus::Warn, "the bash tool needs it");
    add("git", git, FindingStatus::Note, "packages from git repositories need it");
    add("node", node, of_node, "extensions in JavaScript need it");
    add("npm", npm, FindingStatus::Note, "packages from npm need it");
    section
}

/// The version of a program.
pub(super) enum ProgramVersion {
    /// The reported version.
    Is(String),
    /// The program exists but printed nothing.
    Silent,
    /// The program is not installed.
    Missing,
}

/// Queries a program's version: the first line of its output.
pub(super) async fn version(name: &'static str, host: &Host) -> ProgramVersion {
    let mut command = std::process::Command::new(name);
    command.arg("--version").current_dir(host.temp());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Starting a program takes a while, so the others are started meanwhile.
    let spawned = tokio::task::spawn_blocking(|| ChildTree::spawn_as_is(command)).await;
    let Ok(Ok(mut process)) = spawned else { return ProgramVersion::Missing };
    let mut output = Vec::new();
    let mut keep = |data: &[u8]| {
        let room = MAX_OUTPUT.saturating_sub(output.len());
        output.extend_from_slice(&data[..data.len().min(room)]);
    };
    let ended = process.pump(&Cancel::new(), Some(LIMIT), Duration::ZERO, &mut keep).await;
    let text = String::from_utf8_lossy(&output);
    match (ended, text.lines().next().map(str::trim)) {
        (Ok(ProcessEnd::Exited(exit)), Some(line)) if exit.is_success() && !line.is_empty() => {
            ProgramVersion::Is(line.to_owned())
        }
        _ => ProgramVersion::Silent,
    }
}

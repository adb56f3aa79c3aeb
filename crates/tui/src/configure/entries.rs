//! Entries of the resource list, sorted by package or location, then by type, then by name.

use std::path::Path;

use pinch_coding_agent::packages::source::without_passwords;
use pinch_coding_agent::resources::{
    ListedResource, ProjectOverride, ResourceKind, ResourceOrigin, ResourceScope, ResourceSwitches,
};

use crate::figures::short_path;

/// One resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourceEntry {
    /// Its index in [`ResourceSwitches`].
    pub(super) at: usize,
    /// The package or location that it belongs to.
    pub(super) group: String,
    pub(super) kind: ResourceKind,
    pub(super) name: String,
    /// Text that searches match, in lower case.
    pub(super) search: String,
    pub(super) is_enabled: bool,
    /// The project's setting; `None` if the user's settings are shown.
    pub(super) project: Option<ProjectMark>,
}

/// Effect of the project's settings on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProjectMark {
    pub(super) said: ProjectOverride,
    /// Whether it comes from the user.
    pub(super) is_inherited: bool,
}

/// Returns the resources that the user's settings control.
pub(super) fn global(switches: &ResourceSwitches, home: Option<&Path>) -> Vec<ResourceEntry> {
    entries(switches.global(), home, |_| None)
}

/// Returns the resources that the project's settings control.
pub(super) fn project(switches: &ResourceSwitches, home: Option<&Path>) -> Vec<ResourceEntry> {
    entries(switches.project(), home, |resource| {
        Some(ProjectMark { said: switches.override_of(resource), is_inherited: switches.is_inherited(resource) })
    })
}

fn entries(
    listed: &[ListedResource],
    home: Option<&Path>,
    mark: impl Fn(&ListedResource) -> Option<ProjectMark>,
) -> Vec<ResourceEntry> {
    let mut ranked: Vec<_> = listed.iter().enumerate().map(|(at, one)| (rank(one), at, one)).collect();
    ranked.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let entry = |(_, at, one): (_, usize, &ListedResource)| {
        let name = name(one);
        ResourceEntry {
            at,
            group: group(one, home),
            kind: one.kind,
            search: format!("{name}\n{}\n{}", one.kind.folder(), one.path.display()).to_lowercase(),
            name,
            is_enabled: one.is_enabled,
            project: mark(one),
        }
    };
    ranked.into_iter().map(entry).collect()
}

/// Sorts packages first, and the user before the project.
fn rank(one: &ListedResource) -> (bool, bool, String, String, ResourceKind, String) {
    let info = &one.info;
    let base = info.base_dir.as_deref().unwrap_or(Path::new("")).display().to_string();
    let place = (info.origin != ResourceOrigin::Package, info.scope == ResourceScope::Project);
    (place.0, place.1, info.source.clone(), base, one.kind, name(one).to_lowercase())
}

fn group(one: &ListedResource, home: Option<&Path>) -> String {
    let info = &one.info;
    let is_project = info.scope == ResourceScope::Project;
    if info.origin == ResourceOrigin::Package {
        return format!("{} ({})", without_passwords(&info.source), if is_project { "project" } else { "user" });
    }
    let whose = if is_project { "Project" } else { "User" };
    match info.base_dir.as_deref().filter(|_| info.source == "auto") {
        Some(base) => format!("{whose} ({}/)", short_path(base, home)),
        None => format!("{whose} settings"),
    }
}

fn name(one: &ListedResource) -> String {
    let text = |path: Option<&std::ffi::OsStr>| path.unwrap_or_default().to_string_lossy().into_owned();
    let (file, folder) = (text(one.path.file_name()), text(one.path.parent().and_then(Path::file_name)));
    match one.kind {
        ResourceKind::Extension if folder != "extensions" => format!("{folder}/{file}"),
        ResourceKind::Skill if file == "SKILL.md" => folder,
        _ => file,
    }
}

/// Returns the heading of a type.
pub(super) fn heading(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Extension => "Extensions",
        ResourceKind::Skill => "Skills",
        ResourceKind::Prompt => "Prompts",
        ResourceKind::Theme => "Themes",
        _ => "Others",
    }
}

//! Enabling and disabling single resources, in the user's settings or as a project override, in pi's format.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pinch_stdx::fs::Access;
use pinch_stdx::host::Host;
use serde_json::{Map, Value};

use super::gather::gather_all;
use super::info::{ResourceKind, ResourceOrigin, ResourceScope, SourceInfo};
use super::inputs::ResourceInputs;
use super::real_paths::RealPaths;
use crate::document::{ChangeError, Problem, change_object, read_object};
use crate::packages::source::{PackageSource, absolute, relative};

/// Excludes everything; single files can be enabled after it.
const NOTHING: &str = "!**";

/// A resource from settings, packages or directories.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedResource {
    /// Type.
    pub kind: ResourceKind,
    /// Path of the file, or of an extension's directory with a manifest.
    pub path: PathBuf,
    /// Whether settings enable it.
    pub is_enabled: bool,
    /// Where it comes from.
    pub info: SourceInfo,
    /// The path with links resolved.
    real_path: PathBuf,
}

impl ListedResource {
    fn base(&self) -> &Path {
        let base = self.info.base_dir.as_deref().filter(|base| *base != self.path);
        base.or(self.path.parent()).unwrap_or(Path::new(""))
    }

    /// Returns its path relative to the base of its patterns.
    fn pattern(&self) -> String {
        relative(&self.path, self.base())
    }

    fn is_of_user(&self) -> bool {
        self.info.scope != ResourceScope::Project
    }
}

/// A project's override for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectOverride {
    /// None: the user's settings apply.
    Inherit,
    /// Load it.
    Load,
    /// Do not load it.
    Unload,
}

/// The resources of a user in a directory, and the settings that enable and disable them.
///
/// Each change is written immediately to the current document. Blocks while reading and writing.
#[derive(Debug)]
pub struct ResourceSwitches {
    host: Host,
    /// The directory of the user's settings.
    agent_dir: PathBuf,
    /// The directory of the project's settings; `None` if the project is not trusted.
    project_dir: Option<PathBuf>,
    global: Vec<ListedResource>,
    project: Vec<ListedResource>,
    /// The current project settings.
    project_settings: Map<String, Value>,
    /// Whether the user's settings enable a file, by its real path.
    inherited: HashMap<(ResourceKind, PathBuf), bool>,
}

impl ResourceSwitches {
    /// Lists all resources. The project is included if `inputs` marks it as trusted; its settings are in `project_dir`, which need not
    /// exist.
    pub(crate) fn new(inputs: &ResourceInputs, host: Host, agent_dir: PathBuf, project_dir: PathBuf) -> Self {
        let mut of_user = inputs.clone();
        of_user.trusted = false;
        let global = list(&of_user);
        let project_dir = inputs.trusted.then_some(project_dir);
        let project = if project_dir.is_some() { list(inputs) } else { global.clone() };
        let inherited = global.iter().map(|one| ((one.kind, one.real_path.clone()), one.is_enabled)).collect();
        let mut switches =
            Self { host, agent_dir, project_dir, global, project, project_settings: Map::new(), inherited };
        switches.read_project();
        switches
    }

    /// Returns the resources controlled by the user's settings: all except the project's own.
    pub fn global(&self) -> &[ListedResource] {
        &self.global
    }

    /// Returns all resources, as they apply in this directory.
    pub fn project(&self) -> &[ListedResource] {
        &self.project
    }

    /// Returns whether the project is trusted, so that its settings can be changed.
    pub fn has_project(&self) -> bool {
        self.project_dir.is_some()
    }

    /// Returns the path of the user's settings.
    pub fn global_file(&self) -> PathBuf {
        self.agent_dir.join("settings.json")
    }

    /// Returns the path of the project's settings.
    pub fn project_file(&self) -> Option<PathBuf> {
        self.project_dir.as_ref().map(|dir| dir.join("settings.json"))
    }

    fn read_project(&mut self) {
        // A damaged document is not written either, which is reported then.
        self.project_settings = self.project_file().and_then(|file| read_object(&file).ok()).unwrap_or_default();
    }

    /// Enables or disables a resource of [`ResourceSwitches::global`] in the user's settings.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing has changed.
    pub fn set_global(&mut self, at: usize, is_enabled: bool) -> Result<(), ChangeError> {
        let Some(resource) = self.global.get(at).cloned() else { return Ok(()) };
        let file = self.global_file();
        let (key, pattern) = (resource.kind.folder(), resource.pattern());
        let entry = format!("{}{pattern}", if is_enabled { '+' } else { '-' });
        change_object(&file, Access::NewPrivate, &self.host, |settings| {
            let list = match resource.info.origin {
                ResourceOrigin::TopLevel => list_of(settings, key, &file)?,
                ResourceOrigin::Package => {
                    let packages = list_of(settings, "packages", &file)?;
                    let is_it = |one: &&mut Value| source_of(one) == Some(&resource.info.source);
                    let Some(package) = packages.iter_mut().find(is_it).and_then(as_object) else { return Ok(false) };
                    list_of(package, key, &file)?
                }
            };
            // An empty package list loads nothing, but one that only enables something loads everything.
            if resource.info.origin == ResourceOrigin::Package && list.is_empty() && !resource.is_enabled {
                list.push(NOTHING.into());
            }
            list.retain(|entry| entry.as_str().is_none_or(|entry| target(entry) != pattern));
            list.push(entry.into());
            Ok(true)
        })?;
        if let Some(resource) = self.global.get_mut(at) {
            resource.is_enabled = is_enabled;
            self.inherited.insert((resource.kind, resource.real_path.clone()), is_enabled);
        }
        Ok(())
    }

    /// Returns whether a resource of [`ResourceSwitches::project`] comes from the user.
    pub fn is_inherited(&self, resource: &ListedResource) -> bool {
        resource.is_of_user() || self.inherited.contains_key(&(resource.kind, resource.real_path.clone()))
    }

    /// Returns whether a resource of [`ResourceSwitches::project`] would be loaded without the project's override.
    pub fn inherited_state(&self, resource: &ListedResource) -> bool {
        let known = self.inherited.get(&(resource.kind, resource.real_path.clone())).copied();
        known.unwrap_or(if resource.is_of_user() { resource.is_enabled } else { true })
    }

    /// Returns the project's override for a resource of [`ResourceSwitches::project`].
    pub fn override_of(&self, resource: &ListedResource) -> ProjectOverride {
        let key = resource.kind.folder();
        if resource.info.origin == ResourceOrigin::TopLevel {
            let targets = self.targets(resource);
            return state_in(self.project_settings.get(key), |target| targets.iter().any(|one| one == target));
        }
        let packages = self.project_settings.get("packages").and_then(Value::as_array);
        let package = packages.into_iter().flatten().find(|one| self.is_package(one, resource));
        let Some(list) = package.and_then(|package| package.get(key)) else { return ProjectOverride::Inherit };
        let is_delta = package.and_then(|package| package.get("autoload")) == Some(&Value::Bool(false));
        if !is_delta && list.as_array().is_some_and(Vec::is_empty) {
            return ProjectOverride::Unload;
        }
        let pattern = resource.pattern();
        state_in(Some(list), |target| target == pattern)
    }

    /// Sets the project's override for a resource of [`ResourceSwitches::project`].
    ///
    /// # Errors
    /// [`ChangeError`]; nothing has changed.
    pub fn set_override(&mut self, at: usize, state: ProjectOverride) -> Result<(), ChangeError> {
        let (Some(resource), Some(file)) = (self.project.get(at).cloned(), self.project_file()) else { return Ok(()) };
        let sign = match state {
            ProjectOverride::Inherit => None,
            ProjectOverride::Load => Some('+'),
            ProjectOverride::Unload => Some('-'),
        };
        change_object(&file, Access::Keep, &self.host, |settings| match resource.info.origin {
            ResourceOrigin::TopLevel => self.override_top_level(settings, &resource, sign, &file),
            ResourceOrigin::Package => self.override_package(settings, &resource, sign, &file),
        })?;
        self.read_project();
        let is_enabled = match state {
            ProjectOverride::Inherit => self.inherited_state(&resource),
            ProjectOverride::Load => true,
            ProjectOverride::Unload => false,
        };
        if let Some(resource) = self.project.get_mut(at) {
            resource.is_enabled = is_enabled;
        }
        Ok(())
    }

    fn override_top_level(
        &self,
        settings: &mut Map<String, Value>,
        resource: &ListedResource,
        sign: Option<char>,
        file: &Path,
    ) -> Result<bool, Problem> {
        let is_inherited = self.is_inherited(resource);
        let pattern = if is_inherited { plain(&resource.path) } else { self.own_pattern(resource) };
        let targets = self.targets(resource);
        let list = list_of(settings, resource.kind.folder(), file)?;
        list.retain(|entry| {
            let Some(entry) = entry.as_str() else { return true };
            let is_override = entry.starts_with(['!', '+', '-']) && targets.iter().any(|one| one == target(entry));
            let names_it = sign.is_none() && is_inherited && target(entry) == pattern;
            !is_override && !names_it
        });
        if let Some(sign) = sign {
            // To override a user's file, the project must list it.
            if is_inherited && !list.iter().any(|entry| entry == &pattern) {
                list.push(pattern.clone().into());
            }
            list.push(format!("{sign}{pattern}").into());
        }
        Ok(true)
    }

    fn override_package(
        &self,
        settings: &mut Map<String, Value>,
        resource: &ListedResource,
        sign: Option<char>,
        file: &Path,
    ) -> Result<bool, Problem> {
        let packages = list_of(settings, "packages", file)?;
        let at = match packages.iter().position(|one| self.is_package(one, resource)) {
            Some(at) => at,
            None if sign.is_none() => return Ok(false),
            None => {
                packages.push(self.delta(resource));
                packages.len() - 1
            }
        };
        let Some(package) = packages.get_mut(at) else { return Ok(false) };
        let Some(object) = as_object(package) else { return Ok(false) };
        let (key, pattern) = (resource.kind.folder(), resource.pattern());
        let list = list_of(object, key, file)?;
        list.retain(|entry| entry.as_str().is_none_or(|entry| target(entry) != pattern));
        list.extend(sign.map(|sign| format!("{sign}{pattern}").into()));
        if list.is_empty() {
            object.remove(key);
        }
        if !ResourceKind::ALL.iter().any(|kind| object.contains_key(kind.folder())) {
            if object.get("autoload") == Some(&Value::Bool(false)) {
                packages.remove(at);
            } else if let Some(source) = object.get("source").cloned() {
                *package = source;
            }
        }
        Ok(true)
    }

    /// Creates a project entry that modifies the user's package.
    fn delta(&self, resource: &ListedResource) -> Value {
        let source = &resource.info.source;
        let source = match self.local(source, self.settings_dir(resource.is_of_user())) {
            Some(path) => relative(&path, self.settings_dir(false)),
            None => source.clone(),
        };
        serde_json::json!({"source": source, "autoload": false})
    }

    /// Returns whether an item of the project's `packages` is a resource's package.
    fn is_package(&self, element: &Value, resource: &ListedResource) -> bool {
        let Some(source) = source_of(element) else { return false };
        let of = self.local(&resource.info.source, self.settings_dir(resource.is_of_user()));
        source == resource.info.source || of.is_some() && self.local(source, self.settings_dir(false)) == of
    }

    /// Returns the directory of a local package.
    fn local(&self, source: &str, base: &Path) -> Option<PathBuf> {
        match PackageSource::parse(source) {
            Ok(PackageSource::Local(path)) => Some(absolute(&path, base, self.host.home())),
            _ => None,
        }
    }

    fn settings_dir(&self, of_user: bool) -> &Path {
        self.project_dir.as_deref().filter(|_| !of_user).unwrap_or(&self.agent_dir)
    }

    /// Returns how the project's settings name one of its own resources.
    fn own_pattern(&self, resource: &ListedResource) -> String {
        if resource.is_of_user() { plain(&resource.path) } else { resource.pattern() }
    }

    /// Returns all patterns by which the project's settings may name a resource.
    fn targets(&self, resource: &ListedResource) -> [String; 4] {
        let from = |base: &Path| relative(&resource.path, base);
        let of_project = from(self.settings_dir(false));
        [self.own_pattern(resource), plain(&resource.path), of_project, from(resource.base())]
    }
}

fn list(inputs: &ResourceInputs) -> Vec<ListedResource> {
    let (mut real_paths, mut problems) = (RealPaths::default(), Vec::new());
    let mut listed = Vec::new();
    for kind in ResourceKind::ALL {
        // Problems are reported when the resources are loaded.
        let found = gather_all(inputs, &[], kind, &mut real_paths, &mut problems);
        listed.extend(found.into_iter().map(|found| ListedResource {
            kind,
            path: found.file.path,
            is_enabled: found.is_enabled,
            info: found.info,
            real_path: found.real_path,
        }));
    }
    listed
}

fn plain(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the pattern in a list item.
fn target(entry: &str) -> &str {
    entry.strip_prefix(['!', '+', '-']).unwrap_or(entry)
}

/// Returns the state set by the last matching item.
fn state_in(list: Option<&Value>, is_it: impl Fn(&str) -> bool) -> ProjectOverride {
    let entries = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    match entries.filter(|entry| is_it(target(entry))).last() {
        None => ProjectOverride::Inherit,
        Some(entry) if entry.starts_with(['!', '-']) => ProjectOverride::Unload,
        Some(_) => ProjectOverride::Load,
    }
}

fn source_of(element: &Value) -> Option<&str> {
    element.as_str().or_else(|| element.get("source")?.as_str())
}

/// Converts an item of `packages` to an object.
fn as_object(package: &mut Value) -> Option<&mut Map<String, Value>> {
    if !package.is_object() {
        let source = std::mem::take(package);
        *package = serde_json::json!({"source": source});
    }
    package.as_object_mut()
}

/// Returns a list in a document, creating it if necessary.
fn list_of<'a>(object: &'a mut Map<String, Value>, key: &str, file: &Path) -> Result<&'a mut Vec<Value>, Problem> {
    let value = object.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().ok_or_else(|| Problem::new(file, "must be a list").at(key))
}

//! Collecting the files of one resource type in order of precedence.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::collect::{ListedFile, Patterns, has_ending};
use super::info::{Diagnostic, ResourceKind, ResourceOrigin, ResourceScope, SourceInfo};
use super::inputs::{ExtraPaths, ResourceInputs, ScopeSettings};
use super::manifest::manifest;
use super::package_files::{self, PackageFile};
use super::real_paths::RealPaths;
use super::skills::{self, Intent, SkillFolder};
use crate::packages::source::{PackageSource, absolute};
use crate::packages::{self, PackageEntry};

/// A file to load, unless its name is taken or settings disable it.
pub(super) struct GatheredFile {
    pub(super) file: ListedFile,
    /// Its path with links resolved.
    pub(super) real_path: PathBuf,
    /// Whether settings enable it.
    pub(super) is_enabled: bool,
    pub(super) meant: Intent,
    pub(super) info: SourceInfo,
}

/// A scope: whose settings, and their directory.
struct ScopeOf<'a> {
    scope: ResourceScope,
    settings: &'a ScopeSettings,
    dir: &'a Path,
}

/// Collects files of a type.
pub(super) struct Gather<'a> {
    inputs: &'a ResourceInputs,
    kind: ResourceKind,
    found: Vec<GatheredFile>,
    /// Real paths seen so far, as strings, which compare faster than paths. A file disabled by one source is not enabled by a later one.
    seen: HashSet<OsString>,
    real_paths: &'a mut RealPaths,
    problems: &'a mut Vec<Diagnostic>,
}

/// Returns the enabled files of a type, in the order of [`gather_all`].
pub(super) fn gather(
    inputs: &ResourceInputs,
    extra: &[ExtraPaths],
    kind: ResourceKind,
    real_paths: &mut RealPaths,
    problems: &mut Vec<Diagnostic>,
) -> Vec<GatheredFile> {
    let mut found = gather_all(inputs, extra, kind, real_paths, problems);
    found.retain(|file| file.is_enabled);
    found
}

/// Returns all files of a type, including disabled ones: the command line first, then project before user, settings before discovered
/// files, then packages, and finally resources of extensions.
pub(super) fn gather_all(
    inputs: &ResourceInputs,
    extra: &[ExtraPaths],
    kind: ResourceKind,
    real_paths: &mut RealPaths,
    problems: &mut Vec<Diagnostic>,
) -> Vec<GatheredFile> {
    let mut gather = Gather { inputs, kind, found: Vec::new(), seen: HashSet::new(), real_paths, problems };
    gather.command_line();
    if !inputs.without.is_without(kind) {
        let project = inputs.trusted_project_dir().map(|dir| ScopeOf {
            scope: ResourceScope::Project,
            settings: &inputs.settings.project,
            dir,
        });
        let of_user = |dir| ScopeOf { scope: ResourceScope::User, settings: &inputs.settings.user, dir };
        let user = inputs.agent_dir.as_deref().map(of_user);
        for scope in project.iter().chain(&user) {
            gather.settings(scope);
            gather.automatic(scope);
        }
        let mut identities = HashSet::new();
        for scope in project.iter().chain(&user) {
            gather.packages(scope, user.as_ref(), &mut identities);
        }
    }
    for extra in extra {
        gather.of_extension(extra);
    }
    gather.found
}

impl Gather<'_> {
    fn push(&mut self, file: ListedFile, is_enabled: bool, meant: Intent, info: impl FnOnce() -> SourceInfo) {
        let real_path = self.real_paths.of_listed(&file);
        if self.seen.insert(real_path.clone().into_os_string()) {
            let info = SourceInfo { path: file.path.clone(), ..info() };
            self.found.push(GatheredFile { file, real_path, is_enabled, meant, info });
        }
    }

    /// Returns the files at a configured path; problems are reported.
    fn named(&mut self, path: &Path) -> Vec<(ListedFile, Intent)> {
        if path.is_dir() {
            let files = package_files::at(path, self.kind).into_iter();
            return files.map(|file| (file.clone(), skills::meant(&file.path))).collect();
        }
        let wanted = match self.kind {
            ResourceKind::Extension => None,
            ResourceKind::Skill | ResourceKind::Prompt => Some(("md", "markdown")),
            ResourceKind::Theme => Some(("json", "json")),
        };
        let kind = self.kind.as_str();
        if !path.exists() {
            self.problems.push(Diagnostic::warning(path, format!("{kind} path does not exist")));
        } else if let Some((_, name)) = wanted.filter(|(ending, _)| !path.is_file() || !has_ending(path, ending)) {
            self.problems.push(Diagnostic::warning(path, format!("{kind} path is not a {name} file")));
        } else {
            return vec![(ListedFile::named(path), Intent::Certain)];
        }
        Vec::new()
    }

    fn absolute(&self, path: &str, base: &Path) -> PathBuf {
        absolute(path, base, self.inputs.home.as_deref())
    }

    fn command_line(&mut self) {
        let inputs = self.inputs;
        for text in inputs.command_line.of(self.kind) {
            if self.kind == ResourceKind::Extension
                && !matches!(PackageSource::parse(text), Ok(PackageSource::Local(_)))
            {
                let (source, text) =
                    (text, "is not a path, and packages are not installed now. Install it first with `pinch install`");
                self.problems.push(Diagnostic::warning(Path::new(source), text));
                continue;
            }
            let path = self.absolute(text, &inputs.cwd);
            for (file, meant) in self.named(&path) {
                self.push(file, true, meant, || temporary("cli", ResourceOrigin::TopLevel, &path));
            }
        }
        if self.kind == ResourceKind::Extension {
            return;
        }
        // A directory named as an extension may be a whole package.
        for text in &inputs.command_line.extensions {
            let path = self.absolute(text, &inputs.cwd);
            if !path.is_dir() {
                continue;
            }
            for PackageFile { file, is_enabled } in
                package_files::files(&path, manifest(&path).as_ref(), None, self.kind)
            {
                if self.is_inside(&file, &path) {
                    let meant = skills::meant(&file.path);
                    self.push(file, is_enabled, meant, || temporary("cli", ResourceOrigin::Package, &path));
                }
            }
        }
    }

    fn settings(&mut self, of: &ScopeOf<'_>) {
        let list = of.settings.of(self.kind);
        let overrides = overrides(list);
        for text in list.iter().filter(|text| !Patterns::is_override(text)) {
            let path = self.absolute(text, of.dir);
            for (file, meant) in self.named(&path) {
                let is_enabled = overrides.allow(&file.path, of.dir);
                self.push(file, is_enabled, meant, || top_level("local", of.scope, of.dir));
            }
        }
    }

    fn automatic(&mut self, of: &ScopeOf<'_>) {
        let overrides = overrides(of.settings.of(self.kind));
        let own = package_files::of_kind(&of.dir.join(self.kind.folder()), self.kind);
        self.push_automatic(own, of, of.dir, &overrides);
        if self.kind != ResourceKind::Skill {
            return;
        }
        let home = self.inputs.home.as_deref();
        let folders = match of.scope {
            ResourceScope::User => home.map(|home| home.join(".agents/skills")).into_iter().collect(),
            _ => self.inputs.project().agents_skills().to_vec(),
        };
        for folder in folders {
            let base = folder.parent().unwrap_or(&folder).to_owned();
            self.push_automatic(skills::find(&folder, SkillFolder::FoldersOnly), of, &base, &overrides);
        }
    }

    fn push_automatic(&mut self, files: Vec<ListedFile>, of: &ScopeOf<'_>, base: &Path, overrides: &Patterns) {
        for file in files {
            let (is_enabled, meant) = (overrides.allow(&file.path, base), skills::meant(&file.path));
            self.push(file, is_enabled, meant, || top_level("auto", of.scope, base));
        }
    }

    /// Collects the packages of a scope. `seen` contains the identities already handled.
    fn packages(&mut self, of: &ScopeOf<'_>, user: Option<&ScopeOf<'_>>, seen: &mut HashSet<String>) {
        let home = self.inputs.home.as_deref();
        for entry in &of.settings.packages {
            let source = match PackageSource::parse(&entry.source) {
                Ok(source) => source,
                Err(error) => {
                    self.report_once(of.dir, error.to_string());
                    continue;
                }
            };
            let identity = source.identity(of.dir, home);
            let is_delta = entry.filter.as_ref().is_some_and(|filter| filter.is_delta);
            if is_delta && of.scope == ResourceScope::Project && !seen.contains(&identity) {
                // It is installed by the user's entry, which stays in effect.
                let base = user.and_then(|user| Some((user, of_identity(user, &identity, home)?)));
                if let Some((user, source)) = base {
                    self.package(entry, &packages::place(&source, user.dir, home), of);
                    continue;
                }
            }
            if seen.insert(identity) {
                self.package(entry, &packages::place(&source, of.dir, home), of);
            }
        }
    }

    fn package(&mut self, entry: &PackageEntry, place: &Path, of: &ScopeOf<'_>) {
        let info = SourceInfo {
            path: PathBuf::new(),
            source: entry.source.clone(),
            scope: of.scope,
            origin: ResourceOrigin::Package,
            base_dir: Some(place.to_owned()),
        };
        if place.is_dir() {
            let manifest = manifest(place);
            for PackageFile { file, is_enabled } in
                package_files::files(place, manifest.as_ref(), entry.filter.as_ref(), self.kind)
            {
                if self.is_inside(&file, place) {
                    let meant = skills::meant(&file.path);
                    self.push(file, is_enabled, meant, || info.clone());
                }
            }
        } else if place.is_file() && self.kind == ResourceKind::Extension {
            self.push(ListedFile::named(place), true, Intent::Certain, || info.clone());
        } else if !place.exists() {
            self.report_once(place, format!("package {} is not installed", entry.source));
        }
    }

    /// Returns whether a package's file is inside it: a link that leads out of the package is reported and not followed.
    fn is_inside(&mut self, file: &ListedFile, package: &Path) -> bool {
        let is_inside = self.real_paths.of_listed(file).starts_with(self.real_paths.of(package));
        if !is_inside {
            let text = "is a link that leads out of its package; it was ignored";
            self.problems.push(Diagnostic::warning(&file.path, text));
        }
        is_inside
    }

    /// Reports a package problem once, although it affects every type.
    fn report_once(&mut self, path: &Path, text: String) {
        if self.kind == ResourceKind::ALL[0] {
            self.problems.push(Diagnostic::warning(path, text));
        }
    }

    fn of_extension(&mut self, extra: &ExtraPaths) {
        for path in extra.of(self.kind) {
            let path = self.inputs.cwd.join(path);
            for (file, meant) in self.named(&path) {
                let source = format!("extension:{}", extra.extension);
                self.push(file, true, meant, || temporary(&source, ResourceOrigin::TopLevel, &path));
            }
        }
    }
}

/// Returns the source of a scope's package with this identity.
fn of_identity(of: &ScopeOf<'_>, identity: &str, home: Option<&Path>) -> Option<PackageSource> {
    let sources = of.settings.packages.iter().filter_map(|entry| PackageSource::parse(&entry.source).ok());
    sources.into_iter().find(|source| source.identity(of.dir, home) == identity)
}

fn overrides(list: &[String]) -> Patterns {
    Patterns::new(list.iter().map(String::as_str).filter(|text| Patterns::is_override(text)))
}

fn top_level(source: &str, scope: ResourceScope, base: &Path) -> SourceInfo {
    SourceInfo { source: source.to_owned(), scope, base_dir: Some(base.to_owned()), ..SourceInfo::default() }
}

fn temporary(source: &str, origin: ResourceOrigin, path: &Path) -> SourceInfo {
    let base = if path.is_dir() { Some(path) } else { path.parent() };
    SourceInfo { source: source.to_owned(), origin, base_dir: base.map(Path::to_owned), ..SourceInfo::default() }
}

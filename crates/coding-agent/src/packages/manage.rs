//! Installing, removing, updating and listing packages.

use std::path::PathBuf;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::Access;
use serde_json::Value;

use super::list::{change_list, source_of};
use super::source::{NpmSource, PackageSource, absolute, relative};
use super::{PackageEntry, PackageError, PackageScope, Packages};

/// Maximum repositories updated at the same time.
const N_AT_A_TIME: usize = 4;

/// A package listed in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfiguredPackage {
    /// Its entry.
    pub entry: PackageEntry,
    /// Whose settings list it.
    pub scope: PackageScope,
    /// Its directory; `None` if it is not installed.
    pub path: Option<PathBuf>,
}

/// A package to update.
type Due = (String, PackageSource, PackageScope);

impl Packages {
    /// Returns all packages: those of the user, then those of a trusted project.
    pub fn list(&self) -> Vec<ConfiguredPackage> {
        let of = |scope: PackageScope| {
            self.entries(scope).0.into_iter().map(move |entry| {
                let path = PackageSource::parse(&entry.source).ok().map(|source| self.place(&source, scope));
                ConfiguredPackage { path: path.filter(|path| path.exists()), entry, scope }
            })
        };
        of(PackageScope::User).chain(of(PackageScope::Project)).collect()
    }

    /// Installs a package and adds it to the settings. An existing entry is kept, except that another version is replaced.
    ///
    /// # Errors
    /// [`PackageError`]; the settings are unchanged.
    pub fn install<'a>(
        &'a self,
        text: &'a str,
        scope: PackageScope,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<(), PackageError>> {
        Box::pin(async move {
            self.check_trust(scope)?;
            let source = PackageSource::parse(text)?;
            let entry = match &source {
                PackageSource::Local(path) => {
                    let path = absolute(path, &self.cwd, self.host.home());
                    if !path.exists() {
                        return Err(PackageError::MissingPath { path });
                    }
                    relative(&path, self.settings_dir(scope))
                }
                _ => text.trim().to_owned(),
            };
            self.fetch(&source, scope, cancel).await?;
            let identity = self.identity(&source, &self.cwd);
            change_list(&self.settings_file(scope), access_of(scope), &self.host, |list| {
                let Some(old) = list.iter_mut().find(|old| self.is_package(old, scope, &identity)) else {
                    list.push(entry.into());
                    return true;
                };
                if source_of(old) == Some(&entry) || matches!(source, PackageSource::Local(_)) {
                    return false;
                }
                match old {
                    Value::Object(members) => drop(members.insert("source".into(), entry.into())),
                    old => *old = entry.into(),
                }
                true
            })?;
            Ok(())
        })
    }

    /// Downloads a package into its directory; local directories are used in place.
    pub(super) async fn fetch(
        &self,
        source: &PackageSource,
        scope: PackageScope,
        cancel: &Cancel,
    ) -> Result<(), PackageError> {
        match source {
            PackageSource::Local(_) => Ok(()),
            PackageSource::Npm(npm) => self.npm_install(&[npm_spec(npm)], scope, cancel).await,
            PackageSource::Git(git) => self.git_install(git, scope, cancel).await,
        }
    }

    /// Removes a package and its settings entry; local directories are kept.
    ///
    /// # Errors
    /// [`PackageError::NotFound`] if the settings do not list the package; no tool is run then.
    pub fn remove<'a>(
        &'a self,
        text: &'a str,
        scope: PackageScope,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<(), PackageError>> {
        Box::pin(async move {
            self.check_trust(scope)?;
            let source = PackageSource::parse(text)?;
            let identity = self.identity(&source, &self.cwd);
            let (entries, _) = self.entries(scope);
            if !entries.iter().any(|entry| self.is_package(&entry.source.as_str().into(), scope, &identity)) {
                return Err(PackageError::NotFound { source_text: text.to_owned(), similar: None });
            }
            match &source {
                PackageSource::Local(_) => {}
                PackageSource::Npm(npm) => self.npm_remove(npm, scope, cancel).await?,
                PackageSource::Git(git) => self.git_remove(git, scope)?,
            }
            change_list(&self.settings_file(scope), access_of(scope), &self.host, |list| {
                let n_before = list.len();
                list.retain(|old| !self.is_package(old, scope, &identity));
                list.len() < n_before
            })?;
            Ok(())
        })
    }

    /// Updates one package, or all without a source, and returns what was updated. Directories and pinned packages are skipped.
    ///
    /// # Errors
    /// [`PackageError::NotFound`] if the settings do not list the package; otherwise the first failure, after everything else was tried.
    pub fn update<'a>(
        &'a self,
        text: Option<&'a str>,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<Vec<String>, PackageError>> {
        Box::pin(async move {
            let due = self.due(text)?;
            let mut failures = Vec::new();
            let mut updated = Vec::new();
            for scope in [PackageScope::User, PackageScope::Project] {
                let mut newer = Vec::new();
                for (text, source, _) in due.iter().filter(|(_, _, of)| *of == scope) {
                    let PackageSource::Npm(npm) = source else { continue };
                    match self.npm_newer(npm, scope, cancel).await {
                        Ok(Some(_)) => newer.push((text.clone(), format!("{}@latest", npm.name))),
                        Ok(None) => {}
                        Err(error) => failures.push(error),
                    }
                }
                let (texts, specs): (Vec<String>, Vec<String>) = newer.into_iter().unzip();
                if !specs.is_empty() {
                    match self.npm_install(&specs, scope, cancel).await {
                        Ok(()) => updated.extend(texts),
                        Err(error) => failures.push(error),
                    }
                }
            }
            let mut clones = Vec::new();
            for (text, source, scope) in &due {
                if let PackageSource::Git(git) = source {
                    clones.push(async move { (text, self.git_update(git, *scope, cancel).await) });
                }
            }
            for (text, done) in stream::iter(clones).buffered(N_AT_A_TIME).collect::<Vec<_>>().await {
                match done {
                    Ok(()) => updated.push(text.clone()),
                    Err(error) => failures.push(error),
                }
            }
            failures.into_iter().next().map_or(Ok(updated), Err)
        })
    }

    /// Returns the packages to update.
    fn due(&self, text: Option<&str>) -> Result<Vec<Due>, PackageError> {
        let listed = self.list();
        let wanted = text.map(|text| {
            let source = PackageSource::parse(text).unwrap_or_else(|_| PackageSource::Local(text.to_owned()));
            self.identity(&source, &self.cwd)
        });
        let is_wanted = |one: &&ConfiguredPackage| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|identity| self.is_package(&one.entry.source.as_str().into(), one.scope, identity))
        };
        let found: Vec<&ConfiguredPackage> = listed.iter().filter(is_wanted).collect();
        if let (true, Some(text)) = (found.is_empty(), text) {
            return Err(PackageError::NotFound { source_text: text.to_owned(), similar: similar(text, &listed) });
        }
        let due = found.into_iter().filter_map(|one| {
            let source = PackageSource::parse(&one.entry.source).ok()?;
            (!source.is_pinned()).then(|| (one.entry.source.clone(), source, one.scope))
        });
        Ok(due.collect())
    }

    pub(super) fn check_trust(&self, scope: PackageScope) -> Result<(), PackageError> {
        match scope {
            PackageScope::Project if !self.trusted => Err(PackageError::Untrusted),
            _ => Ok(()),
        }
    }

    /// Returns whether an item of a settings list is a package.
    fn is_package(&self, element: &Value, scope: PackageScope, identity: &str) -> bool {
        let source = source_of(element).and_then(|source| PackageSource::parse(source).ok());
        source.is_some_and(|source| self.identity(&source, self.settings_dir(scope)) == identity)
    }
}

pub(super) fn npm_spec(npm: &NpmSource) -> String {
    match &npm.version {
        Some(version) => format!("{}@{version}", npm.name),
        None => npm.name.clone(),
    }
}

/// Returns a package that matches a source without its scheme.
fn similar(text: &str, listed: &[ConfiguredPackage]) -> Option<String> {
    let text = text.trim();
    let sources = listed.iter().map(|one| &one.entry.source);
    sources
        .into_iter()
        .find(|source| match PackageSource::parse(source) {
            Ok(PackageSource::Npm(npm)) => npm.name == text || npm_spec(&npm) == text,
            Ok(PackageSource::Git(git)) => git.path == text || format!("{}/{}", git.host, git.path) == text,
            _ => false,
        })
        .cloned()
}

/// Returns the permissions of a new settings file: private for the user, or the directory's for a project.
fn access_of(scope: PackageScope) -> Access {
    match scope {
        PackageScope::User => Access::NewPrivate,
        _ => Access::Keep,
    }
}

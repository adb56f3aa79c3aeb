//! Installing missing packages before a session starts.

use std::path::PathBuf;

use futures::future::BoxFuture;
use pinch_stdx::cancel::Cancel;

use super::manage::npm_spec;
use super::source::{PackageSource, absolute};
use super::{Missing, PackageError, PackageScope, Packages};

/// Directory of packages for a single run, relative to the user's settings.
const FOR_ONE_RUN: &str = "tmp/packages";

impl Packages {
    /// Installs a package that the settings already list.
    ///
    /// # Errors
    /// [`PackageError`].
    pub fn install_missing<'a>(
        &'a self,
        missing: &'a Missing,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<(), PackageError>> {
        Box::pin(async move {
            self.check_trust(missing.scope)?;
            self.fetch(&missing.source, missing.scope, cancel).await
        })
    }

    /// Installs a package for one run and returns its directory; the settings are unchanged. A package from an earlier run is reused: a
    /// repository without a version is updated, and left unchanged if that fails.
    ///
    /// # Errors
    /// [`PackageError`].
    pub fn install_for_one_run<'a>(
        &'a self,
        text: &'a str,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<PathBuf, PackageError>> {
        Box::pin(async move {
            let source = PackageSource::parse(text)?;
            let folder = match &source {
                PackageSource::Local(path) => return Ok(absolute(path, &self.cwd, self.host.home())),
                // Versions are installed side by side.
                PackageSource::Npm(npm) => npm_spec(npm).replace('/', "__"),
                PackageSource::Git(_) => String::new(),
            };
            let own = Self { agent_dir: self.agent_dir.join(FOR_ONE_RUN).join(folder), ..self.clone() };
            let place = own.place(&source, PackageScope::User);
            let is_there = place.exists();
            if is_there && matches!(source, PackageSource::Npm(_)) {
                return Ok(place);
            }
            match own.fetch(&source, PackageScope::User, cancel).await {
                Err(error) if is_there && !source.is_pinned() => {
                    tracing::warn!(%error, package = text, "could not update a package");
                    Ok(place)
                }
                done => done.map(|()| place),
            }
        })
    }
}

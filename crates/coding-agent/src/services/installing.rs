//! Loading services after installing packages.

use std::path::Path;

#[cfg(feature = "packages")]
use pinch_stdx::cancel::Cancel;

use super::{Announce, ResourceSource, ServiceOptions, Services};
use crate::packages::source::{PackageSource, without_passwords};
use crate::packages::{Missing, Packages};
use crate::settings::SettingsScope;

impl Services {
    /// Calls [`Services::load`], and then [`Services::installed`].
    pub async fn load_installing(options: &ServiceOptions, cwd: &Path) -> Self {
        Self::load(options, cwd).installed().await
    }

    /// Installs missing packages if [`ServiceOptions::install_packages`] is set: those listed in the settings, and npm and git packages
    /// named as extensions for this run. Then reloads everything. Failed installations are reported as problems. Dropping the future stops
    /// the installer.
    pub async fn installed(self) -> Self {
        let directory = &self.directory;
        let (Some(announce), Some(packages), Some(resources)) =
            (&directory.options.install_packages, directory.packages(), directory.options.discovery())
        else {
            return self;
        };
        let of = |scope| directory.settings.resources(scope).packages;
        let missing = packages.missing(&of(SettingsScope::Global), &of(SettingsScope::Project));
        let is_remote =
            |text: &String| matches!(PackageSource::parse(text), Ok(PackageSource::Npm(_) | PackageSource::Git(_)));
        if missing.is_empty() && !resources.paths.extensions.iter().any(is_remote) {
            return self;
        }
        let (mut problems, mut resources) = (Vec::new(), resources.clone());
        for package in &missing {
            if let Err(why) = install(&packages, package, announce).await {
                problems.push(format!("cannot install {}: {why}", without_passwords(&package.text)));
            }
        }
        for text in std::mem::take(&mut resources.paths.extensions) {
            if !is_remote(&text) {
                resources.paths.extensions.push(text);
                continue;
            }
            match install_for_one_run(&packages, &text, announce).await {
                Ok(place) => resources.paths.extensions.push(place),
                Err(why) => problems.push(format!("cannot install {}: {why}", without_passwords(&text))),
            }
        }
        let options = ServiceOptions { resources: ResourceSource::Discover(resources), ..directory.options.clone() };
        let services = Self::load(&options, &directory.cwd);
        services.report(problems);
        services
    }
}

#[cfg(feature = "packages")]
async fn install(packages: &Packages, package: &Missing, announce: &Announce) -> Result<(), String> {
    announce.announce(&without_passwords(&package.text));
    packages.install_missing(package, &Cancel::new()).await.map_err(|error| error.to_string())
}

/// Returns the directory of the package.
#[cfg(feature = "packages")]
async fn install_for_one_run(packages: &Packages, text: &str, announce: &Announce) -> Result<String, String> {
    announce.announce(&without_passwords(text));
    let done = packages.install_for_one_run(text, &Cancel::new()).await;
    done.map(|place| place.to_string_lossy().into_owned()).map_err(|error| error.to_string())
}

#[cfg(not(feature = "packages"))]
const CANNOT: &str = "this program was built without package installation (feature packages)";

#[cfg(not(feature = "packages"))]
async fn install(_: &Packages, _: &Missing, _: &Announce) -> Result<(), String> {
    Err(CANNOT.to_owned())
}

#[cfg(not(feature = "packages"))]
async fn install_for_one_run(_: &Packages, _: &str, _: &Announce) -> Result<String, String> {
    Err(CANNOT.to_owned())
}

//! Services of a folder whose packages are installed first.

use std::path::Path;

#[cfg(feature = "packages")]
use pinch_stdx::cancel::Cancel;

use super::{Announce, ServiceOptions, Services};
use crate::packages::source::{Source, without_passwords};
use crate::packages::{Missing, Packages};
use crate::settings::Scope;

impl Services {
    /// Like [`Services::load`], and then [`Services::installed`].
    pub async fn load_installing(options: &ServiceOptions, cwd: &Path) -> Self {
        Self::load(options, cwd).installed().await
    }

    /// Where [`ServiceOptions::install_packages`] says so, packages that settings list and that are missing are installed, and those of npm and
    /// git that the command line names as extensions for this run; then everything is read again. What cannot be installed is told with the
    /// other problems. Dropping the future stops the program that installs.
    pub async fn installed(self) -> Self {
        let folder = &self.folder;
        let Some(announce) = &folder.options.install_packages else { return self };
        let packages = folder.packages();
        let of = |scope| folder.settings.resources(scope).packages;
        let missing = packages.missing(&of(Scope::Global), &of(Scope::Project));
        let is_remote = |text: &String| matches!(Source::parse(text), Ok(Source::Npm(_) | Source::Git(_)));
        if missing.is_empty() && !folder.options.paths.extensions.iter().any(is_remote) {
            return self;
        }
        let (mut problems, mut options) = (Vec::new(), folder.options.clone());
        for package in &missing {
            if let Err(why) = install(&packages, package, announce).await {
                problems.push(format!("cannot install {}: {why}", without_passwords(&package.text)));
            }
        }
        for text in std::mem::take(&mut options.paths.extensions) {
            if !is_remote(&text) {
                options.paths.extensions.push(text);
                continue;
            }
            match install_for_one_run(&packages, &text, announce).await {
                Ok(place) => options.paths.extensions.push(place),
                Err(why) => problems.push(format!("cannot install {}: {why}", without_passwords(&text))),
            }
        }
        let services = Self::load(&options, &folder.cwd);
        services.tell(problems);
        services
    }
}

#[cfg(feature = "packages")]
async fn install(packages: &Packages, package: &Missing, announce: &Announce) -> Result<(), String> {
    announce.tell(&without_passwords(&package.text));
    packages.install_missing(package, &Cancel::new()).await.map_err(|error| error.to_string())
}

/// Returns the folder of the package.
#[cfg(feature = "packages")]
async fn install_for_one_run(packages: &Packages, text: &str, announce: &Announce) -> Result<String, String> {
    announce.tell(&without_passwords(text));
    let done = packages.install_for_one_run(text, &Cancel::new()).await;
    done.map(|place| place.to_string_lossy().into_owned()).map_err(|error| error.to_string())
}

#[cfg(not(feature = "packages"))]
const CANNOT: &str = "this program was built without the installation of packages (feature packages)";

#[cfg(not(feature = "packages"))]
async fn install(_: &Packages, _: &Missing, _: &Announce) -> Result<(), String> {
    Err(CANNOT.to_owned())
}

#[cfg(not(feature = "packages"))]
async fn install_for_one_run(_: &Packages, _: &str, _: &Announce) -> Result<String, String> {
    Err(CANNOT.to_owned())
}

//! Services of a folder whose packages are installed first.

use std::path::Path;

use pinch_stdx::cancel::Cancel;

use super::{ServiceOptions, Services};
use crate::packages::source::{Source, without_passwords};
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
        let (cancel, mut problems, mut options) = (Cancel::new(), Vec::new(), folder.options.clone());
        for package in &missing {
            announce.tell(&without_passwords(&package.text));
            if let Err(error) = packages.install_missing(package, &cancel).await {
                problems.push(format!("cannot install {}: {error}", without_passwords(&package.text)));
            }
        }
        for text in std::mem::take(&mut options.paths.extensions) {
            if !is_remote(&text) {
                options.paths.extensions.push(text);
                continue;
            }
            announce.tell(&without_passwords(&text));
            match packages.install_for_one_run(&text, &cancel).await {
                Ok(place) => options.paths.extensions.push(place.to_string_lossy().into_owned()),
                Err(error) => problems.push(format!("cannot install {}: {error}", without_passwords(&text))),
            }
        }
        let services = Self::load(&options, &folder.cwd);
        services.tell(problems);
        services
    }
}

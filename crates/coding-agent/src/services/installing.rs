//! Services of a folder whose packages are installed first.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pinch_stdx::cancel::Cancel;

use super::{ServiceOptions, Services};
use crate::packages::Packages;
use crate::packages::source::Source;
use crate::resources::trust;
use crate::settings::Scope;

/// Is told of each package before it is installed, for that takes a while.
#[derive(Clone)]
pub struct Announce(Arc<dyn Fn(&str) + Send + Sync>);

impl Announce {
    /// Is called with what settings or the command line say of the package.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Announce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announce").finish_non_exhaustive()
    }
}

impl Services {
    /// Like [`Services::load`]; where [`ServiceOptions::install_packages`] says so, packages that settings list and that are missing are
    /// installed first, and those of npm and git that the command line names as extensions for this run. What cannot be installed is told
    /// with the other problems. Dropping the future stops the program that installs.
    pub async fn load_installing(options: &ServiceOptions, cwd: &Path) -> Self {
        let found = Self::load(options, cwd);
        let Some(Announce(announce)) = &options.install_packages else { return found };
        let packages = found.packages();
        let of = |scope| found.settings.resources(scope).packages;
        let missing = packages.missing(&of(Scope::Global), &of(Scope::Project));
        let is_remote = |text: &String| matches!(Source::parse(text), Ok(Source::Npm(_) | Source::Git(_)));
        if missing.is_empty() && !options.paths.extensions.iter().any(is_remote) {
            return found;
        }
        let (cancel, mut problems, mut options) = (Cancel::new(), Vec::new(), options.clone());
        for package in &missing {
            announce(&package.text);
            if let Err(error) = packages.install_missing(package, &cancel).await {
                problems.push(format!("cannot install {}: {error}", package.text));
            }
        }
        for text in std::mem::take(&mut options.paths.extensions) {
            if !is_remote(&text) {
                options.paths.extensions.push(text);
                continue;
            }
            announce(&text);
            match packages.install_for_one_run(&text, &cancel).await {
                Ok(place) => options.paths.extensions.push(place.to_string_lossy().into_owned()),
                Err(error) => problems.push(format!("cannot install {text}: {error}")),
            }
        }
        let services = Self::load(&options, cwd);
        services.tell(problems);
        services
    }

    /// The packages of this user in this folder.
    fn packages(&self) -> Packages {
        let project = trust::project_dir(&self.cwd, self.options.host.home()).unwrap_or_else(|| self.cwd.join(".pi"));
        let (host, cwd, agent_dir) = (self.options.host.clone(), self.cwd.clone(), self.options.agent_dir.clone());
        let npm_command = self.settings.settings().npm_command.clone();
        Packages { npm_command, ..Packages::new(host, cwd, agent_dir, project, self.trust.is_trusted()) }
    }
}

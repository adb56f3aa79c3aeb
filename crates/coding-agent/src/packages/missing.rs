//! Listed packages that are not installed.

use std::collections::HashSet;

use super::source::PackageSource;
use super::{PackageEntry, PackageScope, Packages};

/// A listed npm or git package that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its source in the settings.
    pub text: String,
    /// Whose settings list it.
    pub scope: PackageScope,
    pub(super) source: PackageSource,
}

impl Packages {
    /// Returns the packages of these lists that are not installed. If both lists name a package, the project's entry wins.
    pub fn missing(&self, of_user: &[PackageEntry], of_project: &[PackageEntry]) -> Vec<Missing> {
        let of = |entries: &[PackageEntry], scope| entries.iter().map(|entry| (entry.source.clone(), scope)).collect();
        let all: [Vec<_>; 2] = [of(of_project, PackageScope::Project), of(of_user, PackageScope::User)];
        let mut seen = HashSet::new();
        let missing = all.into_iter().flatten().filter_map(|(text, scope)| {
            let source = PackageSource::parse(&text).ok()?;
            let is_first = seen.insert(self.identity(&source, self.settings_dir(scope)));
            let is_there = matches!(source, PackageSource::Local(_)) || self.place(&source, scope).exists();
            (is_first && !is_there).then_some(Missing { text, scope, source })
        });
        missing.collect()
    }
}

//! Packages that are named and not there.

use std::collections::HashSet;

use super::source::PackageSource;
use super::{PackageEntry, PackageScope, Packages};

/// A package of npm or git that settings list and that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What settings say.
    pub text: String,
    /// Whose settings.
    pub scope: PackageScope,
    pub(super) source: PackageSource,
}

impl Packages {
    /// The packages of these lists that are not installed. Of two with one name the project's counts.
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

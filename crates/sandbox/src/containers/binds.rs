//! Directories that the configuration mounts into containers (`docker.binds`).

use std::path::{Path, PathBuf};

use pinch_stdx::fs::real_path;

use crate::confinement::{Confinement, PathAccess};

/// A file or directory of this machine, and where a container sees it.
#[derive(Clone, Debug)]
pub(super) struct BoundPath {
    pub(super) source: PathBuf,
    pub(super) target: PathBuf,
    /// Access of commands.
    pub(super) access: PathAccess,
}

impl BoundPath {
    /// Parses `source:target` or `source:target:options`, which was checked before.
    pub(super) fn parse(bind: &str) -> Self {
        let mut parts = bind.trim().split(':').map(str::trim);
        let (source, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let is_read_only = parts.next().is_some_and(|options| options.split(',').any(|word| word == "ro"));
        let access = if is_read_only { PathAccess::Read } else { PathAccess::Write };
        Self { source: real_path(Path::new(source)), target: PathBuf::from(target), access }
    }
}

/// Adds what is mounted to the requirements, so that file tools can access it as well.
pub(super) fn with_binds(asked: &Confinement, binds: &[String]) -> Confinement {
    let bound = binds.iter().map(|bind| BoundPath::parse(bind)).filter(|bound| bound.source.exists());
    bound.fold(asked.clone(), |asked, bound| asked.root(bound.source, bound.access))
}

//! Paths in configurations.

use std::path::{Path, PathBuf};

/// The path with a leading `~` replaced by the home directory, if that is known.
pub(crate) fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

//! Paths in configurations.

use std::path::{Path, PathBuf};

/// Expands a leading `~` to the home directory, if known.
pub(crate) fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

//! Programs among files.

use std::path::Path;

/// Whether a path leads to a file that may be run: on Unix one with a bit that says so, elsewhere any.
pub fn is_executable(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    meta.is_file() && may_run
}

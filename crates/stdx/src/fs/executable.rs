//! Executable files.

use std::path::Path;

/// Returns whether a path leads to an executable file: on Unix one with an executable bit, elsewhere any file.
pub fn is_executable(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    meta.is_file() && may_run
}

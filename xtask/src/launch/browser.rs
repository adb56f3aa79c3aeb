//! The browser for checking exported pages: the one named by `CHROME`, or a Chromium or Chrome on the search path.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

use super::DEV;

/// Runs the command with the browser that was found.
pub(crate) fn run(args: &[OsString]) -> anyhow::Result<ExitStatus> {
    let browser = find().map(|browser| ("CHROME", browser.into()));
    DEV.run(args, browser.as_slice())
}

/// Finds the browser.
pub(crate) fn find() -> Option<PathBuf> {
    let named = std::env::var_os("CHROME").map(PathBuf::from);
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = || {
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|file| file.is_file())
    };
    named.or_else(on_path)
}

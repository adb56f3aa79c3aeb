//! Opening web pages in the user's browser.

use std::process::{Command, Stdio};

use pinch_embed::stdx::host::Env;

/// Variables that are set in remote sessions.
const REMOTE: [&str; 3] = ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"];

/// Variables that indicate a display, or name a browser.
#[cfg(not(any(target_os = "macos", windows)))]
const SCREENS: [&str; 5] = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME", "TERMUX_VERSION"];

/// Programs that open a URL, with their first arguments, tried in order until one is installed.
#[cfg(target_os = "macos")]
const OPENERS: &[(&str, &[&str])] = &[("open", &[])];
#[cfg(windows)]
const OPENERS: &[(&str, &[&str])] = &[("rundll32", &["url.dll,FileProtocolHandler"])];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: &[(&str, &[&str])] = &[("xdg-open", &[]), ("wslview", &[]), ("termux-open-url", &[])];

/// Returns whether the user is logged in remotely.
pub(crate) fn is_remote(env: &Env) -> bool {
    REMOTE.iter().any(|name| env.non_empty(name).is_some())
}

/// Opens a web page without waiting for the browser; returns whether one was started. Does nothing without a display and in remote
/// sessions.
pub(crate) fn open(url: &str, env: &Env) -> bool {
    let is_web_page = url.starts_with("https://") || url.starts_with("http://");
    if !is_web_page || is_remote(env) || !has_screen(env) {
        return false;
    }
    // The URL is an argument: no shell parses it.
    OPENERS.iter().any(|(program, args)| {
        let mut command = Command::new(program);
        command.args(*args).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl+C in the terminal is not meant for the browser.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().is_ok()
    })
}

#[cfg(not(any(target_os = "macos", windows)))]
fn has_screen(env: &Env) -> bool {
    SCREENS.iter().any(|name| env.non_empty(name).is_some())
}

#[cfg(any(target_os = "macos", windows))]
fn has_screen(_: &Env) -> bool {
    true
}

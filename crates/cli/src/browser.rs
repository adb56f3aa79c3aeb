//! Opening web pages in the user's browser.

use std::process::{Command, Stdio};

use pinch_embed::stdx::host::Env;

/// Variables that a session on another machine has.
const REMOTE: [&str; 3] = ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"];

/// Variables of which one says that there is a screen, or a browser that was named.
#[cfg(not(any(target_os = "macos", windows)))]
const SCREENS: [&str; 5] = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME", "TERMUX_VERSION"];

/// Programs that open a URL, with their first arguments; the next one is tried where one is not installed.
#[cfg(target_os = "macos")]
const OPENERS: &[(&str, &[&str])] = &[("open", &[])];
#[cfg(windows)]
const OPENERS: &[(&str, &[&str])] = &[("rundll32", &["url.dll,FileProtocolHandler"])];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: &[(&str, &[&str])] = &[("xdg-open", &[]), ("wslview", &[]), ("termux-open-url", &[])];

/// Whether the user sits at another machine.
pub(crate) fn is_remote(env: &Env) -> bool {
    REMOTE.iter().any(|name| env.non_empty(name).is_some())
}

/// Opens a web page and does not wait for the browser; returns whether one was started. Without a screen, and when the user sits at another
/// machine, none is.
pub(crate) fn open(url: &str, env: &Env) -> bool {
    let is_web_page = url.starts_with("https://") || url.starts_with("http://");
    if !is_web_page || is_remote(env) || !has_screen(env) {
        return false;
    }
    // The URL is an argument: no shell reads it.
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

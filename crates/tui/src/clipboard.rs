//! The clipboard: through the terminal itself (OSC 52), which works over ssh as well, and through the programs of the desktop.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_stdx::host::Env;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Bytes that terminals take; many ignore more.
const MAX_OSC52: usize = 74_994;

/// The bytes that ask the terminal to copy a text; `None` when it is too long for terminals.
pub(crate) fn osc52(text: &str) -> Option<Vec<u8>> {
    let encoded = STANDARD.encode(text);
    (encoded.len() <= MAX_OSC52).then(|| format!("\x1b]52;c;{encoded}\x07").into_bytes())
}

/// Programs that copy their standard input, for the desktop that the environment names.
fn programs(env: &Env) -> Vec<(&'static str, &'static [&'static str])> {
    let has = |name: &str| env.non_empty(name).is_some();
    let mut programs: Vec<(&str, &[&str])> = Vec::new();
    if cfg!(target_os = "macos") {
        programs.push(("pbcopy", &[]));
    }
    if cfg!(windows) || has("WSL_DISTRO_NAME") {
        programs.push(("clip.exe", &[]));
    }
    if has("WAYLAND_DISPLAY") {
        programs.push(("wl-copy", &[]));
    }
    if has("DISPLAY") {
        programs.extend([("xclip", &["-selection", "clipboard"][..]), ("xsel", &["--clipboard", "--input"])]);
    }
    if has("TERMUX_VERSION") {
        programs.push(("termux-clipboard-set", &[]));
    }
    programs
}

/// Copies a text with a program of the desktop. Returns whether there was one that did.
pub(crate) async fn copy(text: &str, env: &Env) -> bool {
    for (program, args) in programs(env) {
        if run(program, args, text).await.is_some_and(|worked| worked) {
            return true;
        }
    }
    false
}

/// Programs that print the image of the clipboard as PNG.
fn image_programs(env: &Env) -> Vec<(&'static str, &'static [&'static str])> {
    let has = |name: &str| env.non_empty(name).is_some();
    let mut programs: Vec<(&str, &[&str])> = Vec::new();
    if cfg!(target_os = "macos") {
        programs.push(("pngpaste", &["-"]));
    }
    if has("WAYLAND_DISPLAY") {
        programs.push(("wl-paste", &["--no-newline", "--type", "image/png"]));
    }
    if has("DISPLAY") {
        programs.push(("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]));
    }
    programs
}

/// Puts the image of the clipboard into a file of its own below a directory.
///
/// # Errors
/// A sentence for people.
pub(crate) async fn image(env: &Env, temp: &Path) -> Result<PathBuf, String> {
    let programs = image_programs(env);
    if programs.is_empty() {
        return Err("There is no program that reads images from the clipboard here".to_owned());
    }
    for (program, args) in &programs {
        let mut command = Command::new(program);
        command.args(*args).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(std::time::Duration::from_secs(5), command.output()).await;
        if let Ok(Ok(output)) = output
            && output.status.success()
            && output.stdout.starts_with(b"\x89PNG")
        {
            let file = tempfile::Builder::new().prefix("pinch-clipboard-").suffix(".png").tempfile_in(temp);
            let kept = file.and_then(|mut file| {
                std::io::Write::write_all(&mut file, &output.stdout)?;
                file.into_temp_path().keep().map_err(|error| error.error)
            });
            return kept.map_err(|error| format!("cannot store the image: {error}"));
        }
    }
    let names: Vec<&str> = programs.iter().map(|(program, _)| *program).collect();
    Err(format!("There is no image in the clipboard, or {} is not installed", names.join(" or ")))
}

async fn run(program: &str, args: &[&str], text: &str) -> Option<bool> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take()?;
    input.write_all(text.as_bytes()).await.ok()?;
    drop(input);
    let status = tokio::time::timeout(std::time::Duration::from_secs(2), child.wait()).await.ok()?.ok()?;
    Some(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_terminals_would_ignore_are_not_sent() {
        assert_eq!(osc52("hi").unwrap(), b"\x1b]52;c;aGk=\x07");
        assert!(osc52(&"x".repeat(100_000)).is_none());
    }
}

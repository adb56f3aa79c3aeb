//! The clipboard: through the terminal (OSC 52), which also works over ssh, and through desktop programs.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_stdx::fs::create_private_dir;
use pinch_stdx::host::Env;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::image::MAX_BYTES;

/// Number of bytes that terminals accept; many ignore more.
const MAX_OSC52: usize = 74_994;

/// Returns the control sequence that copies a text; `None` if it is too long for terminals.
pub(crate) fn osc52(text: &str) -> Option<Vec<u8>> {
    let encoded = STANDARD.encode(text);
    (encoded.len() <= MAX_OSC52).then(|| format!("\x1b]52;c;{encoded}\x07").into_bytes())
}

/// Returns programs that copy their stdin, for the desktop in the environment.
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

/// Copies a text with a desktop program. Returns whether one succeeded.
pub(crate) async fn copy(text: &str, env: &Env) -> bool {
    for (program, args) in programs(env) {
        if run(program, args, text).await.is_some_and(|worked| worked) {
            return true;
        }
    }
    false
}

/// Returns programs that print the clipboard image as PNG.
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

/// Prefix of the names of pasted files.
const PASTED: &str = "pinch-clipboard-";
/// How long pasted files are kept, in milliseconds.
const KEPT_MS: u128 = 7 * 24 * 60 * 60 * 1000;

/// Saves the clipboard image to a new file in a directory, both accessible only to the user.
///
/// # Errors
/// A sentence for people.
pub(crate) async fn image(env: &Env, dir: &Path) -> Result<PathBuf, String> {
    let programs = image_programs(env);
    if programs.is_empty() {
        return Err("Images can be pasted only on a desktop (macOS, Wayland or X11); drop the file instead".to_owned());
    }
    for (program, args) in &programs {
        if let Some(content) = output_of(program, args).await.filter(|content| content.starts_with(b"\x89PNG")) {
            return store(dir, &content).map_err(|error| format!("cannot store the image: {error}"));
        }
    }
    let names: Vec<&str> = programs.iter().map(|(program, _)| *program).collect();
    Err(format!("The clipboard contains no image, or {} is not installed", names.join(" or ")))
}

/// Returns the output of a program, if it succeeds and the output is no larger than an image may be.
async fn output_of(program: &str, args: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let mut content = Vec::new();
    let output = child.stdout.take()?.take(MAX_BYTES + 1);
    let work = async {
        tokio::pin!(output);
        output.read_to_end(&mut content).await.ok()?;
        child.wait().await.ok().filter(std::process::ExitStatus::success)
    };
    tokio::time::timeout(Duration::from_secs(5), work).await.ok()??;
    (content.len() as u64 <= MAX_BYTES).then_some(content)
}

fn store(dir: &Path, content: &[u8]) -> io::Result<PathBuf> {
    create_private_dir(dir)?;
    // The file is created with mode 0600.
    let mut file = tempfile::Builder::new().prefix(PASTED).suffix(".png").tempfile_in(dir)?;
    file.write_all(content)?;
    file.into_temp_path().keep().map_err(|error| error.error)
}

/// Removes pasted files that are older than 7 days. Files that cannot be removed are left.
pub(crate) fn remove_old(dir: &Path, now_ms: i64) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let now_ms = u128::try_from(now_ms).unwrap_or(0);
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PASTED));
        let Ok(meta) = entry.metadata() else { continue };
        let age = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let is_old = age.is_some_and(|at| at.as_millis() + KEPT_MS < now_ms);
        if is_ours && is_old && meta.is_file() {
            std::fs::remove_file(entry.path()).unwrap_or_default();
        }
    }
}

async fn run(program: &str, args: &[&str], text: &str) -> Option<bool> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let mut input = child.stdin.take()?;
    input.write_all(text.as_bytes()).await.ok()?;
    drop(input);
    let status = tokio::time::timeout(Duration::from_secs(2), child.wait()).await.ok()?.ok()?;
    Some(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_images_are_private_and_expire() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("agent/tmp");
        let path = store(&dir, b"image").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(&dir)), (0o600, 0o700));
        }
        std::fs::write(dir.join("other.png"), "").unwrap();
        let written = std::fs::metadata(&path).unwrap().modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
        let (written, week) = (i64::try_from(written.as_millis()).unwrap(), 7 * 24 * 60 * 60 * 1000);
        remove_old(&dir, written + week);
        assert!(path.exists());
        remove_old(&dir, written + week + 1);
        assert!(!path.exists() && dir.join("other.png").exists());
        remove_old(&root.path().join("nowhere"), written);
    }

    #[tokio::test]
    async fn the_clipboard_image_is_the_output_of_a_program() {
        assert_eq!(output_of("printf", &["abc"]).await.as_deref(), Some(&b"abc"[..]));
        assert_eq!(output_of("false", &[]).await, None);
        assert_eq!(output_of("no-such-program", &[]).await, None);
        assert_eq!(output_of("head", &["-c", "52428801", "/dev/zero"]).await, None, "too large");
    }

    #[test]
    fn texts_that_terminals_would_ignore_are_not_sent() {
        assert_eq!(osc52("hi").unwrap(), b"\x1b]52;c;aGk=\x07");
        assert!(osc52(&"x".repeat(100_000)).is_none());
    }
}

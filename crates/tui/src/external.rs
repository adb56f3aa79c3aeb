//! Other programs that temporarily get the terminal: the shell, and the user's editor.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use pinch_stdx::host::Env;

/// The longest text that is read back, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Editors to use if the user names none, in this order.
const EDITORS: &[&str] = if cfg!(windows) { &["notepad"] } else { &["editor", "nano", "vi"] };

/// Returns the command of the user's editor: from the settings, else `$VISUAL`, else `$EDITOR`, else a common one that is installed.
pub(crate) fn command(setting: Option<&str>, env: &Env) -> String {
    let is_named = |command: &&str| !command.trim().is_empty();
    let variable = |name: &str| env.non_empty(name);
    let named = setting.filter(is_named).or_else(|| variable("VISUAL").filter(is_named));
    let named = named.or_else(|| variable("EDITOR").filter(is_named)).map(str::to_owned);
    named.unwrap_or_else(|| {
        let is_installed = |program: &&&str| {
            let path = env.get("PATH").unwrap_or_default();
            std::env::split_paths(path).any(|dir| dir.join(program).is_file())
        };
        let last = EDITORS.last().copied().unwrap_or_default();
        EDITORS.iter().find(is_installed).copied().unwrap_or(last).to_owned()
    })
}

/// Splits a command into words like a shell, without expanding anything. On Windows, backslashes are part of paths.
fn words(command: &str) -> Result<Vec<String>, String> {
    let escaped = if cfg!(windows) { command.replace('\\', "\\\\") } else { command.to_owned() };
    match shlex::split(&escaped) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(format!("cannot run the editor `{command}`: a quote is not closed")),
    }
}

/// Edits a text in another program, which has the terminal meanwhile. `None`: the program failed, or nothing was changed. Blocks.
///
/// # Errors
/// A sentence for people.
pub(crate) fn edit(command: &str, text: &str, temp: &Path) -> Result<Option<String>, String> {
    let cannot = |error: std::io::Error| format!("cannot edit the text with `{command}`: {error}");
    let mut file = tempfile::Builder::new().prefix("pinch-prompt-").suffix(".md").tempfile_in(temp).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    file.flush().map_err(cannot)?;
    let words = words(command)?;
    let (program, args) = words.split_first().ok_or("there is no editor to run")?;
    let status = Command::new(program).args(args).arg(file.path()).status().map_err(cannot)?;
    if !status.success() {
        return Ok(None);
    }
    // The editor may have replaced the file.
    let mut edited = String::new();
    fs::File::open(file.path()).and_then(|file| file.take(MAX_TEXT).read_to_string(&mut edited)).map_err(cannot)?;
    let edited = edited.strip_suffix('\n').unwrap_or(&edited);
    Ok((edited != text).then(|| edited.to_owned()))
}

/// Suspends this program until the shell continues it.
#[cfg(unix)]
pub(crate) fn suspend() {
    use rustix::process::{Pid, Signal, kill_current_process_group, kill_process};
    // Stop the process group, so that a shell script around this program is also stopped; if that fails, stop only the program.
    if kill_current_process_group(Signal::TSTP).is_err()
        && let Some(own) = Pid::from_raw(i32::try_from(std::process::id()).unwrap_or(0))
    {
        kill_process(own, Signal::TSTP).unwrap_or_default();
    }
}

/// Suspension is not supported.
#[cfg(not(unix))]
pub(crate) fn suspend() {}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn script(dir: &Path, body: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let path = dir.join("editor.sh");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    #[test]
    fn the_edited_text_is_returned_and_a_failed_editor_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let editor = script(dir.path(), "[ \"$1\" = --wait ] || exit 9; printf 'more\\n' >> \"$2\"");
        assert_eq!(edit(&format!("{editor} --wait"), "text ", dir.path()), Ok(Some("text more".to_owned())));
        let editor = script(dir.path(), "echo changed > \"$1\"; exit 1");
        assert_eq!(edit(&editor, "text", dir.path()), Ok(None));
        assert_eq!(edit("true", "text", dir.path()), Ok(None));
        assert!(edit("/no/such/editor", "text", dir.path()).unwrap_err().contains("/no/such/editor"));
    }

    #[test]
    fn the_setting_takes_precedence_over_the_environment() {
        let env: Env = [("VISUAL", "code --wait"), ("EDITOR", "nano")].into_iter().collect();
        assert_eq!(command(Some("hx"), &env), "hx");
        assert_eq!(command(None, &env), "code --wait");
        assert_eq!(command(None, &Env::default()), "vi");
        let env: Env = [("VISUAL", " "), ("EDITOR", "nano")].into_iter().collect();
        assert_eq!(command(None, &env), "nano");
    }

    #[test]
    fn an_installed_editor_is_used_if_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = std::env::join_paths([Path::new("/nonexistent"), dir.path()]).unwrap();
        let env: Env = [("PATH", path.to_str().unwrap())].into_iter().collect();
        for (program, expected) in [("unrelated", "vi"), ("nano", "nano"), ("editor", "editor")] {
            fs::write(dir.path().join(program), "").unwrap();
            assert_eq!(command(None, &env), expected);
        }
    }

    #[test]
    fn commands_are_split_like_in_a_shell() {
        for (command, expected) in [
            ("code --wait", vec!["code", "--wait"]),
            ("'/Applications/My Editor/bin' -n", vec!["/Applications/My Editor/bin", "-n"]),
            ("/My\\ Editor/bin", vec!["/My Editor/bin"]),
            ("emacs -e \"(a \\\"b\\\")\"", vec!["emacs", "-e", "(a \"b\")"]),
            ("vim ''", vec!["vim", ""]),
        ] {
            assert_eq!(words(command), Ok(expected.iter().map(ToString::to_string).collect()), "{command}");
        }
        assert!(words("vim 'x").unwrap_err().contains("quote"));
    }

    #[test]
    fn the_path_of_an_editor_may_contain_blanks() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("my editor");
        fs::create_dir(&inner).unwrap();
        let editor = script(&inner, "printf 'more\\n' >> \"$1\"");
        assert_eq!(edit(&format!("'{editor}'"), "text ", dir.path()), Ok(Some("text more".to_owned())));
    }
}

//! Other programs that temporarily get the terminal: the shell, and the user's editor.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use pinch_stdx::host::Env;

/// The longest text that is read back, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Returns the command of the user's editor: from the settings, else `$VISUAL`, else `$EDITOR`, else a common one.
pub(crate) fn command(setting: Option<&str>, env: &Env) -> String {
    let named = setting.filter(|command| !command.trim().is_empty());
    let named = named.or_else(|| env.non_empty("VISUAL")).or_else(|| env.non_empty("EDITOR"));
    named.unwrap_or(if cfg!(windows) { "notepad" } else { "vi" }).to_owned()
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
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or(command);
    let status = Command::new(program).args(words).arg(file.path()).status().map_err(cannot)?;
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
    }
}

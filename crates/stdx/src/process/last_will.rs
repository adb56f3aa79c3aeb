//! Cleanup commands that run even if this program is killed.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, which comes with the end of this program, and then becomes the command given as its arguments.
const SCRIPT: &str = r#"read -r word && [ "$word" = revoked ] || exec "$@""#;

/// A cleanup command that runs when this value is dropped, or when this program ends, even if it is killed. Nothing waits for the command,
/// and signals from the terminal of this program do not reach it.
#[derive(Debug)]
pub struct LastWill {
    /// Present until this is dropped.
    child: Option<Child>,
}

impl LastWill {
    /// Prepares a command. Its input is empty, and its output is dropped.
    ///
    /// # Errors
    /// Returns the system's error if the shell that waits cannot be started.
    pub fn new(command: &Command) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(command.get_program()).args(command.get_args());
        shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(command.get_current_dir().unwrap_or("/".as_ref()));
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Ok(Self { child: Some(shell.spawn()?) })
    }

    /// Forgets the command.
    pub fn revoke(mut self) {
        if let Some(input) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            // If the shell is gone, there is nothing to revoke.
            drop(input.write_all(b"revoked\n"));
        }
    }
}

impl Drop for LastWill {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            // Without a thread it is reaped when this program ends.
            drop(std::thread::Builder::new().name("pinch-last-will".to_owned()).spawn(move || drop(child.wait())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn it_runs_on_drop_unless_it_was_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let will = |name: &str| {
            let mut command = Command::new("touch");
            command.arg(name).current_dir(dir.path()).env("PATH", "/usr/bin:/bin");
            LastWill::new(&command).unwrap()
        };
        let (kept, revoked) = (will("kept"), will("revoked"));
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
        revoked.revoke();
        drop(kept);
        let start = Instant::now();
        while !dir.path().join("kept").exists() {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!dir.path().join("revoked").exists());
    }
}

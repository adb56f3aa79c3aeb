//! Commands in a container.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pinch_machine::CommandSpec;
use pinch_stdx::process::LastWill;

use super::client::{ContainerClient, is_own};
use crate::confined::{WrappedCommand, Wrapper};

/// Host variables that are meaningless in a container.
pub(super) const LEFT_OUT: [&str; 6] = ["PATH", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD"];
/// Variable that identifies a command and everything it has started.
const MARK: &str = "PINCH_SANDBOX_COMMAND";
/// Kills what a command left running: SIGTERM first, then SIGKILL.
const END: &str = r#"for signal in TERM KILL; do
  found=
  for file in /proc/[0-9]*/environ; do
    if tr '\0' '\n' 2>/dev/null <"$file" | grep -qx "$1"; then
      process=${file#/proc/}
      kill -"$signal" "${process%/environ}" 2>/dev/null && found=1
    fi
  done 2>/dev/null
  [ -n "$found" ] || exit 0
  sleep 0.2
done"#;

/// A running container, removed on drop, or when this program is killed.
pub(super) struct RunningContainer {
    pub(super) client: ContainerClient,
    pub(super) name: String,
    /// Whether its image has bash.
    pub(super) has_bash: bool,
    pub(super) _removal: LastWill,
}

impl RunningContainer {
    /// Returns a wrapper that runs commands in the container, which lives as long as any of them.
    pub(super) fn wrapper(self) -> Wrapper {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        Arc::new(move |command| {
            let n = COUNTER.fetch_add(1, Ordering::Relaxed);
            Ok(self.wrapped(command, &format!("{}-{n}", std::process::id())))
        })
    }

    fn wrapped(&self, command: CommandSpec, mark: &str) -> WrappedCommand {
        let mark = format!("{MARK}={mark}");
        let mut args = vec!["exec".to_owned()];
        if command.has_input {
            args.push("--interactive".to_owned());
        }
        args.extend(["--workdir".to_owned(), command.cwd.to_string_lossy().into_owned()]);
        args.extend(["--env".to_owned(), mark.clone()]);
        // Other users of this machine can see arguments, but not variables.
        let mut by_name = Vec::new();
        for (name, value) in command.env {
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            args.push("--env".to_owned());
            if is_own(&name) {
                args.push(format!("{name}={value}"));
            } else {
                args.push(name.clone());
                by_name.push((name, value));
            }
        }
        args.push(self.name.clone());
        let is_bash = command.program.file_name() == Path::new("bash").file_name();
        match is_bash && !self.has_bash {
            true => args.push("/bin/sh".to_owned()),
            false => args.push(command.program.to_string_lossy().into_owned()),
        }
        args.extend(command.args);
        let mut inside = self.client.command(args, by_name);
        inside.has_input = command.has_input;
        let end = ["exec", self.name.as_str(), "/bin/sh", "-c", END, "sh", mark.as_str()].map(str::to_owned);
        WrappedCommand { command: inside, at_end: Some(self.client.command(end.to_vec(), Vec::new())), egress: None }
    }
}

//! The program in an emulated terminal.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::help::TestUser;

/// How long something may take to appear.
const LONGEST: Duration = Duration::from_secs(60);
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// The program in an emulated terminal.
pub(crate) struct TerminalProgram {
    child: Child,
    keys: ChildStdin,
    output: ChildStdout,
    pub(crate) screen: vt100::Parser,
    /// Every byte that reached the terminal.
    pub(crate) bytes: Vec<u8>,
}

impl TerminalProgram {
    /// Starts a conversation in the interactive mode.
    pub(crate) async fn start(user: &TestUser, args: &[&str]) -> Self {
        let agent_dir = user.path("agent");
        Self::run(user, &[&["--agent-dir", agent_dir.to_str().unwrap()], args].concat()).await
    }

    /// Starts the program with these arguments, and waits until it accepts messages.
    pub(crate) async fn run(user: &TestUser, args: &[&str]) -> Self {
        let mut program = Self::run_in(user, "", args);
        program.wait_for("/ for commands").await;
        program
    }

    /// Starts the program in one of the user's directories.
    pub(crate) fn run_in(user: &TestUser, dir: &str, args: &[&str]) -> Self {
        Self::run_on(user, dir, args, "xterm-256color")
    }

    /// Starts the program on a terminal of this type.
    pub(crate) fn run_on(user: &TestUser, dir: &str, args: &[&str], term: &str) -> Self {
        Self::run_with(user, dir, &[&format!("TERM={term}")], args)
    }

    /// Starts the program with additional environment variables.
    pub(crate) fn run_with(user: &TestUser, dir: &str, vars: &[&str], args: &[&str]) -> Self {
        Self::run_sized(user, dir, vars, args, (ROWS, COLUMNS))
    }

    /// Starts the program on a terminal with so many rows and columns.
    pub(crate) fn run_sized(user: &TestUser, dir: &str, vars: &[&str], args: &[&str], size: (u16, u16)) -> Self {
        let all = [&[env!("CARGO_BIN_EXE_pinch")], args].concat();
        let line = all.iter().map(|arg| format!("'{arg}'")).collect::<Vec<_>>().join(" ");
        // Signals for the child of `script` must reach the program, not a shell around it.
        let line = format!("exec {line}");
        let mut command = Command::new("script");
        command.current_dir(user.path(dir)).env_clear().env("HOME", user.path("")).env("PATH", "/usr/bin:/bin");
        command.env("TERM", "xterm-256color").envs(vars.iter().filter_map(|var| var.split_once('=')));
        command.env("LINES", size.0.to_string()).env("COLUMNS", size.1.to_string());
        command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (keys, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = vt100::Parser::new(size.0.try_into().unwrap(), size.1.try_into().unwrap(), 1_000);
        Self { child, keys, output, screen, bytes: Vec::new() }
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Reads until a text is on the screen.
    pub(crate) async fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text)).await;
    }

    pub(crate) async fn wait_until(&mut self, what: &str, holds: impl Fn(&str) -> bool) {
        self.read_until(what, |program| holds(&program.contents())).await;
    }

    /// Reads until these bytes have reached the terminal.
    pub(crate) async fn wait_for_bytes(&mut self, bytes: &str) {
        let is_there = |program: &Self| program.bytes.windows(bytes.len()).any(|window| window == bytes.as_bytes());
        self.read_until(bytes, is_there).await;
    }

    async fn read_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let reading = async {
            while !holds(self) {
                let mut buffer = [0; 4096];
                let n = self.output.read(&mut buffer).await.unwrap();
                assert!(n > 0, "the program ended before {what:?}:\n{}", self.screen.screen().contents());
                self.screen.process(&buffer[..n]);
                self.bytes.extend(&buffer[..n]);
            }
        };
        let is_there = tokio::time::timeout(LONGEST, reading).await.is_ok();
        assert!(is_there, "no {what:?} on the screen:\n{}", self.contents());
    }

    pub(crate) async fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    /// Sends SIGTERM to the program.
    pub(crate) async fn terminate(&self) {
        let family = Command::new("pgrep").args(["-P", &self.child.id().unwrap().to_string()]).output().await.unwrap();
        let pid = String::from_utf8(family.stdout).unwrap();
        assert!(Command::new("kill").args(["-TERM", pid.trim()]).status().await.unwrap().success());
    }

    /// Reads to the end and returns the exit code.
    pub(crate) async fn end(&mut self) -> Option<i32> {
        let reading = async {
            self.output.read_to_end(&mut self.bytes).await.unwrap();
            self.child.wait().await.unwrap().code()
        };
        tokio::time::timeout(LONGEST, reading).await.expect("the program ends")
    }
}

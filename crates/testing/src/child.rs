//! Child processes for tests: the test binary itself, controlled by its environment.
//!
//! The binary has one `#[test]` named `child::child`, which checks for a [`task`] and returns immediately if there is none. A child reports
//! in lines on its standard output. If `PINCH_TEST_STEP` is set, it waits for a line on its standard input after each of its own, so that
//! its parent knows exactly where it is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const TASK: &str = "PINCH_TEST_CHILD";
const FILE: &str = "PINCH_TEST_FILE";
const STEP: &str = "PINCH_TEST_STEP";

/// Returns the task of this process and its file, or `None` in the parent process.
pub fn task() -> Option<(String, PathBuf)> {
    Some((std::env::var(TASK).ok()?, PathBuf::from(std::env::var_os(FILE)?)))
}

/// A running child. It is killed when dropped.
pub struct TestChild {
    child: Child,
    /// Lines of its standard output, including those of the test harness.
    pub output: Lines<BufReader<ChildStdout>>,
    input: Option<ChildStdin>,
}

impl Drop for TestChild {
    fn drop(&mut self) {
        self.kill();
    }
}

impl TestChild {
    /// Starts a child with this task.
    pub fn start(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[])
    }

    /// Starts a child that waits after each line for [`TestChild::resume`].
    pub fn stepped(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[(STEP, "1")])
    }

    /// Starts a child with an additional environment variable.
    pub fn with_env(task: &str, file: &Path, name: &str, value: &str) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[(name, value)])
    }

    /// Starts a child that cannot write files longer than a few kilobytes; `trap` determines whether it survives trying.
    pub fn limited(task: &str, file: &Path, trap: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{trap} ulimit -f 40; exec \"$0\" \"$@\"")]).arg(std::env::current_exe().unwrap());
        Self::spawn(shell, task, file, &[])
    }

    /// Starts a child that is killed after this many seconds, and may use at most a few gigabytes.
    pub fn hurried(task: &str, file: &Path, secs: u32) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("ulimit -v 4000000; exec timeout --foreground -s KILL {secs} \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap());
        Self::spawn(shell, task, file, &[])
    }

    fn spawn(mut command: Command, task: &str, file: &Path, env: &[(&str, &str)]) -> Self {
        command.args(["--exact", "child::child", "--nocapture", "--test-threads=1"]);
        command.env(TASK, task).env(FILE, file).envs(env.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let input = child.stdin.take();
        Self { child, output, input }
    }

    /// Returns the next line printed by the child itself, or none if it has exited.
    pub fn next_line(&mut self) -> Option<String> {
        self.output.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("> ").map(str::to_owned))
    }

    /// Reads until a line starts with this word; returns the rest of the line.
    pub fn wait_for(&mut self, word: &str) -> Option<String> {
        std::iter::from_fn(|| self.next_line())
            .find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
    }

    /// Lets a child started with [`TestChild::stepped`] continue.
    pub fn resume(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Kills the child immediately.
    pub fn kill(&mut self) {
        drop(self.child.kill());
        self.child.wait().unwrap();
    }

    /// Waits for its exit; returns whether it was successful.
    pub fn ends_well(&mut self) -> bool {
        self.input = None;
        self.child.wait().unwrap().success()
    }
}

/// Prints a line; returns false if the pipe is closed.
pub fn report(words: &str) -> bool {
    let mut out = std::io::stdout().lock();
    // On a separate line, because the test harness has started one.
    let output = out.write_all(format!("\n> {words}\n").as_bytes()).and_then(|()| out.flush()).is_ok();
    if output && std::env::var_os(STEP).is_some() {
        return wait_for_parent();
    }
    output
}

/// Waits for a line; returns false if the pipe is closed.
pub fn wait_for_parent() -> bool {
    std::io::stdin().lock().read_line(&mut String::new()).is_ok_and(|n_bytes| n_bytes > 0)
}

//! Other processes for tests: the test binary itself, controlled by its environment.
//!
//! The binary has one `#[test]` named `child::child`, which looks for its [`task`] and returns at once when there is none. A child reports in
//! lines on its standard output. With `PINCH_TEST_STEP` set it waits for a line on its standard input after each of its own, so that its parent
//! knows exactly where it is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const TASK: &str = "PINCH_TEST_CHILD";
const FILE: &str = "PINCH_TEST_FILE";
const STEP: &str = "PINCH_TEST_STEP";

/// What this process was started for: a task and its file. `None` in the parent's own run.
pub fn task() -> Option<(String, PathBuf)> {
    Some((std::env::var(TASK).ok()?, PathBuf::from(std::env::var_os(FILE)?)))
}

/// A child at work. It is killed when it is dropped.
pub struct Other {
    child: Child,
    /// Lines of its standard output, those of the test harness among them.
    pub said: Lines<BufReader<ChildStdout>>,
    ear: Option<ChildStdin>,
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Other {
    /// A child with this task.
    pub fn start(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[])
    }

    /// A child that waits after each line for [`Other::go_on`].
    pub fn stepped(task: &str, file: &Path) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[(STEP, "1")])
    }

    /// A child with one more variable in its environment.
    pub fn with_env(task: &str, file: &Path, name: &str, value: &str) -> Self {
        Self::spawn(Command::new(std::env::current_exe().unwrap()), task, file, &[(name, value)])
    }

    /// A child that may write no file longer than a few kilobytes; `trap` says whether it survives trying.
    pub fn limited(task: &str, file: &Path, trap: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{trap} ulimit -f 40; exec \"$0\" \"$@\"")]).arg(std::env::current_exe().unwrap());
        Self::spawn(shell, task, file, &[])
    }

    /// A child that is killed after so many seconds, and gets no more than a few gigabytes.
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
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let ear = child.stdin.take();
        Self { child, said, ear }
    }

    /// The next line of the child's own; none when it has ended.
    pub fn next_line(&mut self) -> Option<String> {
        self.said.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("> ").map(str::to_owned))
    }

    /// Reads on until a line begins like this; returns what follows.
    pub fn wait_for(&mut self, word: &str) -> Option<String> {
        std::iter::from_fn(|| self.next_line())
            .find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
    }

    /// Lets a child continue that was started with [`Other::stepped`].
    pub fn go_on(&mut self) {
        self.ear.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Kills it at once, whatever it does.
    pub fn kill(&mut self) {
        drop(self.child.kill());
        self.child.wait().unwrap();
    }

    /// Waits for its end; true when it was good.
    pub fn ends_well(&mut self) -> bool {
        self.ear = None;
        self.child.wait().unwrap().success()
    }
}

/// Writes a line; false when the pipe is closed.
pub fn say(words: &str) -> bool {
    let mut out = std::io::stdout().lock();
    // On a line of its own: the test harness has begun one.
    let said = out.write_all(format!("\n> {words}\n").as_bytes()).and_then(|()| out.flush()).is_ok();
    if said && std::env::var_os(STEP).is_some() {
        return hear();
    }
    said
}

/// Waits for a line; false when the pipe is closed.
pub fn hear() -> bool {
    std::io::stdin().lock().read_line(&mut String::new()).is_ok_and(|n_bytes| n_bytes > 0)
}

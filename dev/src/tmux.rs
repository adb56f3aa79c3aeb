//! A shell in a tmux window of its own server, whose size, keys and contents are under control.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// How long something may take to appear.
const LONGEST: Duration = Duration::from_secs(20);
/// How often the screen is read while waiting.
const POLL: Duration = Duration::from_millis(20);
/// Prompt of the shell.
pub(crate) const PROMPT: &str = "shell>";

/// Counts the servers of this process.
static N_SERVERS: AtomicUsize = AtomicUsize::new(0);

/// The window. Dropping it ends the server, and with it every program in it.
pub(crate) struct Tmux {
    socket: String,
}

impl Tmux {
    /// Starts a shell in a window of this size, in this home directory.
    pub(crate) fn start(home: &Path, (columns, rows): (u16, u16)) -> anyhow::Result<Self> {
        let n = N_SERVERS.fetch_add(1, Ordering::Relaxed);
        let tmux = Self { socket: format!("pinch-interop-{}-{n}", std::process::id()) };
        let config = home.join("tmux.conf");
        let lines = "set -g history-limit 100000\nset -g status off\nset -s escape-time 0\nset -s extended-keys on\n";
        std::fs::write(&config, lines)?;
        std::fs::write(home.join("bashrc"), format!("PS1='{PROMPT} '\n"))?;
        let mut command = tmux.command();
        command.arg("-f").arg(&config).current_dir(home).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
        command.env("EDITOR", home.join("editor.sh")).env("LC_ALL", "C.UTF-8");
        command.args(["new-session", "-d", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        command.arg("exec bash --noprofile --rcfile bashrc -i");
        done(&mut command)?;
        tmux.wait_for(PROMPT)?;
        Ok(tmux)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-u"]).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = done(self.command().args(args))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Presses keys, by tmux's names.
    pub(crate) fn press(&self, keys: &[&str]) -> anyhow::Result<()> {
        self.run(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Types a text.
    pub(crate) fn type_text(&self, text: &str) -> anyhow::Result<()> {
        self.run(&["send-keys", "-l", text]).map(drop)
    }

    /// Types a text and presses enter.
    pub(crate) fn enter(&self, text: &str) -> anyhow::Result<()> {
        self.type_text(text)?;
        self.press(&["Enter"])
    }

    /// Pastes a text as a terminal does: bracketed if the program has asked for it.
    pub(crate) fn paste(&self, text: &str) -> anyhow::Result<()> {
        let mut load = self.command();
        let mut child = load.args(["load-buffer", "-"]).stdin(Stdio::piped()).spawn().context("cannot start tmux")?;
        child.stdin.take().context("tmux has no standard input")?.write_all(text.as_bytes())?;
        if !child.wait()?.success() {
            bail!("tmux cannot load the text to paste");
        }
        self.run(&["paste-buffer", "-p", "-d"]).map(drop)
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) -> anyhow::Result<()> {
        self.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]).map(drop)
    }

    /// Returns the visible rows.
    pub(crate) fn screen(&self) -> anyhow::Result<String> {
        self.run(&["capture-pane", "-p"])
    }

    /// Returns the scrollback and the visible rows, without space at their ends.
    pub(crate) fn scrollback(&self) -> anyhow::Result<Vec<String>> {
        let text = self.run(&["capture-pane", "-p", "-S", "-"])?;
        Ok(text.lines().map(|line| line.trim_end().to_owned()).collect())
    }

    /// Returns the value of a variable of tmux.
    pub(crate) fn variable(&self, name: &str) -> anyhow::Result<String> {
        Ok(self.run(&["display-message", "-p", &format!("#{{{name}}}")])?.trim().to_owned())
    }

    /// Waits until a text is on the screen.
    pub(crate) fn wait_for(&self, text: &str) -> anyhow::Result<()> {
        self.wait_until(&format!("{text:?}"), |screen| screen.contains(text))
    }

    /// Waits until a condition holds for the screen.
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + LONGEST;
        loop {
            let screen = self.screen()?;
            if holds(&screen) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("no {what} on the screen:\n{screen}");
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until the shell shows its prompt on the last line with text.
    pub(crate) fn wait_for_shell(&self) -> anyhow::Result<()> {
        self.wait_until("prompt of the shell", |screen| screen.trim_end().ends_with(PROMPT))
    }

    /// Runs a command in the shell, and returns what it prints.
    pub(crate) fn shell(&self, command: &str) -> anyhow::Result<String> {
        self.press(&["C-l"])?;
        self.wait_until("cleared screen", |screen| screen.trim() == PROMPT)?;
        self.enter(command)?;
        self.wait_until("second prompt", |screen| {
            screen.matches(PROMPT).count() > 1 && screen.trim_end().ends_with(PROMPT)
        })?;
        let screen = self.screen()?;
        let lines = screen.trim_end().lines().skip(1);
        let printed: Vec<&str> = lines.filter(|line| !line.starts_with(PROMPT)).collect();
        Ok(printed.join("\n").trim().to_owned())
    }

    /// Returns the program that the shell runs.
    pub(crate) fn program(&self) -> anyhow::Result<u32> {
        let shell = self.variable("pane_pid")?;
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"))?;
        children.split_whitespace().next().context("the shell runs nothing")?.parse().context("a malformed /proc")
    }

    /// Sends a signal to the program that the shell runs.
    pub(crate) fn signal(&self, signal: &str) -> anyhow::Result<()> {
        done(Command::new("kill").args([format!("-{signal}"), self.program()?.to_string()])).map(drop)
    }

    /// Ends the server, as closing a terminal window does.
    pub(crate) fn close(&self) -> anyhow::Result<()> {
        self.run(&["kill-server"]).map(drop)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.command().arg("kill-server").stderr(Stdio::null()).status());
    }
}

/// Returns tmux's name and version.
pub(crate) fn version() -> anyhow::Result<String> {
    let output = done(Command::new("tmux").arg("-V"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Waits until a process has ended.
pub(crate) fn wait_for_end(pid: u32) -> anyhow::Result<()> {
    let deadline = Instant::now() + LONGEST;
    while Path::new(&format!("/proc/{pid}")).exists() {
        if Instant::now() > deadline {
            bail!("the program still runs");
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Runs a command that must succeed.
fn done(command: &mut Command) -> anyhow::Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output)
}

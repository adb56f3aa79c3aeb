//! Lines from stdin, one at a time, and what is typed without being shown.

use std::io::{self, IsTerminal as _};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines, Stdin, Take};

/// Bytes that are read altogether: no answer of a person is longer.
const MAX_BYTES: u64 = 1024 * 1024;

/// Lines from stdin.
pub(crate) struct LineInput {
    lines: Lines<BufReader<Take<Stdin>>>,
    is_terminal: bool,
    has_ended: bool,
}

impl LineInput {
    /// The lines of stdin; nothing is read yet.
    pub(crate) fn new() -> Self {
        let lines = BufReader::new(tokio::io::stdin().take(MAX_BYTES)).lines();
        Self { lines, is_terminal: io::stdin().is_terminal(), has_ended: false }
    }

    /// Whether a person types them.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Whether there are no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The next line; `None` at the end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let line = self.lines.next_line().await.ok().flatten();
        self.has_ended = line.is_none();
        line
    }

    /// Everything that is left.
    pub(crate) async fn rest(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.lines.get_mut().read_to_string(&mut text).await?;
        Ok(text)
    }
}

/// What is typed is not shown for as long as this lives.
#[cfg(unix)]
pub(crate) struct HiddenTyping {
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl HiddenTyping {
    /// Stops the terminal from showing what is typed.
    ///
    /// # Errors
    /// When stdin is no terminal.
    pub(crate) fn begin() -> io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The end of the line is shown all the same.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?;
        Ok(Self { before })
    }
}

#[cfg(unix)]
impl Drop for HiddenTyping {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let _gone = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.before);
    }
}

/// What is typed cannot be hidden on this system.
#[cfg(not(unix))]
pub(crate) struct HiddenTyping;

#[cfg(not(unix))]
impl HiddenTyping {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn begin() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

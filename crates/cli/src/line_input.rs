//! Lines from stdin, and hidden input.

use std::io::{self, IsTerminal as _};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines, Stdin, Take};

/// Maximum total bytes that are read: no user's answer is longer.
const MAX_BYTES: u64 = 1024 * 1024;

/// Lines from stdin.
pub(crate) struct LineInput {
    lines: Lines<BufReader<Take<Stdin>>>,
    is_terminal: bool,
    has_ended: bool,
}

impl LineInput {
    /// Creates the input without reading anything.
    pub(crate) fn new() -> Self {
        let lines = BufReader::new(tokio::io::stdin().take(MAX_BYTES)).lines();
        Self { lines, is_terminal: io::stdin().is_terminal(), has_ended: false }
    }

    /// Returns whether stdin is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns whether the input has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the next line, or `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let line = self.lines.next_line().await.ok().flatten();
        self.has_ended = line.is_none();
        line
    }

    /// Reads the rest of the input.
    pub(crate) async fn rest(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.lines.get_mut().read_to_string(&mut text).await?;
        Ok(text)
    }
}

/// Hides typing while it is alive.
#[cfg(unix)]
pub(crate) struct HiddenTyping {
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl HiddenTyping {
    /// Stops the terminal from echoing input.
    ///
    /// # Errors
    /// Returns an error if stdin is not a terminal.
    pub(crate) fn begin() -> io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The end of the line is still echoed.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?;
        Ok(Self { before })
    }
}

#[cfg(unix)]
impl Drop for HiddenTyping {
    fn drop(&mut self) {
        // A terminal that is gone echoes nothing.
        let _gone = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.before);
    }
}

/// Typing cannot be hidden on this system.
#[cfg(not(unix))]
pub(crate) struct HiddenTyping;

#[cfg(not(unix))]
impl HiddenTyping {
    /// Fails.
    ///
    /// # Errors
    /// Always fails.
    pub(crate) fn begin() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

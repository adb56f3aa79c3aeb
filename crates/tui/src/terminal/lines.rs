//! A terminal that is read line by line, since it edits lines itself, and written without ever moving its cursor back.

use std::io::{self, BufRead as _, Write as _};
use std::thread;

use termina::{PlatformTerminal, Terminal as _};
use tokio::sync::mpsc;

use super::device::DeviceError;
use super::input::TerminalInput;
use super::{Size, is_terminal};
use crate::key::{Key, KeyCode, KeyPress};

/// Maximum number of queued lines; the reading thread then waits.
const MAX_WAITING: usize = 64;

/// The terminal of this process in its normal mode. Ctrl+C arrives as a key.
#[derive(Debug)]
pub struct LineDevice {
    inputs: mpsc::Receiver<TerminalInput>,
    interrupts: InterruptSignal,
    hidden: Option<HiddenLine>,
}

impl LineDevice {
    /// Starts reading lines from stdin.
    ///
    /// # Errors
    /// If stdin or stdout is not a terminal, or the thread cannot be started.
    pub fn open() -> Result<Self, DeviceError> {
        if !is_terminal() {
            return Err(io::Error::other("standard input and output must be a terminal").into());
        }
        let (sender, inputs) = mpsc::channel(MAX_WAITING);
        thread::Builder::new().name("lines".to_owned()).spawn(move || read(&sender))?;
        Ok(Self { inputs, interrupts: InterruptSignal::new(), hidden: None })
    }

    /// Returns the size of the terminal; a common default if it does not report one.
    pub fn size(&self) -> Size {
        let size = PlatformTerminal::new().and_then(|terminal| terminal.get_dimensions());
        size.map_or(Size::new(80, 24), |size| Size::new(size.cols, size.rows))
    }

    /// Hides or shows typed text. If hiding is not possible, it is shown.
    pub fn set_hidden(&mut self, is_hidden: bool) {
        if is_hidden != self.hidden.is_some() {
            self.hidden = if is_hidden { HiddenLine::begin() } else { None };
        }
    }

    /// Writes bytes. Blocks while the terminal does not accept them.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Returns the next input: a line, or Ctrl+C. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> TerminalInput {
        tokio::select! {
            input = self.inputs.recv() => input.unwrap_or(TerminalInput::Closed),
            () = self.interrupts.next() => control('c'),
        }
    }

    /// Returns the next line, if one is already available.
    pub fn try_next(&mut self) -> Option<TerminalInput> {
        self.inputs.try_recv().ok()
    }
}

fn control(c: char) -> TerminalInput {
    TerminalInput::Key(KeyPress::of(Key { ctrl: true, ..Key::plain(KeyCode::Char(c)) }))
}

/// Reads lines until the input ends or the receiver is dropped. The end of input is reported as Ctrl+D.
fn read(inputs: &mpsc::Sender<TerminalInput>) {
    let mut lines = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => {
                // The receiver is gone when the program exits.
                inputs.blocking_send(control('d')).unwrap_or_default();
                return;
            }
            Ok(_) => {
                let line = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                if inputs.blocking_send(TerminalInput::Line(line)).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Hides typed text until it is dropped.
#[cfg(unix)]
#[derive(Debug)]
struct HiddenLine {
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl HiddenLine {
    fn begin() -> Option<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // Line ends are still shown.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Now, &hidden).ok()?;
        Some(Self { before })
    }
}

#[cfg(unix)]
impl Drop for HiddenLine {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let restored = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.before);
        restored.unwrap_or_default();
    }
}

/// Typed text cannot be hidden on this system.
#[cfg(not(unix))]
#[derive(Debug)]
struct HiddenLine;

#[cfg(not(unix))]
impl HiddenLine {
    fn begin() -> Option<Self> {
        None
    }
}

/// SIGINT, which Ctrl+C sends in normal mode.
#[cfg(unix)]
#[derive(Debug)]
struct InterruptSignal(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl InterruptSignal {
    fn new() -> Self {
        Self(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok())
    }

    async fn next(&mut self) {
        let Some(signal) = &mut self.0 else { return std::future::pending().await };
        if signal.recv().await.is_none() {
            std::future::pending().await
        }
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
struct InterruptSignal;

#[cfg(not(unix))]
impl InterruptSignal {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

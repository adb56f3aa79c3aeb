//! A terminal that is read line by line, as it edits lines itself, and written to without ever moving its cursor back.

use std::io::{self, BufRead as _, Write as _};
use std::thread;

use termina::{PlatformTerminal, Terminal as _};
use tokio::sync::mpsc;

use super::device::DeviceError;
use super::input::TerminalInput;
use super::{Size, is_terminal};
use crate::key::{Key, KeyCode, KeyPress};

/// Lines that wait to be taken; the thread that reads waits then.
const MAX_WAITING: usize = 64;

/// The terminal of this process in its usual mode. Control and C arrives as a key.
#[derive(Debug)]
pub struct LineDevice {
    inputs: mpsc::Receiver<TerminalInput>,
    interrupts: InterruptSignal,
    hidden: Option<HiddenLine>,
}

impl LineDevice {
    /// Begins to read lines from standard input.
    ///
    /// # Errors
    /// When standard input or output is no terminal, or there can be no thread.
    pub fn open() -> Result<Self, DeviceError> {
        if !is_terminal() {
            return Err(io::Error::other("standard input and output must be a terminal").into());
        }
        let (sender, inputs) = mpsc::channel(MAX_WAITING);
        thread::Builder::new().name("lines".to_owned()).spawn(move || read(&sender))?;
        Ok(Self { inputs, interrupts: InterruptSignal::new(), hidden: None })
    }

    /// The size of the terminal; the usual one, where it does not say.
    pub fn size(&self) -> Size {
        let size = PlatformTerminal::new().and_then(|terminal| terminal.get_dimensions());
        size.map_or(Size::new(80, 24), |size| Size::new(size.cols, size.rows))
    }

    /// Keeps the terminal from showing what is typed, or lets it show it again. Where that is not possible it is shown.
    pub fn set_hidden(&mut self, is_hidden: bool) {
        if is_hidden != self.hidden.is_some() {
            self.hidden = if is_hidden { HiddenLine::begin() } else { None };
        }
    }

    /// Writes bytes. Blocks while the terminal does not take them.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// The next input: a line, or control and C. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> TerminalInput {
        tokio::select! {
            input = self.inputs.recv() => input.unwrap_or(TerminalInput::Closed),
            () = self.interrupts.next() => control('c'),
        }
    }

    /// The next line, if there is one already.
    pub fn try_next(&mut self) -> Option<TerminalInput> {
        self.inputs.try_recv().ok()
    }
}

fn control(c: char) -> TerminalInput {
    TerminalInput::Key(KeyPress::of(Key { ctrl: true, ..Key::plain(KeyCode::Char(c)) }))
}

/// Reads lines until the input ends or nobody wants to know. Its end is what control and D is elsewhere.
fn read(inputs: &mpsc::Sender<TerminalInput>) {
    let mut lines = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => {
                // The receiver is gone when the program ends.
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

/// What is typed is not shown for as long as this lives.
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
        // The end of the line is shown all the same.
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

/// What is typed cannot be hidden on this system.
#[cfg(not(unix))]
#[derive(Debug)]
struct HiddenLine;

#[cfg(not(unix))]
impl HiddenLine {
    fn begin() -> Option<Self> {
        None
    }
}

/// SIGINT, which control and C sends in the usual mode.
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

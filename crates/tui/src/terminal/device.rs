//! The terminal of this process: raw mode, other modes, reading in a thread, and restoring it.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use termina::{PlatformTerminal, Terminal as _};
use tokio::sync::mpsc;

use super::Size;
use super::input::TerminalInput;
use super::reader::{InputReader, InputWaker};
use crate::image::CellSize;

/// Maximum number of queued inputs; the reading thread then waits.
const MAX_WAITING: usize = 1024;

/// Bracketed paste, focus reports; saves the title.
const ENTER: &[u8] = b"\x1b[?2004h\x1b[?1004h\x1b[22;0t";
/// Clears progress, restores the title, disables all modes, shows the cursor.
const LEAVE: &[u8] = b"\x1b]9;4;0\x07\x1b[23;0t\x1b[?1004l\x1b[?2004l\x1b[?25h";
/// Kitty's protocol: unambiguous keys, event types, alternate keys.
const KEYBOARD_ON: &[u8] = b"\x1b[>7u";
const KEYBOARD_OFF: &[u8] = b"\x1b[<u";
/// xterm's modifyOtherKeys: keys such as shift+enter with their modifiers.
const MODIFIED_KEYS_ON: &[u8] = b"\x1b[>4;1m";
const MODIFIED_KEYS_OFF: &[u8] = b"\x1b[>4;0m";
const ALTERNATE_ON: &[u8] = b"\x1b[?1049h\x1b[2J";
/// If the window became wider meanwhile, tmux 3.3 would move wide rows of the alternate screen into the scrollback, so they are erased.
const ALTERNATE_OFF: &[u8] = b"\x1b[2J\x1b[?1049l";
/// Buttons, motion while one is held, and positions beyond column 223.
const MOUSE_ON: &[u8] = b"\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1002l";

/// Returns whether stdin and stdout are both terminals.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The terminal cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the terminal")]
pub struct DeviceError(#[from] io::Error);

/// Modes of a terminal besides raw mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Keys with all their modifiers; only for terminals that report support for it.
    pub keyboard: bool,
    /// Keys such as shift+enter with their modifiers, in either format of xterm's modifyOtherKeys: for terminals that have this instead of
    /// `keyboard`, such as tmux.
    pub modified_keys: bool,
    /// The alternate screen.
    pub alternate: bool,
    /// Mouse reports.
    pub mouse: bool,
}

/// The terminal of this process, in raw mode. Dropping it restores the previous state.
pub struct TerminalDevice {
    terminal: PlatformTerminal,
    inputs: mpsc::Receiver<TerminalInput>,
    gate: Arc<ReaderGate>,
    waker: InputWaker,
    modes: Modes,
    entered: bool,
}

/// Pauses or stops the reading thread.
#[derive(Default)]
struct ReaderGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    paused: bool,
    /// Whether the thread has noticed the pause.
    waits: bool,
    closed: bool,
}

impl ReaderGate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while reading is paused. Returns false if it was stopped.
    fn pass(&self) -> bool {
        let mut state = self.lock();
        while state.paused && !state.closed {
            state.waits = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits = false;
        !state.closed
    }
}

impl TerminalDevice {
    /// Takes over the terminal: enables raw mode, and starts a reading thread.
    ///
    /// # Errors
    /// If stdin or stdout is not a terminal, or its mode cannot be set.
    pub fn open() -> Result<Self, DeviceError> {
        let mut terminal = PlatformTerminal::new()?;
        terminal.set_panic_hook(|out| {
            // There is nowhere to report a failure.
            let all: Vec<u8> = [MOUSE_OFF, ALTERNATE_OFF, KEYBOARD_OFF, MODIFIED_KEYS_OFF, LEAVE, b"\r\n"].concat();
            out.write_all(&all).unwrap_or_default();
        });
        let (reader, waker) = InputReader::new(&terminal)?;
        let (sender, inputs) = mpsc::channel(MAX_WAITING);
        let gate = Arc::new(ReaderGate::default());
        let thread_gate = Arc::clone(&gate);
        thread::Builder::new().name("terminal".to_owned()).spawn(move || read(reader, &thread_gate, &sender))?;
        let mut device = Self { terminal, inputs, gate, waker, modes: Modes::default(), entered: false };
        device.enter()?;
        Ok(device)
    }

    /// Returns the size of the terminal.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn size(&self) -> io::Result<Size> {
        self.terminal.get_dimensions().map(|size| Size::new(size.cols, size.rows))
    }

    /// Returns the size of a cell; a common default if the terminal does not report its size in pixels.
    pub fn cell_size(&self) -> CellSize {
        let Ok(size) = self.terminal.get_dimensions() else { return CellSize::default() };
        let side = |pixels: Option<u16>, cells: u16| {
            let side = pixels.unwrap_or(0).checked_div(cells).unwrap_or(0);
            (4..=200).contains(&side).then_some(side)
        };
        match (side(size.pixel_width, size.cols), side(size.pixel_height, size.rows)) {
            (Some(width), Some(height)) => CellSize { width, height },
            _ => CellSize::default(),
        }
    }

    /// Writes bytes. Blocks while the terminal does not accept them.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.terminal.write_all(bytes)?;
        self.terminal.flush()
    }

    /// Returns the next input. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> TerminalInput {
        self.inputs.recv().await.unwrap_or(TerminalInput::Closed)
    }

    /// Returns the next input, if one is already available.
    pub fn try_next(&mut self) -> Option<TerminalInput> {
        self.inputs.try_recv().ok()
    }

    /// Returns the enabled modes.
    pub fn modes(&self) -> Modes {
        self.modes
    }

    /// Enables and disables modes.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn set_modes(&mut self, modes: Modes) -> io::Result<()> {
        let before = std::mem::replace(&mut self.modes, modes);
        if self.entered {
            self.write(&between(before, modes))?;
        }
        Ok(())
    }

    /// Releases the terminal to another program or the shell, until [`TerminalDevice::enter`].
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn leave(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.entered) {
            return Ok(());
        }
        let had_keyboard = self.modes.keyboard;
        let mut bytes = between(self.modes, Modes::default());
        bytes.extend(LEAVE);
        let written = self.write(&bytes);
        if had_keyboard {
            // The release event of the last key must not reach the shell.
            thread::sleep(Duration::from_millis(20));
        }
        let mut state = self.gate.lock();
        state.paused = true;
        self.waker.wake();
        while !state.waits && !state.closed {
            let waited = self.gate.changed.wait_timeout(state, Duration::from_millis(500));
            let timeout;
            (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            // The thread is waiting for an input to be taken.
            if timeout.timed_out() {
                break;
            }
        }
        drop(state);
        self.terminal.enter_cooked_mode()?;
        written
    }

    /// Takes the terminal back after [`TerminalDevice::leave`].
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn enter(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.entered, true) {
            return Ok(());
        }
        self.terminal.enter_raw_mode()?;
        let mut bytes = ENTER.to_vec();
        bytes.extend(between(Modes::default(), self.modes));
        self.write(&bytes)?;
        self.gate.lock().paused = false;
        self.gate.changed.notify_all();
        Ok(())
    }
}

/// Returns the bytes that switch between modes.
fn between(before: Modes, after: Modes) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut switch = |was: bool, is: bool, on: &[u8], off: &[u8]| {
        if was != is {
            bytes.extend(if is { on } else { off });
        }
    };
    // Each screen of a terminal has its own stack of keyboard modes.
    let keyboard_moves = before.alternate != after.alternate && before.keyboard;
    switch(before.mouse, after.mouse, MOUSE_ON, MOUSE_OFF);
    switch(before.modified_keys, after.modified_keys, MODIFIED_KEYS_ON, MODIFIED_KEYS_OFF);
    switch(before.keyboard, after.keyboard && !keyboard_moves, KEYBOARD_ON, KEYBOARD_OFF);
    switch(before.alternate, after.alternate, ALTERNATE_ON, ALTERNATE_OFF);
    switch(false, keyboard_moves && after.keyboard, KEYBOARD_ON, KEYBOARD_OFF);
    bytes
}

/// Reads until the terminal is gone or the receiver is dropped.
fn read(mut reader: InputReader, gate: &ReaderGate, inputs: &mpsc::Sender<TerminalInput>) {
    while gate.pass() {
        match reader.read() {
            Ok(Some(input)) => {
                if inputs.blocking_send(input).is_err() {
                    return;
                }
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

impl Drop for TerminalDevice {
    fn drop(&mut self) {
        // The terminal may be gone.
        self.leave().unwrap_or_default();
        self.inputs.close();
        self.gate.lock().closed = true;
        self.gate.changed.notify_all();
        self.waker.wake();
    }
}

impl std::fmt::Debug for TerminalDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TerminalDevice")
            .field("modes", &self.modes)
            .field("entered", &self.entered)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_switched_separately_and_keyboard_modes_belong_to_a_screen() {
        let off = Modes::default();
        let keyboard = Modes { keyboard: true, ..off };
        let full = Modes { keyboard: true, alternate: true, mouse: true, ..off };
        assert_eq!(between(off, keyboard), KEYBOARD_ON);
        assert_eq!(between(keyboard, keyboard), b"");
        assert_eq!(between(keyboard, full), [MOUSE_ON, KEYBOARD_OFF, ALTERNATE_ON, KEYBOARD_ON].concat());
        let modified = Modes { modified_keys: true, ..off };
        assert_eq!(between(off, modified), MODIFIED_KEYS_ON);
        assert_eq!(between(modified, Modes { alternate: true, ..modified }), ALTERNATE_ON);
        assert_eq!(between(modified, off), MODIFIED_KEYS_OFF);
        assert_eq!(between(full, off), [MOUSE_OFF, KEYBOARD_OFF, ALTERNATE_OFF].concat());
    }
}

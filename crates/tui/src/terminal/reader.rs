//! Reading from the terminal. On Unix, bytes are read and decoded here; elsewhere, the terminal library does both.

#[cfg(all(unix, not(target_vendor = "apple")))]
mod bytes;

use std::io;

use termina::{EventReader, PlatformTerminal, PlatformWaker, Terminal as _};

#[cfg(all(unix, not(target_vendor = "apple")))]
use self::bytes::{ByteReader, ByteWaker};
use super::input::{TerminalInput, from_event};

/// Returns whether keys in the older format of xterm's modifyOtherKeys are understood. The terminal library drops them, and Apple's `poll`
/// does not support all terminals.
pub(crate) const fn reads_older_format() -> bool {
    cfg!(all(unix, not(target_vendor = "apple")))
}

/// Reads inputs, one at a time.
pub(super) enum InputReader {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    Bytes(ByteReader),
    Events(EventReader),
}

/// Interrupts a read.
pub(super) enum InputWaker {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    Bytes(ByteWaker),
    Events(PlatformWaker),
}

impl InputReader {
    /// Creates a reader for the terminal, and its waker.
    pub(super) fn new(terminal: &PlatformTerminal) -> io::Result<(Self, InputWaker)> {
        #[cfg(all(unix, not(target_vendor = "apple")))]
        if io::IsTerminal::is_terminal(&io::stdin()) {
            let (reader, waker) = ByteReader::new()?;
            return Ok((Self::Bytes(reader), InputWaker::Bytes(waker)));
        }
        let reader = terminal.event_reader();
        let waker = InputWaker::Events(reader.waker());
        Ok((Self::Events(reader), waker))
    }

    /// Waits for an input; `None`: something without a meaning arrived.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] if it was woken; otherwise the terminal is gone.
    pub(super) fn read(&mut self) -> io::Result<Option<TerminalInput>> {
        match self {
            #[cfg(all(unix, not(target_vendor = "apple")))]
            Self::Bytes(reader) => reader.read(),
            Self::Events(reader) => reader.read(|_| true).map(from_event),
        }
    }
}

impl InputWaker {
    /// Interrupts the current read, or the next one.
    pub(super) fn wake(&self) {
        // A reader that is gone need not be woken, and neither need one that has not noticed earlier calls.
        match self {
            #[cfg(all(unix, not(target_vendor = "apple")))]
            Self::Bytes(waker) => waker.wake(),
            Self::Events(waker) => waker.wake().unwrap_or_default(),
        }
    }
}

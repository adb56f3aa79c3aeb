//! Reads the bytes of stdin, changes of the window's size, and calls of a waker.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::tcgetwinsize;
use signal_hook::SigId;
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::{pipe, unregister};

use crate::terminal::Size;
use crate::terminal::decoder::InputDecoder;
use crate::terminal::input::TerminalInput;

/// Maximum number of bytes that are read at once.
const MAX_READ: usize = 4096;

/// Reads inputs from stdin, which must be a terminal.
pub(in crate::terminal) struct ByteReader {
    stdin: io::Stdin,
    decoder: InputDecoder,
    /// Decoded inputs.
    inputs: VecDeque<TerminalInput>,
    resized: UnixStream,
    woken: UnixStream,
    signal: SigId,
}

/// Interrupts a read.
pub(in crate::terminal) struct ByteWaker(UnixStream);

impl ByteReader {
    pub(in crate::terminal) fn new() -> io::Result<(Self, ByteWaker)> {
        let (resized, resizes) = UnixStream::pair()?;
        let (woken, wakes) = UnixStream::pair()?;
        for end in [&resized, &woken, &wakes] {
            end.set_nonblocking(true)?;
        }
        let signal = pipe::register(SIGWINCH, resizes)?;
        let stdin = io::stdin();
        let reader = Self { stdin, decoder: InputDecoder::default(), inputs: VecDeque::new(), resized, woken, signal };
        Ok((reader, ByteWaker(wakes)))
    }

    /// Waits for an input; `None`: something without a meaning arrived.
    pub(in crate::terminal) fn read(&mut self) -> io::Result<Option<TerminalInput>> {
        if let Some(input) = self.inputs.pop_front() {
            return Ok(Some(input));
        }
        let mut ends = [
            PollFd::new(&self.stdin, PollFlags::IN),
            PollFd::new(&self.resized, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        poll(&mut ends, None)?;
        // A terminal that is gone is ready, too, and then cannot be read.
        let [is_readable, is_resized, is_woken] = ends.map(|end| !end.revents().is_empty());
        if is_readable {
            let mut buffer = [0; MAX_READ];
            match rustix::io::read(&self.stdin, &mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.inputs.extend(self.decoder.decode(&buffer[..n], n == buffer.len())),
                // Another process has read it.
                Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if is_resized {
            drain(&mut self.resized);
            let size = tcgetwinsize(&self.stdin)?;
            self.inputs.push_back(TerminalInput::Resized(Size::new(size.ws_col, size.ws_row)));
        }
        if is_woken {
            drain(&mut self.woken);
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(self.inputs.pop_front())
    }
}

/// Reads what has arrived.
fn drain(end: &mut UnixStream) {
    let mut buffer = [0; 64];
    while end.read(&mut buffer).is_ok_and(|n| n > 0) {}
}

impl ByteWaker {
    pub(in crate::terminal) fn wake(&self) {
        (&self.0).write_all(&[0]).unwrap_or_default();
    }
}

impl Drop for ByteReader {
    fn drop(&mut self) {
        unregister(self.signal);
    }
}

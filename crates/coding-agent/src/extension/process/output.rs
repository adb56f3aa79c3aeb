//! What a process prints on its error output, line by line.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::extension::printed::OutputListener;

/// Maximum bytes of a line, and of what is kept until there is a listener; longer lines are split, and older output is dropped.
const MAX_PENDING: usize = 64 << 10;

/// The output of a process that has not been passed on.
#[derive(Default)]
pub(super) struct PendingOutput(Mutex<OutputLines>);

#[derive(Default)]
struct OutputLines {
    /// What no line end has followed yet, or everything if there is no listener.
    pending: Vec<u8>,
    listener: Option<OutputListener>,
}

impl PendingOutput {
    fn locked(&self) -> MutexGuard<'_, OutputLines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what has been printed, and what will be.
    pub(super) fn listen(&self, listener: OutputListener) {
        let mut lines = self.locked();
        lines.listener = Some(listener);
        let early = std::mem::take(&mut lines.pending);
        lines.add(&early);
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        self.locked().add(bytes);
    }

    /// Passes on a last line without its end.
    pub(super) fn finish(&self) {
        let mut lines = self.locked();
        if !lines.pending.is_empty() {
            lines.add(b"\n");
        }
    }
}

impl OutputLines {
    fn add(&mut self, bytes: &[u8]) {
        let Some(listener) = &self.listener else {
            self.pending.extend_from_slice(bytes);
            self.pending.drain(..self.pending.len().saturating_sub(MAX_PENDING));
            return;
        };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.pending.extend_from_slice(part);
            let is_whole = part.ends_with(b"\n");
            if is_whole || self.pending.len() >= MAX_PENDING {
                let line = self.pending.strip_suffix(b"\n").unwrap_or(&self.pending);
                let line = String::from_utf8_lossy(line);
                listener.line(if is_whole { line.trim_end_matches('\r') } else { &line });
                self.pending.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn output_is_passed_on_by_lines_once_there_is_a_listener() {
        let (output, seen) = (PendingOutput::default(), Arc::new(Mutex::new(Vec::new())));
        output.push(b"early\nha");
        let to = Arc::clone(&seen);
        output.listen(OutputListener::new(move |line| to.lock().unwrap().push(line.to_owned())));
        assert_eq!(*seen.lock().unwrap(), ["early"]);
        output.push(b"lf\r\n\nend");
        output.finish();
        output.finish();
        assert_eq!(*seen.lock().unwrap(), ["early", "half", "", "end"]);
        output.push(&vec![b'x'; MAX_PENDING]);
        assert_eq!(seen.lock().unwrap()[4].len(), MAX_PENDING);
    }

    #[test]
    fn output_without_a_listener_is_bounded() {
        let output = PendingOutput::default();
        for _ in 0..3 {
            output.push(&vec![b'x'; MAX_PENDING]);
        }
        assert_eq!(output.locked().pending.len(), MAX_PENDING);
    }
}

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
        lines.pass_on();
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        let mut lines = self.locked();
        lines.pending.extend_from_slice(bytes);
        lines.pass_on();
    }

    /// Passes on a last line without its end.
    pub(super) fn finish(&self) {
        let mut lines = self.locked();
        if !lines.pending.is_empty() {
            lines.pending.push(b'\n');
            lines.pass_on();
        }
    }
}

impl OutputLines {
    fn pass_on(&mut self) {
        let Some(listener) = &self.listener else {
            self.pending.drain(..self.pending.len().saturating_sub(MAX_PENDING));
            return;
        };
        let mut rest = &self.pending[..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            listener.line(String::from_utf8_lossy(&rest[..end]).trim_end_matches('\r'));
            rest = &rest[end + 1..];
        }
        if rest.len() >= MAX_PENDING {
            listener.line(&String::from_utf8_lossy(rest));
            rest = &[];
        }
        self.pending = rest.to_vec();
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

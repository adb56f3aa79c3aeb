//! What a command has printed: the end of it in memory, all of it in a file once it is long.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pinch_agent_core::tool::{ToolError, ToolOutput};
use pinch_stdx::host::Host;

use super::super::truncate::{MAX_BYTES, MAX_LINES};
use super::notice;

/// Bytes held in memory; twice of what a result may hold, so that cutting at a line end always finds one.
const HELD: usize = 4 * MAX_BYTES;

/// Collects a command's output in bounded memory.
pub(super) struct Output {
    held: Vec<u8>,
    total_bytes: usize,
    total_lines: usize,
    spill: Option<File>,
    path: PathBuf,
}

impl Output {
    /// Nothing printed yet. The file comes into being when the output gets long.
    pub(super) fn new(temp: &Path, host: &Host) -> Self {
        let name = format!("pinch-bash-{}{}.log", host.ids().hex8(), host.ids().hex8());
        Self { held: Vec::new(), total_bytes: 0, total_lines: 1, spill: None, path: temp.join(name) }
    }

    /// Takes a piece in.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), ToolError> {
        self.total_bytes += piece.len();
        self.total_lines += memchr::memchr_iter(b'\n', piece).count();
        if self.spill.is_none() && self.is_long() {
            // Everything so far is still in memory: the limits are far below what is held.
            let mut file = self.create().map_err(|error| self.cannot_keep(&error))?;
            file.write_all(&self.held).map_err(|error| self.cannot_keep(&error))?;
            self.spill = Some(file);
        }
        if let Some(file) = &mut self.spill
            && let Err(error) = file.write_all(piece)
        {
            return Err(self.cannot_keep(&error));
        }
        self.held.extend_from_slice(piece);
        if self.held.len() > 2 * HELD {
            self.held.drain(..self.held.len() - HELD);
        }
        Ok(())
    }

    fn is_long(&self) -> bool {
        self.total_bytes > MAX_BYTES || self.total_lines > MAX_LINES
    }

    /// Creates the file for the user alone.
    fn create(&self) -> std::io::Result<File> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)
    }

    fn cannot_keep(&self, error: &std::io::Error) -> ToolError {
        ToolError::new(format!("Cannot keep the command's output in {}: {error}", self.path.display()))
    }

    fn text(&self) -> String {
        // Memory may begin in the middle of a character; a cut text never shows that place.
        let start = self.held.iter().take(4).position(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
        let start = if self.held.len() < self.total_bytes { start } else { 0 };
        String::from_utf8_lossy(&self.held[start..]).into_owned()
    }

    /// The result so far.
    pub(super) fn so_far(&self) -> ToolOutput {
        let text = self.text();
        match notice(&text, self.total_lines, self.total_bytes, &self.path.to_string_lossy()) {
            None => ToolOutput::text(text),
            Some((_, details, content)) => ToolOutput { details: Some(details), ..ToolOutput::text(content) },
        }
    }

    /// The text of the result with what was cut, and its details.
    pub(super) fn finish(&mut self) -> (String, Option<serde_json::Value>) {
        let text = self.text();
        match notice(&text, self.total_lines, self.total_bytes, &self.path.to_string_lossy()) {
            None => (text, None),
            Some((notice, details, content)) => (format!("{content}\n\n{notice}"), Some(details)),
        }
    }
}

//! Excerpts of a log.

/// An excerpt of a log, and the length of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSlice {
    /// The lines.
    pub slice: String,
    /// Lines of the whole log.
    pub total_lines: usize,
    /// Characters of the whole log.
    pub total_chars: usize,
}

/// Returns up to `limit` lines starting at `offset`; with only a limit, the last lines.
pub fn slice_log(text: &str, offset: Option<usize>, limit: Option<usize>) -> LogSlice {
    let normal = text.replace("\r\n", "\n");
    let mut lines: Vec<&str> = if normal.is_empty() { Vec::new() } else { normal.split('\n').collect() };
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let from = match (offset, limit) {
        (Some(offset), _) => offset.min(lines.len()),
        (None, Some(limit)) => lines.len().saturating_sub(limit),
        (None, None) => 0,
    };
    let to = limit.map_or(lines.len(), |limit| from.saturating_add(limit).min(lines.len()));
    LogSlice { slice: lines[from..to].join("\n"), total_lines: lines.len(), total_chars: text.chars().count() }
}

//! Comparison of texts whose wording may differ.

use std::collections::BTreeSet;

/// Reduces the text for rejected tool arguments to what must match: the first line, the set of paths, and the received arguments. Other
/// texts stay unchanged.
pub(crate) fn free_validation_wording(text: &str) -> String {
    const FIRST: &str = "Validation failed for tool";
    let Some(at) = text.find(FIRST) else { return text.to_owned() };
    let (before, refused) = text.split_at(at);
    let (complaints, received) = refused.split_once("\n\nReceived arguments:").unwrap_or((refused, ""));
    let mut lines = complaints.lines();
    let first = lines.next().unwrap_or_default();
    let paths: BTreeSet<&str> = lines
        .filter_map(|line| line.strip_prefix("  - ")?.split_once(": ").map(|(path, _)| path))
        .filter(|path| *path != "root")
        .collect();
    let paths: Vec<&str> = paths.into_iter().collect();
    format!("{before}{first}\n[{}]\nReceived arguments:{received}", paths.join("]["))
}

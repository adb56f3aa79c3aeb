//! How files must begin, and what they must not contain.

use super::{SourceFile, TidyReport};

/// Paths that are specific to one machine. Concatenated here so that this file does not contain them.
const FOREIGN: [&str; 3] = [concat!("/work", "/wt"), concat!("/work", "/shared"), concat!("/tmp", "/bash_jobs")];

/// Checks every file.
pub(super) fn check(sources: &[SourceFile]) -> TidyReport {
    let mut report = TidyReport { n_checked: sources.len(), ..TidyReport::default() };
    for source in sources {
        let path = &source.path;
        if source.is_rust() {
            let is_test_module = path.ends_with("/tests.rs");
            let has_docs = ["//!", "#![doc = include_str!("].iter().any(|start| source.text.starts_with(start));
            if !is_test_module && !has_docs {
                report.errors.push(format!("{path}: does not begin with what it is for (//!)"));
            }
            if path.ends_with("/mod.rs") {
                report.errors.push(format!("{path}: call it by its name, beside its folder"));
            }
        }
        for (at, line) in source.text.lines().enumerate() {
            if line.ends_with([' ', '\t']) {
                report.errors.push(format!("{path}:{}: space at the end", at + 1));
            }
            if let Some(word) = FOREIGN.iter().find(|word| line.contains(**word)) {
                report.errors.push(format!("{path}:{}: {word} is nobody else's folder", at + 1));
            }
        }
        if !source.text.is_empty() && !source.text.ends_with('\n') {
            report.errors.push(format!("{path}: no line feed at the end"));
        }
    }
    report.checked = format!("{} files", sources.len());
    report
}

//! Findings and their output.

use std::fmt::Write as _;

use pinch_embed::stdx::text::strip_ansi;
use serde_json::{Value, json};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FindingStatus {
    /// Everything is fine.
    Ok,
    /// Neutral information.
    Note,
    /// pinch works, but possibly not as the user expects.
    Warn,
    /// Something does not work.
    Fail,
}

impl FindingStatus {
    /// Returns the word used in both forms of output.
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "-",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One finding.
#[derive(Clone, Debug)]
pub(super) struct DoctorFinding {
    mark: FindingStatus,
    name: String,
    text: String,
}

/// Related findings.
#[derive(Clone, Debug)]
pub(super) struct DoctorSection {
    title: &'static str,
    findings: Vec<DoctorFinding>,
    /// Number of hidden findings, so that a section stays short.
    n_more: usize,
}

/// Maximum number of shown findings per section.
const MAX_SHOWN: usize = 60;
/// Width of the name column.
const NAMES: usize = 22;

impl DoctorSection {
    pub(super) fn new(title: &'static str) -> Self {
        Self { title, findings: Vec::new(), n_more: 0 }
    }

    /// Adds a finding. Only the first of very many are shown; failures are always counted.
    pub(super) fn add(&mut self, mark: FindingStatus, name: impl Into<String>, text: impl Into<String>) {
        if self.findings.len() >= MAX_SHOWN && mark != FindingStatus::Fail || self.findings.len() >= 2 * MAX_SHOWN {
            self.n_more += 1;
            return;
        }
        self.findings.push(DoctorFinding { mark, name: name.into(), text: text.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }
}

/// All findings.
pub(super) struct DoctorReport {
    pub(super) sections: Vec<DoctorSection>,
}

impl DoctorReport {
    /// Counts the findings with a status.
    pub(super) fn count(&self, mark: FindingStatus) -> usize {
        self.sections.iter().flat_map(|section| &section.findings).filter(|finding| finding.mark == mark).count()
    }

    /// Formats the report for people.
    pub(super) fn text(&self) -> String {
        let mut out = format!("pinch {}\n", env!("CARGO_PKG_VERSION"));
        for section in &self.sections {
            // Writing to a string cannot fail.
            let _written = write!(out, "\n{}\n", section.title);
            for DoctorFinding { mark, name, text } in &section.findings {
                let (mark, name, text) = (mark.as_str(), plain(name), plain(text));
                let _written = writeln!(out, "  {mark:<4}  {name:<NAMES$}  {text}");
            }
            if section.n_more > 0 {
                let _written = writeln!(out, "  -     and {} more", section.n_more);
            }
        }
        let _written = write!(out, "\n{}\n", self.summary());
        out
    }

    fn summary(&self) -> String {
        let warnings = match self.count(FindingStatus::Warn) {
            0 => "no warnings".to_owned(),
            1 => "1 warning".to_owned(),
            n => format!("{n} warnings"),
        };
        match self.count(FindingStatus::Fail) {
            0 => format!("No errors, {warnings}."),
            1 => format!("1 error, {warnings}."),
            n => format!("{n} errors, {warnings}."),
        }
    }

    /// Formats the report for programs.
    pub(super) fn to_value(&self) -> Value {
        let (n_broken, n_warnings) = (self.count(FindingStatus::Fail), self.count(FindingStatus::Warn));
        let finding = |finding: &DoctorFinding| json!({"mark": finding.mark.as_str(), "name": finding.name, "text": finding.text});
        let section = |section: &DoctorSection| {
            let findings: Vec<Value> = section.findings.iter().map(finding).collect();
            json!({"title": section.title, "findings": findings, "notShown": section.n_more})
        };
        let status = match (n_broken, n_warnings) {
            (0, 0) => FindingStatus::Ok,
            (0, _) => FindingStatus::Warn,
            _ => FindingStatus::Fail,
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"), "status": status.as_str(), "broken": n_broken, "warnings": n_warnings,
            "sections": self.sections.iter().map(section).collect::<Vec<_>>(),
        })
    }
}

/// Returns a text on one line: file names and program output may contain anything.
fn plain(text: &str) -> String {
    strip_ansi(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_limited_and_all_failures_are_counted() {
        let mut section = DoctorSection::new("Keys");
        (0..MAX_SHOWN + 5).for_each(|n| section.add(FindingStatus::Ok, format!("p{n}"), "x"));
        section.add(FindingStatus::Fail, "q", "broken\n\u{1b}[31mred");
        let report = DoctorReport { sections: vec![section] };
        let text = report.text();
        assert!(text.contains("and 5 more\n") && text.contains("broken red\n"), "{text}");
        assert!(text.ends_with("\n1 error, no warnings.\n"), "{text}");
        assert_eq!(report.to_value()["status"], "fail");
    }
}

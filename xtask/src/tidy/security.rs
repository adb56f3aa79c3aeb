//! `docs/security.md` names a test for each defence; checks that these tests exist.

use super::{SourceFile, TidyReport};

const PAGE: &str = "docs/security.md";

/// Checks the last column of the tables: each name in it must be a test or a file of tests.
pub(super) fn check(sources: &[SourceFile]) -> TidyReport {
    let mut report = TidyReport::default();
    let page = sources.iter().find(|source| source.path == PAGE).map_or("", |source| &source.text);
    for (at, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        let [_, _, tests] = cells.as_slice() else { continue };
        for name in tests.split('`').skip(1).step_by(2).filter(|name| is_name(name)) {
            report.n_checked += 1;
            if !sources.iter().any(|source| has_test(source, name)) {
                report.errors.push(format!("{PAGE}:{}: there is no test `{name}`", at + 1));
            }
        }
    }
    report.checked = format!("{} tests named in {PAGE}", report.n_checked);
    report
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn has_test(source: &SourceFile, name: &str) -> bool {
    let is_function = || {
        source
            .text
            .match_indices(&format!("fn {name}"))
            .any(|(at, found)| source.text[at + found.len()..].starts_with('('))
    };
    source.is_rust() && (source.path.ends_with(&format!("/{name}.rs")) || is_function())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_gone_is_an_error() {
        let source = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
        let page =
            "| threat | defence | test |\n|---|---|---|\n| a | b | `is_there`, `gone`, `suite` in `crates/x` |\n";
        let sources = [
            source(PAGE, page),
            source("crates/x/src/lib.rs", "fn is_there() {}\nfn gone_too() {}\n"),
            source("crates/x/suite.rs", ""),
        ];
        let report = check(&sources);
        assert_eq!((report.n_checked, report.errors), (3, vec![format!("{PAGE}:3: there is no test `gone`")]));
    }
}

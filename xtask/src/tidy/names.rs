//! Type names are unique in the workspace, so that searching for a name finds only one type.

use std::collections::BTreeMap;

use super::{SourceFile, TidyReport};

/// Names that may be defined more than once, with the reason.
const REPEATED: [(&str, &str); 2] = [
    ("Args", "what clap parses for a program or a command, and what an example's tool takes"),
    ("Readme", "carries the README of a crate for its doc tests"),
];

const KEYWORDS: [&str; 5] = ["struct ", "enum ", "trait ", "union ", "type "];

/// Checks the type names of all Rust files.
pub(super) fn check(sources: &[SourceFile]) -> TidyReport {
    let mut report = TidyReport::default();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (name, lines) in type_names(&source.text) {
            report.n_checked += 1;
            places.entry(name).or_default().extend(lines.iter().map(|line| format!("{}:{line}", source.path)));
        }
    }
    for (name, found) in &places {
        if found.len() > 1 && REPEATED.iter().all(|(repeated, _)| repeated != name) {
            report.errors.push(format!("`{name}` is defined {} times: {}", found.len(), found.join(", ")));
        }
    }
    report.checked = format!("{} type names", places.len());
    report
}

/// The types that a file defines, with their line numbers. Variants of a type for different platforms count once.
fn type_names(text: &str) -> BTreeMap<String, Vec<usize>> {
    let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut by_system = Vec::new();
    let mut is_cfg = false;
    for (at, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if code.starts_with("//") || code.starts_with("#[") {
            is_cfg |= code.starts_with("#[cfg(not(");
            continue;
        }
        let is_top_level = code.len() == line.len();
        if let Some(name) = defined(code, is_top_level) {
            if is_cfg {
                by_system.push(name.to_owned());
            }
            names.entry(name.to_owned()).or_default().push(at + 1);
        }
        is_cfg = false;
    }
    for name in by_system {
        if let Some(lines) = names.get_mut(&name) {
            lines.truncate(1);
        }
    }
    names
}

/// The type that a line defines. Indented aliases may be associated types, whose name is set by their trait.
fn defined(code: &str, is_top_level: bool) -> Option<&str> {
    let rest = code.strip_prefix("pub").map_or(code, |rest| match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(rest, |(_, rest)| rest).trim_start(),
        None => rest.trim_start(),
    });
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let keyword = KEYWORDS.iter().find(|keyword| rest.starts_with(**keyword))?;
    if *keyword == "type " && !is_top_level {
        return None;
    }
    let rest = &rest[keyword.len()..];
    let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_name_that_exists_twice_is_an_error_with_both_places() {
        let source = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            source(
                "a.rs",
                "/// `struct Other`\npub(crate) struct Found<'a> {\n}\nimpl X for Y {\n    type Item = u8;\n}\n",
            ),
            source("b.rs", "fn f() {\n    enum Found {}\n}\nstruct Args;\nimpl X for Z {\n    type Item = u8;\n}\n"),
            source("c.rs", "#[cfg(unix)]\nstruct Handle(u8);\n\n#[cfg(not(unix))]\nstruct Handle;\nstruct Args;\n"),
            source("notes.md", "struct Found\n"),
        ];
        assert_eq!(check(&sources).errors, ["`Found` is defined 2 times: a.rs:2, b.rs:2"]);
    }
}

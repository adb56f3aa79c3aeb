//! Finds public items of `embed` and `replies` that only tests use, and that therefore only seem to be in use.
//!
//! A name counts as used when it occurs in code that runs: in a crate's sources outside tests, in an example, or in the fork crate. This
//! searches for words, not types: an unused item that shares its name with another one is not noticed.

use std::collections::BTreeMap;

use super::{SourceFile, TidyReport};

/// File that lists items without a caller yet: lines of `"name" = "who will call it"`.
const WAITING: &str = "tests/unused.toml";

/// The crates whose items are checked.
const CRATES: [&str; 2] = ["crates/embed/src/", "crates/replies/src/"];

/// What `embed` offers to the tests of others, behind its feature `test-util`.
const FOR_TESTS: [&str; 2] = ["crates/embed/src/runtime/scripted.rs", "crates/embed/src/runtime_suite.rs"];

const KINDS: [&str; 6] = ["fn", "async fn", "struct", "enum", "trait", "const"];

/// Checks the public items of the crates.
pub(super) fn check(sources: &[SourceFile]) -> TidyReport {
    let mut report = TidyReport::default();
    let waiting = waiting(sources);
    let mut n_uses: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust() && is_used_code(source)) {
        for word in words(source.without_tests()) {
            *n_uses.entry(word).or_default() += 1;
        }
    }
    let mut unused = Vec::new();
    let is_checked = |source: &&SourceFile| {
        CRATES.iter().any(|name| source.path.starts_with(name))
            && !source.is_test()
            && !FOR_TESTS.contains(&source.path.as_str())
    };
    for source in sources.iter().filter(is_checked) {
        for name in source.without_tests().lines().filter_map(public_item) {
            report.n_checked += 1;
            if n_uses.get(name).copied().unwrap_or(0) <= 1 {
                unused.push((name, source.path.as_str()));
            }
        }
    }
    for (name, path) in &unused {
        if !waiting.contains_key(name) {
            report.errors.push(format!("{path}: `{name}` is public, and only tests use it"));
        }
    }
    for name in waiting.keys().filter(|name| unused.iter().all(|(other, _)| other != *name)) {
        report.errors.push(format!("{WAITING}: `{name}` is used or gone; remove its line"));
    }
    report.checked = format!(
        "{} public items of embed and replies, {} of them waiting for a caller",
        report.n_checked,
        waiting.len()
    );
    report
}

/// Returns whether the code of a file runs in a program.
fn is_used_code(source: &SourceFile) -> bool {
    let path = &source.path;
    path.starts_with("tests/fork/src/")
        || (path.starts_with("crates/") && !source.is_test())
        || path.starts_with("dev/src/")
}

/// Name of the item that a line makes public.
fn public_item(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = KINDS.iter().find_map(|kind| rest.strip_prefix(kind)?.strip_prefix(' '))?;
    words(rest).next()
}

/// The words of a text, except those in comments.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    code.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_'))).filter(|word| !word.is_empty())
}

fn waiting(sources: &[SourceFile]) -> BTreeMap<&str, &str> {
    let file = sources.iter().find(|source| source.path == WAITING);
    let lines = file.map_or("", |file| &file.text).lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, who)| (name.trim().trim_matches('"'), who.trim().trim_matches('"')))
        .filter(|(name, who)| !name.is_empty() && !who.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn an_item_that_only_tests_call_is_an_error_unless_it_waits() {
        let library = "/// `idle` is here.\npub fn idle() {}\npub fn busy() {}\npub struct Kept;\n\n#[cfg(test)]\nmod tests {\n    idle();\n}\n";
        let mut sources = vec![
            source("crates/embed/src/lib.rs", library),
            source("crates/embed/tests/it/main.rs", "idle(); Kept;"),
            source("crates/cli/src/main.rs", "busy();"),
            source(WAITING, "\"Kept\" = \"the next floor\"\n"),
        ];
        let report = check(&sources);
        assert_eq!(report.errors, ["crates/embed/src/lib.rs: `idle` is public, and only tests use it"]);
        sources[3].text.push_str("\"busy\" = \"nobody\"\n");
        assert_eq!(check(&sources).errors.len(), 2, "a line that is not needed is one, too");
    }
}

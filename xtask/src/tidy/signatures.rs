//! Public signatures must not name types of replaceable libraries: a new version of such a library would be a breaking change of pinch.

use super::{SourceFile, TidyReport};

/// The libraries, by crate name in code.
const LIBRARIES: [&str; 5] = ["reqwest", "rustls", "tokio_tungstenite", "tungstenite", "jsonschema"];

/// Checks the libraries of the workspace.
pub(super) fn check(sources: &[SourceFile]) -> TidyReport {
    let mut report = TidyReport::default();
    for source in sources.iter().filter(|source| is_library(source)) {
        let text = source.without_tests();
        let foreign = foreign_names(text);
        let private = private_types(text);
        let mut public = None;
        for (at, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("").trim_end();
            let end = match public.take().or_else(|| public_item(code, &private)) {
                Some(end) => end,
                None => continue,
            };
            report.n_checked += 1;
            if let Some(name) = words(code).find(|word| foreign.contains(word)) {
                report.errors.push(format!("{}:{}: `{name}` of another library is public", source.path, at + 1));
            }
            if !end.is_reached(code) {
                public = Some(end);
            }
        }
    }
    report.checked = format!("{} lines of public signatures", report.n_checked);
    report
}

fn is_library(source: &SourceFile) -> bool {
    source.is_rust() && !source.is_test() && source.path.starts_with("crates/") && source.path.contains("/src/")
}

/// Where the public part of an item ends.
#[derive(Clone, Copy)]
enum SignatureEnd {
    /// Before the body of a function or an `impl`.
    Signature,
    /// At the end of the line: a field, an alias or the first line of a struct.
    Line,
    /// At the closing brace of the item, which has the same indentation as the item.
    Item { indent: usize },
}

impl SignatureEnd {
    fn is_reached(self, code: &str) -> bool {
        match self {
            Self::Signature => code.ends_with(['{', '}', ';']),
            Self::Line => code.ends_with(['{', '}', ';', ',']),
            Self::Item { indent } => {
                let item = code.trim_start();
                code.ends_with("{}") || item.starts_with('}') && code.len() - item.len() == indent
            }
        }
    }
}

/// What a line makes public, if it begins an item. Parameters of traits that public types implement are public too.
fn public_item(code: &str, private: &[&str]) -> Option<SignatureEnd> {
    let item = code.trim_start();
    let indent = code.len() - item.len();
    if item.starts_with("impl")
        && let Some((_, implementor)) = item.split_once(" for ")
    {
        let is_private = words(implementor).next().is_some_and(|name| private.contains(&name));
        return (!is_private).then_some(SignatureEnd::Signature);
    }
    let item = item.strip_prefix("pub ")?;
    Some(if item.starts_with("enum ") || item.starts_with("trait ") {
        SignatureEnd::Item { indent }
    } else if words(item).any(|word| word == "fn") {
        SignatureEnd::Signature
    } else {
        SignatureEnd::Line
    })
}

/// The libraries, and the names that a file imports from them.
fn foreign_names(text: &str) -> Vec<&str> {
    let imports = text.split("use ").skip(1).filter_map(|rest| rest.split(';').next());
    let imports = imports.filter(|import| LIBRARIES.iter().any(|library| import.starts_with(library)));
    let types = imports.flat_map(words).filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
    types.chain(LIBRARIES).collect()
}

/// The types of a file that only this file can name.
fn private_types(text: &str) -> Vec<&str> {
    let declared = |line| ["struct ", "enum "].iter().find_map(|keyword| str::strip_prefix(line, keyword));
    text.lines().filter_map(declared).filter_map(|rest| words(rest).next()).collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_another_library_in_a_public_signature_is_an_error() {
        let text = "use jsonschema::{Draft, Validator};\n\
            pub fn hidden(n: u8) -> u8 {\n    let draft: Draft = n;\n}\n\
            pub(crate) fn inner() -> Validator {}\n\
            pub fn shown(\n    n: u8,\n    draft: Draft,\n) {\n}\n\
            pub enum Problematic {\n    Sent {\n        source: reqwest::Error,\n    },\n}\n\
            struct Private {\n    client: reqwest::Client,\n}\n\
            impl From<reqwest::Error> for Problematic {\n}\n\
            impl From<reqwest::Error> for Private {\n}\n";
        let source = SourceFile { path: "crates/x/src/lib.rs".to_owned(), text: text.to_owned() };
        let errors = check(&[source]).errors;
        let lines: Vec<&str> = errors.iter().filter_map(|error| error.split(':').nth(1)).collect();
        assert_eq!(lines, ["8", "13", "19"], "{errors:?}");
    }
}

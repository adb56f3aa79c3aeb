//! The paths that a file uses, as names relative to the root of its crate.

use std::collections::BTreeMap;

/// All paths that begin with `crate`, `super` or `self`, in `use` lines and elsewhere; trees of braces are expanded.
pub(super) fn of(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let mut paths = Vec::new();
    for at in 0..tokens.len() {
        let begins = matches!(tokens[at], "crate" | "super" | "self") && tokens.get(at + 1) == Some(&"::");
        if begins && (at == 0 || tokens[at - 1] != "::") {
            let mut found = Vec::new();
            tree(&tokens, at, &mut Vec::new(), &mut found);
            paths.extend(found.iter().filter_map(|path| absolute(path, module)));
        }
    }
    paths
}

/// What a module's `pub use` lines re-export from its children, or from anywhere in the crate.
pub(super) fn passed_on(
    text: &str,
    module: &[String],
    children: &BTreeMap<Vec<String>, Vec<String>>,
) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let own = children.get(module).map_or(&[][..], Vec::as_slice);
    let mut paths = Vec::new();
    for at in 1..tokens.len() {
        let is_public = tokens[at - 1] == "pub" || tokens[at - 1] == ")";
        if tokens[at] != "use" || !is_public {
            continue;
        }
        let mut found = Vec::new();
        tree(&tokens, at + 1, &mut Vec::new(), &mut found);
        for path in found {
            match path.first().copied() {
                Some("crate" | "super" | "self") => paths.extend(absolute(&path, module)),
                Some(first) if own.iter().any(|child| child == first) => {
                    paths.push(module.iter().cloned().chain(path.iter().map(|&name| name.to_owned())).collect());
                }
                _ => {}
            }
        }
    }
    paths
}

/// Names, `::`, and single characters; comments and string literals are skipped.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end = match bytes[at] {
            b'/' if rest.starts_with("//") => at + rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => at + rest.find("*/").map_or(rest.len(), |end| end + 2),
            b'r' if rest.starts_with("r#\"") => at + rest.find("\"#").map_or(rest.len(), |end| end + 2),
            b'"' => string_end(bytes, at),
            // A character literal, not a lifetime.
            b'\'' if rest.starts_with("'\\''") => at + 4,
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at + 3,
            b':' if rest.starts_with("::") => {
                tokens.push("::");
                at + 2
            }
            c if c == b'_' || c.is_ascii_alphanumeric() => {
                let length = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                tokens.push(&rest[..length]);
                at + length
            }
            c if c.is_ascii_whitespace() => at + 1,
            c if c.is_ascii() => {
                tokens.push(&rest[..1]);
                at + 1
            }
            _ => at + rest.chars().next().map_or(1, char::len_utf8),
        };
        at = end;
    }
    tokens
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Reads a path, or a tree of paths, starting at `at`; returns where it ends.
fn tree<'t>(tokens: &[&'t str], mut at: usize, prefix: &mut Vec<&'t str>, found: &mut Vec<Vec<&'t str>>) -> usize {
    let n_before = prefix.len();
    loop {
        match tokens.get(at).copied() {
            Some("{") => {
                at += 1;
                while let Some(&token) = tokens.get(at) {
                    match token {
                        "}" => {
                            at += 1;
                            break;
                        }
                        "," => at += 1,
                        _ => {
                            let next = tree(tokens, at, prefix, found);
                            at = if next > at { next } else { at + 1 };
                        }
                    }
                }
                break;
            }
            Some(name) if name.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric()) => {
                prefix.push(name);
                at += 1;
                if tokens.get(at) == Some(&"::") && tokens.get(at + 1).is_some_and(|next| *next != "<" && *next != "*")
                {
                    at += 1;
                    continue;
                }
                found.push(prefix.clone());
                if tokens.get(at) == Some(&"as") {
                    at += 2;
                }
                break;
            }
            _ => break,
        }
    }
    prefix.truncate(n_before);
    at
}

/// A path relative to the root of the crate; `None` if it leaves the crate.
fn absolute(path: &[&str], module: &[String]) -> Option<Vec<String>> {
    let mut place: Vec<String> = module.to_vec();
    let mut names = path.iter().peekable();
    match *names.next()? {
        "crate" => place.clear(),
        "super" => drop(place.pop()?),
        _ => {}
    }
    while names.peek() == Some(&&"super") {
        place.pop()?;
        names.next();
    }
    place.extend(names.filter(|name| **name != "self").map(|&name| name.to_owned()));
    Some(place)
}

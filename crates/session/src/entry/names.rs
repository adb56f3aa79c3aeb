//! Names of session files and directories.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// Maximum bytes of a name on common file systems.
const MAX_NAME: usize = 255;
/// Bytes of the path that a shortened name keeps.
const KEPT: usize = 200;

/// Returns the directory name below `sessions` for a working directory: `/home/me/p` becomes `--home-me-p--`.
///
/// A name too long for file systems is cut and ends with a hash of the path. Different directories can share a name (`/a-b` and `/a/b`), so
/// listings compare the headers.
pub fn dir_name(cwd: &str) -> String {
    let cwd = resolved(cwd);
    let rest = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    let inner: String = rest.chars().map(|c| if matches!(c, '/' | '\\' | ':') { '-' } else { c }).collect();
    let name = format!("--{inner}--");
    if name.len() <= MAX_NAME {
        return name;
    }
    // Sessions are found by this name, so neither the length nor the hash may ever change.
    let hash: String = Sha256::digest(cwd.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("--{}-{hash}--", &inner[..inner.floor_char_boundary(KEPT)])
}

/// Normalizes a POSIX path: removes doubled and trailing slashes, `.` and `..`. Other paths are returned unchanged.
fn resolved(cwd: &str) -> Cow<'_, str> {
    let Some(rest) = cwd.strip_prefix('/') else { return Cow::Borrowed(cwd) };
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Cow::Owned(format!("/{}", parts.join("/")))
}

/// Returns the file name of a session: its time with `:` and `.` replaced by `-`, then its id.
pub fn file_name(timestamp: &str, session_id: &str) -> String {
    format!("{}_{session_id}.jsonl", in_a_name(timestamp))
}

/// Returns the default file name for a branch exported at this time.
pub fn export_file_name(timestamp: &str) -> String {
    format!("session-{}.jsonl", in_a_name(timestamp))
}

fn in_a_name(timestamp: &str) -> String {
    timestamp.chars().map(|c| if matches!(c, ':' | '.') { '-' } else { c }).collect()
}

/// Returns whether a text is a valid session id: letters and digits, plus dots, underscores and hyphens except at either end.
pub fn is_session_id(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| edge(c) || matches!(c, '.' | '_' | '-');
    text.starts_with(edge) && text.ends_with(edge) && text.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_becomes_a_directory_name() {
        assert_eq!(dir_name("/home/me/p"), "--home-me-p--");
        assert_eq!(dir_name("//a/./b/../c/"), "--a-c--");
        assert_eq!(dir_name("/"), "----");
        assert_eq!(dir_name("C:\\Users\\me"), "--C--Users-me--");
    }

    #[test]
    fn names_of_deep_directories_are_shortened_and_differ() {
        let longest = format!("/{}", "d".repeat(251));
        assert_eq!(dir_name(&longest), format!("--{}--", "d".repeat(251)));
        let deep = format!("/home/{}", "ä/".repeat(200));
        let name = dir_name(&deep);
        assert_eq!(name, format!("--home-{}-fc1e5102826d839d--", "ä-".repeat(65)));
        assert_eq!(dir_name(&format!("{deep}./x/..")), name, "another spelling");
        assert_ne!(dir_name(&format!("{deep}x")), name);
    }

    #[test]
    fn file_names_start_with_the_time() {
        assert_eq!(file_name("2025-06-01T10:00:00.000Z", "x"), "2025-06-01T10-00-00-000Z_x.jsonl");
        assert_eq!(export_file_name("2025-06-01T10:00:00.000Z"), "session-2025-06-01T10-00-00-000Z.jsonl");
    }

    #[test]
    fn session_ids_are_letters_digits_and_inner_punctuation() {
        assert!(is_session_id("a") && is_session_id("my.run_2-x"));
        assert!(!is_session_id("") && !is_session_id("-a") && !is_session_id("a/b") && !is_session_id("a."));
    }
}

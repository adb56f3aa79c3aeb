//! Names of session files and of the directories they lie in.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// Bytes of a name that every usual file system takes.
const MAX_NAME: usize = 255;
/// Bytes that a shortened name keeps of the directory.
const KEPT: usize = 200;

/// The directory of a working directory below `sessions`: `/home/me/p` gives `--home-me-p--`.
///
/// A name that no file system would take is cut and ends with a hash of the directory in place of the rest. Different directories can share a
/// directory (`/a-b` and `/a/b`): listings compare the headers.
pub fn folder_name(cwd: &str) -> String {
    let cwd = resolved(cwd);
    let rest = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    let inner: String = rest.chars().map(|c| if matches!(c, '/' | '\\' | ':') { '-' } else { c }).collect();
    let name = format!("--{inner}--");
    if name.len() <= MAX_NAME {
        return name;
    }
    // Sessions are found by this name forever: neither the length nor the hash may change.
    let hash: String = Sha256::digest(cwd.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("--{}-{hash}--", &inner[..inner.floor_char_boundary(KEPT)])
}

/// A POSIX path without doubled and trailing slashes, `.` and `..`; other paths as they are.
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

/// The file of a session: its time with `:` and `.` as `-`, then its id.
pub fn file_name(timestamp: &str, session_id: &str) -> String {
    format!("{}_{session_id}.jsonl", in_a_name(timestamp))
}

/// The usual name of a branch that is exported at this time.
pub fn export_file_name(timestamp: &str) -> String {
    format!("session-{}.jsonl", in_a_name(timestamp))
}

fn in_a_name(timestamp: &str) -> String {
    timestamp.chars().map(|c| if matches!(c, ':' | '.') { '-' } else { c }).collect()
}

/// Whether a text may name a session: letters and digits, inside also dots, underscores and hyphens.
pub fn is_session_id(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| edge(c) || matches!(c, '.' | '_' | '-');
    text.starts_with(edge) && text.ends_with(edge) && text.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders() {
        assert_eq!(folder_name("/home/me/p"), "--home-me-p--");
        assert_eq!(folder_name("//a/./b/../c/"), "--a-c--");
        assert_eq!(folder_name("/"), "----");
        assert_eq!(folder_name("C:\\Users\\me"), "--C--Users-me--");
    }

    #[test]
    fn folders_of_deep_directories_are_shortened_and_differ() {
        let longest = format!("/{}", "d".repeat(251));
        assert_eq!(folder_name(&longest), format!("--{}--", "d".repeat(251)));
        let deep = format!("/home/{}", "ä/".repeat(200));
        let name = folder_name(&deep);
        assert_eq!(name, format!("--home-{}-fc1e5102826d839d--", "ä-".repeat(65)));
        assert_eq!(folder_name(&format!("{deep}./x/..")), name, "another spelling");
        assert_ne!(folder_name(&format!("{deep}x")), name);
    }

    #[test]
    fn files() {
        assert_eq!(file_name("2025-06-01T10:00:00.000Z", "x"), "2025-06-01T10-00-00-000Z_x.jsonl");
        assert_eq!(export_file_name("2025-06-01T10:00:00.000Z"), "session-2025-06-01T10-00-00-000Z.jsonl");
    }

    #[test]
    fn ids() {
        assert!(is_session_id("a") && is_session_id("my.run_2-x"));
        assert!(!is_session_id("") && !is_session_id("-a") && !is_session_id("a/b") && !is_session_id("a."));
    }
}

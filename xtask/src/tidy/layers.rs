//! Which crate may use which: dependencies only point downwards.

use serde_json::Value;

use super::TidyReport;

/// The crates from lowest to highest; each may use those before it.
const ORDER: [&str; 15] = [
    "pinch-stdx",
    "pinch-http",
    "pinch-machine",
    "pinch-sandbox",
    "pinch-llm",
    "pinch-agent-core",
    "pinch-session",
    "pinch-export",
    "pinch-ports",
    "pinch-coding-agent",
    "pinch-tools",
    "pinch-replies",
    "pinch-embed",
    "pinch-tui",
    "pinch-cli",
];
/// Crates that may use any other crate: tests and their shared code.
const FREE: [&str; 3] = ["pinch-dev", "pinch-testing", "pinch-tests"];

/// Checks the dependencies between the workspace's crates.
pub(super) fn check(metadata: &Value) -> TidyReport {
    let mut report = TidyReport::default();
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in packages {
        let from = package["name"].as_str().unwrap_or("?");
        for dependency in package["dependencies"].as_array().map_or(&[][..], Vec::as_slice) {
            let to = dependency["name"].as_str().unwrap_or("?");
            if !names.contains(&to) {
                continue;
            }
            report.n_checked += 1;
            if !is_allowed(from, to, dependency["kind"].as_str() == Some("dev")) {
                report.errors.push(format!("{from} must not use {to}"));
            }
        }
    }
    report.checked = format!("{} edges between {} crates", report.n_checked, names.len());
    report
}

fn is_allowed(from: &str, to: &str, is_dev: bool) -> bool {
    let rank = |name: &str| ORDER.iter().position(|known| *known == name);
    match (from, to) {
        (from, _) if FREE.contains(&from) => true,
        // Compiled on every `cargo xtask`.
        ("xtask", _) => false,
        // The program's demo runs against a scripted server.
        ("pinch-cli", "pinch-testing") => true,
        (_, "pinch-testing") => is_dev,
        // The terminal displays a session's events; it does not depend on embed.
        ("pinch-tui", "pinch-embed") => false,
        // A crate may enable its own features for its tests.
        (from, to) if from == to => is_dev,
        (from, to) => matches!((rank(from), rank(to)), (Some(from), Some(to)) if to < from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_down() {
        assert!(is_allowed("pinch-embed", "pinch-stdx", false));
        assert!(!is_allowed("pinch-stdx", "pinch-embed", false));
        assert!(!is_allowed("pinch-llm", "pinch-agent-core", true), "tests neither");
        assert!(is_allowed("pinch-llm", "pinch-testing", true));
        assert!(!is_allowed("pinch-llm", "pinch-testing", false));
        assert!(!is_allowed("pinch-new", "pinch-llm", false), "a new crate has to be given its place");
        assert!(!is_allowed("xtask", "pinch-testing", true), "it is a launcher");
    }
}

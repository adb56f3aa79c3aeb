//! The layers of the workspace: dependencies only point downwards.

use std::process::Command;

use serde_json::Value;

/// What each crate may use; `pinch-testing` is also allowed as a development dependency. Crates not listed here are tests and tools, and
/// may use any crate.
const MAY_USE: [(&str, &[&str]); 16] = [
    ("pinch-stdx", &[]),
    ("pinch-http", &["pinch-stdx"]),
    ("pinch-machine", &["pinch-stdx"]),
    ("pinch-sandbox", &["pinch-stdx", "pinch-machine"]),
    ("pinch-llm", &["pinch-stdx", "pinch-http"]),
    ("pinch-agent-core", &["pinch-stdx", "pinch-llm"]),
    ("pinch-session", &["pinch-stdx", "pinch-llm"]),
    ("pinch-export", &["pinch-stdx", "pinch-llm", "pinch-session"]),
    (
        "pinch-coding-agent",
        &["pinch-stdx", "pinch-llm", "pinch-agent-core", "pinch-session", "pinch-export", "pinch-machine"],
    ),
    ("pinch-ports", &["pinch-stdx", "pinch-session"]),
    (
        "pinch-tools",
        &[
            "pinch-stdx",
            "pinch-http",
            "pinch-machine",
            "pinch-llm",
            "pinch-agent-core",
            "pinch-coding-agent",
            "pinch-ports",
        ],
    ),
    ("pinch-replies", &["pinch-stdx", "pinch-llm", "pinch-agent-core", "pinch-coding-agent"]),
    (
        "pinch-embed",
        &[
            "pinch-stdx",
            "pinch-sandbox",
            "pinch-llm",
            "pinch-agent-core",
            "pinch-coding-agent",
            "pinch-ports",
            "pinch-tools",
            "pinch-replies",
        ],
    ),
    ("pinch-tui", &["pinch-stdx", "pinch-llm", "pinch-agent-core", "pinch-coding-agent"]),
    (
        "pinch-cli",
        &[
            "pinch-stdx",
            "pinch-llm",
            "pinch-agent-core",
            "pinch-coding-agent",
            "pinch-embed",
            "pinch-sandbox",
            "pinch-tui",
            "pinch-testing",
        ],
    ),
    // Its suites use a layer only through the feature of that name.
    ("pinch-testing", &["pinch-stdx", "pinch-llm", "pinch-session", "pinch-ports"]),
];
const FREE: [&str; 2] = ["pinch-dev", "pinch-tests"];

#[test]
fn crates_use_only_the_layers_below() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let ours: Vec<String> = packages.iter().map(name).collect();

    let mut n_edges = 0;
    for package in packages {
        let from = name(package);
        if FREE.contains(&&*from) {
            continue;
        }
        // Compiled on every `cargo xtask`, so it uses none of the other crates.
        let launcher = ("xtask", &[][..]);
        let (_, allowed) = (MAY_USE.iter().chain([&launcher]).find(|(known, _)| *known == from))
            .unwrap_or_else(|| panic!("{from} has no place"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = name(dependency);
            if !ours.contains(&to) {
                continue;
            }
            n_edges += 1;
            if from == "pinch-testing" {
                assert_eq!(dependency["optional"], true, "{from} must see {to} through a feature only");
            }
            let is_dev = dependency["kind"] == "dev";
            let shared_by_tests = is_dev && (to == "pinch-testing" || to == from);
            assert!(allowed.contains(&&*to) || shared_by_tests, "{from} must not use {to}");
        }
    }
    assert!(
        ours.len() >= 9 && n_edges >= 15,
        "only {n_edges} edges between {} crates: is everything seen?",
        ours.len()
    );
}

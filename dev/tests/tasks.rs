//! Tests of the program as `cargo xtask` starts it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Output};

fn run(args: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pinch-dev")).args(args).env_remove("CHROME").output().unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    (output, String::from_utf8(text).unwrap())
}

#[test]
fn help_names_the_command_that_people_type() {
    for (command, option) in [("bench", "[NAME]..."), ("interop", "llama"), ("browser", "--help")] {
        let (output, text) = run(&[command, "--help"]);
        assert!(output.status.success() && text.contains(&format!("Usage: cargo xtask {command}")), "{text}");
        assert!(text.contains(option), "{text}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_debug_build_is_not_measured() {
    let (output, text) = run(&["bench", "startup"]);
    assert!(!output.status.success() && text.contains("run cargo xtask bench"), "{text}");
}

#[test]
fn without_a_browser_nothing_is_checked() {
    let (output, text) = run(&["browser"]);
    assert!(!output.status.success() && text.contains("apt-get install chromium"), "{text}");
}

#[test]
fn the_catalog_is_good() {
    let (output, text) = run(&["catalog"]);
    assert!(output.status.success() && text.trim_end().ends_with(", 0 errors"), "{text}");
}

#[test]
fn providers_without_a_key_are_not_called() {
    let output = Command::new(env!("CARGO_BIN_EXE_pinch-dev")).arg("live").env_clear().output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("openai: skipped: OPENAI_API_KEY is not set\n"), "{text}");
    assert!(text.contains("0 passed, ") && text.ends_with(" skipped, 0 failed\n"), "{text}");
}

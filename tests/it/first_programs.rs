//! The first example of each layer stays short: it is the first snippet of the README, compiled as a documentation test of its crate.

use std::path::Path;

/// Lines of code in the first Rust snippet of a README, without blank lines, comments, and lines hidden from documentation.
fn first_snippet(crate_name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../crates/{crate_name}/README.md"));
    let readme = std::fs::read_to_string(&path).unwrap();
    let mut lines = readme.lines().skip_while(|line| !line.starts_with("```rust"));
    assert!(lines.next().is_some_and(|fence| !fence.contains("ignore")), "{crate_name}: the snippet is not tested");
    let is_code =
        |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//") && !line.starts_with("# ");
    lines.take_while(|line| !line.starts_with("```")).filter(is_code).map(str::to_owned).collect()
}

#[track_caller]
fn check(crate_name: &str, max_lines: usize, max_statements: usize) {
    let lines = first_snippet(crate_name);
    let n_statements = lines.iter().filter(|line| line.starts_with("    ")).map(|line| line.matches(';').count()).sum();
    assert!((1..=max_lines).contains(&lines.len()), "{crate_name}: {} lines, not up to {max_lines}", lines.len());
    assert!((1..=max_statements).contains(&n_statements), "{crate_name}: {n_statements} statements");
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    assert!(longest <= 120, "{crate_name}: a line of {longest} characters");
    assert!(lines.iter().any(|line| line.starts_with("async fn main")), "{crate_name}: not a whole program");
}

#[test]
fn a_first_call_of_a_model_takes_six_statements_at_most() {
    check("llm", 12, 6);
}

#[test]
fn a_first_agent_with_a_tool_takes_twelve_lines_at_most() {
    check("agent-core", 12, 6);
}

#[test]
fn a_first_session_takes_twelve_lines_at_most() {
    check("coding-agent", 12, 6);
}

#[test]
fn a_first_embedded_run_with_a_sink_takes_eighteen_lines_at_most() {
    check("embed", 18, 9);
}

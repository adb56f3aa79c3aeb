//! The work of the child processes in these tests.

use std::path::Path;

use pinch_stdx::cancel::Cancel;
use pinch_testing::child::{report, task};
use pinch_testing::logs::run;
use serde_json::Value;

use crate::tool_calls;

/// Not a test: the entry point of child processes. Does nothing in the parent's test run.
#[test]
fn child() {
    let Some((task, file)) = task() else { return };
    match task.as_str() {
        "tool" => run(tool(&file)),
        "host" => run(host(&file)),
        other => panic!("no task {other}"),
    }
}

/// Runs a command in this directory until this process is killed.
async fn host(dir: &Path) {
    let command = "setsid sh -c 'echo $$ > daemon; exec sleep 600' & env -u PINCH_PROCESS sleep 600 & \
                   echo $! > bare; echo $$ > shell; wait";
    drop(tool_calls::call(dir, "bash", serde_json::json!({"command": command}), &Cancel::new()).await);
}

/// Calls the tool described in the file, and prints the result and the peak memory of this process.
async fn tool(file: &Path) {
    let ask: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let (folder, tool) = (Path::new(ask["folder"].as_str().unwrap()), ask["tool"].as_str().unwrap());
    let text = tool_calls::text_of(tool_calls::call(folder, tool, ask["input"].clone(), &Cancel::new()).await);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    report(&format!("peak {}", peak.trim_end_matches("kB").trim()));
    report(&format!("told {}", Value::from(text)));
}

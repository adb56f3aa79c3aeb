//! What is left of commands when their host is killed.

use std::process::{Command, Stdio};

use super::*;

/// Makes the test [`host`] run commands in this directory.
const DIRECTORY: &str = "PINCH_TEST_HOST_DIRECTORY";

/// Not a test by itself: the host that [`a_killed_host_leaves_nothing_running`] kills.
#[tokio::test]
async fn host() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let (exec, _) = tools(options(Path::new(&dir)));
    let command = "setsid sh -c 'echo $$ > daemon; exec sleep 600' & nohup sleep 600 & \
                   env -u PINCH_PROCESS sleep 600 & echo $$ > shell; echo $! > bare; wait";
    call(&exec, json!({"command": command, "background": true})).await.unwrap();
    while !["daemon", "shell", "bare"].iter().all(|name| pid(Path::new(&dir), name).is_some()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::write(Path::new(&dir).join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

fn pid(dir: &Path, name: &str) -> Option<u32> {
    std::fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok()
}

/// Starts [`host`] in a directory.
fn start_host(dir: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process::exec_tool::tests::killed::host", "--nocapture"]);
    command.env(DIRECTORY, dir).stdout(Stdio::null()).spawn().unwrap()
}

#[tokio::test]
async fn a_killed_host_leaves_nothing_running() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = start_host(dir.path());
    while !dir.path().join("ready").exists() {
        assert!(host.try_wait().unwrap().is_none(), "the host ended early");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.kill().unwrap();
    host.wait().unwrap();
    let is_alive = |name: &str| pinch_stdx::process::is_alive(pid(dir.path(), name).unwrap());
    for _ in 0..6000 {
        if !["daemon", "shell", "bare"].into_iter().any(is_alive) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for name in ["daemon", "shell", "bare"] {
        assert!(!is_alive(name), "{name} is still running");
    }
}

/// Returns the processes that work in a directory.
#[cfg(target_os = "linux")]
fn working_in(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    all.filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == dir)).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_host_killed_at_any_moment_leaves_nothing_running() {
    let mut n_started = 0;
    for round in 0..24_u64 {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().canonicalize().unwrap();
        let mut host = start_host(&place);
        // From before the command starts until all of it runs.
        tokio::time::sleep(Duration::from_millis(2 + 4 * round)).await;
        n_started += usize::from(!working_in(&place).is_empty());
        host.kill().unwrap();
        host.wait().unwrap();
        for _ in 0..6000 {
            if working_in(&place).is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(working_in(&place), [""; 0].map(PathBuf::from), "round {round}");
    }
    assert!(n_started > 0, "every host was killed before its command started");
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, _) = tools(options(dir.path()));
    let command = "sleep 600 & echo $! > plain; nohup sleep 600 > /dev/null 2>&1 & echo $! > deaf; \
                   (setsid nohup sh -c 'echo $$ > daemon; exec sleep 600' > /dev/null 2>&1 &); \
                   while [ ! -s daemon ]; do sleep 0.01; done; echo ready";
    let (text, _) = call(&exec, json!({"command": command})).await.unwrap();
    assert!(text.contains("ready"), "{text}");
    for name in ["plain", "deaf", "daemon"] {
        let id = pid(dir.path(), name).unwrap();
        for _ in 0..2000 {
            if !pinch_stdx::process::is_alive(id) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!pinch_stdx::process::is_alive(id), "{name} is still running");
    }
}

//! Commands that print endlessly, refuse to exit, or leave something behind.

use std::time::{Duration, Instant};

use pinch_agent_core::tool::ToolOutput;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::process::is_alive;
#[cfg(target_os = "linux")]
use pinch_testing::child::TestChild;
use serde_json::json;

use crate::tool_calls::FileTree;

/// Kills a process that a test left running on purpose, however the test ends.
struct Left(u32);

impl Drop for Left {
    fn drop(&mut self) {
        let killed = std::process::Command::new("kill").args(["-9", &self.0.to_string()]).status();
        assert!(killed.is_ok());
    }
}

/// Parses the process id that is alone on a line.
fn left(text: &str) -> Left {
    Left(text.lines().find_map(|line| line.parse().ok()).unwrap_or_else(|| panic!("no id in {text}")))
}

async fn is_gone(id: u32) -> bool {
    for _ in 0..500 {
        if !is_alive(id) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[test]
fn a_gigabyte_of_output_is_truncated() {
    let tree = FileTree::new(&[]);
    let (result, peak) = tree.measured("bash", &json!({"command": "yes | head -c 1073741824"}));
    let lines = (1_u64 << 30) / 2;
    let (shown, notice) = result.rsplit_once("\n\n").unwrap();
    assert!(shown.len() < 52_000 && shown.lines().all(|line| line == "y"), "{} bytes", shown.len());
    let wanted = format!("[Showing lines {}-{lines} of {lines}. Full output: ./pinch-bash-", lines - 1999);
    assert!(notice.starts_with(&wanted), "{notice}");
    let log = notice.strip_suffix(']').unwrap().rsplit_once("./").unwrap().1;
    assert_eq!(std::fs::metadata(tree.root().join(log)).unwrap().len(), 1 << 30);
    assert!(peak < 120, "{peak} MB");
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed() {
    let tree = FileTree::new(&[]);
    let began = Instant::now();
    let command = "trap '' TERM INT HUP; echo $$; while :; do sleep 1; done";
    let result = tree.soon("bash", json!({"command": command, "timeout": 0.5})).await;
    assert!(result.ends_with("\n\nCommand timed out after 0.5 seconds"), "{result}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(is_gone(left(&result).0).await);
}

#[tokio::test]
async fn a_command_flooding_its_output_can_be_cancelled() {
    let tree = FileTree::new(&[]);
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let later = async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.cancel(CancelReason::User);
    };
    let call = tree.call("bash", json!({"command": "echo $$; yes"}), &cancel);
    let (output, ()) = tokio::time::timeout(super::PATIENCE, async { tokio::join!(call, later) }).await.unwrap();
    let ToolOutput { content, failed, .. } = output.unwrap();
    assert!(failed && content[0].as_text().unwrap().ends_with("\n\nCommand aborted"));
}

#[tokio::test]
async fn a_daemon_that_keeps_the_pipes_open_does_not_block() {
    let tree = FileTree::new(&[]);
    for command in [
        "sleep 300 & echo $!",
        "nohup sleep 300 & echo $!",
        "setsid sh -c 'echo $$; exec sleep 300' & sleep 0.5",
        "(setsid sh -c 'echo $$; trap \"\" TERM; while :; do echo noise; sleep 0.01; done' &) ; sleep 0.5",
    ] {
        let began = Instant::now();
        let result = tree.soon("bash", json!({"command": command})).await;
        let daemon = left(&result);
        assert!(began.elapsed() < Duration::from_secs(10), "{command}: {:?}", began.elapsed());
        assert!(!result.contains("Command "), "it ended well: {result}");
        assert!(is_alive(daemon.0), "what is left running on purpose stays: {command}");
    }
}

#[tokio::test]
async fn a_command_that_leaves_its_group_ends_on_timeout() {
    let tree = FileTree::new(&[]);
    let began = Instant::now();
    let mut commands = vec!["setsid -w sh -c 'echo $$; exec sleep 300'"];
    if cfg!(target_os = "linux") {
        commands.push("(setsid sh -c 'echo $$; exec sleep 300' &); nohup setsid sleep 300 & sleep 300");
    }
    for command in commands {
        let result = tree.soon("bash", json!({"command": command, "timeout": 1})).await;
        let own_session = left(&result);
        assert!(result.ends_with("\n\nCommand timed out after 1 seconds"), "{result}");
        assert!(is_gone(own_session.0).await, "{command}");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// Forks itself as often as the system allows, and ignores SIGTERM.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_fork_bomb_is_killed_on_timeout() {
    explode("trap \"\" TERM; b() { b | b & }; { b; b; b; } 2>/dev/null").await;
}

/// Every process has its own session and no parent: it exits after starting two others.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_fork_bomb_of_daemons_is_killed_on_timeout() {
    let twice = r#"until setsid -f bash -c \"\$B\"; do :; done;"#.repeat(2);
    explode(&format!(r#"export B="trap \"\" TERM; {twice}"; bash -c "$B" 2>/dev/null &"#)).await;
}

/// Runs a bomb until it times out, as a dedicated user limited to a hundred processes.
#[cfg(target_os = "linux")]
async fn explode(bomb: &str) {
    // A different user for each test that runs at the same time.
    let bomber = 3_900_000_000 + std::process::id();
    let id = bomber.to_string();
    let as_bomber =
        ["--nproc=100:100", "--", "setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--", "bash"];
    let can = std::process::Command::new("prlimit").args(as_bomber).args(["-c", ":"]).current_dir("/").output();
    if !can.is_ok_and(|output| output.status.success()) {
        super::skipped("no limit can be set for a user of its own here");
        return;
    }
    let tree = FileTree::new(&[]);
    // The first shell only waits, so that it does not exit. The others retry forever.
    let command = format!("mkfifo p; exec 3<>p; cd /; exec prlimit {} -c '{bomb}\nread x <&3'", as_bomber.join(" "));
    let input = json!({"command": command, "timeout": 2});
    let counting = async {
        let mut most = 0;
        for _ in 0..150 {
            most = most.max(living(bomber).len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        most
    };
    let (result, most) = tokio::join!(tree.soon("bash", input), counting);
    let mut left = living(bomber);
    for _ in 0..500 {
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        left = living(bomber);
    }
    let n_left = left.len();
    // Kill all processes of that user at once: one by one, they would be faster.
    let all = ["--reuid", &id, "--clear-groups", "--", "sh", "-c", "kill -9 -1"];
    let ended = std::process::Command::new("setpriv").args(all).current_dir("/").status();
    assert!(ended.is_ok());
    // The shell itself keeps retrying to fork another process.
    assert!(result.ends_with("Command timed out after 2 seconds"), "{result}");
    assert!(most > 20, "there were {most} at most: that is no bomb");
    assert_eq!(n_left, 0, "all of the family are gone");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_killed_host_leaves_no_command_running() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = TestChild::start("host", dir.path());
    let pid = |name: &str| std::fs::read_to_string(dir.path().join(name)).ok()?.trim().parse::<u32>().ok();
    let names = ["daemon", "bare", "shell"];
    while names.into_iter().any(|name| pid(name).is_none()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.kill();
    let is_left = |name: &&str| pid(name).is_some_and(is_alive);
    for _ in 0..4_000 {
        if names.iter().filter(|name| is_left(name)).count() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let left: Vec<&str> = names.into_iter().filter(is_left).collect();
    assert!(left.is_empty(), "still running: {left:?}");
}

/// Returns the living processes of a user.
#[cfg(target_os = "linux")]
fn living(user: u32) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        let id = entry.file_name().to_str()?.parse().ok()?;
        (entry.metadata().ok()?.uid() == user).then_some(id)
    });
    ids.filter(|id| is_alive(*id)).collect()
}

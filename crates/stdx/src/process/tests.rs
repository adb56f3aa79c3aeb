use std::process::Command;

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn sh(script: &str) -> ChildTree {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script);
    ChildTree::spawn(command).unwrap()
}

/// Runs a script to its end; returns its output and how it ended.
async fn run(script: &str, timeout: Option<Duration>, grace: Duration) -> (String, ProcessEnd) {
    let mut output = Vec::new();
    let mut process = sh(script);
    let ended = process.pump(&Cancel::new(), timeout, grace, &mut |data| output.extend_from_slice(data)).await.unwrap();
    (String::from_utf8(output).unwrap(), ended)
}

/// Returns whether a process whose id a script printed disappears within the time limit.
async fn is_gone(id: &str) -> bool {
    let pid = rustix::process::Pid::from_raw(id.trim().parse().unwrap()).unwrap();
    for _ in 0..200 {
        // A dead orphan may stay for a moment until the system reaps it.
        let state = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        if state.contains(") Z ") || rustix::process::test_kill_process(pid).is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn output_comes_whole_and_the_code_too() {
    let (output, ended) = run("printf a; printf b >&2; exit 3", None, LONG).await;
    assert_eq!((output.len(), ended), (2, ProcessEnd::Exited(Exit::Code(3))));
    let (output, _) = run("head -c 300000 /dev/zero", None, LONG).await;
    assert_eq!(output.len(), 300_000);
}

/// Output on both streams at nearly the same time stays in order.
#[cfg(unix)]
#[tokio::test]
async fn both_outputs_come_in_the_order_in_which_they_were_written() {
    let script = "for n in 1 2 3 4 5 6 7 8; do echo out $n; echo err $n >&2; done";
    let (output, ended) = run(script, None, LONG).await;
    let wanted: String = (1..=8).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!((output, ended), (wanted, ProcessEnd::Exited(Exit::Code(0))));
}

#[tokio::test]
async fn a_signal_is_a_failure() {
    let (_, ended) = run("kill -9 $$", None, LONG).await;
    assert_eq!(ended, ProcessEnd::Exited(Exit::Signal(9)));
    assert_eq!((Exit::Signal(9).status(), Exit::Signal(9).signal_name().as_deref()), (137, Some("SIGKILL")));
}

#[tokio::test]
async fn after_a_timeout_the_next_command_never_starts() {
    let (output, ended) = run("echo one; sleep 30; echo two", Some(Duration::from_millis(500)), LONG).await;
    assert_eq!((output.as_str(), ended), ("one\n", ProcessEnd::TimedOut(Exit::Signal(15))));
}

#[tokio::test]
async fn a_process_that_ignores_the_signal_is_killed_with_all_descendants() {
    let script = "trap '' TERM; sleep 30 & echo $!; while :; do sleep 1; done";
    let (output, ended) = run(script, Some(Duration::from_millis(500)), Duration::from_millis(50)).await;
    assert_eq!(ended, ProcessEnd::TimedOut(Exit::Signal(9)));
    assert!(is_gone(&output).await);
}

#[tokio::test]
async fn a_cancelled_process_reports_the_reason() {
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Superseded);
    let ended = sh("sleep 30").pump(&cancel, None, LONG, &mut |_| {}).await.unwrap();
    assert_eq!(ended, ProcessEnd::Cancelled(CancelReason::Superseded, Exit::Signal(15)));
}

#[tokio::test]
async fn a_background_process_survives_without_delaying_the_call_or_losing_output() {
    let started = Instant::now();
    let (output, ended) = run("(echo late; exec sleep 30) & echo $!", None, LONG).await;
    assert_eq!(ended, ProcessEnd::Exited(Exit::Code(0)));
    assert!(started.elapsed() < Duration::from_secs(10));
    // The system decides which of the two prints first.
    let (late, ids): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| *line == "late");
    let (["late"], [id]) = (&late[..], &ids[..]) else { panic!("{output}") };
    let pid = rustix::process::Pid::from_raw(id.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn what_a_child_leaves_running_can_end_with_it() {
    let mut process = sh("sleep 30 & echo $!").ending_rest();
    let mut output = Vec::new();
    let ended = process.pump(&Cancel::new(), None, LONG, &mut |data| output.extend_from_slice(data)).await.unwrap();
    assert_eq!(ended, ProcessEnd::Exited(Exit::Code(0)));
    assert!(is_gone(std::str::from_utf8(&output).unwrap()).await);
    let mut process = sh("sleep 30 > /dev/null 2>&1 & echo $!").ending_rest();
    let mut output = String::new();
    process.take_stdout().unwrap().read_to_string(&mut output).await.unwrap();
    process.wait().await.unwrap();
    drop(process);
    assert!(wait_for_killed(Duration::from_secs(20)));
    assert!(is_gone(&output).await);
}

#[tokio::test]
async fn dropping_kills_the_tree() {
    let mut process = sh("sleep 30 & echo $!; wait");
    let mut line = vec![0; 32];
    let n_read = process.take_stdout().unwrap().read(&mut line).await.unwrap();
    drop(process);
    assert!(wait_for_killed(Duration::from_secs(20)));
    assert!(is_gone(std::str::from_utf8(&line[..n_read]).unwrap()).await);
}

/// Other tasks continue during the search for processes that have left the group.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_does_not_block() {
    // Each of them starts the next one and waits for it: the search continues until there are no new ones.
    let mut process = sh("for i in 1 2 3 4; do setsid sh -c 'while :; do setsid true; done' & done; echo; wait");
    process.take_stdout().unwrap().read_exact(&mut [0]).await.unwrap();
    let begin = std::time::Instant::now();
    drop(process);
    assert!(begin.elapsed() < Duration::from_millis(100), "{:?}", begin.elapsed());
    assert!(wait_for_killed(Duration::from_secs(20)));
}

#[tokio::test]
async fn errors_name_the_directory_or_the_program() {
    let mut command = Command::new("/bin/sh");
    command.current_dir("/no/such/folder");
    let error = ChildTree::spawn(command).unwrap_err();
    assert_eq!(error.to_string(), "working directory does not exist: /no/such/folder");
    let error = ChildTree::spawn(Command::new("/no/such/program")).unwrap_err();
    assert_eq!(error.to_string(), "cannot start /no/such/program");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn processes_that_left_the_group_are_stopped_with_it() {
    let ask = "setsid -w sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done'; :";
    let (output, ended) = run(ask, Some(Duration::from_millis(500)), Duration::from_millis(50)).await;
    assert!(matches!(ended, ProcessEnd::TimedOut(_)), "{ended:?}");
    assert!(is_gone(&output).await);
    let mut process = sh("setsid -w sh -c 'echo $$; exec sleep 30'; :");
    let mut line = vec![0; 32];
    let n_read = process.take_stdout().unwrap().read(&mut line).await.unwrap();
    drop(process);
    assert!(is_gone(std::str::from_utf8(&line[..n_read]).unwrap()).await);
}

/// Starts a new session and orphans itself, as daemons do.
#[cfg(target_os = "linux")]
const DAEMON: &str = "(setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' &)";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn orphans_outside_the_group_are_stopped_too() {
    let (output, ended) =
        run(&format!("{DAEMON}; sleep 30"), Some(Duration::from_millis(500)), Duration::from_millis(50)).await;
    assert!(matches!(ended, ProcessEnd::TimedOut(_)), "{ended:?}");
    assert!(is_gone(&output).await, "after its time was up");

    let cancel = Cancel::new();
    let mut output = Vec::new();
    let mut process = sh(&format!("{DAEMON}; sleep 30"));
    let ended = {
        let stop = cancel.clone();
        // Its first word is its id.
        let mut on_data = |data: &[u8]| {
            output.extend_from_slice(data);
            stop.cancel(CancelReason::User);
        };
        process.pump(&cancel, None, Duration::from_millis(50), &mut on_data).await.unwrap()
    };
    assert!(matches!(ended, ProcessEnd::Cancelled(CancelReason::User, _)), "{ended:?}");
    assert!(is_gone(std::str::from_utf8(&output).unwrap()).await, "after it was cancelled");

    let mut process = sh(&format!("{DAEMON}; sleep 30"));
    let line = first_line(&mut process).await;
    process.terminate(Duration::from_millis(50)).await.unwrap();
    assert!(is_gone(&line).await, "after it was told to end");

    let mut process = sh(&format!("{DAEMON}; sleep 30"));
    let line = first_line(&mut process).await;
    drop(process);
    assert!(is_gone(&line).await, "after it was dropped");
}

/// Returns the first line printed by a process.
#[cfg(target_os = "linux")]
async fn first_line(process: &mut ChildTree) -> String {
    let mut line = vec![0; 32];
    let n_read = process.take_stdout().unwrap().read(&mut line).await.unwrap();
    String::from_utf8(line[..n_read].to_vec()).unwrap()
}

/// A daemon with an empty environment has no mark. Only its marked parent leads to it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn unmarked_children_of_marked_processes_are_found() {
    let script = "(setsid sh -c 'env -i sh -c \"echo \\$\\$; exec sleep 30\" & wait' &); sleep 30";
    let (output, ended) = run(script, Some(Duration::from_millis(500)), LONG).await;
    assert!(matches!(ended, ProcessEnd::TimedOut(_)), "{ended:?}");
    assert!(is_gone(&output).await);
}

/// Each inspected process has already gone, and has left another one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_keeps_respawning_is_caught() {
    let hop = "trap '' TERM; n=0; while [ -e go ]; do setsid sh \"$0\" & exit; done";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("go"), "").unwrap();
    std::fs::write(dir.path().join("hop"), hop.replace("exit", "echo $! > last; exit")).unwrap();
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg("for n in 1 2 3; do (setsid sh ./hop &); done; sleep 30").current_dir(dir.path());
    let mut process = ChildTree::spawn(command).unwrap();
    let ended = process.pump(&Cancel::new(), Some(Duration::from_millis(500)), LONG, &mut |_| {}).await.unwrap();
    assert!(matches!(ended, ProcessEnd::TimedOut(_)), "{ended:?}");
    // A missed process rewrites this file.
    let last = dir.path().join("last");
    let caught = std::fs::remove_file(&last);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(caught.is_ok() && !last.exists());
    std::fs::remove_file(dir.path().join("go")).unwrap();
}

/// A program in a command may run commands itself, reachable only through inherited marks.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn commands_of_commands_are_stopped_from_outside_and_by_themselves() {
    let mut outer = sh("echo begun; sleep 30");
    first_line(&mut outer).await;
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", outer.id().unwrap())).unwrap();
    let (_, mark) = environment
        .split('\0')
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, _)| *name == "PINCH_PROCESS")
        .unwrap();
    let inner = || {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{DAEMON}; sleep 30")).env("PINCH_PROCESS", mark);
        ChildTree::spawn(command).unwrap()
    };
    let (mut first, mut second) = (inner(), inner());
    let (of_first, of_second) = (first_line(&mut first).await, first_line(&mut second).await);
    drop(first);
    assert!(is_gone(&of_first).await);
    assert!(is_alive(of_second.trim().parse().unwrap()), "it is of another command");
    drop(outer);
    assert!(is_gone(&of_second).await);
    assert_eq!(second.wait().await.unwrap(), Exit::Signal(9));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_without_the_variable_stays() {
    let script = "(env -u PINCH_PROCESS setsid sh -c 'echo $$; exec sleep 30' &); sleep 30";
    let (output, ended) = run(script, Some(Duration::from_millis(500)), LONG).await;
    assert!(matches!(ended, ProcessEnd::TimedOut(_)), "{ended:?}");
    let id = output.trim().parse().unwrap();
    assert!(is_alive(id));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(id.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

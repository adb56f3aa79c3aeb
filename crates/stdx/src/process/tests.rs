use std::process::Command;

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn sh(script: &str) -> Process {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(script);
    Process::spawn(command).unwrap()
}

/// Runs a script to its end; its output and how it ended.
async fn run(script: &str, timeout: Option<Duration>, grace: Duration) -> (String, Ended) {
    let mut output = Vec::new();
    let mut process = sh(script);
    let ended = process.pump(&Cancel::new(), timeout, grace, &mut |data| output.extend_from_slice(data)).await.unwrap();
    (String::from_utf8(output).unwrap(), ended)
}

/// Whether a process whose id a script printed is gone, looked at until it is or patience ends.
async fn is_gone(id: &str) -> bool {
    let pid = rustix::process::Pid::from_raw(id.trim().parse().unwrap()).unwrap();
    for _ in 0..200 {
        // A dead child of a dead parent may wait a moment for the system to bury it.
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
    assert_eq!((output.len(), ended), (2, Ended::Exited(Exit::Code(3))));
    let (output, _) = run("head -c 300000 /dev/zero", None, LONG).await;
    assert_eq!(output.len(), 300_000);
}

/// What a child says on both ways at nearly the same time stays in its order.
#[cfg(unix)]
#[tokio::test]
async fn both_outputs_come_in_the_order_in_which_they_were_written() {
    let script = "for n in 1 2 3 4 5 6 7 8; do echo out $n; echo err $n >&2; done";
    let (output, ended) = run(script, None, LONG).await;
    let wanted: String = (1..=8).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!((output, ended), (wanted, Ended::Exited(Exit::Code(0))));
}

#[tokio::test]
async fn a_signal_is_a_failure() {
    let (_, ended) = run("kill -9 $$", None, LONG).await;
    assert_eq!(ended, Ended::Exited(Exit::Signal(9)));
    assert_eq!((Exit::Signal(9).status(), Exit::Signal(9).signal_name().as_deref()), (137, Some("SIGKILL")));
}

#[tokio::test]
async fn time_is_up_and_the_next_command_never_begins() {
    let (output, ended) = run("echo one; sleep 30; echo two", Some(Duration::from_millis(500)), LONG).await;
    assert_eq!((output.as_str(), ended), ("one\n", Ended::TimedOut(Exit::Signal(15))));
}

#[tokio::test]
async fn who_ignores_the_wish_is_killed_with_all_descendants() {
    let script = "trap '' TERM; sleep 30 & echo $!; while :; do sleep 1; done";
    let (output, ended) = run(script, Some(Duration::from_millis(500)), Duration::from_millis(50)).await;
    assert_eq!(ended, Ended::TimedOut(Exit::Signal(9)));
    assert!(is_gone(&output).await);
}

#[tokio::test]
async fn cancelling_says_why() {
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::Superseded);
    let ended = sh("sleep 30").pump(&cancel, None, LONG, &mut |_| {}).await.unwrap();
    assert_eq!(ended, Ended::Cancelled(CancelReason::Superseded, Exit::Signal(15)));
}

#[tokio::test]
async fn a_background_process_neither_holds_up_the_call_nor_dies_nor_loses_its_words() {
    let started = Instant::now();
    let (output, ended) = run("(echo late; exec sleep 30) & echo $!", None, LONG).await;
    assert_eq!(ended, Ended::Exited(Exit::Code(0)));
    assert!(started.elapsed() < Duration::from_secs(10));
    // Which of the two prints first is up to the system.
    let (late, ids): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| *line == "late");
    let (["late"], [id]) = (&late[..], &ids[..]) else { panic!("{output}") };
    let pid = rustix::process::Pid::from_raw(id.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn dropping_kills_the_tree() {
    let mut process = sh("sleep 30 & echo $!; wait");
    let mut line = vec![0; 32];
    let n_read = process.take_stdout().unwrap().read(&mut line).await.unwrap();
    drop(process);
    assert!(is_gone(std::str::from_utf8(&line[..n_read]).unwrap()).await);
}

#[tokio::test]
async fn errors_name_the_folder_or_the_program() {
    let mut command = Command::new("/bin/sh");
    command.current_dir("/no/such/folder");
    let error = Process::spawn(command).unwrap_err();
    assert_eq!(error.to_string(), "working directory does not exist: /no/such/folder");
    let error = Process::spawn(Command::new("/no/such/program")).unwrap_err();
    assert_eq!(error.to_string(), "cannot start /no/such/program");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_left_the_group_is_stopped_with_it() {
    let ask = "setsid -w sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done'; :";
    let (output, ended) = run(ask, Some(Duration::from_millis(500)), Duration::from_millis(50)).await;
    assert!(matches!(ended, Ended::TimedOut(_)), "{ended:?}");
    assert!(is_gone(&output).await);
    let mut process = sh("setsid -w sh -c 'echo $$; exec sleep 30'; :");
    let mut line = vec![0; 32];
    let n_read = process.take_stdout().unwrap().read(&mut line).await.unwrap();
    drop(process);
    assert!(is_gone(std::str::from_utf8(&line[..n_read]).unwrap()).await);
}

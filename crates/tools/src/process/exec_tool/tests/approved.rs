//! Permanent approvals, and what happens when approved files change.

use super::*;

/// Approves for ever, after doing something.
struct Approving<F>(F, Mutex<Vec<String>>);

impl<F: Fn() + Send + Sync> ApprovalBroker for Approving<F> {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.1.lock().unwrap().push(request.reason.clone());
        (self.0)();
        Box::pin(async { ApprovalDecision::AllowAlways })
    }
}

fn asking(dir: &Path, broker: Arc<dyn ApprovalBroker>) -> ExecTool {
    tools(CommandOptions {
        security: ExecSecurity::Allowlist,
        ask: ExecAsk::OnMiss,
        approvals: broker,
        approvals_file: Some(dir.join("exec-approvals.json")),
        ..options(dir)
    })
    .0
}

fn write(path: &Path, content: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_permanent_approval_ends_when_the_approved_files_change() {
    for (command, file) in [
        ("./x.sh a", "x.sh"),
        ("bash ./x.sh", "x.sh"),
        ("bash -e x.sh", "x.sh"),
        ("sh -c './x.sh'", "x.sh"),
        ("nice bash x.sh", "x.sh"),
        ("bash -o pipefail x.sh", "x.sh"),
        ("bash --rcfile=rc x.sh", "x.sh"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(file);
        write(&path, "#!/bin/sh\necho one\n");
        let broker = Arc::new(Approving(|| {}, Mutex::default()));
        let exec = asking(dir.path(), broker.clone());
        let run = || call(&exec, json!({"command": command}));
        let n_asked = || broker.1.lock().unwrap().len();
        if command.contains("--rcfile") {
            // A command that is not understood cannot be approved permanently.
            run().await.unwrap();
            run().await.unwrap();
            assert_eq!(n_asked(), 2, "{command}");
            continue;
        }
        for _ in 0..2 {
            assert_eq!(run().await.unwrap().0, "one", "{command}");
            assert_eq!(n_asked(), 1, "{command}");
        }
        write(&path, "#!/bin/sh\necho two\n");
        for _ in 0..2 {
            assert_eq!(run().await.unwrap().0, "two", "{command}");
            assert_eq!(n_asked(), 2, "{command}");
        }
        let reason = broker.1.lock().unwrap()[1].clone();
        assert!(reason.ends_with("x.sh has changed since it was approved"), "{command}: {reason}");
        // The new contents replaced the earlier ones, which need an approval again.
        let stored = std::fs::read_to_string(dir.path().join("exec-approvals.json")).unwrap();
        let stored: Value = serde_json::from_str(&stored).unwrap();
        let entries = stored["agents"]["main"]["allowlist"].as_array().unwrap();
        let mut keys: Vec<String> =
            entries.iter().map(|entry| format!("{} {}", entry["pattern"], entry["argumentsHash"])).collect();
        keys.dedup();
        assert_eq!(keys.len(), entries.len(), "{command}: {stored}");
        write(&path, "#!/bin/sh\necho one\n");
        run().await.unwrap();
        assert_eq!(n_asked(), 3, "{command}");
    }
}

#[tokio::test]
async fn an_approval_from_before_contents_were_recorded_asks_again() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("x.sh"), "#!/bin/sh\necho one\n");
    let broker = Arc::new(Approving(|| {}, Mutex::default()));
    let exec = asking(dir.path(), broker.clone());
    call(&exec, json!({"command": "./x.sh"})).await.unwrap();
    let file = dir.path().join("exec-approvals.json");
    let mut stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let entry = stored["agents"]["main"]["allowlist"][0].as_object_mut().unwrap();
    entry.remove("contentHashes").unwrap();
    entry.insert("note".to_owned(), json!("kept"));
    std::fs::write(&file, stored.to_string()).unwrap();
    for _ in 0..2 {
        call(&exec, json!({"command": "./x.sh"})).await.unwrap();
        assert_eq!(broker.1.lock().unwrap().len(), 2);
    }
    let stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let entries = stored["agents"]["main"]["allowlist"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["note"]), (1, &json!("kept")));
}

#[tokio::test]
async fn a_script_changed_while_its_approval_is_pending_neither_runs_nor_is_approved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sh");
    write(&path, "echo one > out\n");
    let changing = path.clone();
    // The same length, and immediately, so that times and sizes may not show it.
    let change = move || {
        if std::fs::read_to_string(&changing).unwrap().contains("one") {
            write(&changing, "echo two > out\n");
        }
    };
    let broker = Arc::new(Approving(change, Mutex::default()));
    let exec = asking(dir.path(), broker.clone());
    let refused = call(&exec, json!({"command": "bash x.sh"})).await.unwrap_err();
    assert!(refused.contains("x.sh was changed or replaced after the command was judged"), "{refused}");
    assert!(!dir.path().join("out").exists() && !dir.path().join("exec-approvals.json").exists());
    call(&exec, json!({"command": "bash x.sh"})).await.unwrap();
    assert_eq!(broker.1.lock().unwrap().len(), 2, "the second approval is for the new content");
    assert_eq!(std::fs::read_to_string(dir.path().join("out")).unwrap(), "two\n");
}

#[tokio::test]
async fn an_approved_script_changed_right_before_it_starts_does_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.sh");
    write(&path, "echo one > out\n");
    let broker = Arc::new(Approving(|| {}, Mutex::default()));
    let exec = asking(dir.path(), broker.clone());
    call(&exec, json!({"command": "bash x.sh"})).await.unwrap();
    std::fs::remove_file(dir.path().join("out")).unwrap();
    // The first command of the same shell line asks, and the approved script changes meanwhile.
    let changing = path.clone();
    let broker = Arc::new(Approving(move || write(&changing, "echo two > out\n"), Mutex::default()));
    let exec = asking(dir.path(), broker.clone());
    let refused = call(&exec, json!({"command": "touch y; bash x.sh"})).await.unwrap_err();
    assert!(refused.contains("x.sh was changed or replaced"), "{refused}");
    assert!(!dir.path().join("out").exists() && !dir.path().join("y").exists());
}

/// Never answers.
struct NeverAnswering;

impl ApprovalBroker for NeverAnswering {
    fn request<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn without_an_answer_the_fallback_of_the_approvals_file_decides() {
    for (fallback, ask, command, expect) in [
        ("full", ExecAsk::OnMiss, "echo `echo hi`", Some("hi")),
        ("allowlist", ExecAsk::OnMiss, "echo `echo hi`", None),
        ("allowlist", ExecAsk::Always, "echo hi | head -n 1", Some("hi")),
        ("deny", ExecAsk::Always, "echo hi | head -n 1", None),
        ("none", ExecAsk::OnMiss, "echo `echo hi`", None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("exec-approvals.json");
        std::fs::write(&file, json!({"version": 1, "defaults": {"askFallback": fallback}}).to_string()).unwrap();
        // Also if nobody can be asked at all.
        let brokers: [(Arc<dyn ApprovalBroker>, &str); 2] =
            [(Arc::new(NeverAnswering), "exec denied: nobody answered in time"), (Arc::new(DenyAll), "exec denied: ")];
        for (approvals, denied) in brokers {
            let (exec, _) = tools(CommandOptions {
                security: ExecSecurity::Allowlist,
                ask,
                approvals,
                approvals_file: Some(file.clone()),
                approval_timeout: Duration::from_millis(50),
                ..options(dir.path())
            });
            match (call(&exec, json!({"command": command})).await, expect) {
                (Ok((text, _)), Some(expect)) => assert_eq!(text, expect, "{fallback}"),
                (Err(error), None) => assert!(error.starts_with(denied), "{fallback}: {error}"),
                (found, _) => panic!("{fallback}: {found:?}"),
            }
        }
    }
}

#[tokio::test]
async fn no_command_leaves_the_sandbox_without_an_answer() {
    use super::super::super::host::{CommandHosts, ElevatedLevel, ElevatedRules};
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("exec-approvals.json");
    std::fs::write(&file, json!({"version": 1, "defaults": {"askFallback": "full"}}).to_string()).unwrap();
    let elevated = ElevatedRules { is_enabled: true, is_allowed: true, level: ElevatedLevel::Off, provider: None };
    let (exec, _) = tools(CommandOptions {
        hosts: CommandHosts { outside: Some(Arc::new(LocalMachine)), elevated, ..CommandHosts::default() },
        approvals: Arc::new(NeverAnswering),
        approvals_file: Some(file),
        approval_timeout: Duration::from_millis(50),
        ..options(dir.path())
    });
    let command = "echo run >> runs; echo 'x: Permission denied'; exit 1";
    let (text, _) = call(&exec, json!({"command": command})).await.unwrap();
    assert_eq!(text, "x: Permission denied\n\nCommand exited with code 1");
    assert_eq!(std::fs::read_to_string(dir.path().join("runs")).unwrap(), "run\n");
}

#[tokio::test]
async fn a_request_for_approval_ends_before_the_time_limit_of_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let exec = asking(dir.path(), Arc::new(NeverAnswering));
    let cancel = Cancel::new().child_until(pinch_stdx::cancel::Deadline::after(Duration::from_secs(2)));
    let error = call_with(&exec, json!({"command": "touch x"}), &cancel).await.unwrap_err();
    assert!(error.starts_with("exec denied: nobody answered within the 1 seconds that the time limit"), "{error}");
    assert!(!cancel.is_cancelled());
}

#[tokio::test]
async fn simultaneous_approvals_are_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Arc::new(Approving(|| {}, Mutex::default()));
    let exec = asking(dir.path(), broker.clone());
    let commands: Vec<String> = (0..8).map(|n| format!("touch file{n}")).collect();
    for n_asked in [8, 8] {
        let runs = commands.iter().map(|command| call(&exec, json!({"command": command})));
        assert!(futures::future::join_all(runs).await.iter().all(Result::is_ok));
        assert_eq!(broker.1.lock().unwrap().len(), n_asked);
    }
    let stored: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("exec-approvals.json")).unwrap()).unwrap();
    let entries = stored["agents"]["main"]["allowlist"].as_array().unwrap();
    assert_eq!(entries.len(), 8, "{stored}");
    assert!(entries.iter().all(|entry| entry["lastUsedAt"].is_number()), "{stored}");
    assert!(entries.iter().any(|entry| entry["lastUsedCommand"] == "touch file3"), "{stored}");
}

#[tokio::test]
async fn a_file_of_another_version_is_not_overwritten() {
    for content in [r#"{"version": 2, "agents": {}}"#, "not JSON"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("exec-approvals.json");
        std::fs::write(&file, content).unwrap();
        let broker = Arc::new(Approving(|| {}, Mutex::default()));
        let exec = asking(dir.path(), broker.clone());
        for n_asked in [1, 2] {
            call(&exec, json!({"command": "touch x"})).await.unwrap();
            assert_eq!(broker.1.lock().unwrap().len(), n_asked, "{content}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    }
}

/// Never answers, and notes when the question is withdrawn.
#[derive(Default)]
struct Forgetful(Arc<Mutex<Vec<&'static str>>>);

struct NoteOnDrop(Arc<Mutex<Vec<&'static str>>>);

impl Drop for NoteOnDrop {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("withdrawn");
    }
}

impl ApprovalBroker for Forgetful {
    fn request<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.0.lock().unwrap().push("asked");
        let note = NoteOnDrop(Arc::clone(&self.0));
        Box::pin(async move {
            let _note = note;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn a_request_for_approval_is_withdrawn_when_its_call_is_aborted() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Arc::new(Forgetful::default());
    let exec = asking(dir.path(), broker.clone());
    let cancel = Cancel::new();
    let input = json!({"command": "touch ran"});
    let (called, ()) = tokio::join!(call_with(&exec, input, &cancel), async {
        while broker.0.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel(pinch_stdx::cancel::CancelReason::User);
    });
    assert!(called.is_err());
    assert_eq!(*broker.0.lock().unwrap(), ["asked", "withdrawn"]);
    assert!(!dir.path().join("ran").exists());
}

#[tokio::test]
async fn no_way_of_running_a_command_hands_on_the_hosts_keys() {
    use super::super::super::host::{CommandHosts, ElevatedLevel, ElevatedRules};
    let outside = "test -e out && env || { echo 'x: Permission denied'; exit 1; }";
    for (input, is_background) in [
        (json!({"command": "env"}), false),
        (json!({"command": "env", "env": {"A": "1"}}), false),
        (json!({"command": "sh -c env"}), false),
        (json!({"command": "env", "background": true}), true),
        (json!({"command": "env; sleep 0.3", "yieldMs": 10}), true),
        (json!({"command": "env", "elevated": true}), false),
        #[cfg(feature = "pty")]
        (json!({"command": "env", "pty": true}), false),
        #[cfg(feature = "pty")]
        (json!({"command": "env", "pty": true, "background": true}), true),
        // Fails in the sandbox, and runs again outside.
        (json!({"command": outside}), false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let elevated = ElevatedRules { is_enabled: true, is_allowed: true, level: ElevatedLevel::Off, provider: None };
        let broker = LettingOut(dir.path().join("out"), ApprovalDecision::AllowOnce, Mutex::default());
        let (exec, process) = tools(CommandOptions {
            hosts: CommandHosts { outside: Some(Arc::new(LocalMachine)), elevated, ..CommandHosts::default() },
            approvals: Arc::new(broker),
            yield_after: Duration::from_secs(10),
            ..options(dir.path())
        });
        let (mut text, details) = call(&exec, input.clone()).await.unwrap();
        while is_background && !text.contains("exited with") {
            let poll = json!({"action": "poll", "sessionId": details["sessionId"], "timeout": 5_000});
            text += &call(&process, poll).await.unwrap().0;
        }
        assert!(text.contains("OPENCLAW_SHELL=exec"), "{input}: {text}");
        assert!(!text.contains("secret") && !text.contains("ANTHROPIC_API_KEY"), "{input}: {text}");
    }
}

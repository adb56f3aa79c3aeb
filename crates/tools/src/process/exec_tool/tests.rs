use std::path::Path;
use std::sync::Mutex;

use pinch_agent_core::tool::Progress;
use pinch_machine::LocalMachine;
use pinch_ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest, DenyAll};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use super::super::process_tool::BackgroundTool;
use super::super::registry::{ExitNotices, ProcessLimits};
use super::*;
use crate::exec::modes::{ExecAsk, ExecSecurity};

#[cfg(all(unix, feature = "pty"))]
mod terminal;
#[cfg(unix)]
mod approved;
#[cfg(target_os = "linux")]
mod killed;

async fn call(tool: &dyn Tool, input: Value) -> Result<(String, Value), String> {
    call_with(tool, input, &Cancel::new()).await
}

async fn call_with(tool: &dyn Tool, input: Value, cancel: &Cancel) -> Result<(String, Value), String> {
    let (host, progress) = (Host::system(), Progress::ignored());
    let call = "call-1".into();
    let cx = ToolCx { call: &call, cancel, progress: &progress, host: &host };
    match tool.run(input.as_object().unwrap().clone(), &cx).await {
        Ok(output) => Ok((output.content[0].as_text().unwrap().to_owned(), output.details.unwrap_or_default())),
        Err(error) => Err(error.text),
    }
}

fn options(dir: &Path) -> CommandOptions {
    let env = [("PATH", "/usr/bin:/bin"), ("ANTHROPIC_API_KEY", "secret")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    CommandOptions { security: ExecSecurity::Full, ask: ExecAsk::Off, ..CommandOptions::new(dir, env) }
}

fn tools(options: CommandOptions) -> (ExecTool, BackgroundTool) {
    let registry = ProcessRegistry::default();
    let process = BackgroundTool::new(registry.clone(), options.scope.clone());
    (ExecTool::new(Arc::new(LocalMachine), registry, options), process)
}

#[tokio::test]
async fn a_command_runs_in_its_directory_without_the_hosts_keys() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let (exec, _) = tools(options(dir.path()));
    let (text, details) =
        call(&exec, json!({"command": "pwd; env", "workdir": "sub", "env": {"A": "1"}})).await.unwrap();
    assert!(text.starts_with(&*dir.path().join("sub").to_string_lossy()), "{text}");
    assert!(text.contains("A=1") && text.contains("OPENCLAW_SHELL=exec") && !text.contains("secret"), "{text}");
    assert_eq!((&details["status"], &details["exitCode"]), (&json!("completed"), &json!(0)));
    let (text, details) = call(&exec, json!({"command": "echo x; exit 3", "workdir": "none"})).await.unwrap();
    let expect = format!(
        "Warning: workdir \"none\" is unavailable; using \"{}\".\nx\n\nCommand exited with code 3",
        dir.path().display()
    );
    assert_eq!((text.as_str(), &details["exitCode"]), (expect.as_str(), &json!(3)));
    let (text, _) = call(&exec, json!({"command": "sleep 60", "timeout": 0.1})).await.unwrap();
    assert_eq!(text, "Command timed out after 0.1 seconds");
    let refused = call(&exec, json!({"command": "ls", "env": {"LD_PRELOAD": "x"}})).await.unwrap_err();
    assert!(refused.starts_with("Security Violation"), "{refused}");
    assert_eq!(call(&exec, json!({"command": " "})).await.unwrap_err(), "Provide a command to start.");
}

#[tokio::test]
async fn a_background_command_can_be_read_written_and_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, process) = tools(options(dir.path()));
    let (text, details) =
        call(&exec, json!({"command": "while read line; do echo got $line; done; sleep 60", "background": true}))
            .await
            .unwrap();
    assert!(text.starts_with("Command still running (session "), "{text}");
    let id = details["sessionId"].as_str().unwrap();
    let act = |action: &str, more: Value| {
        let mut input = json!({"action": action, "sessionId": id});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call(&process, input)
    };
    assert_eq!(act("write", json!({"data": "one\n"})).await.unwrap().0, format!("Wrote 4 bytes to session {id}."));
    assert_eq!(act("poll", json!({"timeout": 5000})).await.unwrap().0, "got one\n\nProcess still running.");
    assert_eq!(act("poll", json!({})).await.unwrap().0, "(no new output)\n\nProcess still running.");
    assert_eq!(
        act("send-keys", json!({"literal": "two", "keys": ["C-j", "X-y"]})).await.unwrap().0,
        format!("Sent 7 bytes to session {id}.")
    );
    let (listed, details) = call(&process, json!({"action": "list"})).await.unwrap();
    assert!(listed.contains("running") && listed.ends_with(":: while read"), "{listed}");
    assert_eq!(details["sessions"][0]["status"], "running");
    assert_eq!(act("kill", json!({})).await.unwrap().0, format!("Killed session {id}."));
    assert!(act("poll", json!({})).await.unwrap().0.ends_with("Process exited with signal SIGTERM."));
    assert!(act("log", json!({"limit": 1})).await.unwrap().0.starts_with("got"));
    assert_eq!(act("write", json!({"data": "x"})).await.unwrap().0, format!("No active session found for {id}"));
    assert_eq!(act("remove", json!({})).await.unwrap().0, format!("Removed session {id}."));
    assert_eq!(call(&process, json!({"action": "list"})).await.unwrap().0, "No running or recent sessions.");
    assert_eq!(act("fly", json!({})).await.unwrap().0, "Unknown action fly");
}

#[tokio::test]
async fn a_command_is_invisible_in_another_scope() {
    let dir = tempfile::tempdir().unwrap();
    let registry = ProcessRegistry::default();
    let exec = ExecTool::new(Arc::new(LocalMachine), registry.clone(), options(dir.path()));
    let (_, details) = call(&exec, json!({"command": "sleep 60", "background": true})).await.unwrap();
    let other = BackgroundTool::new(registry, "agent:other");
    let id = details["sessionId"].as_str().unwrap();
    assert_eq!(
        call(&other, json!({"action": "kill", "sessionId": id})).await.unwrap().0,
        format!("No active session found for {id}")
    );
    assert_eq!(call(&other, json!({"action": "list"})).await.unwrap().0, "No running or recent sessions.");
}

#[tokio::test]
async fn a_flood_of_output_is_bounded_and_does_not_stop_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, _) = tools(options(dir.path()));
    let (_, details) =
        call(&exec, json!({"command": "yes 0123456789 | head -c 3000000; echo; echo end"})).await.unwrap();
    let kept = details["aggregated"].as_str().unwrap();
    assert!(kept.ends_with("end") && kept.len() <= 200_000, "{} bytes", kept.len());
}

/// Returns the most memory that this process has used so far, in megabytes.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn two_hundred_megabytes_of_output_take_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, process) = tools(options(dir.path()));
    let script = "yes 0123456789012345678901234567890123456789 | head -c 200000000; echo; echo end";
    let before = peak_memory();
    // In the background, nobody reads the output while it arrives.
    let (_, details) = call(&exec, json!({"command": script, "background": true})).await.unwrap();
    let poll = json!({"action": "poll", "sessionId": details["sessionId"], "timeout": 120_000});
    let mut polled = call(&process, poll.clone()).await.unwrap();
    while polled.1["status"] == "running" {
        polled = call(&process, poll.clone()).await.unwrap();
    }
    let kept = polled.1["aggregated"].as_str().unwrap();
    assert!(kept.trim_end().ends_with("end") && kept.len() <= 200_000, "{} bytes: {}", kept.len(), polled.1["status"]);
    assert!(peak_memory() - before < 100, "{} MB, before: {before} MB", peak_memory());
}

/// Gives a fixed answer and records the questions.
struct Answering(ApprovalDecision, Mutex<Vec<String>>);

impl ApprovalBroker for Answering {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.1.lock().unwrap().push(format!("{}: {}", request.command, request.reason));
        Box::pin(async { self.0 })
    }
}

#[tokio::test]
async fn commands_not_on_the_allow_list_are_asked_about_or_denied() {
    let dir = tempfile::tempdir().unwrap();
    let base = CommandOptions { security: ExecSecurity::Allowlist, ask: ExecAsk::Off, ..options(dir.path()) };
    let (exec, _) = tools(base.clone());
    assert_eq!(call(&exec, json!({"command": "touch x"})).await.unwrap_err(), "exec denied: allowlist miss");
    assert_eq!(call(&exec, json!({"command": "echo $(touch x)"})).await.unwrap_err(), "exec denied: allowlist miss");
    assert_eq!(call(&exec, json!({"command": "echo ok | head -n 1"})).await.unwrap().0, "ok");
    let (exec, _) = tools(CommandOptions { ask: ExecAsk::OnMiss, ..base.clone() });
    assert!(
        call(&exec, json!({"command": "touch x"})).await.unwrap_err().starts_with("exec denied: "),
        "nobody can be asked"
    );
    assert!(!dir.path().join("x").exists());
    let broker = Arc::new(Answering(ApprovalDecision::AllowAlways, Mutex::default()));
    let file = dir.path().join("exec-approvals.json");
    let asking = CommandOptions {
        ask: ExecAsk::OnMiss,
        approvals: Arc::clone(&broker) as Arc<dyn ApprovalBroker>,
        approvals_file: Some(file.clone()),
        ..base
    };
    // A missing file must not be stricter than the configuration.
    let (exec, _) = tools(asking);
    for command in ["touch x", "touch x", "touch y", "echo `touch z`", "echo `touch z`"] {
        call(&exec, json!({"command": command})).await.unwrap();
    }
    let asked: Vec<String> =
        broker.1.lock().unwrap().iter().map(|asked| asked.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(asked, ["touch x", "touch y", "echo `touch z`", "echo `touch z`"]);
    assert!(file.exists());
}

#[tokio::test]
async fn closing_the_registry_ends_its_commands() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, process) = tools(options(dir.path()));
    let command = "sleep 300 & setsid sleep 300 & echo $!; wait";
    let (_, details) = call(&exec, json!({"command": command, "background": true})).await.unwrap();
    let pid = u32::try_from(details["pid"].as_u64().unwrap()).unwrap();
    assert!(pinch_stdx::process::is_alive(pid));
    drop((exec, process));
    for _ in 0..200 {
        if !pinch_stdx::process::is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the command is still running");
}

#[tokio::test]
async fn a_hundred_commands_run_in_the_background() {
    let dir = tempfile::tempdir().unwrap();
    let (exec, process) = tools(options(dir.path()));
    let mut ids = Vec::new();
    for n in 0..100 {
        let (_, details) =
            call(&exec, json!({"command": format!("echo {n}; sleep 300"), "background": true})).await.unwrap();
        ids.push(details["sessionId"].as_str().unwrap().to_owned());
    }
    let (_, details) = call(&process, json!({"action": "list"})).await.unwrap();
    assert_eq!(details["sessions"].as_array().unwrap().len(), 100);
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 100);
    let (text, _) = call(&process, json!({"action": "poll", "sessionId": ids[57], "timeout": 10_000})).await.unwrap();
    assert_eq!(text, "57\n\nProcess still running.");
    for id in &ids {
        call(&process, json!({"action": "remove", "sessionId": id})).await.unwrap();
    }
    let (text, _) = call(&process, json!({"action": "list"})).await.unwrap();
    assert_eq!(text, "No running or recent sessions.");
}

#[tokio::test]
async fn the_end_of_a_background_command_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    let (sender, mut ends) = tokio::sync::mpsc::channel(8);
    let registry = ProcessRegistry::with_listener(ProcessLimits::default(), move |notice| {
        let (word, rest) = notice.text.split_once(" (").unwrap();
        let (_, rest) = rest.split_once(", ").unwrap();
        sender.try_send(format!("{} {word} (ID, {rest}", notice.scope)).unwrap();
    });
    let exec = ExecTool::new(Arc::new(LocalMachine), registry.clone(), options(dir.path()));
    let process = BackgroundTool::new(registry, options(dir.path()).scope);
    let (_, killed) = call(&exec, json!({"command": "sleep 300", "background": true})).await.unwrap();
    call(&process, json!({"action": "kill", "sessionId": killed["sessionId"]})).await.unwrap();
    call(&exec, json!({"command": "echo in the foreground"})).await.unwrap();
    call(&exec, json!({"command": "sleep 0.2; echo a; echo  b; exit 3", "background": true})).await.unwrap();
    assert_eq!(ends.recv().await.unwrap(), "agent:main Exec failed (ID, code 3) :: a b");
    assert!(ends.try_recv().is_err());
}

#[tokio::test]
async fn strict_rules_for_inline_code_ask_a_person_even_if_everything_may_run() {
    struct Deciding(ApprovalDecision, Mutex<Vec<String>>);
    impl ApprovalBroker for Deciding {
        fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
            self.1.lock().unwrap().push(request.reason.clone());
            Box::pin(async { self.0 })
        }
    }
    let code = "awk 'BEGIN { print 1 + 1 }'";
    let denied = Err("exec denied: the user rejected it (awk is given code to run)".to_owned());
    for (strict, decision, command, expect, n_asked) in [
        (true, ApprovalDecision::Deny, "echo one > f; cat f", Ok("one".to_owned()), 0),
        (true, ApprovalDecision::Deny, code, denied, 2),
        (true, ApprovalDecision::AllowAlways, code, Ok("2".to_owned()), 2),
        (false, ApprovalDecision::Deny, code, Ok("2".to_owned()), 0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let broker = Arc::new(Deciding(decision, Mutex::default()));
        let (exec, _) = tools(CommandOptions {
            strict_inline_eval: strict,
            approvals: broker.clone(),
            approvals_file: Some(dir.path().join("exec-approvals.json")),
            ..options(dir.path())
        });
        // Not even a permanent approval lasts.
        for _ in 0..2 {
            assert_eq!(call(&exec, json!({"command": command})).await.map(|(text, _)| text), expect, "{command}");
        }
        assert_eq!(*broker.1.lock().unwrap(), vec!["awk is given code to run"; n_asked], "{command}");
    }
}

#[tokio::test]
async fn a_call_may_set_or_remove_the_time_limit_under_each_of_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let limited = CommandOptions { timeout: Some(Duration::from_millis(100)), ..options(dir.path()) };
    let (exec, _) = tools(limited);
    for name in ["timeout", "timeoutSeconds", "timeoutSec"] {
        let (text, _) = call(&exec, json!({"command": "sleep 0.5; echo done", name: 0})).await.unwrap();
        assert_eq!(text, "done");
        let (text, _) = call(&exec, json!({"command": "sleep 300", name: 0.2})).await.unwrap();
        assert_eq!(text, "Command timed out after 0.2 seconds");
    }
}

#[tokio::test]
async fn a_silent_success_is_reported_only_on_request() {
    for (notices, expected) in
        [(ExitNotices::Off, [false, false]), (ExitNotices::Usual, [false, true]), (ExitNotices::All, [true, true])]
    {
        let dir = tempfile::tempdir().unwrap();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&ends);
        let limits = ProcessLimits::default();
        let registry = ProcessRegistry::with_listener(limits, move |notice| listener.lock().unwrap().push(notice.text));
        let options = CommandOptions { exit_notices: notices, ..options(dir.path()) };
        let process = BackgroundTool::new(registry.clone(), options.scope.clone());
        let exec = ExecTool::new(Arc::new(LocalMachine), registry, options);
        for (command, is_reported) in [("sleep 0.1", expected[0]), ("sleep 0.1; exit 2", expected[1])] {
            let (_, details) = call(&exec, json!({"command": command, "background": true})).await.unwrap();
            let poll = json!({"action": "poll", "sessionId": details["sessionId"], "timeout": 10_000});
            assert_ne!(call(&process, poll).await.unwrap().1["status"], "running");
            let n_ends = std::mem::take(&mut *ends.lock().unwrap()).len();
            assert_eq!(n_ends, usize::from(is_reported), "{notices:?} {command}");
        }
    }
}

/// Approves, and takes the obstacle away that stands for the sandbox.
struct LettingOut(std::path::PathBuf, ApprovalDecision, Mutex<Vec<String>>);

impl ApprovalBroker for LettingOut {
    fn request<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.2.lock().unwrap().push(request.reason.clone());
        std::fs::write(&self.0, "").unwrap();
        Box::pin(async { self.1 })
    }
}

#[tokio::test]
async fn a_command_that_the_sandbox_made_fail_runs_once_more_outside_with_an_approval() {
    use super::super::host::{CommandHosts, ElevatedLevel, ElevatedRules};
    let command = "test -e out && echo done || { echo 'x: Permission denied'; exit 1; }";
    let failed = "x: Permission denied\n\nCommand exited with code 1";
    let again = "Note: the command failed in the sandbox; after an approval, it ran again outside.\ndone";
    let (allow, deny) = (ApprovalDecision::AllowOnce, ApprovalDecision::Deny);
    for (may_leave, input, ask, decision, expect, n_asked) in [
        (true, json!({"command": command}), ExecAsk::Off, allow, again, 1),
        (true, json!({"command": command}), ExecAsk::Off, deny, failed, 1),
        (true, json!({"command": command, "elevated": false}), ExecAsk::Off, allow, failed, 0),
        (true, json!({"command": command, "host": "sandbox"}), ExecAsk::Off, allow, failed, 0),
        (false, json!({"command": command}), ExecAsk::Off, allow, failed, 0),
        // Another failure is not the sandbox's.
        (true, json!({"command": "echo no; exit 1"}), ExecAsk::Off, allow, "no\n\nCommand exited with code 1", 0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let broker = Arc::new(LettingOut(dir.path().join("out"), decision, Mutex::default()));
        let elevated =
            ElevatedRules { is_enabled: may_leave, is_allowed: may_leave, level: ElevatedLevel::Off, provider: None };
        let hosts = CommandHosts { outside: Some(Arc::new(LocalMachine)), elevated, ..CommandHosts::default() };
        let (exec, _) = tools(CommandOptions { hosts, ask, approvals: broker.clone(), ..options(dir.path()) });
        assert_eq!(call(&exec, input.clone()).await.unwrap().0, expect, "{input}");
        let asked = broker.2.lock().unwrap().clone();
        assert_eq!(asked, vec!["it failed in the sandbox and would run once more, outside of it"; n_asked], "{input}");
    }
}

#[tokio::test]
async fn a_call_can_request_stricter_rules_but_no_looser_ones() {
    let dir = tempfile::tempdir().unwrap();
    let denied = "exec denied: host=gateway security=deny";
    let missed = "exec denied: allowlist miss";
    for (security, ask, given, expect) in [
        (ExecSecurity::Full, ExecAsk::Off, json!({}), Ok("x")),
        (ExecSecurity::Full, ExecAsk::Off, json!({"security": "allowlist"}), Err(missed)),
        (ExecSecurity::Full, ExecAsk::Off, json!({"security": " Deny "}), Err(denied)),
        (ExecSecurity::Full, ExecAsk::Off, json!({"security": "none", "ask": 1}), Ok("x")),
        (ExecSecurity::Full, ExecAsk::Off, json!({"ask": "on-miss"}), Ok("x")),
        (ExecSecurity::Full, ExecAsk::Off, json!({"ask": "always"}), Err("asked")),
        (ExecSecurity::Full, ExecAsk::Always, json!({"ask": "off"}), Err("asked")),
        (ExecSecurity::Allowlist, ExecAsk::Off, json!({"security": "full"}), Err(missed)),
        (ExecSecurity::Allowlist, ExecAsk::OnMiss, json!({"ask": "off"}), Err("asked")),
        (ExecSecurity::Deny, ExecAsk::Off, json!({"security": "full"}), Err(denied)),
    ] {
        // Nobody approves.
        let (exec, _) = tools(CommandOptions { security, ask, ..options(dir.path()) });
        let mut input = json!({"command": "/usr/bin/printf x"});
        input.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        let found = call(&exec, input).await.map(|(text, _)| text);
        match expect {
            Err("asked") => {
                let error = found.unwrap_err();
                assert!(error.starts_with("exec denied: ") && error != denied && error != missed, "{given}: {error}");
            }
            expect => assert_eq!(found, expect.map(str::to_owned).map_err(str::to_owned), "{given}"),
        }
    }
}

//! The whole program with a malicious model.

#![cfg(unix)]

use std::time::{Duration, Instant};

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::{CommandOutput, TestUser, interrupt};

/// Makes the server request tools, and then finish.
fn ask_for(user: &TestUser, calls: &[(&str, Value)]) {
    let calls = calls.iter().enumerate();
    let asking = calls.fold(AnthropicResponse::new("msg_1"), |response, (n, (tool, input))| {
        response.tool_call(&format!("t{n}"), tool, &input.to_string())
    });
    user.server.reply(ServerReply::sse(asking.stop("tool_use").concat()));
    user.answer("Done.");
}

/// Returns the results that the model gets for its calls.
fn results(user: &TestUser) -> Vec<String> {
    let messages = user.asked().unwrap();
    let results = messages.as_array().unwrap().last().unwrap()["content"].as_array().unwrap().clone();
    let text = |result: &Value| match &result["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    results.iter().map(text).collect()
}

const ALL: [&str; 6] = ["--model", "local/m1", "-t", "read,bash,edit,write,grep,find,ls", "-p", "x"];

/// Runs the program to its end; returns its output and its peak memory in megabytes.
#[cfg(target_os = "linux")]
async fn measured(user: &TestUser, mut command: tokio::process::Command) -> (CommandOutput, u64) {
    let child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id().unwrap());
    let mut ended = std::pin::pin!(child.wait_with_output());
    let mut peak = 0;
    loop {
        tokio::select! {
            output = &mut ended => return (user.ran(output.unwrap()), peak / 1024),
            () = tokio::time::sleep(Duration::from_millis(5)) => {
                let status = std::fs::read_to_string(&status).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let now = line.and_then(|line| line.trim_end_matches("kB").trim().parse::<u64>().ok());
                peak = peak.max(now.unwrap_or_default());
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gigabyte_of_output_takes_little_memory() {
    let user = TestUser::new().await;
    ask_for(&user, &[("bash", json!({"command": "yes | head -c 1073741824"}))]);
    let mut command = user.command(&ALL);
    // The whole output is kept in the temporary directory.
    let (ran, peak) = measured(&user, std::mem::replace(command.env("TMPDIR", user.path("")), user.command(&[]))).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "Done.\n", ""));
    let result = &results(&user)[0];
    assert!(
        result.len() < 60_000 && result.contains("of 536870912. Full output: "),
        "{}",
        &result[result.len() - 200..]
    );
    assert!((5..150).contains(&peak), "{peak} MB");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn endless_files_are_rejected_and_the_run_continues() {
    let user = TestUser::new().await;
    std::fs::File::create(user.path("hole")).unwrap().set_len(10 << 30).unwrap();
    user.write("a.txt", "hit\n");
    assert!(std::process::Command::new("mkfifo").arg(user.path("pipe")).status().unwrap().success());
    let began = Instant::now();
    ask_for(
        &user,
        &[
            ("read", json!({"path": "/dev/zero"})),
            ("read", json!({"path": "/dev/stdin"})),
            ("read", json!({"path": "pipe"})),
            ("write", json!({"path": "pipe", "content": "x"})),
            ("read", json!({"path": "hole"})),
            ("read", json!({"path": "/proc/self/environ"})),
            ("edit", json!({"path": "hole", "edits": [{"oldText": "a", "newText": "b"}]})),
            ("grep", json!({"pattern": "^hit"})),
        ],
    );
    let (ran, peak) = measured(&user, user.command(&ALL)).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "Done.\n", ""));
    let refused = "is not a regular file (a device, pipe or socket); it cannot be read";
    let binary = "This is a binary file (it contains NUL bytes). Look at it with bash, e.g. file or xxd.";
    let results = results(&user);
    assert_eq!(results[..3], ["/dev/zero", "/dev/stdin", "pipe"].map(|name| format!("{name} {refused}")));
    assert!(results[3].starts_with("ENXIO: "), "{}", results[3]);
    assert_eq!(results[4..6], [binary, binary]);
    assert_eq!(results[6..], ["Could not edit file: hole. Error code: EFBIG.", "a.txt:1: hit"]);
    assert!((5..150).contains(&peak), "{peak} MB");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn ctrl_c_ends_an_endless_search() {
    let user = TestUser::new().await;
    user.write("f0", &"a line\n".repeat(4 << 20));
    (1..2000).for_each(|n| std::fs::hard_link(user.path("f0"), user.path(&format!("f{n}"))).unwrap());
    ask_for(&user, &[("grep", json!({"pattern": r"[a-z]*e[a-z]{200}x"}))]);
    let child = user.command(&ALL).spawn().unwrap();
    user.server.wait_for_requests(1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    interrupt(&child).await;
    let ran = user.ran(child.wait_with_output().await.unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn commands_see_their_own_session_and_not_the_enclosing_one() {
    let user = TestUser::new().await;
    let around = ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL", "AI_AGENT"];
    for (flags, file) in [(&["--session", "s.jsonl"][..], true), (&["--no-session"], false)] {
        ask_for(&user, &[("bash", json!({"command": "env | sort"}))]);
        let mut command = user.command(&[&ALL[..], flags].concat());
        around.iter().fold(command.env("KEPT", "as it is"), |command, name| command.env(name, "around"));
        let ran = user.ran(command.output().await.unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let results = results(&user)[0].clone();
        assert!(!results.contains("around"), "{results}");
        for line in ["AI_AGENT=pi", "KEPT=as it is", "PI_CODING_AGENT=true", "PI_MODEL=m1", "PI_PROVIDER=local"] {
            assert!(results.lines().any(|found| found == line), "{line}: {results}");
        }
        assert!(results.contains("PI_SESSION_ID=") && results.contains("PI_REASONING_LEVEL=off"), "{results}");
        assert_eq!(results.contains("PI_SESSION_FILE="), file, "{results}");
    }
}

/// Much longer than any of it takes, even on a busy machine.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(180);

/// Everything read at startup, in a project and in the agent directory, is endless or a pipe without a writer.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn endless_documents_are_reported_and_ignored() {
    let project = [
        "AGENTS.md",
        "CLAUDE.md",
        ".gitignore",
        ".pi/settings.json",
        ".pi/SYSTEM.md",
        ".pi/APPEND_SYSTEM.md",
        ".pi/skills/s/SKILL.md",
        ".pi/skills/.gitignore",
        ".pi/prompts/p.md",
        ".pi/themes/t.json",
        ".pi/extensions/x/package.json",
    ];
    let agent = [
        "settings.json",
        "auth.json",
        "trust.json",
        "keybindings.json",
        "SYSTEM.md",
        "skills/s/SKILL.md",
        "prompts/p.md",
    ];
    // A single run may end before it is measured.
    let mut highest = 0_u64;
    for making in ["mkfifo {}", "ln -s /dev/zero {}", "truncate -s 10G {}"] {
        let user = TestUser::new().await;
        let all =
            project.iter().map(|name| user.path(name)).chain(agent.iter().map(|name| user.path("agent").join(name)));
        for path in all {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _none = std::fs::remove_file(&path);
            let script = format!(
                "cd {} && {}",
                path.parent().unwrap().display(),
                making.replace("{}", path.file_name().unwrap().to_str().unwrap())
            );
            assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
        }
        for flags in [&["--no-approve"][..], &["--approve", "--verbose"]] {
            user.answer("Good.");
            let command = user.command(&[&["--model", "local/m1", "-p", "x"], flags].concat());
            let (ran, peak) = tokio::time::timeout(PATIENCE, measured(&user, command)).await.unwrap();
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Good.\n"), "{making}: {}", ran.err);
            assert!(ran.err.contains("settings.json: "), "{making}: {}", ran.err);
            assert!(peak < 150, "{making}: {peak} MB");
            highest = highest.max(peak);
        }
        let agent_dir = user.path("agent");
        let doctor = user.program(&["doctor", "--offline", "--agent-dir", agent_dir.to_str().unwrap()]).output();
        let doctor = tokio::time::timeout(PATIENCE, doctor).await.unwrap().unwrap();
        assert_eq!(user.ran(doctor).code, Some(2), "{making}");
    }
    assert!(highest >= 5, "nothing was measured: {highest} MB");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_working_directory_with_a_non_utf8_name_works() {
    use std::os::unix::ffi::OsStrExt as _;
    let user = TestUser::new().await;
    let folder = user.path("").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    for (flags, file) in [(&[][..], "one"), (&["-c"], "two")] {
        ask_for(
            &user,
            &[
                ("bash", json!({"command": "basename \"$PWD\" | od -An -tx1"})),
                ("write", json!({"path": format!("{file}.txt"), "content": file})),
            ],
        );
        let mut command = user.command(&[&ALL[..], flags].concat());
        let ran = user.ran(command.current_dir(&folder).output().await.unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"), "{}", ran.err);
        let results = results(&user);
        assert_eq!(results[0].trim(), "63 61 66 e9 0a");
        assert_eq!(std::fs::read_to_string(folder.join(format!("{file}.txt"))).unwrap(), file);
    }
    assert_eq!(
        crate::help::files(&user.path("agent/sessions")).len(),
        1,
        "the second run goes on with the first one's session"
    );
}

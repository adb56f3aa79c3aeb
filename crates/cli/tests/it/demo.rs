//! `pinch demo`: the main job as a new user sees it.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::help::{CommandOutput, TestUser};

async fn demo(user: &TestUser, args: &[&str]) -> CommandOutput {
    user.run_program(&[&["demo", "--pace", "0", "--dir", "demo"], args].concat()).await
}

/// Checks that the texts occur in `out` in this order.
#[track_caller]
fn check_order(out: &str, texts: &[&str]) {
    let mut rest = out;
    for text in texts {
        let at = rest.find(text).unwrap_or_else(|| panic!("{text:?} is not in its place in\n{out}"));
        rest = &rest[at + text.len()..];
    }
}

#[tokio::test]
async fn the_timeline_shows_the_whole_run() {
    let user = TestUser::new().await;
    let ran = demo(&user, &[]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    check_order(
        &ran.out,
        &[
            "is scripted",
            "> Summarize today's meeting notes and save the summary to my desktop\n",
            "attempt 1  anthropic/claude-sonnet-4-5 with profile primary, thinking off: prompt\n",
            "outcome    rate_limit (Number of request tokens has exceeded your per-minute rate limit (scripted)) after",
            "attempt 2  anthropic/claude-sonnet-4-5 with profile backup",
            "block      \"I look at the notes first.\"\n",
            "tokens     ",
            "tool       read {\"path\":\"notes/",
            "tool       read ok",
            "outcome    context_overflow (prompt is too long: 208310 tokens > 200000 maximum (scripted)) after",
            "→ repairs the conversation\n",
            "repair     compacted",
            "attempt 3  ",
            "tool       write {\"path\":\"~/Desktop/meeting-summary.md\"",
            "tool       write ok",
            "block      \"One question is still open",
            "tokens     ",
            "outcome    ok after",
            "\n\nOne question is still open: whether the release week needs a second person on call.\n\n3 attempts, 1 compaction, ",
        ],
    );
    let end = "\nfile     HOME/demo/Desktop/meeting-summary.md\n\
         session  HOME/demo/state/agents/main/sessions/demo.jsonl\n";
    assert!(ran.out.ends_with(end), "{}", ran.out);
    let summary = std::fs::read_to_string(user.path("demo/Desktop/meeting-summary.md")).unwrap();
    assert!(summary.starts_with("# Product sync: summary\n"), "{summary}");
}

#[tokio::test]
async fn events_are_lines_of_json() {
    let user = TestUser::new().await;
    let ran = demo(&user, &["--json"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["type"].is_string()), "{}", ran.out);
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let decided: Vec<_> = of("run_decided").iter().map(|line| (&line["outcome"], &line["action"])).collect();
    let (limit, overflow) = (json!("rate_limit"), json!("context_overflow"));
    let (attempt, repair, ok, finish) = (json!("attempt"), json!("repair"), json!("ok"), json!("finish"));
    assert_eq!(decided, [(&limit, &attempt), (&overflow, &repair), (&ok, &finish)]);
    let compacting =
        json!({"type": "run_repair", "repair": "compact", "trigger": "overflow", "observedTokens": 208_310});
    assert_eq!(of("run_repair"), [&compacting]);
    assert_eq!(of("run_repaired"), [&json!({"type": "run_repaired", "result": "compacted"})]);
    assert_eq!(of("tool_execution_end").len(), 2);
    assert_eq!(of("run_block").len(), 5);
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "result");
    assert_eq!(last["file"], "HOME/demo/Desktop/meeting-summary.md");
    assert_eq!(last["session"], "HOME/demo/state/agents/main/sessions/demo.jsonl");
    assert_eq!(last["result"]["meta"]["agentMeta"]["compactionCount"], 1);
}

#[tokio::test]
async fn the_second_run_in_a_directory_resumes_its_session() {
    let user = TestUser::new().await;
    assert_eq!(demo(&user, &[]).await.code, Some(0));
    let session = user.path("demo/state/agents/main/sessions/demo.jsonl");
    let first = std::fs::read_to_string(&session).unwrap();
    let notes = std::fs::read_dir(user.path("demo/workspace/notes")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&notes, "my own words").unwrap();
    let ran = demo(&user, &[]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    check_order(&ran.out, &["Resuming the session of an earlier run.", "attempt 1", "1 attempt, 0 compactions, "]);
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "my own words");
    let second = std::fs::read_to_string(&session).unwrap();
    assert!(second.starts_with(&first) && second.len() > first.len(), "the session only grows");
}

#[tokio::test]
async fn unusable_real_providers_are_errors() {
    let user = TestUser::new().await;
    let ran = demo(&user, &["--provider", "zz", "--model", "m"]).await;
    let unknown = "Error: Unknown model: zz/m\nhint: `pinch --list-models` lists models; agents.defaults.model and \
                   models.providers in pinch.json configure others\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), unknown));
    let ran = demo(&user, &["--provider", "anthropic", "--model", "claude-sonnet-4-5", "--json"]).await;
    let no_key = "Error: No API key found for anthropic. Set ANTHROPIC_API_KEY, or give the key as \"apiKey\" of a profile under \
         auth.profiles in pinch.json.\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), no_key));
}

#[tokio::test]
async fn a_real_provider_is_called_with_the_users_own_documents() {
    let user = TestUser::new().await;
    user.answer("I would, but I only know one sentence.");
    let mut command = user.program(&["demo", "--dir", "demo", "--provider", "local", "--model", "m1"]);
    let ran = user.ran(command.env("PINCH_AGENT_DIR", user.path("agent")).output().await.unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    check_order(&ran.out, &["Asking local/m1.\n", "one sentence", "file     no summary was saved\n"]);
    assert!(!ran.out.contains("scripted"), "{}", ran.out);
}

#[tokio::test]
async fn a_directory_that_cannot_be_created_is_reported() {
    let user = TestUser::new().await;
    user.write("demo", "a file, not a folder");
    let ran = demo(&user, &[]).await;
    let text = "Error: cannot create HOME/demo/workspace/notes: Not a directory (os error 20)\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(4), "", text));
}

#[tokio::test]
async fn a_closed_stdout_ends_the_demo_with_an_error() {
    for args in [&["--json"][..], &[]] {
        let user = TestUser::new().await;
        let mut child = user.program(&[&["demo", "--dir", "demo"], args].concat()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next_line().await.unwrap().is_some());
        drop(lines);
        let ran = user.ran(child.wait_with_output().await.unwrap());
        assert_eq!(
            (ran.code, ran.err.as_str()),
            (Some(4), "Error: cannot write the output: Broken pipe (os error 32)\n")
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_ends_the_demo_and_the_next_run_finishes_the_job() {
    let user = TestUser::new().await;
    // An hour between two chunks: the run stays in the middle of an answer.
    let mut child = user.program(&["demo", "--dir", "demo", "--pace", "3600000"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next_line().await.unwrap().unwrap().contains("attempt 2") {}
    crate::help::interrupt(&child).await;
    let mut told = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        told.push(line);
    }
    let ran = user.ran(child.wait_with_output().await.unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""), "{told:?}");
    assert!(told.iter().any(|line| line.contains("outcome    aborted")), "{told:?}");
    let ran = demo(&user, &[]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(user.path("demo/Desktop/meeting-summary.md").is_file(), "{}", ran.out);
}

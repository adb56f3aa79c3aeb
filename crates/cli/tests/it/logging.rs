//! The log enabled by `PINCH_LOG`: spans of a run on stderr or in a private file, never on stdout, without secrets.

use serde_json::json;

use crate::help::{CommandOutput, TestUser};

const KEY: &str = "sk-sentinel-of-the-environment";

async fn user() -> TestUser {
    let user = TestUser::new().await;
    let config = json!({
        "agents": {"defaults": {"model": "anthropic/claude-sonnet-4-5"}},
        "models": {"providers": {"anthropic": {"baseUrl": user.server.url()}}},
    });
    user.write(".pinch/pinch.json", &config.to_string());
    user.answer("Done.");
    user
}

async fn agent(user: &TestUser, variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = user.program(&["agent", "--session-id", "of ada", "--message", &format!("what is {KEY}?")]);
    command.env("ANTHROPIC_API_KEY", KEY).envs(variables.iter().copied());
    user.ran(command.output().await.unwrap())
}

#[tokio::test]
async fn a_run_is_logged_with_its_spans_and_without_secrets() {
    let user = user().await;
    let ran = agent(&user, &[("PINCH_LOG", "trace")]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"));
    let decided = ran.err.lines().find(|line| line.contains("attempt decided")).unwrap();
    for part in ["run{run_id=", "trigger=", ":attempt{n=1 provider=\"anthropic\"", "decision=\"finish\"", "session=\""]
    {
        assert!(decided.contains(part), "{part} is not in {decided}");
    }
    let ended = ran.err.lines().find(|line| line.contains("run ended")).unwrap();
    for part in ["queue_wait_ms=", "outcome=\"ok\"", "attempts=1", "rotations=0", "fallbacks=0", "compactions=0"] {
        assert!(ended.contains(part), "{part} is not in {ended}");
    }
    let turn = ran.err.lines().find(|line| line.contains(":turn{") && line.contains("close")).unwrap();
    assert!(turn.contains(r#"gen_ai.operation.name="chat""#) && turn.contains("gen_ai.usage.output_tokens="), "{turn}");
    for hidden in [KEY, "of ada", "what is", "Done."] {
        assert!(!ran.err.contains(hidden), "{hidden}: {}", ran.err);
    }
}

#[tokio::test]
async fn a_level_for_a_crate_applies_only_to_that_crate() {
    let user = user().await;
    let ran = agent(&user, &[("PINCH_LOG", "off,pinch_embed=info")]).await;
    assert!(ran.err.contains("attempt decided") && !ran.err.contains("turn{"), "{}", ran.err);
    user.answer("Done.");
    assert_eq!(agent(&user, &[("PINCH_LOG", "")]).await.err, "");
}

#[tokio::test]
async fn small_context_windows_are_warned_about() {
    for (window, is_small) in [(31_999, true), (32_000, false)] {
        let user = TestUser::new().await;
        let config = json!({
            "agents": {"defaults": {"model": "anthropic/claude-sonnet-4-5", "contextTokens": window}},
            "models": {"providers": {"anthropic": {"baseUrl": user.server.url()}}},
        });
        user.write(".pinch/pinch.json", &config.to_string());
        user.answer("Done.");
        let ran = agent(&user, &[("PINCH_LOG", "warn")]).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Done.\n"));
        let warning = ran.err.lines().find(|line| line.contains("the context window is small"));
        assert_eq!(warning.is_some(), is_small, "{}", ran.err);
        let says = |part: &str| warning.is_none_or(|line| line.contains(part));
        assert!(says("tokens=31999") && says("source=\"agentContextTokens\""), "{}", ran.err);
    }
}

#[tokio::test]
async fn the_log_goes_to_a_private_file_if_one_is_named() {
    let user = user().await;
    user.write("logs/of.log", "before\n");
    let ran = agent(&user, &[("PINCH_LOG", "info"), ("PINCH_LOG_FILE", "logs/of.log")]).await;
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("Done.\n", ""));
    let path = user.path("logs/of.log");
    let log = std::fs::read_to_string(&path).unwrap();
    assert!(log.starts_with("before\n") && log.contains("attempt decided"), "{log}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn invalid_filters_and_unwritable_files_are_errors_with_a_remedy() {
    let user = user().await;
    let ran = agent(&user, &[("PINCH_LOG", "loud")]).await;
    assert!(
        ran.code == Some(2) && ran.err.contains("PINCH_LOG=loud") && ran.err.contains("hint: name a level"),
        "{ran:?}"
    );
    let ran = agent(&user, &[("PINCH_LOG", "info"), ("PINCH_LOG_FILE", "/dev/null/log")]).await;
    assert!(ran.code == Some(2) && ran.err.contains("hint: name a file in PINCH_LOG_FILE"), "{ran:?}");
    assert!(user.asked().is_none());
}

//! `pinch export` from the outside: the page, the branch, and error messages.

use serde_json::json;

use crate::help::{CommandOutput, TestUser};

const ID: &str = "0197-a1b2";

/// Creates a user with a session of one question, in a separate directory.
async fn user(version: u64) -> TestUser {
    let user = TestUser::new().await;
    let header = json!({"type": "session", "version": version, "id": ID, "timestamp": "2025-06-01T10:00:00.000Z", "cwd": "/gone"});
    let entry = json!({"type": "message", "id": "a0000001", "parentId": null, "timestamp": "2025-06-01T10:00:00.000Z",
        "message": {"role": "user", "content": "stored <question>", "timestamp": 1}});
    user.write("agent/sessions/--gone--/2025_0197.jsonl", &format!("{header}\n{entry}\n"));
    user
}

async fn export(user: &TestUser, args: &[&str]) -> CommandOutput {
    let agent = user.path("agent");
    user.run_program(&[&["export", "--agent-dir", agent.to_str().unwrap()], args].concat()).await
}

fn fails(code: i32, err: &str) -> CommandOutput {
    CommandOutput { code: Some(code), out: String::new(), err: format!("{err}\n") }
}

fn exported(path: &str) -> CommandOutput {
    CommandOutput { code: Some(0), out: format!("Exported to: {path}\n"), err: String::new() }
}

#[tokio::test]
async fn a_session_of_any_directory_is_exported() {
    let user = user(3).await;
    assert_eq!(export(&user, &["0197"]).await, exported("pinch-session-2025_0197.html"));
    let page = std::fs::read_to_string(user.path("pinch-session-2025_0197.html")).unwrap();
    assert!(page.contains("<p>stored &lt;question&gt;</p>") && page.contains("id=\"scheme-system\" checked"));
    assert_eq!(
        export(&user, &["agent/sessions/--gone--/2025_0197.jsonl", "~/new/p.html"]).await,
        exported("HOME/new/p.html")
    );
    assert_eq!(std::fs::read_to_string(user.path("new/p.html")).unwrap(), page);
    let printed = export(&user, &[ID, "-"]).await;
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    assert_eq!(printed.out, page);
}

#[tokio::test]
async fn the_active_branch_is_exported_as_a_session() {
    let user = user(3).await;
    assert_eq!(export(&user, &["0197", "b.jsonl"]).await, exported("b.jsonl"));
    let text = std::fs::read_to_string(user.path("b.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains("stored <question>"), "{text}");
}

#[tokio::test]
async fn the_session_is_not_changed() {
    for version in [2, 3] {
        let user = user(version).await;
        let session = user.path("agent/sessions/--gone--/2025_0197.jsonl");
        let before = std::fs::read(&session).unwrap();
        assert_eq!(export(&user, &["0197"]).await, exported("pinch-session-2025_0197.html"));
        for out in [session.to_str().unwrap(), "agent/sessions/../sessions/--gone--/2025_0197.jsonl"] {
            let ran = export(&user, &["0197", out]).await;
            assert_eq!(ran.code, Some(1), "{ran:?}");
        }
        assert_eq!(std::fs::read(&session).unwrap(), before);
        assert_eq!(std::fs::read_dir(session.parent().unwrap()).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn themes_are_selected_by_name_or_file() {
    let user = user(3).await;
    let page = |ran: CommandOutput| ran.out;
    let light = page(export(&user, &["0197", "-", "--theme", "light"]).await);
    assert!(light.contains("id=\"scheme-light\" checked"));
    let colors: serde_json::Map<String, serde_json::Value> = pinch_embed::coding_agent::resources::themes::COLORS
        .into_iter()
        .map(|name| (name.to_owned(), json!("#123456")))
        .collect();
    let theme = user.write("agent/themes/mine.json", &json!({"name": "mine", "colors": colors}).to_string());
    let mine = page(export(&user, &["0197", "-", "--theme", "mine"]).await);
    assert!(mine.contains("--accent:light-dark(#b8442a,#123456);") && mine.contains("id=\"scheme-dark\" checked"));
    assert_eq!(page(export(&user, &["0197", "-", "--theme", theme.to_str().unwrap()]).await), mine);
    let unknown = "Error: unknown theme none\nhint: available themes are mine, dark, light";
    assert_eq!(export(&user, &["0197", "--theme", "none"]).await, fails(1, unknown));
    user.write("agent/settings.json", r#"{"theme": "mine"}"#);
    let of_settings = page(export(&user, &["0197", "-"]).await);
    assert!(of_settings.contains("#123456") && of_settings.contains("id=\"scheme-system\" checked"));
    user.write("agent/settings.json", r#"{"theme": "lost"}"#);
    let ran = export(&user, &["0197"]).await;
    let warned = CommandOutput {
        err: "Warning: theme not found: lost (set in settings.json)\n".into(),
        ..exported("pinch-session-2025_0197.html")
    };
    assert_eq!(ran, warned);
}

#[tokio::test]
async fn exports_that_are_impossible_are_errors() {
    let user = user(3).await;
    assert_eq!(export(&user, &["nobody"]).await, fails(1, "No session found matching 'nobody'"));
    assert_eq!(export(&user, &["./no.jsonl"]).await, fails(1, "Error: session not found: HOME/no.jsonl"));
    for (text, err) in [
        ("", "Error: the session is empty: HOME/x.jsonl"),
        ("\n\n", "Error: Session file is not a valid pi session: HOME/x.jsonl"),
        ("{\"type\":\"message\",\"id\":\"a\"}\n", "Error: Session file is not a valid pi session: HOME/x.jsonl"),
    ] {
        let path = user.write("x.jsonl", text);
        assert_eq!(export(&user, &["x.jsonl"]).await, fails(1, err));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it stays as it is");
    }
    user.write("file", "");
    let ran = export(&user, &["0197", "file/p.html"]).await;
    assert_eq!(ran.code, Some(4));
    assert!(ran.err.starts_with("Error: cannot write HOME/file/p.html: "), "{ran:?}");
    assert_eq!(export(&user, &[]).await.code, Some(1));
}

//! The tools offered to a model.

use crate::help::TestUser;

/// Sends one prompt with these flags; returns the names of the tools in the request.
async fn offered(user: &TestUser, flags: &[&str]) -> Vec<String> {
    user.answer("Good.");
    let ran = user.run(&[&["--model", "local/m1", "--no-session", "-p", "x"], flags].concat()).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Good.\n"), "{}", ran.err);
    let request = user.server.requests().last().unwrap().json();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn flags_choose_tools() {
    let user = TestUser::new().await;
    assert_eq!(offered(&user, &[]).await, ["read", "bash", "edit", "write"]);
    assert_eq!(offered(&user, &["-xt", "write,edit"]).await, ["read", "bash"]);
    assert_eq!(offered(&user, &["-t", "grep, find,ls,read", "--exclude-tools=ls"]).await, ["grep", "find", "read"]);
    assert_eq!(offered(&user, &["-t", "-bash,+grep"]).await, ["read", "edit", "write", "grep"]);
    assert!(offered(&user, &["-nt"]).await.is_empty());
    assert!(offered(&user, &["-nt", "-t", "-bash"]).await.is_empty());
    for flags in [["-nt", "-t", "read"], ["-nbt", "-t", "read"], ["-nt", "-t", "+read,-bash"]] {
        assert_eq!(offered(&user, &flags).await, ["read"], "{flags:?}");
    }
    let wrong = user.run(&["--model", "local/m1", "-xt", "frob", "-p", "x"]).await;
    let text = "Error: Unknown tool name: frob. Available tools: read, bash, edit, write, grep, find, ls\n";
    assert_eq!((wrong.code, wrong.err.as_str()), (Some(1), text));
}

#[tokio::test]
async fn flags_take_precedence_over_settings_for_tools() {
    let user = TestUser::new().await;
    let set = |list: &str| user.write("agent/settings.json", &format!(r#"{{"defaultTools": {list}}}"#));
    set(r#"["+grep", "-write"]"#);
    assert_eq!(offered(&user, &[]).await, ["read", "bash", "edit", "grep"]);
    assert_eq!(offered(&user, &["-t", "+ls"]).await, ["read", "bash", "edit", "grep", "ls"]);
    assert_eq!(offered(&user, &["-t", "ls"]).await, ["ls"]);
    set(r#"["read", "ls"]"#);
    assert_eq!(offered(&user, &["-xt", "ls"]).await, ["read"]);
    set(r#"["frob"]"#);
    assert!(offered(&user, &[]).await.is_empty(), "what nobody asked for is not there");
    set(r#"["-bash", "+frob"]"#);
    assert_eq!(offered(&user, &[]).await, ["read", "edit", "write"]);
    set(r#"["read", "frob"]"#);
    assert_eq!(offered(&user, &[]).await, ["read"]);
    let ran = user.run(&["--model", "nowhere/m1", "--no-session", "-p", "x"]).await;
    let warning = "Warning: defaultTools in settings.json: unknown tools are ignored. Unknown tool name: frob. Available tools: read,";
    assert!(ran.err.starts_with(warning), "{}", ran.err);
}

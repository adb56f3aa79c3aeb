use serde_json::json;

use super::*;

#[test]
fn calls_are_described_by_their_arguments() {
    let long = "x".repeat(200);
    let shortened = format!("{}…", "x".repeat(157));
    let exact = "y".repeat(160);
    for (name, args, expected) in [
        ("read", json!({"path": "/home/ada/a.txt"}), Some("~/a.txt")),
        ("read", json!({"file_path": "b.txt", "offset": 10, "limit": 5}), Some("b.txt:10-15")),
        ("read", json!({"path": "b.txt", "offset": 10}), Some("b.txt")),
        ("write", json!({"path": "c.txt", "content": "much"}), Some("c.txt")),
        ("edit", json!({"file_path": "d.txt"}), Some("d.txt")),
        ("attach", json!({"path": "e.png", "fileName": "f.png"}), Some("e.png")),
        ("attach", json!({"url": "https://e.com/g.png"}), Some("https://e.com/g.png")),
        ("Bash", json!({"command": "  ls -l\nrm x"}), Some("ls -l")),
        ("exec", json!({"command": "top", "pty": true, "elevated": false}), Some("top · pty")),
        ("exec", json!({"command": "top", "pty": true, "elevated": true}), Some("top · pty · elevated")),
        ("exec", json!({"command": "top", "pty": "true"}), Some("top")),
        ("apply-patch", json!({"patch": "*** Begin Patch"}), None),
        ("browser", json!({"action": "open", "targetUrl": "https://e.com"}), Some("open · https://e.com")),
        ("browser", json!({"action": "no_such_action"}), Some("no such action")),
        ("browser", json!({"action": " "}), None),
        ("other", json!({"command": long}), Some(shortened.as_str())),
        ("other", json!({"command": exact}), Some(exact.as_str())),
        ("other", json!({"name": "a", "query": "b"}), Some("name a · query b")),
        ("other", json!({"nodeId": 7, "requestId": "r"}), Some("node 7 · request r")),
        ("other", json!({"name": "a", "id": 0, "query": "b", "path": false, "url": null}), Some("name a · query b")),
        ("other", json!({"path": true}), Some("true")),
        ("other", json!({"path": ["a", 2, "", "c"]}), Some("a, 2, c")),
        ("other", json!({"path": ["a", "b", "c", "d"]}), Some("a, b, c…")),
        ("other", json!({"path": []}), None),
        ("other", json!({"path": {"a": 1}}), None),
        ("other", json!({"unknown": "a"}), None),
    ] {
        assert_eq!(tool_meta(name, &args, Some("/home/ada")).as_deref(), expected, "{name} {args}");
    }
    assert_eq!(tool_meta("read", &json!({"path": "/a"}), Some("/")).as_deref(), Some("/a"), "the root is no home");
}

#[test]
fn labels_of_arguments_are_words() {
    for (key, expected) in [
        ("agentId", "agent"),
        ("sessionKey", "session"),
        ("targetId", "target"),
        ("targetUrl", "url"),
        ("nodeId", "node"),
        ("requestId", "request"),
        ("messageId", "message"),
        ("threadId", "thread"),
        ("channelId", "channel"),
        ("guildId", "guild"),
        ("userId", "user"),
        ("runTimeoutSeconds", "timeout"),
        ("timeoutSeconds", "timeout"),
        ("includeTools", "tools"),
        ("pollQuestion", "poll"),
        ("maxChars", "max chars"),
        ("request.kind", "kind"),
        ("fileName", "file name"),
        ("file_name", "file name"),
        ("Name", "name"),
    ] {
        assert_eq!(label_of(key), expected, "{key}");
    }
}

#[test]
fn calls_of_a_tool_are_one_line() {
    let line = |name: &str, metas: &[&str], markdown| {
        aggregate(name, &metas.iter().map(|meta| (*meta).to_owned()).collect::<Vec<_>>(), markdown)
    };
    for (name, metas, expected) in [
        ("read", &[][..], "📖 Read"),
        ("read", &[" ", ""], "📖 Read"),
        ("read", &["~/a/b.txt", "~/a/c.txt", "/d/e.txt"], "📖 Read: ~/a/{b.txt, c.txt}; /d/e.txt"),
        ("read", &["/a/b", "x y", "/", "/a/", "relative/c"], "📖 Read: x y; /; /a/; relative/c; /a/b"),
        (
            "read",
            &["/a/b c", "/a/x://y", "/a&&b/c", "/a||b/c", "/a→b/c"],
            "📖 Read: /a/b c; /a/x://y; /a&&b/c; /a||b/c; /a→b/c",
        ),
        ("exec", &["ls · pty · elevated"], "🛠️ Exec: pty · elevated · ls"),
        ("exec", &["pty"], "🛠️ Exec: pty"),
        ("my_own_tool", &["x"], "🧩 My Own Tool: x"),
        ("AB_c_x1", &[], "🧩 Ab C X1"),
        ("", &[], "🧩 Tool"),
    ] {
        assert_eq!(line(name, metas, false), expected, "{name} {metas:?}");
    }
    assert_eq!(line("exec", &["ls · pty"], true), "🛠️ Exec: pty · `ls`");
    assert_eq!(line("exec", &["echo `date`"], true), "🛠️ Exec: echo `date`");
    assert_eq!(line("exec", &["pty"], true), "🛠️ Exec: pty");
}

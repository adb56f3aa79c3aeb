//! Tool calls and their results.

use serde_json::{Value, json};

use super::{ModeScenario, calls, scenario};

/// An image of one pixel.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(super) fn all() -> Vec<ModeScenario> {
    let lines: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
    let wide = "x".repeat(60_000);
    let bash = |command: &str| ("bash", json!({"command": command}));
    let read = |more: Value| {
        let mut args = json!({"path": "a.txt"});
        super::put_in(&mut args, more);
        ("read", args)
    };
    let edit = |old: &str, new: &str| ("edit", json!({"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}));
    let text = |text: &str| json!({"files": {"a.txt": text}, "filesToCompare": ["a.txt"]});
    let tree = json!({"args": ["--mode", "json", "-t", "grep,find,ls", "-p", "go"], "files": {
        ".gitignore": "ignored/\n*.log\n", ".git/HEAD": "x", "a.txt": "one\nneedle two\nthree\nNeedle four\nfive\n", "b/c.rs": "fn needle() {}\n",
        "b/d.txt": "needle.\nneedle\n", "ignored/e.txt": "needle ignored\n", "f.log": "needle\n", ".hidden/g.txt": "needle hidden\n", "b/long.txt": format!("needle {}\n", "y".repeat(700)),
    }});
    vec![
        calls(
            "bash",
            &[bash("echo out; sleep 0.1; echo err >&2"), bash("printf 'no newline'"), bash("true")],
            json!({}),
        ),
        calls("bash that fails", &[bash("echo no; exit 3"), bash("exit 1"), bash("nosuchcommand")], json!({})),
        calls("bash that a signal ends", &[bash("echo x; kill -9 $$")], json!({})),
        calls(
            "bash that takes too long",
            &[
                ("bash", json!({"command": "echo begun; sleep 20", "timeout": 1})),
                ("bash", json!({"command": "echo x", "timeout": 0})),
                ("bash", json!({"command": "echo x", "timeout": -1})),
            ],
            json!({}),
        ),
        calls(
            "bash that says much",
            &[bash("seq 1 30000"), bash("head -c 60000 /dev/zero | tr '\\0' x; echo; seq 1 10")],
            json!({}),
        ),
        calls("bash with colours and bytes", &[bash("printf '\\033[31mred\\033[0m \\001 \\377 \\r\\nend'")], json!({})),
        calls(
            "bash knows its session",
            &[bash("echo $PI_PROVIDER $PI_MODEL $PI_REASONING_LEVEL $AI_AGENT $PI_CODING_AGENT")],
            json!({}),
        ),
        calls("bash with a prefix", &[bash("echo $FOO")], json!({"settings": {"shellCommandPrefix": "FOO=bar"}})),
        calls("bash in a tool's folder", &[bash("pwd; cat a.txt; cd /; pwd"), bash("pwd")], text("hello\n")),
        calls(
            "read",
            &[
                read(json!({})),
                read(json!({"offset": 2})),
                read(json!({"offset": 2, "limit": 1})),
                read(json!({"limit": 2})),
                read(json!({"offset": 9})),
            ],
            text("one\ntwo\nthree\nfour\n"),
        ),
        calls(
            "read what is missing",
            &[
                ("read", json!({"path": "missing.txt"})),
                ("read", json!({"path": "."})),
                ("read", json!({"path": "~/x"})),
                ("read", json!({"path": "@a.txt"})),
            ],
            text("one\n"),
        ),
        calls("read what is long", &[read(json!({})), read(json!({"offset": 2500}))], text(&lines)),
        calls("read what is wide", &[read(json!({}))], text(&wide)),
        calls("read odd lines", &[read(json!({}))], text("\u{feff}one\r\ntwo\rthree\n\n\n")),
        calls("read nothing", &[read(json!({}))], text("")),
        calls(
            "read a picture",
            &[("read", json!({"path": "p.png"}))],
            json!({"args": ["--mode", "json", "--model", "vis", "-p", "go"], "files": {"p.png": {"base64": PICTURE}}}),
        ),
        calls(
            "read a picture for claude",
            &[("read", json!({"path": "p.png"}))],
            json!({"args": ["--mode", "json", "--model", "c2", "-p", "go"], "files": {"p.png": {"base64": PICTURE}}}),
        ),
        calls(
            "read a picture unseen",
            &[("read", json!({"path": "p.png"}))],
            json!({"files": {"p.png": {"base64": PICTURE}}}),
        ),
        calls(
            "write",
            &[
                ("write", json!({"path": "a.txt", "content": "new\n"})),
                ("write", json!({"path": "x/y/é.txt", "content": "é"})),
                ("write", json!({"path": "a.txt/b", "content": ""})),
            ],
            json!({"files": {"a.txt": "old"}, "filesToCompare": ["a.txt", "x/y/é.txt"]}),
        ),
        calls("edit", &[edit("two", "2"), edit("three\nfour", "3\n4\n4b")], text("one\ntwo\nthree\nfour\nfive\n")),
        calls(
            "edit several places",
            &[(
                "edit",
                json!({"path": "a.txt", "edits": [{"oldText": "five", "newText": "5"}, {"oldText": "one", "newText": "1"}]}),
            )],
            text("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"),
        ),
        calls(
            "edit in other forms",
            &[
                ("edit", json!({"path": "a.txt", "oldText": "one", "newText": "1"})),
                ("edit", json!({"path": "a.txt", "edits": {"oldText": "two", "newText": "2"}})),
                ("edit", json!({"path": "a.txt", "edits": "[{\"oldText\": \"three\", \"newText\": \"3\"}]"})),
                (
                    "edit",
                    json!({"path": "a.txt", "edits": [{"oldText": "1", "newText": "one", "why": "so"}], "note": 1}),
                ),
            ],
            text("one\ntwo\nthree\n"),
        ),
        calls(
            "edit that fails",
            &[
                edit("zero", "0"),
                edit("o", "0"),
                edit("one", "one"),
                edit("", "x"),
                ("edit", json!({"path": "a.txt", "edits": []})),
                ("edit", json!({"path": "missing.txt", "edits": [{"oldText": "a", "newText": "b"}]})),
                (
                    "edit",
                    json!({"path": "a.txt", "edits": [{"oldText": "one\ntwo", "newText": "x"}, {"oldText": "two", "newText": "y"}]}),
                ),
            ],
            text("one\ntwo\nthree\n"),
        ),
        calls("edit keeps line ends", &[edit("two\nthree", "2\n3")], text("\u{feff}one\r\ntwo\r\nthree\r\n")),
        calls("edit nearly the same text", &[edit("say \"it's\" - now", "said")], text("say “it’s” – now   \nnext\n")),
        calls(
            "grep",
            &[
                ("grep", json!({"pattern": "needle", "path": "a.txt"})),
                ("grep", json!({"pattern": "needle hidden"})),
                ("grep", json!({"pattern": "needle ignored"})),
                ("grep", json!({"pattern": "y{600}", "path": "b"})),
                ("grep", json!({"pattern": "needle", "path": "a.txt", "ignoreCase": true, "context": 1})),
                ("grep", json!({"pattern": "needle.", "literal": true})),
                ("grep", json!({"pattern": "needle", "glob": "*.rs"})),
                ("grep", json!({"pattern": "nothing"})),
                ("grep", json!({"pattern": "needle", "path": "b/d.txt", "limit": 1})),
                ("grep", json!({"pattern": "(unclosed"})),
                ("grep", json!({"pattern": "x", "path": "missing"})),
            ],
            tree.clone(),
        ),
        calls(
            "find",
            &[
                ("find", json!({"pattern": "*.txt"})),
                ("find", json!({"pattern": "**/*.rs"})),
                ("find", json!({"pattern": "b/*.txt"})),
                ("find", json!({"pattern": "*.txt", "path": "b"})),
                ("find", json!({"pattern": "*.rs", "limit": 1})),
                ("find", json!({"pattern": "*.zip"})),
                ("find", json!({"pattern": "*", "path": "missing"})),
            ],
            tree.clone(),
        ),
        calls(
            "ls",
            &[
                ("ls", json!({})),
                ("ls", json!({"path": "b"})),
                ("ls", json!({"path": "missing"})),
                ("ls", json!({"path": "a.txt"})),
                ("ls", json!({"limit": 2})),
            ],
            tree,
        ),
        calls(
            "calls that are wrong",
            &[
                ("nothing", json!({})),
                ("read", json!({})),
                ("read", json!({"path": 5})),
                ("bash", json!({"command": ["x"]})),
                ("read", json!({"path": "a.txt", "limit": "two"})),
                ("read", json!({"path": "a.txt", "offset": "1", "limit": null})),
            ],
            text("one\n"),
        ),
        scenario(
            "several calls at once",
            "--mode json -p go",
            json!({"files": {"a.txt": "A"}, "serverScript": [{"text": "I look.", "tools": [{"name": "bash", "args": {"command": "sleep 0.5; echo slow"}}, {"name": "read", "args": {"path": "a.txt"}}]}, {"text": "done"}]}),
        ),
        scenario(
            "calls of claude",
            "--mode json --model c2 --thinking low -p go",
            json!({"files": {"a.txt": "A"}, "serverScript": [{"blocks": [{"thinking": "Look", "signature": "sg"}, {"text": "I look."}, {"tool": {"name": "read", "args": {"path": "a.txt"}}}]}, {"text": "done"}]}),
        ),
        scenario(
            "calls in print mode",
            "-p go",
            json!({"serverScript": [{"text": "I look.", "tool": {"name": "bash", "args": {"command": "echo hi"}}}, {"text": "It says hi."}]}),
        ),
        scenario(
            "a call that is cut off",
            "--mode json -p go",
            json!({"serverScript": [{"tool": {"name": "read", "rawArgs": "{\"path\":\"a.t"}, "stop": "length"}, {"text": "done"}]}),
        ),
    ]
}

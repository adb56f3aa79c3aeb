//! The exploration tools: grep, find, ls.

use std::path::Path;

use pinch_stdx::cancel::{Cancel, CancelReason};
use serde_json::json;

use crate::tool_calls::FileTree;

#[tokio::test]
async fn ignore_files_apply_inside_and_outside_of_repositories() {
    let tree = FileTree::new(&[
        (".gitignore", b"*.log\nout/\n"),
        (".fdignore", b"fd.txt\n"),
        (".rgignore", b"rg.txt\n"),
        ("a.log", b"hit\n"),
        ("a.txt", b"hit\n"),
        ("fd.txt", b"hit\n"),
        ("rg.txt", b"hit\n"),
        ("out/o.txt", b"hit\n"),
        ("sub/.gitignore", b"s.txt\n"),
        ("sub/s.txt", b"hit\n"),
        ("sub2/s.txt", b"hit\n"),
    ]);
    let found = "a.txt\nrg.txt\nsub2/s.txt";
    assert_eq!(tree.text("find", json!({"pattern": "*.{txt,log}"})).await, found);
    let hits = "a.txt:1: hit\nfd.txt:1: hit\nsub2/s.txt:1: hit";
    assert_eq!(tree.text("grep", json!({"pattern": "hit"})).await, hits);
    tree.write(".git/HEAD", b"x");
    tree.write(".git/info/exclude", b"a.txt\n");
    assert_eq!(tree.text("find", json!({"pattern": "*.txt"})).await, "rg.txt\nsub2/s.txt");
    assert_eq!(tree.text("find", json!({"pattern": "*.txt", "path": "sub"})).await, "No files found matching pattern");
}

#[tokio::test]
async fn nested_repositories_use_their_own_ignore_files() {
    for outer_is_repository in [false, true] {
        let tree = FileTree::new(&[
            (".gitignore", b"*.txt\nhidden/\n"),
            ("a.md", b""),
            ("a.txt", b""),
            ("b/.git/HEAD", b""),
            ("b/.gitignore", b"*.md\n"),
            ("b/b.md", b""),
            ("b/b.txt", b""),
            ("b/deep/.git/HEAD", b""),
            ("b/deep/d.md", b""),
            ("c.md", b""),
            ("hidden/.git/HEAD", b""),
            ("hidden/h.txt", b""),
            ("z/.git/HEAD", b""),
            ("z/z.txt", b""),
        ]);
        if outer_is_repository {
            tree.write(".git/HEAD", b"");
        }
        let all = "a.md\nb/\nb/.gitignore\nb/b.txt\nb/deep/\nb/deep/d.md\nc.md\nz/\nz/z.txt";
        let found = tree.text("find", json!({"pattern": "*"})).await;
        assert_eq!(found, format!(".gitignore\n{all}"), "a repository around: {outer_is_repository}");
        assert_eq!(tree.text("find", json!({"pattern": "*.txt", "path": "hidden"})).await, "h.txt");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_leads_nowhere_is_not_suggested_for_itself() {
    let tree = FileTree::new(&[("dang.md", b"")]);
    std::os::unix::fs::symlink("nowhere", tree.root().join("dang.txt")).unwrap();
    let read = tree.text("read", json!({"path": "dang.txt"})).await;
    assert!(!read.contains("dang.txt?") && !read.contains("dang.txt,"), "{read}");
}

#[tokio::test]
async fn find_reports_when_there_are_more_results() {
    let tree = FileTree::new(&[("b/", b""), ("a.rs", b""), ("b/C.rs", b"")]);
    let two = json!({"pattern": "*", "limit": 2.9});
    let notice = "\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]";
    assert_eq!(tree.text("find", two.clone()).await, format!("a.rs\nb/{notice}"));
    let output = tree.call("find", two, &Cancel::new()).await.unwrap();
    assert_eq!(output.details, Some(json!({"resultLimitReached": 2})));
    assert_eq!(tree.text("find", json!({"pattern": "*.rs", "limit": 2})).await, "a.rs\nb/C.rs");
    let least = tree.text("find", json!({"pattern": "*.rs", "limit": -5})).await;
    assert_eq!(least, "a.rs\n\n[1 results limit reached. Use limit=2 for more, or refine pattern]");
    assert_eq!(tree.text("find", json!({"pattern": "c.rs"})).await, "b/C.rs");
    assert_eq!(tree.text("find", json!({"pattern": "b/*.rs"})).await, "b/C.rs");
    assert_eq!(tree.text("find", json!({"pattern": "*", "path": "no"})).await, "error: Path not found: ./no");
    assert_eq!(tree.text("find", json!({"pattern": "*", "path": "a.rs"})).await, "error: Not a directory: ./a.rs");
    let broken = tree.text("find", json!({"pattern": "[a"})).await;
    assert!(broken.starts_with("error: error parsing glob '[a'"), "{broken}");
}

#[tokio::test]
async fn long_lists_are_truncated_at_fifty_kilobytes() {
    let tree = FileTree::new(&[]);
    for i in 0..900 {
        tree.write(&format!("{}-{i:03}", "n".repeat(80)), b"");
    }
    for (tool, input) in [("find", json!({"pattern": "*"})), ("ls", json!({"limit": 1000}))] {
        let output = tree.call(tool, input, &Cancel::new()).await.unwrap();
        let text = output.content[0].as_text().unwrap();
        assert!(text.ends_with("\n\n[50.0KB limit reached]"), "{}", &text[text.len() - 100..]);
        let cut = &output.details.unwrap()["truncation"];
        assert_eq!((cut["totalLines"].as_u64(), cut["outputLines"].as_u64()), (Some(900), Some(602)), "{tool}");
        assert_eq!(cut["maxLines"], 9_007_199_254_740_991_u64);
    }
}

#[tokio::test]
async fn grep_shows_text_in_any_encoding() {
    let long = format!("{}hit", "ä".repeat(600));
    let utf16: Vec<u8> = "\u{feff}hit in UTF-16\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let tree = FileTree::new(&[
        ("binary", b"hit\0hit\ntwo\0x\n"),
        ("crlf.txt", b"one hit\r\nlone\rhit\n"),
        ("latin.txt", b"caf\xe9 hit\n"),
        ("long.txt", long.as_bytes()),
        ("utf16.txt", &utf16),
    ]);
    let expected = format!(
        "crlf.txt:1: one hit\ncrlf.txt:2: lone\rhit\nlatin.txt:1: caf\u{fffd} hit\nlong.txt:1: {}... [truncated]\n\
         utf16.txt:1: hit in UTF-16\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]",
        "ä".repeat(500)
    );
    assert_eq!(tree.text("grep", json!({"pattern": "hit"})).await, expected);
    assert_eq!(tree.text("grep", json!({"pattern": "^hit$", "path": "binary"})).await, "No matches found");
    assert_eq!(tree.text("grep", json!({"pattern": "^$|two", "path": "binary"})).await, "binary:2: two\0x");
}

#[tokio::test]
async fn grep_resolves_globs_from_the_searched_directory() {
    let tree = FileTree::new(&[("r/src/a.c", b"hit\n"), ("r/src/a.h", b"hit\n"), ("r/.gitignore", b"*.h\n")]);
    for (glob, expected) in [
        ("src/*.c", "src/a.c:1: hit"),
        ("./src/*.c", "src/a.c:1: hit"),
        ("!*.c", "No matches found"),
        ("!./src/*.c", "No matches found"),
        ("", "src/a.c:1: hit"),
        ("r/src/*.c", "No matches found"),
    ] {
        assert_eq!(tree.text("grep", json!({"pattern": "hit", "path": "r", "glob": glob})).await, expected, "{glob}");
    }
    let broken = tree.text("grep", json!({"pattern": "hit", "glob": "{a"})).await;
    assert!(broken.starts_with("error: error parsing glob '{a'"), "{broken}");
}

#[tokio::test]
async fn grep_counts_matches_across_files() {
    let tree = FileTree::new(&[("a", b"m\nm\n"), ("b", b"-\nm\n-\n"), ("c", b"m\n")]);
    let ask = |limit: u64, context: u64| json!({"pattern": "m", "limit": limit, "context": context});
    let notice = |n: u64| format!("\n\n[{n} matches limit reached. Use limit={} for more, or refine pattern]", n * 2);
    assert_eq!(tree.text("grep", ask(3, 1)).await, format!("a:1: m\na:2: m\nb-1- -\nb:2: m\nb-3- -{}", notice(3)));
    assert_eq!(tree.text("grep", ask(2, 1)).await, format!("a:1: m\na:2: m{}", notice(2)));
    assert_eq!(tree.text("grep", ask(4, 0)).await, "a:1: m\na:2: m\nb:2: m\nc:1: m");
    let literal = json!({"pattern": "M(", "literal": true, "ignoreCase": true});
    assert_eq!(tree.text("grep", literal).await, "No matches found");
    let two_lines = tree.text("grep", json!({"pattern": "m\nm"})).await;
    assert!(two_lines.starts_with("error: the literal"), "{two_lines}");
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_shown_and_not_followed() {
    use std::os::unix::fs::symlink;
    let tree = FileTree::new(&[("d/f.txt", b"hit\n")]);
    let root = tree.root();
    symlink(&root, root.join("d/loop")).unwrap();
    symlink("self", root.join("self")).unwrap();
    symlink("gone", root.join("dangling")).unwrap();
    symlink("d", root.join("to-d")).unwrap();
    assert_eq!(tree.text("grep", json!({"pattern": "hit"})).await, "d/f.txt:1: hit");
    assert_eq!(tree.text("find", json!({"pattern": "*"})).await, "d/\nd/f.txt\nd/loop\ndangling\nself\nto-d");
    assert_eq!(tree.text("ls", json!({})).await, "d/\ndangling@\nself@\nto-d/");
    // A link named explicitly is followed.
    assert_eq!(tree.text("grep", json!({"pattern": "hit", "path": "to-d"})).await, "f.txt:1: hit");
    assert_eq!(tree.text("find", json!({"pattern": "*.txt", "path": "to-d"})).await, "f.txt");
}

#[cfg(unix)]
#[tokio::test]
async fn pipes_do_not_block_a_search() {
    let tree = FileTree::new(&[("a.txt", b"hit\n")]);
    let pipe = tree.root().join("pipe");
    make_pipe(&pipe);
    assert_eq!(tree.text("grep", json!({"pattern": "hit"})).await, "a.txt:1: hit");
    let named = tree.text("grep", json!({"pattern": "hit", "path": "pipe"})).await;
    assert!(named.contains("is not a regular file"), "{named}");
    assert_eq!(tree.text("ls", json!({})).await, "a.txt\npipe");
}

#[cfg(unix)]
fn make_pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).current_dir("/").status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let tree = FileTree::new(&[("a.txt", b"hit\n")]);
    for tool in ["grep", "find", "ls"] {
        let cancel = Cancel::new();
        cancel.cancel(CancelReason::User);
        let stopped = tree.call(tool, json!({"pattern": "x"}), &cancel).await;
        assert_eq!(stopped.unwrap_err().text, "Operation aborted");
    }
}

#[tokio::test]
async fn a_search_stops_in_the_middle_of_a_file() {
    let tree = FileTree::new(&[]);
    // More than can be searched before the call is cancelled, stored on disk only once.
    tree.write("f0", &b"a line\n".repeat(4 << 20));
    (1..2000).for_each(|n| std::fs::hard_link(tree.root().join("f0"), tree.root().join(format!("f{n}"))).unwrap());
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let later = async move {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        stop.cancel(CancelReason::User);
    };
    let input = json!({"pattern": "x"});
    let (stopped, ()) = tokio::join!(tree.call("grep", input, &cancel), later);
    assert_eq!(stopped.unwrap_err().text, "Operation aborted");
}

//! Paths that lead elsewhere, in circles, or too deep; names that are not valid text; huge directories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::shell;
use crate::tool_calls::FileTree;

#[tokio::test]
async fn links_out_of_the_directory_are_followed_by_name_but_never_by_a_search() {
    let (outside, tree) =
        (FileTree::new(&[("secret.txt", b"hit\n"), ("d/f.txt", b"hit\n")]), FileTree::new(&[("a", b"hit\n")]));
    symlink(outside.root().join("secret.txt"), tree.root().join("link")).unwrap();
    symlink(outside.root().join("d"), tree.root().join("folder")).unwrap();
    assert_eq!(tree.soon("grep", json!({"pattern": "hit"})).await, "a:1: hit");
    assert_eq!(tree.soon("find", json!({"pattern": "*"})).await, "a\nfolder\nlink");
    assert_eq!(tree.soon("ls", json!({})).await, "a\nfolder/\nlink");
    // Naming a link means its target. The link stays one.
    assert_eq!(tree.soon("read", json!({"path": "link"})).await, "hit\n");
    assert_eq!(tree.soon("write", json!({"path": "link", "content": "new\n"})).await, "Successfully wrote to link");
    tree.soon("edit", json!({"path": "folder/f.txt", "edits": [{"oldText": "hit", "newText": "new"}]})).await;
    assert!(tree.root().join("link").is_symlink() && tree.root().join("folder").is_symlink());
    for name in ["secret.txt", "d/f.txt"] {
        assert_eq!(std::fs::read_to_string(outside.root().join(name)).unwrap(), "new\n", "{name}");
    }
}

#[tokio::test]
async fn links_in_circles_terminate() {
    let tree = FileTree::new(&[("d/f.txt", b"hit\n")]);
    symlink("b", tree.root().join("a")).unwrap();
    symlink("a", tree.root().join("b")).unwrap();
    symlink("..", tree.root().join("d/up")).unwrap();
    let circle = "ELOOP: too many symbolic links encountered";
    for path in ["a", "a/x"] {
        let read = tree.soon("read", json!({"path": path})).await;
        assert_eq!(read, format!("error: {circle}, access './{path}'"));
        let edit = tree.soon("edit", json!({"path": path, "edits": [{"oldText": "x", "newText": "y"}]})).await;
        assert_eq!(edit, format!("error: Could not edit file: {path}. Error code: ELOOP."));
        let write = tree.soon("write", json!({"path": path, "content": "x"})).await;
        assert_eq!(write, format!("error: {circle}, open './{path}'"));
        for tool in ["grep", "find", "ls"] {
            let text = tree.soon(tool, json!({"pattern": "x", "path": path})).await;
            assert_eq!(text, format!("error: {circle}, access './{path}'"), "{tool}");
        }
    }
    assert_eq!(tree.soon("grep", json!({"pattern": "hit"})).await, "d/f.txt:1: hit");
    assert_eq!(tree.soon("find", json!({"pattern": "*"})).await, "a\nb\nd/\nd/f.txt\nd/up");
    let round = format!("{}d/f.txt", "d/up/".repeat(20));
    assert_eq!(tree.soon("read", json!({"path": round})).await, "hit\n");
}

#[tokio::test]
async fn dots_are_resolved_lexically() {
    let tree = FileTree::new(&[("w/deep/f.txt", b"hit\n"), ("top.txt", b"top\n")]);
    // `..` after a link is the directory that contains the link, so that paths mean what they say.
    symlink("/", tree.root().join("w/root")).unwrap();
    for path in ["w/root/../deep/f.txt", "w/none/../deep/./f.txt", "./w//deep/f.txt"] {
        assert_eq!(tree.soon("read", json!({"path": path})).await, "hit\n", "{path}");
    }
    let beyond =
        format!("{}{}", "../".repeat(500), tree.root().join("top.txt").to_str().unwrap().trim_start_matches('/'));
    assert_eq!(tree.soon("read", json!({"path": beyond})).await, "top\n", "the root is above everything");
    tree.soon("write", json!({"path": "w/deep/../../new.txt", "content": "x"})).await;
    assert!(tree.root().join("new.txt").is_file());
    assert_eq!(tree.soon("find", json!({"pattern": "*.txt", "path": "w/deep/.."})).await, "deep/f.txt");
}

#[tokio::test]
async fn a_name_with_invalid_text_is_found_by_its_displayed_form() {
    let tree = FileTree::new(&[("plain.txt", b"hit\n")]);
    let folder = tree.root().join(OsStr::from_bytes(b"d\xfff"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(OsStr::from_bytes(b"caf\xe9.txt")), "hit\n").unwrap();
    let shown = "d\u{fffd}f/caf\u{fffd}.txt";
    assert_eq!(tree.soon("find", json!({"pattern": "*.txt"})).await, format!("{shown}\nplain.txt"));
    assert_eq!(tree.soon("grep", json!({"pattern": "hit"})).await, format!("{shown}:1: hit\nplain.txt:1: hit"));
    assert_eq!(tree.soon("ls", json!({})).await, "d\u{fffd}f/\nplain.txt");
    assert_eq!(tree.soon("ls", json!({"path": "d\u{fffd}f"})).await, "caf\u{fffd}.txt");
    // The displayed form works in all tools.
    assert_eq!(tree.soon("read", json!({"path": shown})).await, "hit\n");
    assert_eq!(tree.soon("grep", json!({"pattern": "hit", "path": shown})).await, "caf\u{fffd}.txt:1: hit");
    assert_eq!(tree.soon("find", json!({"pattern": "*", "path": "d\u{fffd}f"})).await, "caf\u{fffd}.txt");
    let edit = tree.soon("edit", json!({"path": shown, "edits": [{"oldText": "hit", "newText": "new"}]})).await;
    assert_eq!(edit, format!("Successfully replaced 1 block(s) in {shown}."));
    assert_eq!(std::fs::read(folder.join(OsStr::from_bytes(b"caf\xe9.txt"))).unwrap(), b"new\n");
    tree.soon("write", json!({"path": "d\u{fffd}f/more.txt", "content": "x"})).await;
    assert!(folder.join("more.txt").is_file());
    // Two names with the same displayed form cannot be distinguished: neither is used.
    std::fs::write(folder.join(OsStr::from_bytes(b"caf\xe8.txt")), "other\n").unwrap();
    let read = tree.soon("read", json!({"path": shown})).await;
    assert!(read.starts_with("error: ENOENT: no such file or directory"), "{read}");
}

#[tokio::test]
async fn directories_deeper_than_any_path_are_handled() {
    let tree = FileTree::new(&[("top.txt", b"hit\n")]);
    // Three times the system's maximum path length.
    let name = "d".repeat(100);
    shell(
        &format!("for i in $(seq 120); do mkdir {name} && cd -P {name} || exit 1; done; echo hit > f.txt"),
        &tree.root(),
    );
    let unreadable = "\n\n[1 file or directory could not be read]";
    let found = tree.soon("find", json!({"pattern": "*.txt"})).await;
    assert_eq!(found, format!("top.txt{unreadable}"));
    assert_eq!(tree.soon("grep", json!({"pattern": "hit"})).await, format!("top.txt:1: hit{unreadable}"));
    let path = format!("{}f.txt", format!("{name}/").repeat(120));
    let long = "ENAMETOOLONG: name too long";
    let read = tree.soon("read", json!({"path": path})).await;
    assert!(read.starts_with(&format!("error: {long}, access './ddd")), "{read:.200}");
    let write = tree.soon("write", json!({"path": path, "content": "x"})).await;
    assert!(write.starts_with(&format!("error: {long}, open './ddd")), "{write:.200}");
}

#[tokio::test]
async fn a_hundred_thousand_files_in_a_directory_are_handled() {
    let tree = FileTree::new(&[]);
    for n in 0..100_000 {
        std::fs::File::create(tree.root().join(format!("file-with-a-usual-name-{n:06}.txt"))).unwrap();
    }
    let ls = tree.soon("ls", json!({})).await;
    assert_eq!(ls.lines().count(), 502);
    assert!(ls.ends_with("\n\n[500 entries limit reached. Use limit=1000 for more]"), "{}", &ls[ls.len() - 100..]);
    let find = tree.soon("find", json!({"pattern": "*"})).await;
    assert!(find.starts_with("file-with-a-usual-name-000000.txt\n"), "{find:.100}");
    assert!(find.contains("[1000 results limit reached."), "{}", &find[find.len() - 200..]);
    assert_eq!(tree.soon("find", json!({"pattern": "*99999*"})).await, "file-with-a-usual-name-099999.txt");
    assert_eq!(tree.soon("grep", json!({"pattern": "x"})).await, "No matches found");
    let read = tree.soon("read", json!({"path": "file-with-a-usual-name-12345.txt"})).await;
    assert!(read.contains("\nDid you mean: file-with-a-usual-name-"), "{read}");
}

/// The files that a search reads on its own in the directories it visits.
#[tokio::test]
async fn endless_ignore_files_do_not_block_a_search() {
    let rules = [".gitignore", ".ignore", ".rgignore", ".fdignore", ".git/info/exclude"];
    let makings = ["ln -s /dev/zero {}", "mkfifo {}", "truncate -s 10G {}"];
    for (rule, making) in rules.iter().flat_map(|rule| makings.map(|making| (rule, making))) {
        let tree =
            FileTree::new(&[("a.txt", b"hit\n"), ("z.txt", b"hit\n"), ("d/b.txt", b"hit\n"), ("d/.git/info/", b"")]);
        shell(&making.replace("{}", rule), &tree.root().join("d"));
        let (found, _) = tree.measured("find", &json!({"pattern": "*.txt"}));
        let (hits, peak) = tree.measured("grep", &json!({"pattern": "hit", "glob": "*.txt"}));
        let left_out = "\n\n[1 file or directory could not be read]";
        let is_read_by = |tool: &str| !matches!((tool, *rule), ("find", ".rgignore") | ("grep", ".fdignore"));
        match is_read_by("find") {
            true => assert_eq!(found, format!("a.txt\nz.txt{left_out}"), "{rule} {making}"),
            false => assert_eq!(found, "a.txt\nd/b.txt\nz.txt", "{rule} {making}"),
        }
        match is_read_by("grep") {
            true => assert_eq!(hits, format!("a.txt:1: hit\nz.txt:1: hit{left_out}"), "{rule} {making}"),
            false => assert_eq!(hits, "a.txt:1: hit\nd/b.txt:1: hit\nz.txt:1: hit", "{rule} {making}"),
        }
        assert!(peak < 120, "{rule} {making}: {peak} MB");
        // The searched directory, and one above it.
        for path in ["d", "d/.git"] {
            let found = tree.soon("find", json!({"pattern": "*.txt", "path": path})).await;
            if is_read_by("find") {
                assert_eq!(found, format!("No files found matching pattern{left_out}"), "{rule} {making} {path}");
            }
        }
    }
}

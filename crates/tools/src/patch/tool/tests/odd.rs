//! Odd patches and files: each patch is applied as written, or changes nothing. Also when the program is killed.

use std::process::{Command, Stdio};

use super::*;

/// Makes the test [`host`] apply patches in this directory.
const DIRECTORY: &str = "PINCH_TEST_PATCH_DIRECTORY";

/// Files before a patch, also those that patches cannot handle.
fn start(root: &Path) -> Tree {
    let start = tree(&[
        ("a.txt", "one\ntwo\nthree\n"),
        ("twice.txt", "x\ny\nx\ny\n"),
        ("crlf.txt", "one\r\ntwo\r\n"),
        ("quotes.txt", "say \u{201c}hi\u{201d}\u{a0}\u{2014} now\n"),
        ("no-end.txt", "last"),
        ("empty.txt", ""),
        ("dir/b.txt", "b\n"),
        ("locked.txt", "locked\n"),
    ]);
    write_tree(root, &start);
    let mode = |mode: u32| <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(mode);
    std::fs::set_permissions(root.join("locked.txt"), mode(0o444)).unwrap();
    start
}

/// What a patch makes of the files: `None` if it is refused.
type ExpectedFiles<'a> = Option<&'a [(&'a str, Option<&'a str>)]>;

/// Returns patches without their markers, with the files that they change.
fn bodies() -> Vec<(&'static str, ExpectedFiles<'static>)> {
    vec![
        // Moves.
        ("*** Update File: a.txt\n*** Move to: a.txt\n@@\n-one\n+1", Some(&[("a.txt", Some("1\ntwo\nthree\n"))])),
        (
            "*** Update File: a.txt\n*** Move to: ./dir/../a.txt\n@@\n-one\n+1",
            Some(&[("a.txt", Some("1\ntwo\nthree\n"))]),
        ),
        (
            "*** Update File: a.txt\n*** Move to: A.txt\n@@\n-one\n+1",
            Some(&[("a.txt", None), ("A.txt", Some("1\ntwo\nthree\n"))]),
        ),
        (
            "*** Update File: dir/b.txt\n*** Move to: c\n@@\n-b\n+1\n*** Update File: c\n*** Move to: d\n@@\n-1\n+2",
            Some(&[("dir/b.txt", None), ("d", Some("2\n"))]),
        ),
        (
            "*** Update File: dir/b.txt\n*** Move to: c\n@@\n-b\n+1\n*** Update File: c\n*** Move to: dir/b.txt\n@@\n-1\n+2",
            Some(&[("dir/b.txt", Some("2\n"))]),
        ),
        (
            "*** Update File: dir/b.txt\n*** Move to: c\n@@\n-b\n+1\n*** Update File: a.txt\n*** Move to: dir/b.txt\n@@\n-one\n+1",
            Some(&[("c", Some("1\n")), ("dir/b.txt", Some("1\ntwo\nthree\n")), ("a.txt", None)]),
        ),
        (
            "*** Update File: dir/b.txt\n*** Move to: c\n@@\n-b\n+1\n*** Update File: a.txt\n*** Move to: c\n@@\n-one\n+1",
            None,
        ),
        ("*** Update File: dir/b.txt\n*** Move to: c\n@@\n-b\n+1\n*** Update File: dir/b.txt\n@@\n-b\n+1", None),
        ("*** Update File: a.txt\n*** Move to: locked.txt\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n*** Move to: dir\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n*** Move to: dir/b.txt/x\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n*** Move to: pipe\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n*** Move to: \n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n*** Move to: c\n*** Move to: d\n@@\n-one\n+1", None),
        // Several parts for one file.
        ("*** Delete File: dir/b.txt\n*** Add File: dir/b.txt\n+new", Some(&[("dir/b.txt", Some("new\n"))])),
        ("*** Add File: n.txt\n+n\n*** Update File: n.txt\n@@\n-n\n+m", Some(&[("n.txt", Some("m\n"))])),
        (
            "*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: ./a.txt\n@@\n-1\n+uno",
            Some(&[("a.txt", Some("uno\ntwo\nthree\n"))]),
        ),
        ("*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: dir/../a.txt\n@@\n-one\n+uno", None),
        ("*** Update File: a.txt\n@@\n-one\n+1\n*** Delete File: a.txt", Some(&[("a.txt", None)])),
        ("*** Delete File: a.txt\n*** Update File: ./a.txt\n*** Move to: c\n@@\n-one\n+1", None),
        ("*** Add File: n\n+n\n*** Add File: ./n\n+m", None),
        // Chunks.
        ("*** Update File: twice.txt\n@@\n-x\n+z", Some(&[("twice.txt", Some("z\ny\nx\ny\n"))])),
        ("*** Update File: twice.txt\n@@\n-x\n+z\n@@\n-x\n+w", Some(&[("twice.txt", Some("z\ny\nw\ny\n"))])),
        ("*** Update File: twice.txt\n@@\n-y\n+z\n*** End of File", Some(&[("twice.txt", Some("x\ny\nx\nz\n"))])),
        ("*** Update File: twice.txt\n@@\n-x\n+z\n@@\n-x\n+z\n@@\n-x\n+z", None),
        ("*** Update File: a.txt\n@@\n one\n-two\n+2\n@@\n two\n-three\n+3", None),
        ("*** Update File: a.txt\n@@\n-three\n+3\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n@@", None),
        ("*** Update File: a.txt", None),
        ("*** Update File: a.txt\n@@\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n@@\n", None),
        ("*** Update File: a.txt\n*** End of File", None),
        ("*** Update File: a.txt\n@@ -1,3 +1,3 @@\n-one\n+1", None),
        ("*** Update File: no-end.txt\n@@\n-last\n+end", Some(&[("no-end.txt", Some("end\n"))])),
        ("*** Update File: empty.txt\n@@\n+text", Some(&[("empty.txt", Some("text\n"))])),
        ("*** Update File: empty.txt\n@@\n-text", None),
        // Text.
        ("*** Update File: quotes.txt\n@@\n-say \"hi\" - now\n+x", Some(&[("quotes.txt", Some("x\n"))])),
        ("*** Update File: \u{430}.txt\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\u{200b}\n@@\n-one\n+1", None),
        ("*** Update File: a.txt\n@@\n-\u{43e}ne\n+1", None),
        ("*** Add File: n\n+a\0b", Some(&[("n", Some("a\0b\n"))])),
        ("*** Add File: \u{202e}txt.a\n+x", Some(&[("\u{202e}txt.a", Some("x\n"))])),
        (
            "*** Add File: n\n+*** End Patch\n+*** Delete File: a.txt",
            Some(&[("n", Some("*** End Patch\n*** Delete File: a.txt\n"))]),
        ),
        // Files that are none, and such that cannot be written.
        ("*** Update File: pipe\n@@\n-one\n+1", None),
        ("*** Delete File: pipe", None),
        ("*** Add File: pipe\n+x", None),
        ("*** Update File: /dev/null\n@@\n-one\n+1", None),
        ("*** Delete File: /dev/full", None),
        ("*** Update File: device\n@@\n-one\n+1", None),
        ("*** Delete File: dir", None),
        ("*** Delete File: a.txt/", Some(&[("a.txt", None)])),
        ("*** Add File: /proc/self/mem\n+x", None),
        ("*** Add File: C:\\x\\..\\..\\y\n+x", Some(&[("C:\\x\\..\\..\\y", Some("x\n"))])),
        ("*** Add File: file:///tmp/x-of-a-patch\n+x", Some(&[("file:/tmp/x-of-a-patch", Some("x\n"))])),
        ("*** Update File: locked.txt\n@@\n-locked\n+open", Some(&[("locked.txt", Some("open\n"))])),
        // The envelope.
        ("*** Begin Patch\n*** Delete File: a.txt\n*** End Patch", None),
        ("*** Delete File: a.txt\n*** End Patch\n*** Begin Patch\n*** Delete File: dir/b.txt", None),
        ("*** Delete File: a.txt\nand some text", None),
        ("***Delete File: a.txt", None),
        ("*** Delete File:a.txt", None),
        ("*** delete file: a.txt", None),
        ("--- a.txt\n+++ a.txt\n@@\n-one\n+1", None),
        ("", None),
    ]
}

#[tokio::test]
async fn odd_patches_are_applied_as_written_or_change_nothing() {
    let bodies = bodies();
    assert!(bodies.len() >= 50, "{}", bodies.len());
    let mut wrong = Vec::new();
    for (body, outcome) in bodies {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mut expect = start(&root);
        for (path, kind) in [("pipe", "p"), ("device", "link")] {
            let made = match kind {
                "p" => Command::new("mkfifo").arg(root.join(path)).current_dir("/").status().unwrap().success(),
                _ => std::os::unix::fs::symlink("/dev/zero", root.join(path)).is_ok(),
            };
            assert!(made, "{path}");
        }
        let patch = format!("*** Begin Patch\n{body}\n*** End Patch");
        let applied = tokio::time::timeout(Duration::from_secs(30), apply_on(Arc::new(LocalMachine), &root, &patch));
        let applied = applied.await.unwrap();
        if applied.is_ok() != outcome.is_some() {
            wrong.push(format!("{body:?}: {applied:?}"));
            continue;
        }
        for (path, text) in outcome.unwrap_or_default() {
            match text {
                Some(text) => drop(expect.insert((*path).to_owned(), (*text).to_owned())),
                None => drop(expect.remove(*path)),
            }
        }
        std::fs::remove_file(root.join("pipe")).unwrap();
        let found: Tree = read_tree(&root).into_iter().filter(|(_, text)| text != "(empty directory)").collect();
        if found != expect {
            wrong.push(format!("{body:?}: {found:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[tokio::test]
async fn incomplete_envelopes_change_nothing_and_odd_line_ends_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut expect = start(dir.path());
    let body = "*** Delete File: a.txt";
    for patch in [
        format!("*** Begin Patch\n{body}"),
        format!("{body}\n*** End Patch"),
        body.to_owned(),
        format!("*** Begin Patch\n{body}\n*** End"),
        format!("*** Begin Patch {body}\n*** End Patch"),
        format!("<<EOF\n*** Begin Patch\n{body}\nEOF"),
        format!("<<OTHER\n*** Begin Patch\n{body}\n*** End Patch\nOTHER"),
        format!("*** Begin Patch\n{body}\n*** End Patch\n*** Begin Patch\n{body}"),
        format!("\u{feff}*** Begin Patch\n{body}\n*** End Patch"),
        format!("*** Begin Patch\r{body}\r*** End Patch"),
        format!("\u{2217}\u{2217}\u{2217} Begin Patch\n{body}\n*** End Patch"),
        "\0".repeat(1000),
        "*** Begin Patch\n".repeat(10_000),
    ] {
        let refused = apply_on(Arc::new(LocalMachine), dir.path(), &patch).await;
        assert!(refused.is_err(), "{}: {refused:?}", patch.chars().take(200).collect::<String>());
        assert_eq!(read_tree(dir.path()), expect);
    }
    // A line of 2 MB, and line ends of Windows: in the patch, and in the file.
    let long = "x".repeat(2 << 20);
    let patch = format!(
        "*** Begin Patch\r\n*** Add File: long\r\n+{long}\r\n*** Update File: a.txt\r\n@@\r\n-one\r\n+1\r\n*** End Patch\r\n"
    );
    apply_on(Arc::new(LocalMachine), dir.path(), &patch).await.unwrap();
    expect.insert("long".to_owned(), format!("{long}\n"));
    expect.insert("a.txt".to_owned(), "1\ntwo\nthree\n".to_owned());
    assert_eq!(read_tree(dir.path()), expect);
    let patch = "*** Begin Patch\n*** Update File: crlf.txt\n@@\n-two\n+2\n*** End Patch";
    apply_on(Arc::new(LocalMachine), dir.path(), patch).await.unwrap();
    let found = std::fs::read_to_string(dir.path().join("crlf.txt")).unwrap();
    assert_eq!(found, "one\r\n2\r\n");
}

/// The number of files in a patch of [`host`].
const N_FILES: usize = 40;

fn files(root: &Path) -> Vec<String> {
    let name = |n: usize| root.join(format!("d{}/f{n}.txt", n % 3));
    (0..N_FILES).map(|n| std::fs::read_to_string(name(n)).unwrap().trim().to_owned()).collect()
}

/// Not a test by itself: the program that [`a_killed_program_leaves_all_or_nothing`] kills. It counts in all files at once.
#[tokio::test]
async fn host() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let root = PathBuf::from(dir);
    for round in 0.. {
        let change = |n: usize| format!("*** Update File: d{}/f{n}.txt\n@@\n-{round}\n+{}\n", n % 3, round + 1);
        let patch = format!("*** Begin Patch\n{}*** End Patch", (0..N_FILES).map(change).collect::<String>());
        apply_on(Arc::new(LocalMachine), &root, &patch).await.unwrap();
    }
}

#[tokio::test]
async fn a_killed_program_leaves_all_or_nothing() {
    let mut n_interrupted = 0;
    for round in 0..8_u64 {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let start: Tree = (0..N_FILES).map(|n| (format!("d{}/f{n}.txt", n % 3), "0\n".to_owned())).collect();
        write_tree(&root, &start);
        let mut host = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "patch::tool::tests::odd::host", "--nocapture"])
            .env(DIRECTORY, &root)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while files(&root)[0] == "0" {
            assert!(host.try_wait().unwrap().is_none(), "the program ended early");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_micros(round * 4300)).await;
        host.kill().unwrap();
        host.wait().unwrap();
        n_interrupted += usize::from(files(&root).iter().any(|text| *text != files(&root)[0]));
        finish_interrupted(JournalPlace::within(&root), &LocalMachine).await.unwrap();
        let after = files(&root);
        assert!(after.iter().all(|text| *text == after[0]), "{after:?}");
        let left: Vec<String> = read_tree(&root).into_keys().filter(|name| name.contains(".pinch-patch")).collect();
        assert_eq!(left, [""; 0], "no journal is left");
    }
    assert!(n_interrupted > 0, "no kill came in between");
}

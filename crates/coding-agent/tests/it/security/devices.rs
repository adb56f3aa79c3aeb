//! Things that are no files: devices without an end, pipes without anyone at the other one, files that the system makes up.

use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::json;

use super::shell;
use crate::tool_calls::FileTree;

#[tokio::test]
async fn devices_are_refused_by_all_who_read() {
    let tree = FileTree::new(&[]);
    for device in ["/dev/zero", "/dev/random", "/dev/stdin", "/dev/null", "/dev/full"] {
        // A link is as good as the device.
        let _replaced = std::fs::remove_file(tree.root().join("device"));
        symlink(device, tree.root().join("device")).unwrap();
        for path in [device, "device"] {
            let read = tree.soon("read", json!({"path": path})).await;
            assert_eq!(
                read,
                format!("error: {path} is not a regular file (a device, pipe or socket); it cannot be read")
            );
            let edit = tree.soon("edit", json!({"path": path, "edits": [{"oldText": "a", "newText": "b"}]})).await;
            assert!(edit.starts_with(&format!("error: Could not edit file: {path}. Error code: ")), "{edit}");
            let grep = tree.soon("grep", json!({"pattern": "x", "path": path})).await;
            assert!(
                grep.ends_with("is not a regular file (a device, pipe or socket); it cannot be searched"),
                "{grep}"
            );
            for (tool, input) in [("find", json!({"pattern": "*", "path": path})), ("ls", json!({"path": path}))] {
                let text = tree.soon(tool, input).await;
                assert!(text.starts_with("error: Not a directory: "), "{tool} {path}: {text}");
            }
        }
    }
    assert_eq!(tree.soon("grep", json!({"pattern": "x"})).await, "No matches found");
    assert_eq!(tree.soon("find", json!({"pattern": "*"})).await, "device");
}

/// The system says of these that they are regular files. Some never end, one waits for news, one holds the environment.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_that_the_system_makes_up_neither_hang_nor_tell_the_environment() {
    let tree = FileTree::new(&[]);
    for name in ["/proc/self/mem", "/proc/self/environ", "/proc/self/pagemap", "/proc/kmsg", "/proc/kcore"] {
        if !std::path::Path::new(name).exists() {
            continue;
        }
        let read = tree.soon("read", json!({"path": name})).await;
        assert!(read.starts_with("error: "), "{name}: {read:.200}");
        let grep = tree.soon("grep", json!({"pattern": "no such text anywhere", "path": name})).await;
        assert!(grep == "No matches found" || grep.starts_with("error: "), "{name}: {grep:.200}");
        let edit = tree.soon("edit", json!({"path": name, "edits": [{"oldText": "a", "newText": "b"}]})).await;
        assert!(edit.starts_with("error: "), "{name}: {edit:.200}");
    }
    let status = tree.soon("read", json!({"path": "/proc/self/status"})).await;
    assert!(status.contains("VmHWM:"), "a file without a length is read all the same: {status}");
}

#[tokio::test]
async fn a_pipe_that_nobody_writes_to_hangs_nobody() {
    let tree = FileTree::new(&[("a.txt", b"hit\n")]);
    shell("mkfifo pipe", &tree.root());
    let _socket = std::os::unix::net::UnixListener::bind(tree.root().join("socket")).unwrap();
    for name in ["pipe", "socket"] {
        let refused = format!("error: {name} is not a regular file (a device, pipe or socket); it cannot be read");
        assert_eq!(tree.soon("read", json!({"path": name})).await, refused);
        let edit = tree.soon("edit", json!({"path": name, "edits": [{"oldText": "a", "newText": "b"}]})).await;
        assert!(edit.starts_with(&format!("error: Could not edit file: {name}.")), "{edit}");
        let write = tree.soon("write", json!({"path": name, "content": "x"})).await;
        assert!(write.starts_with("error: ENXIO: ") && write.ends_with(&format!("'./{name}'")), "{write}");
    }
    assert_eq!(tree.soon("grep", json!({"pattern": "hit"})).await, "a.txt:1: hit");
    assert_eq!(tree.soon("find", json!({"pattern": "*"})).await, "a.txt\npipe\nsocket");
    assert_eq!(tree.soon("ls", json!({})).await, "a.txt\npipe\nsocket");
}

#[tokio::test]
async fn a_pipe_is_written_into_and_a_reader_that_sleeps_is_not_waited_for() {
    let tree = FileTree::new(&[]);
    shell("mkfifo pipe", &tree.root());
    let path = tree.root().join("pipe");
    let content = "x".repeat(1 << 20);
    let write = tree.soon("write", json!({"path": "pipe", "content": content}));
    let reader = std::thread::spawn({
        let path = path.clone();
        move || std::fs::read(path).unwrap().len()
    });
    // Opening the pipe is what the reader waits with until there is a writer, and a writer is refused until there is a reader.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let mut told = write.await;
    while told != "Successfully wrote to pipe" && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
        told = tree.soon("write", json!({"path": "pipe", "content": content})).await;
    }
    assert_eq!(told, "Successfully wrote to pipe");
    assert_eq!(reader.join().unwrap(), content.len());

    // Open for both, so that opening waits for no one.
    let _sleeper = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let told = tree.soon("write", json!({"path": "pipe", "content": content})).await;
    assert!(told.starts_with("error: ETIMEDOUT: "), "{told}");
}

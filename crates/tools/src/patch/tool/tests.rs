use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use pinch_agent_core::tool::Progress;
use pinch_machine::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use pinch_machine::{CommandSpec, LocalMachine, MachineError, Process, Stat};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use super::*;

#[cfg(unix)]
mod odd;

type Tree = BTreeMap<String, String>;

/// A machine on which something happens before one of the file changes.
struct FaultyMachine {
    at: usize,
    n_changes: AtomicUsize,
    fault: PatchFault,
}

enum PatchFault {
    /// The change fails.
    Error,
    /// It never returns, as in a crash.
    Crash,
    /// Another program writes this file.
    ForeignWrite(PathBuf),
}

impl FaultyMachine {
    fn new(at: usize, fault: PatchFault) -> Arc<Self> {
        Arc::new(Self { at, n_changes: AtomicUsize::new(0), fault })
    }

    async fn change(&self) -> Result<(), MachineError> {
        if self.n_changes.fetch_add(1, Ordering::Relaxed) != self.at {
            return Ok(());
        }
        match &self.fault {
            PatchFault::Error => Err(MachineError::new(std::io::ErrorKind::StorageFull.into(), "write", None)),
            PatchFault::Crash => std::future::pending().await,
            PatchFault::ForeignWrite(path) => LocalMachine.write(path, Bytes::from_static(b"foreign\n")).await,
        }
    }
}

impl Machine for FaultyMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        LocalMachine.stat(path)
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        LocalMachine.read(path, max)
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        LocalMachine.read_pieces(path)
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            self.change().await?;
            LocalMachine.write(path, content).await
        })
    }

    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            self.change().await?;
            LocalMachine.remove(path).await
        })
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        LocalMachine.list(path)
    }

    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        LocalMachine.find(query)
    }

    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        LocalMachine.grep(query)
    }

    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        LocalMachine.real_path(path)
    }

    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        LocalMachine.spawn(command)
    }
}

fn write_tree(root: &Path, tree: &Tree) {
    for (path, text) in tree {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        pinch_stdx::fs::write_atomic(&root.join(path), text.as_bytes(), pinch_stdx::fs::Access::Keep).unwrap();
    }
}

/// Returns all files below a directory, and its empty directories.
fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let entries: Vec<PathBuf> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        let shown = |path: &Path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if entries.is_empty() && directory != root {
            tree.insert(shown(&directory), "(empty directory)".to_owned());
        }
        for path in entries {
            match path.is_dir() && !path.is_symlink() {
                true => open.push(path),
                false if path.is_symlink() => {}
                false => drop(tree.insert(shown(&path), std::fs::read_to_string(&path).unwrap())),
            }
        }
    }
    tree
}

async fn apply_on(machine: Arc<dyn Machine>, root: &Path, patch: &str) -> Result<String, String> {
    apply_at(machine, PatchTarget::workspace(root), patch).await
}

async fn apply_at(machine: Arc<dyn Machine>, place: PatchTarget, patch: &str) -> Result<String, String> {
    let tool = ApplyPatchTool::new(machine, place, FileQueue::default());
    let (cancel, host, progress) = (Cancel::new(), Host::system(), Progress::ignored());
    let call = "call-1".into();
    let cx = ToolCx { call: &call, cancel: &cancel, progress: &progress, host: &host };
    let input = json!({"input": patch}).as_object().unwrap().clone();
    match tool.run(input, &cx).await {
        Ok(output) => Ok(output.content[0].as_text().unwrap().to_owned()),
        Err(error) => Err(error.text),
    }
}

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

const PATCH: &str = "*** Begin Patch\n*** Add File: new/deep/a.txt\n+a\n*** Delete File: gone.txt\n*** Update File: old.txt\n\
                     *** Move to: moved.txt\n@@\n-one\n+two\n*** Update File: same.txt\n@@\n x\n+y\n*** End Patch";

fn before() -> Tree {
    tree(&[("gone.txt", "g\n"), ("old.txt", "one\n"), ("same.txt", "x\n"), ("other.txt", "o\n")])
}

fn after() -> Tree {
    tree(&[("new/deep/a.txt", "a\n"), ("moved.txt", "two\n"), ("same.txt", "x\ny\n"), ("other.txt", "o\n")])
}

#[tokio::test]
async fn an_error_at_any_change_rolls_back_all() {
    let mut n_failed = 0;
    for fails_at in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        write_tree(dir.path(), &before());
        let machine = FaultyMachine::new(fails_at, PatchFault::Error);
        match apply_on(machine, dir.path(), PATCH).await {
            Ok(_) => assert_eq!(
                read_tree(dir.path()).into_iter().filter(|(path, _)| !path.starts_with(".pinch")).collect::<Tree>(),
                after()
            ),
            Err(error) => {
                n_failed += 1;
                assert!(error.ends_with("nothing was changed"), "{error}");
                assert_eq!(read_tree(dir.path()), before(), "failure at {fails_at}");
            }
        }
    }
    assert_eq!(n_failed, 6, "the journal and five files");
}

/// Returns a tree in which another program has written a file.
fn with_foreign(mut tree: Tree, name: &str) -> Tree {
    tree.insert(name.to_owned(), "foreign\n".to_owned());
    tree
}

#[tokio::test]
async fn what_another_program_writes_meanwhile_stays() {
    let (mut n_failed, mut n_applied) = (0, 0);
    for at in 0..6 {
        let names = ["gone.txt", "moved.txt", "new/deep/a.txt", "old.txt", "same.txt"];
        for (n, name) in names.into_iter().enumerate() {
            if n + 1 == at {
                // Between the last look at a file and its replacement nothing can be noticed.
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            write_tree(dir.path(), &before());
            let machine = FaultyMachine::new(at, PatchFault::ForeignWrite(dir.path().join(name)));
            let result = apply_on(machine, dir.path(), PATCH).await;
            let found = read_tree(dir.path());
            let shown = format!("{name} before change {at}: {result:?}");
            match &result {
                // Its file had been changed already.
                Ok(_) => {
                    n_applied += 1;
                    assert_eq!(found, with_foreign(after(), name), "{shown}");
                }
                Err(error) => {
                    n_failed += 1;
                    let wanted = format!("{name} was changed by another program meanwhile: read it again; nothing was");
                    assert!(error.contains(&wanted), "{shown}");
                    assert_eq!(found, with_foreign(before(), name), "{shown}");
                }
            }
        }
    }
    assert_eq!((n_failed, n_applied), (15, 10));
}

#[tokio::test]
async fn a_crash_at_any_change_leaves_all_or_nothing() {
    let (mut n_all, mut n_nothing) = (0, 0);
    for fails_at in 0..7 {
        let dir = tempfile::tempdir().unwrap();
        write_tree(dir.path(), &before());
        let machine = FaultyMachine::new(fails_at, PatchFault::Crash);
        let running = apply_on(machine, dir.path(), PATCH);
        tokio::time::timeout(Duration::from_millis(300), running).await.unwrap_err();
        finish_interrupted(JournalPlace::within(dir.path()), &LocalMachine).await.unwrap();
        let found = read_tree(dir.path());
        n_all += usize::from(found == after());
        n_nothing += usize::from(found == before());
    }
    assert_eq!((n_all, n_nothing), (6, 1));
}

#[tokio::test]
async fn a_crash_leaves_all_or_nothing_outside_of_the_workspace_too() {
    let (mut n_all, mut n_nothing) = (0, 0);
    for fails_at in 0..7 {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("elsewhere");
        write_tree(&root, &before());
        let journals = dir.path().join("journals");
        let cwd = dir.path().join("workspace");
        let place = PatchTarget { root: None, journals: Some(journals.clone()), ..PatchTarget::workspace(cwd) };
        let patch = PATCH.replace("File: ", "File: ../elsewhere/").replace("to: ", "to: ../elsewhere/");
        let running = apply_at(FaultyMachine::new(fails_at, PatchFault::Crash), place, &patch);
        tokio::time::timeout(Duration::from_millis(300), running).await.unwrap_err();
        finish_interrupted(JournalPlace::private(&journals), &LocalMachine).await.unwrap();
        let found = read_tree(&root);
        n_all += usize::from(found == after());
        n_nothing += usize::from(found == before());
    }
    assert_eq!((n_all, n_nothing), (6, 1));
}

#[tokio::test]
async fn a_patch_that_is_being_applied_is_not_completed_by_another() {
    let dir = tempfile::tempdir().unwrap();
    write_tree(dir.path(), &before());
    let mut running = Box::pin(apply_on(FaultyMachine::new(2, PatchFault::Crash), dir.path(), PATCH));
    tokio::time::timeout(Duration::from_millis(300), &mut running).await.unwrap_err();
    let started = read_tree(dir.path());
    let other = "*** Begin Patch\n*** Update File: other.txt\n@@\n-o\n+O\n*** End Patch";
    apply_on(Arc::new(LocalMachine), dir.path(), other).await.unwrap();
    let mut expect = started.clone();
    expect.insert("other.txt".to_owned(), "O\n".to_owned());
    assert_eq!(read_tree(dir.path()), expect);
    drop(running);
    assert_eq!(finish_interrupted(JournalPlace::within(dir.path()), &LocalMachine).await.unwrap(), 1);
    assert_eq!(read_tree(dir.path())["moved.txt"], "two\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_journal_of_another_process_waits_for_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let started = pinch_stdx::process::start_ticks(writer.id()).unwrap();
    let changes = json!([{"path": "a.txt", "before": null, "content": "a\n"}]);
    let journal = |started: u64| {
        json!({"version": 1, "writer": {"pid": writer.id(), "started": started}, "changes": changes}).to_string()
    };
    let finish = || finish_interrupted(JournalPlace::within(dir.path()), &LocalMachine);
    write_tree(dir.path(), &tree(&[(".pinch-patch-1.json", &journal(started))]));
    assert_eq!((finish().await.unwrap(), dir.path().join("a.txt").exists()), (0, false));
    // Of an earlier process with the same id.
    write_tree(dir.path(), &tree(&[(".pinch-patch-2.json", &journal(started + 1))]));
    assert_eq!(finish().await.unwrap(), 1);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!((finish().await.unwrap(), dir.path().join("a.txt").exists()), (1, true));
}

#[tokio::test]
async fn a_journal_changes_nothing_outside_and_no_file_modified_since() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    write_tree(&root, &tree(&[("a.txt", "mine\n")]));
    let hash = "0000000000000000000000000000000000000000000000000000000000000000";
    let journal = json!({"version": 1, "changes": [
        {"path": "../escape.txt", "before": null, "content": "x"},
        {"path": dir.path().join("escape.txt"), "before": null, "content": "x"},
        {"path": "a.txt", "before": hash, "content": "theirs\n"},
    ]});
    write_tree(&root, &tree(&[(".pinch-patch-1.json", &journal.to_string())]));
    assert_eq!(finish_interrupted(JournalPlace::within(&root), &LocalMachine).await.unwrap(), 1);
    assert_eq!(read_tree(dir.path()), tree(&[("work/a.txt", "mine\n")]));
}

#[tokio::test]
async fn hostile_patches_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    let start = tree(&[("a.txt", "one\ntwo\nthree\n"), ("dir/b.txt", "b\n"), ("bin.dat", "\u{0}\u{1}")]);
    write_tree(&root, &start);
    std::os::unix::fs::symlink("/tmp", root.join("link")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("target"), root.join("dangling")).unwrap();
    let long = "x".repeat(5000);
    let mut bodies: Vec<String> = Vec::new();
    for path in [
        "../x",
        "/tmp/x-of-a-patch",
        "dir/../../x",
        "link/x",
        "dangling",
        "~/../../x",
        "",
        ".",
        "dir",
        "a.txt/x",
        "dir/",
        &long,
        "..",
        "./../x",
        "x\0y",
    ] {
        bodies.push(format!("*** Add File: {path}\n+x"));
        bodies.push(format!("*** Update File: {path}\n@@\n-x\n+y"));
        bodies.push(format!("*** Update File: a.txt\n*** Move to: {path}\n@@\n-no such line\n+y"));
    }
    for path in ["../work/../x", "missing.txt", "dir", "link", "dangling", "."] {
        bodies.push(format!("*** Delete File: {path}"));
    }
    for body in [
        "*** Add File: a.txt\n+over",
        "*** Update File: dir/b.txt\n*** Move to: a.txt\n@@\n-b\n+over",
        "*** Add File: new.txt\n+n\n*** Update File: dir/b.txt\n*** Move to: new.txt\n@@\n-b\n+over",
        "*** Add File: new.txt\n+n\n*** Add File: new.txt\n+n",
        "*** Add File: new.txt\n+n\n*** Add File: new.txt/below.txt\n+n",
        "*** Delete File: a.txt\n*** Update File: a.txt\n@@\n-one\n+x",
        "*** Delete File: a.txt\n*** Delete File: a.txt",
        "*** Update File: a.txt\n@@\n-one\n+1\n@@\n-one\n+1",
        "*** Update File: a.txt\n@@ nowhere\n-one\n+1",
        "*** Update File: a.txt\n@@\n-two\n+2\n*** End of File",
        "*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: dir/b.txt\n@@\n-zzz\n+1",
        "*** Update File: a.txt\n@@\n-one\n+1\n*** Begin Patch",
        "*** Update File: a.txt\n@@\n+1\nrm -rf /",
    ] {
        bodies.push(body.to_owned());
    }
    assert!(bodies.len() >= 50, "{}", bodies.len());
    for body in &bodies {
        let patch = format!("*** Begin Patch\n*** Add File: first.txt\n+f\n{body}\n*** End Patch");
        let refused = apply_on(Arc::new(LocalMachine), &root, &patch).await;
        assert!(refused.is_err(), "{body}: {refused:?}");
        assert_eq!(read_tree(&root), start, "{body}");
        assert!(!dir.path().join("x").exists() && !dir.path().join("target").exists());
    }
}

#[tokio::test]
async fn a_file_moves_to_a_place_that_the_patch_has_emptied() {
    let dir = tempfile::tempdir().unwrap();
    write_tree(dir.path(), &tree(&[("a.txt", "one\n"), ("b.txt", "two\n")]));
    let patch = "*** Begin Patch\n*** Delete File: b.txt\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+three\n*** End Patch";
    apply_on(Arc::new(LocalMachine), dir.path(), patch).await.unwrap();
    assert_eq!(read_tree(dir.path()), tree(&[("b.txt", "three\n")]));
}

/// A generator of small random numbers with a fixed seed.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

#[tokio::test]
async fn random_patches_reproduce_the_files_they_were_made_from() {
    let mut dice = RandomNumbers(7);
    for round in 0..500 {
        let dir = tempfile::tempdir().unwrap();
        let mut patch = "*** Begin Patch\n".to_owned();
        let (mut old, mut new) = (Tree::new(), Tree::new());
        for file in 0..=dice.below(4) {
            let path = format!("d{}/f{file}.txt", dice.below(3));
            // Every line is unique, so there is one way to apply the patch.
            let lines: Vec<String> =
                (0..=dice.below(12)).map(|line| format!("{}line {round} {line}", " ".repeat(dice.below(3)))).collect();
            let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            match dice.below(4) {
                0 => {
                    patch += &format!(
                        "*** Add File: {path}\n{}",
                        lines.iter().map(|line| format!("+{line}\n")).collect::<String>()
                    );
                    new.insert(path, text(&lines));
                }
                1 => {
                    patch += &format!("*** Delete File: {path}\n");
                    old.insert(path, text(&lines));
                }
                kind => {
                    patch += &format!("*** Update File: {path}\n");
                    let target = format!("m/f{file}.txt");
                    if kind == 2 {
                        patch += &format!("*** Move to: {target}\n");
                    }
                    patch += "@@\n";
                    let mut changed = Vec::new();
                    for (at, line) in lines.iter().enumerate() {
                        match dice.below(4) {
                            0 => patch += &format!("-{line}\n"),
                            1 => {
                                patch += &format!("-{line}\n+{line} changed\n+and more {at}\n");
                                changed.extend([format!("{line} changed"), format!("and more {at}")]);
                            }
                            _ => {
                                patch += &format!(" {line}\n");
                                changed.push(line.clone());
                            }
                        }
                    }
                    old.insert(path.clone(), text(&lines));
                    new.insert(if kind == 2 { target } else { path }, text(&changed));
                }
            }
        }
        write_tree(dir.path(), &old);
        apply_on(Arc::new(LocalMachine), dir.path(), &format!("{patch}*** End Patch")).await.unwrap();
        let found: Tree = read_tree(dir.path()).into_iter().filter(|(_, text)| text != "(empty directory)").collect();
        assert_eq!(found, new, "{patch}");
    }
}

use std::error::Error as _;

use super::*;

const HEAD: &[u8] = b"{\"type\":\"session\",\"id\":\"s\"}\n";

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(future)
}

/// Creates the loaded journal of a file with a header.
fn journal(path: &Path, durability: Durability) -> JsonlJournal {
    File::create(path).unwrap().write_all(HEAD).unwrap();
    let mut journal = JsonlJournal::new(path.to_owned(), durability);
    run(journal.load()).unwrap();
    journal
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn add(journal: &mut JsonlJournal, line: &'static str, end: u64) -> Result<Appended, StoreError> {
    run(journal.append(Bytes::from_static(line.as_bytes()), end))
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()[HEAD.len()..].to_owned()
}

const END: u64 = HEAD.len() as u64;

fn broken(_: &File) -> io::Result<()> {
    Err(io::Error::other("the disk is gone"))
}

#[test]
fn lines_that_cannot_be_flushed_are_removed() {
    let dir = folder();
    let path = dir.path().join("s.jsonl");
    let mut journal = journal(&path, Durability::Entry);
    journal.disk.force = broken;
    let error = add(&mut journal, "a\n", END).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot sync {}", path.display()));
    assert_eq!(error.source().unwrap().to_string(), "the disk is gone");
    assert_eq!(text(&path), "");
    journal.disk = Disk::default();
    assert_eq!(add(&mut journal, "a\n", END).unwrap(), Appended::At(END + 2));
    assert_eq!(text(&path), "a\n", "not twice");
}

#[test]
fn remains_that_cannot_be_cut_off_are_cut_by_the_next_append() {
    let dir = folder();
    let path = dir.path().join("s.jsonl");
    let mut journal = journal(&path, Durability::Entry);
    journal.disk = Disk { force: broken, cut: |_, _| Err(io::Error::other("nor can it be cut")) };
    add(&mut journal, "ghost\n", END).unwrap_err();
    assert_eq!(text(&path), "ghost\n");
    // Until they are cut, nothing is written, and they belong to nobody.
    let error = add(&mut journal, "next\n", END).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot cut {}", path.display()));
    journal.disk = Disk::default();
    assert_eq!(add(&mut journal, "next\n", END).unwrap(), Appended::At(END + 5));
    assert_eq!(text(&path), "next\n");
}

#[test]
fn remains_followed_by_foreign_lines_are_kept() {
    let dir = folder();
    let path = dir.path().join("s.jsonl");
    let mut journal = journal(&path, Durability::Entry);
    journal.disk = Disk { force: broken, cut: |_, _| Err(io::Error::other("no")) };
    add(&mut journal, "ghost\n", END).unwrap_err();
    File::options().append(true).open(&path).unwrap().write_all(b"theirs\n").unwrap();
    journal.disk = Disk::default();
    let moved = add(&mut journal, "ours\n", END).unwrap();
    assert_eq!(moved, Appended::Moved { tail: Bytes::from_static(b"ghost\ntheirs\n") });
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let mut journal = JsonlJournal::new("/dev/full".into(), Durability::Os);
    journal.exists = true;
    let error = add(&mut journal, "a\n", 0).unwrap_err();
    assert_eq!(error.to_string(), "cannot write /dev/full");
    let StoreError::Io { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_replaced_file_is_not_written() {
    let dir = folder();
    let path = dir.path().join("s.jsonl");
    let mut journal = journal(&path, Durability::Os);
    add(&mut journal, "a\n", END).unwrap();
    // As editors save: the old file lives on under another name.
    let kept = dir.path().join("s.jsonl~");
    fs::rename(&path, &kept).unwrap();
    File::create(&path).unwrap().write_all(HEAD).unwrap();
    assert!(matches!(add(&mut journal, "b\n", END + 2), Err(StoreError::Cut { .. })));
    assert_eq!((text(&path).as_str(), text(&kept).as_str()), ("", "a\n"));
}

#[test]
fn a_lock_held_too_long_is_reported() {
    let dir = folder();
    let path = dir.path().join("s.jsonl");
    let mut journal = journal(&path, Durability::Os);
    let holder = File::open(&path).unwrap();
    holder.lock().unwrap();
    let error = add(&mut journal, "a\n", END).unwrap_err();
    assert_eq!(error.to_string(), format!("Session file is locked: {}", path.display()));
    holder.unlock().unwrap();
    assert_eq!(add(&mut journal, "a\n", END).unwrap(), Appended::At(END + 2));
}

#[test]
fn nothing_is_replaced_after_a_foreign_write() {
    let dir = folder();
    let path = dir.path().join("s.jsonl");
    let mut journal = journal(&path, Durability::Os);
    File::options().append(true).open(&path).unwrap().write_all(b"theirs\n").unwrap();
    let replaced = run(journal.replace(Bytes::from_static(b"new\n"), END, "bak")).unwrap();
    assert_eq!(replaced, Appended::Moved { tail: Bytes::from_static(b"theirs\n") });
    assert_eq!(text(&path), "theirs\n");
    let end = END + 7;
    assert_eq!(run(journal.replace(Bytes::from_static(b"new\n"), end, "bak")).unwrap(), Appended::At(4));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    assert_eq!(text(&dir.path().join("s.jsonl.bak")), "theirs\n");
    let names = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 2, "nothing else is left");
    assert_eq!(add(&mut journal, "a\n", 4).unwrap(), Appended::At(6), "the journal goes on in the new file");
}

#[cfg(unix)]
#[test]
fn replacing_keeps_a_symbolic_link() {
    let dir = folder();
    let (path, link) = (dir.path().join("real.jsonl"), dir.path().join("link.jsonl"));
    drop(journal(&path, Durability::Os));
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut journal = JsonlJournal::new(link.clone(), Durability::Os);
    run(journal.load()).unwrap();
    run(journal.replace(Bytes::from_static(b"new\n"), END, "bak")).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
}

#[cfg(unix)]
#[test]
fn a_directory_or_a_device_is_not_read() {
    let dir = folder();
    for path in [dir.path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
        let error = run(JsonlJournal::new(path.to_owned(), Durability::Os).load()).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read {}", path.display()));
    }
}

#[test]
fn a_file_that_is_too_long_is_not_read() {
    let dir = folder();
    let path = dir.path().join("s.jsonl");
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = run(JsonlJournal::new(path, Durability::Os).load()).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
}

#[test]
fn lines_are_flushed_as_the_setting_says() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static FORCED: AtomicUsize = AtomicUsize::new(0);
    let dir = folder();
    for (durability, by_append, by_sync) in
        [(Durability::Os, 0, 0), (Durability::Turn, 0, 1), (Durability::Entry, 1, 1)]
    {
        let path = dir.path().join(format!("{durability:?}.jsonl"));
        let mut journal = JsonlJournal::new(path, durability);
        journal.disk.force = |_| {
            FORCED.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        add(&mut journal, "a\n", 0).unwrap();
        assert_eq!(FORCED.swap(0, Ordering::Relaxed), by_append, "{durability:?}");
        assert_eq!(journal.is_name_new, durability != Durability::Entry);
        run(journal.sync()).unwrap();
        assert_eq!(FORCED.swap(0, Ordering::Relaxed), by_sync, "{durability:?}");
        assert_eq!(journal.is_name_new, durability == Durability::Os);
    }
}

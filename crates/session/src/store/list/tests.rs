use std::io::Write as _;

use super::*;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2025-06-01T10:00:00.000Z\"}\n";

fn user(text: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\",\"timestamp\":5}}}}\n"
    )
}

fn write(path: &Path, parts: &[&str]) {
    let mut file = File::create(path).unwrap();
    for part in parts {
        file.write_all(part.as_bytes()).unwrap();
    }
}

fn file(path: &Path) -> SessionFile {
    let meta = std::fs::metadata(path).unwrap();
    SessionFile { path: path.to_owned(), stamp: Stamp { modified: 7_000_000, n_bytes: meta.len() } }
}

fn list(files: &[SessionFile], cache: &ListCache) -> Vec<SessionSummary> {
    summarise_files(files, cache, None, &AtomicBool::new(false))
}

#[test]
fn a_file_and_its_text_have_the_same_summary() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let text = format!("\u{feff}\n{HEADER}not json\r\n\n{}{}{{\"type\":\"mess", user("one"), user("two\\nlines"));
    write(&path, &[&text]);
    let of_file = summarise_file(&path, 7).unwrap().unwrap();
    assert_eq!(Some(&of_file), summarise(text.as_bytes(), path, 7).as_ref());
    assert_eq!((of_file.message_count, &*of_file.search_text, of_file.modified), (2, "one two\nlines", 5));
}

#[test]
fn an_overlong_line_is_skipped_without_buffering_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    write(&path, &[HEADER, &user("before"), "{\"type\":\"message\",\"x\":\""]);
    let mut long = File::options().append(true).open(&path).unwrap();
    for _ in 0..MAX_LINE / (1 << 20) {
        long.write_all(&[b'x'; 1 << 20]).unwrap();
    }
    long.write_all(b"\"}\n").unwrap();
    long.write_all(user("after").as_bytes()).unwrap();
    let summary = summarise_file(&path, 7).unwrap().unwrap();
    assert_eq!((summary.message_count, &*summary.search_text), (2, "before after"));
    let mut reader = BufReader::new(File::open(&path).unwrap());
    let mut line = Vec::new();
    let mut most = 0;
    while next_line(&mut reader, &mut line).unwrap() {
        most = most.max(line.capacity());
    }
    assert!(most <= 2 * MAX_LINE, "{most}");
}

#[test]
fn search_texts_are_truncated() {
    let long = "é".repeat(MAX_SEARCH_TEXT / 2 - 1);
    let text = format!("{HEADER}{}{}{}", user(&long), user("é and more"), user("more"));
    let summary = summarise(text.as_bytes(), "s".into(), 0).unwrap();
    assert!(summary.search_text.len() <= MAX_SEARCH_TEXT && summary.search_text.len() > MAX_SEARCH_TEXT - 4);
    assert_eq!(summary.message_count, 3);
}

#[test]
fn an_unchanged_file_is_not_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    write(&path, &[HEADER, &user("one")]);
    let cache = ListCache::default();
    let before = file(&path);
    let first = list(std::slice::from_ref(&before), &cache);
    // Other bytes of the same length: only reading would reveal them.
    write(&path, &[HEADER, &user("two")]);
    assert_eq!(list(std::slice::from_ref(&before), &cache), first);
    let changed = SessionFile { stamp: Stamp { modified: 8_000_000, ..before.stamp }, ..before };
    assert_eq!(&*list(&[changed], &cache)[0].search_text, "two");
}

#[test]
fn progress_is_reported_and_listing_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<SessionFile> = (0..20)
        .map(|n| {
            let path = dir.path().join(format!("{n}.jsonl"));
            write(&path, &[HEADER]);
            file(&path)
        })
        .collect();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let progress: ListProgress = {
        let reports = Arc::clone(&reports);
        Arc::new(move |done, all| reports.lock().unwrap().push((done, all)))
    };
    let found = summarise_files(&files, &ListCache::default(), Some(&progress), &AtomicBool::new(false));
    assert_eq!(found.len(), 20);
    let mut reports = std::mem::take(&mut *reports.lock().unwrap());
    reports.sort_unstable();
    assert_eq!(reports, (1..=20).map(|done| (done, 20)).collect::<Vec<_>>());
    let stopped = summarise_files(&files, &ListCache::default(), None, &AtomicBool::new(true));
    assert_eq!(stopped.len(), 0);
}

//! Takes lines that cannot be read out of a session file.
//!
//! Nothing needs that: reading passes over such lines, and appending mends an end that was cut off. It is for people who want a clean file, or one
//! that other programs read.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pinch_stdx::fs::{Access, open_regular, write_atomic};
use pinch_stdx::json::walk::Walk;
use pinch_stdx::text::bom_len;
use serde_json::{Value, json};

use crate::entry::scan;

/// How many copies of a damaged file are kept.
const MAX_BACKUPS: usize = 3;

/// What a repair found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRepair {
    /// Whether the file was replaced.
    pub repaired: bool,
    /// Lines that cannot be read; they are gone if the file was replaced.
    pub dropped_lines: usize,
    /// Entries whose parent was dropped, and that follow what stood before it now.
    pub reattached: usize,
    /// The copy of the file as it was. There is none when only its last line was cut off.
    pub backup: Option<PathBuf>,
    /// Why nothing could be done; `None` if the file is whole or was repaired. The words are those of OpenClaw.
    pub reason: Option<String>,
}

impl FileRepair {
    fn refused(reason: impl Into<String>, dropped_lines: usize) -> Self {
        Self { dropped_lines, reason: Some(reason.into()), ..Self::default() }
    }

    /// The report as OpenClaw has it.
    pub fn to_json(&self) -> Value {
        let mut report = json!({"repaired": self.repaired, "droppedLines": self.dropped_lines});
        if let Some(backup) = &self.backup {
            report["backupPath"] = backup.to_string_lossy().into();
        }
        if let Some(reason) = &self.reason {
            report["reason"] = reason.as_str().into();
        }
        report
    }
}

/// Removes lines that are no JSON from a session file; the others stay byte for byte, but for the parent of entries whose own was removed. A file that
/// is whole is not touched. The caller keeps other writers out.
///
/// A copy is kept as `<file>.bak-<pid>-<ms>`, of three such copies the newest, unless only the last line was cut off, as a crash does.
/// `now_ms`: milliseconds since 1970.
pub fn repair_file(path: &Path, now_ms: i64) -> FileRepair {
    if path.as_os_str().is_empty() {
        return FileRepair::refused("missing session file", 0);
    }
    let text = match open_regular(path).and_then(|mut file| {
        let mut text = Vec::new();
        io::Read::read_to_end(&mut file, &mut text).map(|_| text)
    }) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return FileRepair::refused("missing session file", 0),
        Err(error) => return FileRepair::refused(format!("failed to read session file: {error}"), 0),
    };
    let survey = DamagedLines::of(&text);
    let n_dropped = survey.n_dropped;
    let Some(first) = survey.kept.first() else {
        return FileRepair::refused("empty session file", n_dropped);
    };
    if !is_header(&text[first.clone()]) {
        return FileRepair::refused("invalid session header", n_dropped);
    }
    if n_dropped == 0 {
        return FileRepair::default();
    }
    let (repaired, reattached) = survey.written(&text);
    let backup = match survey.is_cut_off() {
        true => None,
        false => Some(beside(path, &format!("bak-{}-{now_ms}", std::process::id()))),
    };
    let replaced = backup.as_ref().map_or(Ok(()), |backup| copy(path, backup));
    let replaced = replaced.and_then(|()| write_atomic(path, &repaired, Access::Keep));
    if let Err(error) = replaced {
        return FileRepair::refused(format!("repair failed: {error}"), n_dropped);
    }
    match &backup {
        Some(_) => tracing::warn!(file = %path.display(), n_dropped, "a session file was repaired"),
        None => tracing::debug!(file = %path.display(), "the end of a session file was cut off, and is gone"),
    }
    remove_old_backups(path);
    FileRepair { repaired: true, dropped_lines: n_dropped, reattached, backup, reason: None }
}

/// The lines of a file.
#[derive(Default)]
struct DamagedLines {
    kept: Vec<Range<usize>>,
    n_dropped: usize,
    /// Whether the last line is the one that was dropped, and has no end.
    has_cut_end: bool,
}

impl DamagedLines {
    fn of(text: &[u8]) -> Self {
        let mut survey = Self::default();
        for (start, line) in scan::lines(text) {
            survey.has_cut_end = false;
            if is_json(line) {
                survey.kept.push(start..start + line.len());
            } else {
                survey.n_dropped += 1;
                survey.has_cut_end = !text[start + line.len()..].contains(&b'\n');
            }
        }
        survey
    }

    fn is_cut_off(&self) -> bool {
        self.n_dropped == 1 && self.has_cut_end
    }

    /// The text without what was dropped, and how many entries have another parent.
    fn written(&self, text: &[u8]) -> (Vec<u8>, usize) {
        let lines = self.kept.iter().map(|range| &text[range.clone()]);
        let ids: HashSet<Vec<u8>> =
            lines.filter_map(|line| EntryLinks::of(line).id.map(|id| line[id].to_vec())).collect();
        let mut written = text[..bom_len(text)].to_vec();
        let (mut n_reattached, mut last) = (0, b"null".to_vec());
        for range in &self.kept {
            let line = &text[range.clone()];
            let members = EntryLinks::of(line);
            let orphan = members
                .parent
                .filter(|parent| line[parent.clone()] != *b"null" && !ids.contains(&line[parent.clone()]));
            match orphan {
                Some(parent) => {
                    n_reattached += 1;
                    written.extend_from_slice(&line[..parent.start]);
                    written.extend_from_slice(&last);
                    written.extend_from_slice(&line[parent.end..]);
                }
                None => written.extend_from_slice(line),
            }
            written.push(b'\n');
            if let Some(id) = members.id.filter(|_| members.has_parent) {
                last = line[id].to_vec();
            }
        }
        (written, n_reattached)
    }
}

/// Where the members of a line that tie entries together stand.
#[derive(Default)]
struct EntryLinks {
    id: Option<Range<usize>>,
    parent: Option<Range<usize>>,
    has_parent: bool,
}

impl EntryLinks {
    fn of(line: &[u8]) -> Self {
        let mut found = Self::default();
        let mut walk = Walk::new(line);
        // What is no object has no members.
        let _is_object = walk.object(0, |walk, key| {
            let place = walk.place_of_value(0)?;
            match key {
                b"id" => found.id = Some(place),
                b"parentId" => (found.parent, found.has_parent) = (Some(place), true),
                _ => {}
            }
            Some(())
        });
        found
    }
}

fn is_json(line: &[u8]) -> bool {
    let mut walk = Walk::new(line);
    walk.value(0).is_some() && walk.is_at_end()
}

/// Whether a line is a session's header: `{"type": "session", "id": …}`.
fn is_header(line: &[u8]) -> bool {
    scan::line(line)
        .is_some_and(|header| header.kind == scan::EntryType::Session && header.id.is_some_and(|id| !id.is_empty()))
}

/// `<file>.<ending>`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// Copies bytes and rights; what is there is not overwritten.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.try_exists()? {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", to.display())));
    }
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()
}

/// Removes the oldest backups of a file. One that cannot be removed stays.
fn remove_old_backups(path: &Path) {
    let prefix = beside(path, "bak-");
    let Some(prefix) = prefix.file_name().and_then(|name| name.to_str()) else { return };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut backups: Vec<(i64, PathBuf)> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let (pid, ms) = name.to_str()?.strip_prefix(prefix)?.split_once('-')?;
            pid.parse::<u32>().ok()?;
            Some((ms.parse().ok()?, entry.path()))
        })
        .collect();
    backups.sort();
    for (_, backup) in backups.iter().rev().skip(MAX_BACKUPS) {
        if let Err(error) = fs::remove_file(backup) {
            tracing::warn!(%error, backup = %backup.display(), "an old backup stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn lines_that_survive_stay_byte_for_byte_and_orphans_follow_what_stood_before() {
        let a = r#"{"type":"message", "n": 1.0, "id":"a","parentId":null}"#;
        let c = r#"{"type":"message","id":"c","parentId": "b" ,"x":"\ud800"}"#;
        let d = r#"{"id":"d","type":"message","parentId":"c"}"#;
        let (_dir, path) = file(&format!("{HEADER}\r\n{a}\n{{\"id\":\"b\",\n\n{c}\n{d}"));
        let report = repair_file(&path, 5);
        assert_eq!((report.repaired, report.dropped_lines, report.reattached), (true, 1, 1));
        let c = c.replace(r#""b""#, r#""a""#);
        assert_eq!(read(&path), format!("{HEADER}\n{a}\n{c}\n{d}\n"));
        let backup = report.backup.unwrap();
        assert!(backup.to_str().unwrap().ends_with(&format!("s.jsonl.bak-{}-5", std::process::id())));
        assert!(read(&backup).contains("{\"id\":\"b\",\n"));
        assert_eq!(repair_file(&path, 6), FileRepair::default(), "a whole file is not touched");
    }

    #[test]
    fn three_backups_are_kept_and_an_end_that_was_cut_off_has_none() {
        let (dir, path) = file("");
        for now in 0..5 {
            fs::write(&path, format!("{HEADER}\nx\n{{}}\n")).unwrap();
            assert!(repair_file(&path, now).repaired);
        }
        fs::write(&path, format!("{HEADER}\n{{\"type\":")).unwrap();
        assert_eq!(repair_file(&path, 9).backup, None);
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().rsplit('-').next().unwrap().to_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["2", "3", "4", "s.jsonl"]);
    }

    #[test]
    fn rights_stay_and_what_is_no_file_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, path) = file(&format!("{HEADER}\nx\n{{}}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let backup = repair_file(&path, 1).backup.unwrap();
        for file in [&path, &backup] {
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
        }
        let refused = repair_file(dir.path(), 1).reason.unwrap();
        assert!(refused.starts_with("failed to read session file: "), "{refused}");
    }
}

//! Removing unreadable lines from a session file.
//!
//! This is never required: reading skips such lines, and appending repairs a truncated end. It is for people who want a clean file, or one
//! that other programs can read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pinch_stdx::fs::{Access, open_regular, read_regular, write_atomic};
use pinch_stdx::json::walk::{Walk, resolve};
use pinch_stdx::text::bom_len;
use serde_json::{Value, json};

use crate::entry::scan;

/// Number of copies of a damaged file to keep.
const MAX_BACKUPS: usize = 3;

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileRepair {
    /// Whether the file was replaced.
    pub repaired: bool,
    /// Number of unreadable lines; they were removed if the file was replaced.
    pub dropped_lines: usize,
    /// Number of entries whose parent was removed and that now follow the entry before it.
    pub reattached: usize,
    /// Copy of the original file. `None` if only a truncated last line was removed.
    pub backup: Option<PathBuf>,
    /// Why nothing was repaired; `None` if the file is intact or was repaired. The texts are OpenClaw's.
    pub reason: Option<String>,
}

impl FileRepair {
    fn refused(reason: impl Into<String>, dropped_lines: usize) -> Self {
        Self { dropped_lines, reason: Some(reason.into()), ..Self::default() }
    }

    /// Returns the report in OpenClaw's format.
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

/// Counts the lines of a session file that [`repair_file`] would remove. Nothing is written.
///
/// # Errors
/// Fails if the file cannot be read or is larger than `max_bytes`.
pub fn damaged_lines(path: &Path, max_bytes: u64) -> io::Result<usize> {
    Ok(DamagedLines::of(&read_regular(path, max_bytes)?).dropped.len())
}

/// Removes lines that are not JSON from a session file. The others stay byte for byte, except for the parent of entries whose own was
/// removed. An intact file is not touched. The caller must keep other writers out.
///
/// A copy is kept as `<file>.bak-<pid>-<ms>`, unless only the last line was truncated, as after a crash; the newest three copies are kept.
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
    let n_dropped = survey.dropped.len();
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
        None => tracing::debug!(file = %path.display(), "removed the truncated end of a session file"),
    }
    remove_old_backups(path);
    FileRepair { repaired: true, dropped_lines: n_dropped, reattached, backup, reason: None }
}

/// The lines of a file.
#[derive(Default)]
struct DamagedLines {
    kept: Vec<Range<usize>>,
    dropped: Vec<Range<usize>>,
    /// Whether the last line was dropped and has no line break.
    has_cut_end: bool,
}

impl DamagedLines {
    fn of(text: &[u8]) -> Self {
        let mut survey = Self::default();
        for (start, line) in scan::lines(text) {
            let place = start..start + line.len();
            survey.has_cut_end = false;
            if is_json(line) {
                survey.kept.push(place);
            } else {
                survey.has_cut_end = !text[place.end..].contains(&b'\n');
                survey.dropped.push(place);
            }
        }
        survey
    }

    fn is_cut_off(&self) -> bool {
        self.dropped.len() == 1 && self.has_cut_end
    }

    /// Returns the text without the dropped lines, and the number of entries with a new parent.
    fn written(&self, text: &[u8]) -> (Vec<u8>, usize) {
        let family = LostParents::of(text, self);
        let mut written = text[..bom_len(text)].to_vec();
        let mut n_reattached = 0;
        for (index, range) in self.kept.iter().enumerate() {
            let line = &text[range.clone()];
            let parent = if index == 0 { None } else { EntryLinks::of(line).parent };
            let new = parent.as_ref().and_then(|place| family.replacement(&line[place.clone()], range.start));
            match parent.zip(new) {
                Some((place, new)) => {
                    n_reattached += 1;
                    written.extend_from_slice(&line[..place.start]);
                    written.extend_from_slice(new);
                    written.extend_from_slice(&line[place.end..]);
                }
                None => written.extend_from_slice(line),
            }
            written.push(b'\n');
        }
        (written, n_reattached)
    }
}

/// Information about dropped entries.
struct LostParents<'a> {
    /// Surviving entries: their ids, and the ids as written.
    kept: HashMap<Cow<'a, str>, &'a [u8]>,
    /// Offsets of the surviving entries and their ids as written, in file order.
    order: Vec<(usize, &'a [u8])>,
    /// Dropped lines whose id is still readable.
    named: HashMap<Cow<'a, str>, LostEntry<'a>>,
    /// Offsets of dropped lines without a readable id, in file order.
    nameless: Vec<usize>,
}

/// A dropped line whose id is still readable.
struct LostEntry<'a> {
    at: usize,
    /// The JSON of its parent, if readable.
    parent: Option<&'a [u8]>,
}

impl<'a> LostParents<'a> {
    fn of(text: &'a [u8], lines: &DamagedLines) -> Self {
        let mut family = Self { kept: HashMap::new(), order: Vec::new(), named: HashMap::new(), nameless: Vec::new() };
        // The first line is the header: its id is the session's, not an entry's.
        for range in lines.kept.iter().skip(1) {
            let line = &text[range.clone()];
            if let Some(written) = EntryLinks::of(line).id.map(|place| &line[place])
                && let Some(id) = string(written)
            {
                family.order.push((range.start, written));
                family.kept.insert(id, written);
            }
        }
        for range in &lines.dropped {
            let line = &text[range.clone()];
            let links = EntryLinks::of(line);
            match links.id.and_then(|place| string(&line[place])) {
                Some(id) => {
                    let parent = links.parent.map(|place| &line[place]);
                    family.named.insert(id, LostEntry { at: range.start, parent });
                }
                None => family.nameless.push(range.start),
            }
        }
        family
    }

    /// Returns the new parent of the entry at an offset as JSON; `None` if it keeps its parent, because that survives or was never in this
    /// file.
    fn replacement(&self, parent: &'a [u8], at: usize) -> Option<&'a [u8]> {
        let (mut parent, mut is_lost) = (parent, false);
        // Damaged lines may refer to each other in a circle.
        for _ in 0..=self.named.len() {
            let Some(id) = string(parent) else { return is_lost.then_some(parent) };
            if let Some(written) = self.kept.get(&id) {
                return is_lost.then_some(written);
            }
            is_lost = true;
            match self.named.get(&id) {
                Some(LostEntry { parent: Some(above), .. }) => parent = above,
                Some(lost) => return Some(self.before(lost.at)),
                // It may be a line before this one with a damaged id: take the nearest one above.
                None => {
                    let n_above = self.nameless.partition_point(|lost| *lost < at);
                    return n_above.checked_sub(1).map(|index| self.before(self.nameless[index]));
                }
            }
        }
        Some(b"null")
    }

    /// Returns the entry before an offset.
    fn before(&self, at: usize) -> &'a [u8] {
        let n_before = self.order.partition_point(|(start, _)| *start < at);
        n_before.checked_sub(1).map_or(b"null", |index| self.order[index].1)
    }
}

/// Returns the text of a JSON string; `None` for other values.
fn string(json: &[u8]) -> Option<Cow<'_, str>> {
    resolve(json.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

/// Offsets of the members that link entries. In a damaged line, only those before the damage.
#[derive(Default)]
struct EntryLinks {
    id: Option<Range<usize>>,
    parent: Option<Range<usize>>,
}

impl EntryLinks {
    fn of(line: &[u8]) -> Self {
        let mut found = Self::default();
        let mut walk = Walk::new(line);
        // A value other than an object has no members.
        let _is_object = walk.object(0, |walk, key| {
            let place = walk.place_of_value(0)?;
            match key {
                b"id" => found.id = Some(place),
                b"parentId" => found.parent = Some(place),
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

/// Returns whether a line is a session's header: `{"type": "session", "id": …}`.
fn is_header(line: &[u8]) -> bool {
    scan::line(line)
        .is_some_and(|header| header.kind == scan::EntryType::Session && header.id.is_some_and(|id| !id.is_empty()))
}

/// Returns the path `<file>.<ending>`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// Copies content and permissions; never overwrites.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if to.try_exists()? {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", to.display())));
    }
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()
}

/// Removes the oldest backups of a file. Failures are ignored.
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
            tracing::warn!(%error, backup = %backup.display(), "cannot remove an old backup");
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
    fn surviving_lines_stay_byte_for_byte_and_orphans_follow_the_line_before() {
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
    fn only_entries_whose_parent_was_dropped_get_another() {
        let repaired = |lines: &[&str]| {
            let (_dir, path) = file(&format!("{HEADER}\n{}\n", lines.join("\n")));
            let report = repair_file(&path, 5);
            let text = read(&path);
            let lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
            (report.reattached, lines)
        };
        let (n, lines) = repaired(&[
            r#"{"id":"a","parentId":"elsewhere"}"#,
            r#"{"id":"x","parentId":"a","message":"#,
            r#"{"id":"b","parentId":"elsewhere"}"#,
            r#"{"id":"c","parentId":"x"}"#,
            r#"{"id":"d","parentId":"\u0063"}"#,
        ]);
        assert_eq!(n, 1, "the parent of `a` and `b` never was in the file, that of `d` is written with an escape");
        assert_eq!(lines[2], r#"{"id":"c","parentId":"a"}"#, "a damaged line still names its parent");
        assert_eq!(lines[3], r#"{"id":"d","parentId":"\u0063"}"#);
        let (n, lines) = repaired(&[
            r#"{"id":"a","parentId":null}"#,
            r#"{"id":"x","parentId":"y","#,
            r#"{"id":"y","parentId":"x","#,
            r#"{"id":"b","parentId":"x"}"#,
            r#"{"id":"c","parentId":"s"}"#,
            "damaged",
            r#"{"id":"d","parentId":"s"}"#,
        ]);
        assert_eq!((n, lines[1].as_str()), (2, r#"{"id":"b","parentId":null}"#), "lines that name each other");
        assert_eq!(lines[2], r#"{"id":"c","parentId":"s"}"#, "nothing nameless stands before it");
        assert_eq!(lines[3], r#"{"id":"d","parentId":"c"}"#, "the session's id is no entry's");
    }

    #[test]
    fn three_backups_are_kept_and_a_truncated_end_needs_none() {
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
    fn permissions_are_kept_and_non_files_are_rejected() {
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

//! The identity of the files a command starts: recorded when it is judged, and compared before it runs.

use std::path::{Path, PathBuf};

use pinch_stdx::fs::stamp::FileStamp;

use super::contents::hash_of;
use super::interpreters::CodeFiles;
use super::judge::Judgement;

/// A snapshot of a command's programs, its shell, and the scripts passed to interpreters.
///
/// Detects files that are later written, replaced, or reached through another link, regardless of their length and modification time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandIdentity(Vec<(PathBuf, Option<FileIdentity>)>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileIdentity {
    /// The path with symbolic links resolved.
    real_path: PathBuf,
    stamp: FileStamp,
    /// Time of the last status change, which programs cannot set.
    changed: Option<(i64, i64)>,
    /// Hash of a small file: the clock of the file system may be too coarse to show a change.
    hash: Option<String>,
}

/// Maximum size of the files whose contents are compared.
const MAX_HASHED: u64 = 1024 * 1024;

impl CommandIdentity {
    /// Records the files of a judged command that a shell runs in a directory.
    pub fn of(judgement: &Judgement, shell: &Path, cwd: &Path) -> Self {
        let mut paths = vec![shell.to_owned()];
        for call in &judgement.programs {
            // The scripts are known even if the interpreter is not, as in a container.
            let files = CodeFiles::of(&call.argv, call.program.as_deref(), cwd);
            paths.extend(files.code.into_iter().chain(files.arguments.into_iter().flatten()));
        }
        paths.sort();
        paths.dedup();
        Self(paths.into_iter().map(|path| (path.clone(), FileIdentity::of(&path))).collect())
    }

    /// Returns the first file that changed.
    pub fn changed(&self) -> Option<&Path> {
        let is_other = |(path, before): &&(PathBuf, Option<FileIdentity>)| FileIdentity::of(path) != *before;
        self.0.iter().find(is_other).map(|(path, _)| path.as_path())
    }
}

impl FileIdentity {
    fn of(path: &Path) -> Option<Self> {
        let real_path = std::fs::canonicalize(path).ok()?;
        let stamp = FileStamp::of(&real_path)?;
        let hash = if stamp.size() <= MAX_HASHED { hash_of(&real_path).ok()? } else { None };
        Some(Self { stamp, changed: changed(&real_path), hash, real_path })
    }
}

#[cfg(unix)]
fn changed(path: &Path) -> Option<(i64, i64)> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.ctime(), meta.ctime_nsec()))
}

#[cfg(not(unix))]
fn changed(_: &Path) -> Option<(i64, i64)> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::exec::judge::ProgramCall;

    fn call(argv: &[&str], program: &Path) -> ProgramCall {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        ProgramCall { argv, program: Some(program.to_owned()), is_exact: true }
    }

    #[test]
    fn any_change_to_a_file_is_detected() {
        type Change = fn(&Path);
        let changes: [(&str, Change); 6] = [
            ("written in place with its old time", |dir| {
                let file = std::fs::File::options().write(true).open(dir.join("tool")).unwrap();
                let before = file.metadata().unwrap().modified().unwrap();
                std::os::unix::fs::FileExt::write_at(&file, b"X", 0).unwrap();
                file.set_modified(before).unwrap();
            }),
            ("replaced", |dir| {
                std::fs::write(dir.join("other"), "one").unwrap();
                std::fs::rename(dir.join("other"), dir.join("tool")).unwrap();
            }),
            ("removed", |dir| std::fs::remove_file(dir.join("tool")).unwrap()),
            ("another link", |dir| {
                std::fs::rename(dir.join("tool"), dir.join("moved")).unwrap();
                symlink(dir.join("moved"), dir.join("tool")).unwrap();
            }),
            ("another script", |dir| std::fs::write(dir.join("a.py"), "other").unwrap()),
            ("another shell", |dir| std::fs::write(dir.join("sh"), "other").unwrap()),
        ];
        for (what, change) in changes {
            let dir = tempfile::tempdir().unwrap();
            for name in ["tool", "python3", "a.py", "sh"] {
                std::fs::write(dir.path().join(name), "one").unwrap();
            }
            let programs = vec![
                call(&["tool", "a"], &dir.path().join("tool")),
                call(&["python3", "-u", "a.py"], &dir.path().join("python3")),
            ];
            let judgement = Judgement { programs, ..Judgement::default() };
            let identity = CommandIdentity::of(&judgement, &dir.path().join("sh"), dir.path());
            assert_eq!(identity.changed(), None, "{what}");
            // The file system clock has a resolution of a few milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(20));
            change(dir.path());
            assert!(identity.changed().is_some(), "{what}");
        }
    }
}

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn modes_are_kept_or_private_and_no_temporary_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.json");
    write_atomic(&path, b"1", Access::Private).unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_atomic(&path, b"22", Access::Keep).unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"22".to_vec(), 0o640));
    write_atomic(&path, b"3", Access::Private).unwrap();
    assert_eq!(mode(&path), 0o600);
    let fresh = dir.path().join("settings.json");
    write_atomic(&fresh, b"", Access::Keep).unwrap();
    fs::write(dir.path().join("plain"), "").unwrap();
    assert_eq!(mode(&fresh), mode(&dir.path().join("plain")));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn a_secret_file_keeps_existing_permissions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.json");
    write_atomic(&path, b"1", Access::Secret).unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_atomic(&path, b"2", Access::Secret).unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"2".to_vec(), 0o640));
}

#[test]
fn a_secret_file_that_everybody_may_read_is_tightened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.json");
    for (before, after) in [(0o644, 0o600), (0o604, 0o600), (0o600, 0o600)] {
        fs::write(&path, "1").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
        write_atomic(&path, b"2", Access::Secret).unwrap();
        assert_eq!(mode(&path), after, "{before:o}");
        fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
        fs::hard_link(&path, dir.path().join("other")).unwrap();
        write_atomic(&path, b"3", Access::Secret).unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (after, b"3".to_vec()), "in place, {before:o}");
        fs::remove_file(dir.path().join("other")).unwrap();
    }
    fs::remove_file(&path).unwrap();
    write_atomic(&path, b"1", Access::NewPrivate).unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    write_atomic(&path, b"2", Access::NewPrivate).unwrap();
    assert_eq!(mode(&path), 0o644);
}

#[test]
fn hard_links_stay_links_and_devices_stay_devices() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    fs::write(&one, "a long beginning").unwrap();
    fs::hard_link(&one, &other).unwrap();
    for content in ["short", "something that is longer than the beginning was", ""] {
        write_atomic(&one, content.as_bytes(), Access::Keep).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), content);
    }
    assert_eq!(fs::metadata(&one).unwrap().nlink(), 2);
    let failed = write_atomic_with(&one, Access::Keep, |_| Err(io::Error::other("no")));
    assert_eq!(failed.unwrap_err().to_string(), "no");
    symlink("/dev/null", dir.path().join("null")).unwrap();
    for path in [Path::new("/dev/null"), &dir.path().join("null")] {
        let refused = write_atomic(path, b"x", Access::Keep).unwrap_err();
        assert_eq!(refused.to_string(), "not a regular file");
    }
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn extended_attributes_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "1").unwrap();
    // Not every file system supports them.
    if rustix::fs::setxattr(&path, "user.pinch", b"kept", rustix::fs::XattrFlags::empty()).is_err() {
        return;
    }
    write_atomic(&path, b"2", Access::Keep).unwrap();
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&path, "user.pinch", &mut value[..]).unwrap();
    assert_eq!((&value[..length], fs::read(&path).unwrap()), (&b"kept"[..], b"2".to_vec()));
}

#[test]
fn certain_rename_errors_lead_to_writing_in_place() {
    use rustix::io::Errno;
    for errno in [Errno::BUSY, Errno::XDEV, Errno::ACCESS, Errno::PERM, Errno::ROFS] {
        assert!(forbids_replacing(&errno.into()), "{errno:?}");
    }
    for errno in [Errno::NOSPC, Errno::IO, Errno::NOENT] {
        assert!(!forbids_replacing(&errno.into()), "{errno:?}");
    }
}

#[expect(clippy::print_stderr, reason = "what a machine cannot test is said")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// A bind-mounted file, as in containers, and one in a directory that accepts no new file.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_replaced_is_overwritten() {
    use std::os::unix::fs::MetadataExt as _;
    let dir = tempfile::tempdir().unwrap();
    let (there, mounted) = (dir.path().join("there"), dir.path().join("mounted"));
    let check = |path: &Path| {
        let before = fs::metadata(path).unwrap().ino();
        write_atomic(path, b"a new login", Access::Secret).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"a new login");
        assert_eq!((fs::metadata(path).unwrap().ino(), mode(path)), (before, 0o600));
    };
    fs::write(&there, "old").unwrap();
    fs::write(&mounted, "").unwrap();
    let run = |program: &str, args: &[&Path]| {
        let done = std::process::Command::new(program).args(args).stderr(std::process::Stdio::null()).status();
        done.is_ok_and(|status| status.success())
    };
    if run("mount", &[Path::new("--bind"), &there, &mounted]) {
        let checked = std::panic::catch_unwind(|| check(&mounted));
        assert!(run("umount", &[&mounted]));
        checked.unwrap();
        assert_eq!(fs::read(&there).unwrap(), b"a new login");
    } else {
        skipped("this process may not mount");
    }
    let folder = dir.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("f"), "old").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.join("probe"), "").is_err() {
        check(&folder.join("f"));
        write_atomic(&folder.join("new"), b"", Access::Keep).unwrap_err();
    } else {
        skipped("permissions of folders do not hold this process back");
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

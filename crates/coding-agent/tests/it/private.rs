//! User data is private, and files named by the user are never destroyed.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use bytes::Bytes;
use pinch_coding_agent::auth::AuthStorage;
use pinch_coding_agent::export::{html, page_theme};
use pinch_coding_agent::machine::{LocalMachine, Machine as _};
use pinch_coding_agent::resources::themes::Theme;
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::settings::{SettingsFiles, SettingsManager};
use pinch_coding_agent::store::{JsonlStore, SessionRef};
use serde_json::json;

use pinch_testing::logs::{append, file, host, open, user};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Returns all files and directories below a directory that others may access.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if mode(&path) & 0o077 != 0 {
            found.push(format!("{:o} {}", mode(&path), path.display()));
        }
        if path.is_dir() {
            found.extend(open_to_others(&path));
        }
    }
    found
}

#[tokio::test]
async fn sessions_settings_and_imports_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path().join("state/agent");
    let store = JsonlStore::by_cwd(agent.join("sessions"));
    let shared = std::sync::Arc::new(store.clone());
    let mut log = SessionLog::create(&host(), shared.clone(), NewSession::in_directory("/w")).await.unwrap();
    append(&mut log, [user("private")]).await;
    let beside = file(&log).with_extension("export.jsonl");
    log.export_to(&beside).unwrap();
    html::export(&log, &page_theme(&Theme::builtin()[0]), None, beside.parent().unwrap()).unwrap();
    let source = dir.path().join("other.jsonl");
    fs::copy(file(&log), &source).unwrap();
    fs::set_permissions(&source, Permissions::from_mode(0o644)).unwrap();
    let imported = store.import(&source, "/elsewhere").unwrap();
    assert!(imported.starts_with(&agent));
    let at = SessionRef::Path(file(&log));
    SessionLog::fork_from(&host(), shared, &at, NewSession::in_directory("/fork")).await.unwrap();
    let files = SettingsFiles { global: agent.join("settings.json"), project: None };
    let settings = SettingsManager::load(&files, &host());
    settings.set("theme", json!("dark")).unwrap();
    settings.flush().await;
    assert!(files.global.exists() && settings.drain_problems().is_empty());
    assert_eq!(open_to_others(dir.path()).iter().filter(|path| !path.ends_with("other.jsonl")).count(), 0);
    assert_eq!(open_to_others(&dir.path().join("state")), Vec::<String>::new());
}

#[tokio::test]
async fn a_session_file_readable_by_others_is_tightened_when_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = pinch_testing::logs::create(dir.path()).await;
    append(&mut log, [user("q")]).await;
    let path = file(&log);
    fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    let mut log = open(&path).await.unwrap();
    assert_eq!(mode(&path), 0o664, "reading changes nothing");
    append(&mut log, [user("more")]).await;
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_migrated_session_keeps_a_backup_of_its_old_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.jsonl");
    let old = concat!(
        "{\"type\":\"session\",\"id\":\"x\",\"timestamp\":\"2025-06-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n",
        "{\"type\":\"message\",\"timestamp\":\"2025-06-01T10:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"q\",\"timestamp\":1}}\n",
    );
    fs::write(&path, old).unwrap();
    drop(open(&path).await.unwrap());
    let kept: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let backup = kept.iter().find(|kept| **kept != path).unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), old);
    assert_ne!(fs::read_to_string(&path).unwrap(), old);
    assert_eq!(open_to_others(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn auth_json_is_tightened_and_written_in_place_if_mounted() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("auth.json"), dir.path().join("same"));
    fs::write(&path, "{}").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    // A second hard link prevents replacing the file, so it must be written in place.
    fs::hard_link(&path, &other).unwrap();
    let (auth, _) = AuthStorage::load(&path);
    auth.set(&"openai".into(), json!({"type": "api_key", "key": "sk-1"}), &host()).await.unwrap();
    assert_eq!(mode(&path), 0o600);
    assert!(fs::read_to_string(&other).unwrap().contains("sk-1"));
    assert_eq!(fs::metadata(&path).unwrap().nlink(), 2);
}

#[tokio::test]
async fn the_tools_keep_links_and_never_replace_devices() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("a"), dir.path().join("b"));
    fs::write(&path, "old").unwrap();
    fs::hard_link(&path, &other).unwrap();
    LocalMachine.write(&path, Bytes::from_static(b"new")).await.unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "new");
    LocalMachine.write(Path::new("/dev/null"), Bytes::from_static(b"new")).await.unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[tokio::test]
async fn exports_write_to_devices_but_not_over_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = pinch_testing::logs::create(dir.path()).await;
    append(&mut log, [user("q")]).await;
    let themes = Theme::builtin();
    let page_theme = page_theme(&themes[0]);
    let null = dir.path().join("null");
    std::os::unix::fs::symlink("/dev/null", &null).unwrap();
    for path in [Path::new("/dev/null"), &null] {
        html::export(&log, &page_theme, Some(path), dir.path()).unwrap();
        log.export_to(path).unwrap();
    }
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(fs::symlink_metadata(&null).unwrap().is_symlink());
    let before = fs::read(file(&log)).unwrap();
    let page = html::export(&log, &page_theme, Some(&file(&log)), dir.path()).unwrap_err();
    assert!(std::error::Error::source(&page).unwrap().to_string().contains("the session's own file"));
    log.export_to(&file(&log)).unwrap_err();
    assert_eq!(fs::read(file(&log)).unwrap(), before);
    let page = dir.path().join("page.html");
    html::export(&log, &page_theme, Some(&page), dir.path()).unwrap();
    assert_eq!(mode(&page), 0o600);
    fs::set_permissions(&page, Permissions::from_mode(0o644)).unwrap();
    html::export(&log, &page_theme, Some(&page), dir.path()).unwrap();
    assert_eq!(mode(&page), 0o644, "a page that is there keeps its mode");
}

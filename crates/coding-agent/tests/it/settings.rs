//! Settings that others write as well.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use pinch_coding_agent::packages::PackageEntry;
use pinch_coding_agent::resources::trust::DefaultTrust;
use pinch_coding_agent::settings::{SetError, SettingsFiles, SettingsManager, SettingsScope};
use pinch_stdx::host::{Env, Host};
use serde_json::{Map, Value, json};

fn host() -> Host {
    Host::builder().build()
}

fn files(dir: &Path) -> SettingsFiles {
    SettingsFiles { global: dir.join("agent/settings.json"), project: Some(dir.join("project/.pinch/settings.json")) }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn stored(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn problems(manager: &SettingsManager) -> Vec<String> {
    let problems = |p: pinch_coding_agent::settings::SettingsProblem| {
        let file = p.problem.file.file_name().unwrap().to_string_lossy().into_owned();
        format!("{} {file} {} {}", p.scope, p.problem.at.unwrap_or_default(), p.is_fatal)
    };
    manager.drain_problems().into_iter().map(problems).collect()
}

#[tokio::test]
async fn nothing_is_created_until_something_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let manager = SettingsManager::load(&files(dir.path()), &host());
    manager.flush().await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    manager.set("theme", json!("dark")).unwrap();
    manager.set("retry.provider.maxRetries", json!(2)).unwrap();
    manager.flush().await;
    let path = files(dir.path()).global;
    let text = "{\n  \"retry\": {\n    \"provider\": {\n      \"maxRetries\": 2\n    }\n  },\n  \"theme\": \"dark\"\n}";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no lock and no other file stays");
    assert!(!dir.path().join("project").exists());
    assert_eq!(problems(&manager), [""; 0]);
}

#[tokio::test]
async fn changes_by_others_are_preserved_and_seen() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    write(&files.global, r#"{"retry": {"maxRetries": 9, "own": 1}, "unknown": [1.0]}"#);
    let (a, b) = (SettingsManager::load(&files, &host()), SettingsManager::load(&files, &host()));
    a.set("retry.enabled", json!(false)).unwrap();
    b.set("retry.baseDelayMs", json!(5)).unwrap();
    b.set("retry.maxRetries", Value::Null).unwrap();
    tokio::join!(a.flush(), b.flush());
    assert_eq!(stored(&files.global), json!({"retry": {"own": 1, "enabled": false, "baseDelayMs": 5}, "unknown": [1]}));
    a.reload().await;
    assert_eq!(a.value("retry.baseDelayMs"), Some(json!(5)));
    assert_eq!(a.settings().recovery.turn.max_retries, 0);
}

#[tokio::test]
async fn a_broken_document_is_reported_once_and_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    write(&files.global, "{oops");
    let manager = SettingsManager::load(&files, &host());
    manager.set("theme", json!("x")).unwrap();
    manager.flush().await;
    assert_eq!(problems(&manager), ["global settings.json 1:2 true"]);
    assert_eq!(std::fs::read_to_string(&files.global).unwrap(), "{oops");
    assert_eq!(manager.settings().interface.theme.as_deref(), Some("x"));
    // Once repaired, pending values are written.
    write(&files.global, "{\"a\": 1}");
    manager.flush().await;
    assert_eq!(stored(&files.global), json!({"a": 1, "theme": "x"}));
    // Broken again, it keeps the old values.
    write(&files.global, "[]");
    manager.reload().await;
    manager.set("theme", json!("y")).unwrap();
    manager.flush().await;
    assert_eq!(problems(&manager).len(), 1);
    assert_eq!((manager.value("a"), std::fs::read_to_string(&files.global).unwrap()), (Some(json!(1)), "[]".into()));
}

#[tokio::test]
async fn comments_are_accepted_and_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let text = "\u{feff}{\"theme\": \"dark\", // mine\n}";
    write(&files.global, text);
    let manager = SettingsManager::load(&files, &host());
    assert_eq!((manager.value("theme"), problems(&manager).len()), (Some(json!("dark")), 0));
    manager.set("theme", json!("light")).unwrap();
    manager.flush().await;
    assert_eq!(problems(&manager), ["global settings.json  true"]);
    assert_eq!(std::fs::read_to_string(&files.global).unwrap(), text);
    // A byte order mark alone loses nothing.
    write(&files.global, "\u{feff}{\"k\": 1}");
    manager.flush().await;
    assert_eq!(stored(&files.global), json!({"k": 1, "theme": "light"}));
}

#[test]
fn invalid_values_are_reported_with_their_document() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    write(&files.global, r#"{"theme": 1, "$schema": "x", "treeFilterMode": "odd", "httpProxy": "http://p"}"#);
    write(
        files.project.as_deref().unwrap(),
        r#"{"httpProxy": "http://evil", "retry": {"provider": {"timeoutMs": "x"}}}"#,
    );
    let manager = SettingsManager::load(&files, &host());
    let expected = [
        "global settings.json theme false",
        "global settings.json treeFilterMode false",
        "project settings.json retry.provider.timeoutMs false",
        "project settings.json httpProxy false",
    ];
    assert_eq!(problems(&manager), expected);
    assert_eq!(manager.value("treeFilterMode"), Some(json!("default")));
    assert_eq!(manager.settings().network.proxy.as_deref(), Some("http://p"));
}

#[test]
fn a_project_overrides_the_user() {
    let object = |value: Value| value.as_object().unwrap().clone();
    let global =
        object(json!({"retry": {"provider": {"maxRetries": 3, "timeoutMs": 7}}, "defaultTools": ["read", "bash"]}));
    let project = object(json!({"retry": {"provider": {"maxRetries": 1}}, "defaultTools": ["-bash"], "theme": null}));
    let manager = SettingsManager::in_memory(global, project, &host());
    let plan = manager.settings().recovery;
    assert_eq!((plan.transport.max_retries, manager.value("retry.provider.timeoutMs")), (1, Some(json!(7))));
    assert_eq!(manager.settings().default_tools, Some(vec!["read".into(), "bash".into(), "-bash".into()]));
    manager.apply_overrides(&object(json!({"retry": {"enabled": false}, "defaultProjectTrust": "always"})));
    assert_eq!(manager.settings().recovery.turn.max_retries, 0);
    assert_eq!(manager.settings().default_project_trust, DefaultTrust::Always);
}

#[tokio::test]
async fn setters_validate_their_values() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let manager = SettingsManager::load(&files, &host());
    let unknown = SetError::Unknown { key: "colour".into() };
    assert_eq!(manager.set("colour", json!(1)), Err(unknown));
    assert_eq!(
        manager.set("transport", json!("pigeon")).unwrap_err().to_string(),
        "the setting \"transport\" must be sse, websocket, websocket-cached, auto"
    );
    assert!(manager.set("compaction", json!({"enabled": "no"})).is_err());
    manager.set("compaction", json!({"enabled": false, "reserveTokens": 5})).unwrap();
    manager.set("editorPaddingX", json!(7.9)).unwrap();
    manager.set("autocompleteMaxVisible", json!(-1)).unwrap();
    assert!(manager.set_for_project("theme", json!("x")).is_err());
    manager.set_for_project("packages", json!(["a"])).unwrap();
    manager.flush().await;
    let expected = json!({
        "compaction": {"enabled": false, "reserveTokens": 5}, "editorPaddingX": 3, "autocompleteMaxVisible": 3,
    });
    assert_eq!(stored(&files.global), expected);
    assert_eq!(stored(files.project.as_deref().unwrap()), json!({"packages": ["a"]}));
    let package = PackageEntry::whole("a");
    assert_eq!(manager.settings().resources.packages, [package]);
    assert_eq!(manager.document(SettingsScope::Project).len(), 1);
}

#[test]
fn the_environment_supplies_defaults() {
    let env: Env =
        [("PI_CLEAR_ON_SHRINK", "1"), ("PI_TELEMETRY", "yes"), ("PINCH_TELEMETRY", "0")].into_iter().collect();
    let manager = SettingsManager::in_memory(Map::new(), Map::new(), &Host::builder().env(env).build());
    assert!(manager.settings().interface.terminal.clear_on_shrink);
    assert!(!manager.settings().telemetry);
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_and_links_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let real = dir.path().join("dotfiles/settings.json");
    write(&real, "{}");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(dir.path().join("agent")).unwrap();
    symlink("../dotfiles/settings.json", &files.global).unwrap();
    let manager = SettingsManager::load(&files, &host());
    manager.set("theme", json!("dark")).unwrap();
    manager.flush().await;
    assert!(std::fs::symlink_metadata(&files.global).unwrap().is_symlink());
    assert_eq!(stored(&real), json!({"theme": "dark"}));
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn a_held_lock_is_reported_and_a_stale_one_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let files = files(dir.path());
    let lock = dir.path().join("agent/settings.json.lock");
    std::fs::create_dir_all(&lock).unwrap();
    let manager = SettingsManager::load(&files, &host());
    manager.set("theme", json!("dark")).unwrap();
    manager.flush().await;
    assert_eq!(problems(&manager), ["global settings.json  true"]);
    assert!(!files.global.exists());
    let age = Duration::from_secs(11);
    #[expect(clippy::disallowed_methods, reason = "the lock is as old as a dead program would leave it")]
    let old = SystemTime::now() - age;
    std::fs::File::open(&lock).unwrap().set_modified(old).unwrap();
    manager.flush().await;
    assert_eq!(stored(&files.global), json!({"theme": "dark"}), "what was set is tried again");
    assert!(!lock.exists());
}

/// Environment variable with the file's path for the second process.
const PLACE: &str = "PINCH_TEST_SETTINGS_PLACE";
/// Number of keys that each process sets.
const N_KEYS: usize = 12;

#[tokio::test]
async fn no_process_loses_what_another_sets() {
    if let Ok(place) = std::env::var(PLACE) {
        let (path, name) = place.split_once('|').unwrap();
        let files = SettingsFiles { global: PathBuf::from(path), project: None };
        for n in 0..N_KEYS {
            let manager = SettingsManager::load(&files, &host());
            manager.set(&format!("thinkingBudgets.{name}"), json!(n + 1)).unwrap();
            while {
                manager.flush().await;
                !manager.drain_problems().is_empty()
            } {}
            let all = stored(Path::new(path));
            assert_eq!(all["thinkingBudgets"][name], n + 1);
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("settings.json");
    let start = |name: &str| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "settings::no_process_loses_what_another_sets"]).current_dir(dir.path());
        program.env(PLACE, format!("{}|{name}", path.display()));
        program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let programs = ["minimal", "low", "medium", "high"].map(start);
    for mut program in programs {
        assert!(tokio::task::spawn_blocking(move || program.wait()).await.unwrap().unwrap().success());
    }
    let budgets = &stored(&path)["thinkingBudgets"];
    for name in ["minimal", "low", "medium", "high"] {
        assert_eq!(budgets[name], N_KEYS, "{budgets}");
    }
}

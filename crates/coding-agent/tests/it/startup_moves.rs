//! Files of older versions are moved once, and nothing is overwritten.

use std::path::{Path, PathBuf};

use pinch_coding_agent::startup_moves::{self, StartupMoves};
use pinch_stdx::host::Host;
use serde_json::{Value, json};

struct AgentDirFixture(tempfile::TempDir);

impl AgentDirFixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = place.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self) -> StartupMoves {
        startup_moves::run(&self.path("agent"), Some(&self.path("w/.pi")), &Host::builder().build())
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    /// Returns the paths of all files.
    fn files(&self) -> Vec<String> {
        fn below(folder: &Path, root: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(&path, root, found);
                } else {
                    found.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        below(self.0.path(), self.0.path(), &mut found);
        found.sort();
        found
    }
}

const SESSION: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"cwd\":\"/a/b\"}\n{\"type\":\"message\"}\n";

#[test]
fn everything_is_moved_and_a_second_start_has_nothing_to_do() {
    let place = AgentDirFixture::new(&[
        ("agent/oauth.json", r#"{"anthropic": {"access": "a", "refresh": "r", "expires": 1}, "odd": 1}"#),
        ("agent/settings.json", r#"{"theme": "x", "apiKeys": {"openai": "k", "anthropic": "other"}}"#),
        ("agent/s.jsonl", SESSION),
        ("agent/none.jsonl", "{}\n"),
        ("agent/commands/c.md", "C"),
        ("w/.pi/commands/d.md", "D"),
        ("agent/tools/rg", "rg"),
        ("agent/tools/.keep", ""),
        ("agent/keybindings.json", r#"{"zeta": "x", "submit": "enter"}"#),
    ]);
    let moved = place.run();
    assert_eq!(
        (moved.providers, moved.warnings, moved.problems),
        (vec!["anthropic".into(), "openai".into()], vec![], vec![])
    );
    assert_eq!(moved.sessions, [place.path("agent/sessions/--a-b--/s.jsonl")]);
    assert_eq!(
        place.json("agent/auth.json"),
        json!({
            "anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1},
            "openai": {"type": "api_key", "key": "k"},
        })
    );
    assert_eq!(place.json("agent/settings.json"), json!({"theme": "x"}));
    assert_eq!(place.json("agent/keybindings.json").to_string(), r#"{"tui.input.submit":"enter","zeta":"x"}"#);
    let files = [
        "agent/auth.json",
        "agent/bin/rg",
        "agent/keybindings.json",
        "agent/none.jsonl",
        "agent/oauth.json.migrated",
        "agent/prompts/c.md",
        "agent/sessions/--a-b--/s.jsonl",
        "agent/settings.json",
        "agent/tools/.keep",
        "w/.pi/prompts/d.md",
    ];
    assert_eq!(place.files(), files);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(place.path("agent/auth.json")).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(place.run(), StartupMoves::default());
    assert_eq!(place.files(), files);
}

#[test]
fn existing_files_are_kept() {
    let files = [
        ("agent/auth.json", "{}"),
        ("agent/bin/fd", "new"),
        ("agent/commands/c.md", "old"),
        ("agent/keybindings.json", "{\"zeta\":  \"x\", \"app.exit\": \"y\"}"),
        ("agent/oauth.json", "{\"p\": {}}"),
        ("agent/prompts/c.md", "new"),
        ("agent/s.jsonl", SESSION),
        ("agent/sessions/--a-b--/s.jsonl", "new"),
        ("agent/settings.json", "{\"apiKeys\": {\"p\": \"k\"}}"),
        ("agent/tools/fd", "old"),
    ];
    let place = AgentDirFixture::new(&files);
    assert_eq!(place.run(), StartupMoves::default());
    assert_eq!(place.files(), files.map(|(name, _)| name));
    for (name, text) in files {
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), text, "{name}");
    }
}

#[test]
fn one_failure_does_not_stop_the_others() {
    let place = AgentDirFixture::new(&[
        ("agent/oauth.json", "{oops"),
        ("agent/settings.json", "{\"apiKeys\": {\"p\": \"k\"}}"),
        ("agent/keybindings.json", "[]"),
        ("agent/commands/c.md", "C"),
        ("agent/hooks/h", ""),
        ("w/.pi/tools/own.ts", ""),
        // A file where a directory is needed.
        ("agent/sessions", ""),
        ("agent/s.jsonl", SESSION),
    ]);
    let moved = place.run();
    let files: Vec<String> =
        moved.problems.iter().map(|one| one.file.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(files, ["oauth.json", "s.jsonl", "keybindings.json"]);
    assert_eq!(place.json("agent/auth.json"), json!({"p": {"type": "api_key", "key": "k"}}));
    assert!(place.path("agent/oauth.json").exists() && place.path("agent/prompts/c.md").exists());
    assert_eq!(moved.warnings.len(), 2);
    assert!(moved.warnings[0].contains("agent/hooks is no longer used") && moved.warnings[1].contains("w/.pi/tools"));
}

/// The reader of the settings reports this already.
#[test]
fn unreadable_settings_are_not_reported_twice() {
    let place =
        AgentDirFixture::new(&[("agent/settings.json", "{oops"), ("agent/oauth.json", r#"{"p": {"access": "a"}}"#)]);
    let moved = place.run();
    assert_eq!((moved.providers, moved.problems), (vec!["p".to_owned()], vec![]));
}

#[test]
fn without_directories_nothing_is_created() {
    let place = AgentDirFixture::new(&[]);
    assert_eq!((place.run(), place.files()), (StartupMoves::default(), vec![]));
    assert!(!place.path("agent").exists());
}

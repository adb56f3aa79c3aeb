//! Packages: real repositories behind a fictitious URL, directories, and a program replacing npm that records its calls.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinch_coding_agent::packages::{PackageError, PackageScope, PackageToolError, Packages};
use pinch_coding_agent::resources::CommandLinePaths;
use pinch_coding_agent::services::{Announce, ResourceOptions, ResourceSource, ServiceOptions, Services};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::{Env, Host};
use serde_json::{Value, json};

/// A user, a project, and package servers.
struct PackageFixture {
    dir: tempfile::TempDir,
    packages: Packages,
}

impl PackageFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["w", "home/agent", "server/a", "bin"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let env = Env::from_iter([
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", root.join("home").display().to_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_COUNT", "1".to_owned()),
            ("GIT_CONFIG_KEY_0", format!("url.file://{}/server/.insteadOf", root.display())),
            ("GIT_CONFIG_VALUE_0", "https://git.example.org/".to_owned()),
        ]);
        let host = Host::builder().env(env).home(root.join("home")).temp(root.clone()).build();
        let packages = Packages::new(host, root.join("w"), root.join("home/agent"), root.join("w/.pi"), true);
        Self { dir, packages }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Replaces npm with a shell script.
    fn npm(&mut self, script: &str) {
        self.write("bin/npm", script);
        self.packages.npm_command = Some(vec!["/bin/sh".into(), self.path("bin/npm").display().to_string()]);
    }

    /// Returns the recorded calls of npm.
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn git(&self, folder: &str, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(self.path(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Creates a repository `a/r` on the server, with one commit and a tag `v1`.
    fn repository(&self) {
        self.write("server/a/r/skills/s/SKILL.md", "---\ndescription: one\n---\n");
        self.git("server/a/r", &["init", "--quiet"]);
        self.commit("one");
        self.git("server/a/r", &["tag", "v1"]);
    }

    fn commit(&self, text: &str) {
        self.write("server/a/r/version", text);
        self.git("server/a/r", &["add", "-A"]);
        self.git("server/a/r", &["commit", "--quiet", "-m", text]);
    }

    async fn install(&self, source: &str, scope: PackageScope) -> Result<(), PackageError> {
        self.packages.install(source, scope, &Cancel::new()).await
    }

    fn settings(&self, scope: PackageScope) -> Value {
        read(&self.packages.settings_file(scope))
    }
}

fn read(path: &Path) -> Value {
    std::fs::read(path).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
}

const REPOSITORY: &str = "https://git.example.org/a/r";
const CLONE: &str = "home/agent/git/git.example.org/a/r";

#[tokio::test]
async fn directories_are_stored_relative_to_the_settings() {
    let place = PackageFixture::new();
    place.write("w/pkg/skills/s/SKILL.md", "");
    place.write("home/agent/settings.json", r#"{"theme": "x"}"#);
    place.install("./pkg", PackageScope::User).await.unwrap();
    place.install("../w/pkg/", PackageScope::User).await.unwrap();
    place.install("pkg", PackageScope::Project).await.unwrap();
    assert_eq!(place.settings(PackageScope::User), json!({"theme": "x", "packages": ["../../w/pkg"]}));
    assert_eq!(place.settings(PackageScope::Project), json!({"packages": ["../pkg"]}));
    let listed: Vec<_> = place.packages.list().into_iter().map(|one| (one.scope, one.path)).collect();
    let path = Some(place.path("w/pkg"));
    assert_eq!(listed, [(PackageScope::User, path.clone()), (PackageScope::Project, path)]);
    let error = place.install("./nope", PackageScope::User).await.unwrap_err();
    assert_eq!(error.to_string(), format!("Path does not exist: {}", place.path("w/nope").display()));
    place.packages.remove("pkg", PackageScope::User, &Cancel::new()).await.unwrap();
    assert_eq!(place.settings(PackageScope::User), json!({"theme": "x", "packages": []}));
    assert!(place.path("w/pkg").exists(), "a folder of the user's stays");
}

#[tokio::test]
async fn repositories_are_installed_updated_and_removed() {
    let place = PackageFixture::new();
    place.repository();
    place.install(REPOSITORY, PackageScope::User).await.unwrap();
    let version = || std::fs::read_to_string(place.path(CLONE).join("version")).unwrap();
    assert_eq!((version().as_str(), place.settings(PackageScope::User)), ("one", json!({"packages": [REPOSITORY]})));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("home/agent/git")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    place.commit("two");
    place.write(&format!("{CLONE}/version"), "changed here");
    place.write(&format!("{CLONE}/left-over"), "");
    assert_eq!(place.packages.update(None, &Cancel::new()).await.unwrap(), [REPOSITORY]);
    assert_eq!((version().as_str(), place.path(CLONE).join("left-over").exists()), ("two", false));
    let pinned = format!("{REPOSITORY}@v1");
    place.install(&pinned, PackageScope::User).await.unwrap();
    assert_eq!((version().as_str(), place.settings(PackageScope::User)), ("one", json!({"packages": [pinned]})));
    assert_eq!(place.packages.update(Some(REPOSITORY), &Cancel::new()).await.unwrap(), [""; 0], "pinned");
    place.packages.remove(REPOSITORY, PackageScope::User, &Cancel::new()).await.unwrap();
    assert!(!place.path("home/agent/git/git.example.org").exists() && place.path("home/agent/git").exists());
    assert_eq!(place.settings(PackageScope::User), json!({"packages": []}));
}

#[tokio::test]
async fn a_failed_clone_leaves_nothing_behind() {
    let place = PackageFixture::new();
    place.repository();
    for source in ["https://git.example.org/a/none", "https://git.example.org/a/r@no-such-tag"] {
        let error = place.install(source, PackageScope::User).await.unwrap_err();
        assert!(matches!(error, PackageError::Run(PackageToolError::Failed { .. })), "{error}");
    }
    let folder = place.path("home/agent/git/git.example.org/a");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    assert_eq!(place.settings(PackageScope::User), Value::Null);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_does_not_lead_out_of_the_clone_directory() {
    let place = PackageFixture::new();
    place.repository();
    place.write("precious/r/file", "");
    std::fs::create_dir_all(place.path("home/agent/git/git.example.org")).unwrap();
    std::os::unix::fs::symlink(place.path("precious"), place.path("home/agent/git/git.example.org/a")).unwrap();
    place.write("home/agent/settings.json", &json!({"packages": [REPOSITORY]}).to_string());
    let installed = place.install(REPOSITORY, PackageScope::User).await;
    let removed = place.packages.remove(REPOSITORY, PackageScope::User, &Cancel::new()).await;
    for done in [installed, removed] {
        assert!(matches!(done, Err(PackageError::Outside { .. })), "{done:?}");
    }
    assert!(place.path("precious/r/file").exists());
}

/// Records its arguments and directory, and creates a package for each installation.
const NPM: &str = r#"
root=$(cd "$(dirname "$0")/.." && pwd)
echo "$(basename "$(pwd)"): $*" >> "$root/calls"
case "$1" in
    view) echo '"2.0.0"' ;;
    install) for last; do :; done; name=${last%@*}; [ -n "$name" ] || name=$last
        mkdir -p "node_modules/$name"; echo '{"version": "1.0.0"}' > "node_modules/$name/package.json" ;;
    uninstall) for last; do :; done; rm -r "node_modules/$last" ;;
esac
"#;

#[tokio::test]
async fn npm_packages_are_installed_without_running_scripts() {
    let mut place = PackageFixture::new();
    place.npm(NPM);
    place.install("npm:@s/p", PackageScope::Project).await.unwrap();
    place.install("npm:q@1.0.0", PackageScope::Project).await.unwrap();
    assert!(place.path("w/.pi/npm/node_modules/@s/p/package.json").exists());
    assert_eq!(read(&place.path("w/.pi/npm/package.json")), json!({"name": "pi-extensions", "private": true}));
    assert_eq!(std::fs::read_to_string(place.path("w/.pi/npm/.gitignore")).unwrap(), "*\n!.gitignore\n");
    assert_eq!(place.packages.update(None, &Cancel::new()).await.unwrap(), ["npm:@s/p"]);
    place.packages.remove("npm:@s/p", PackageScope::Project, &Cancel::new()).await.unwrap();
    assert_eq!(place.settings(PackageScope::Project), json!({"packages": ["npm:q@1.0.0"]}));
    let options = "--ignore-scripts --no-audit --no-fund --loglevel=error --";
    assert_eq!(
        place.calls(),
        [
            format!("npm: install {options} @s/p"),
            format!("npm: install {options} q@1.0.0"),
            "agent: view @s/p version --json".to_owned(),
            format!("npm: install {options} @s/p@latest"),
            "npm: uninstall --ignore-scripts --no-audit --no-fund -- @s/p".to_owned(),
        ]
    );
}

#[tokio::test]
async fn dependencies_of_a_repository_are_installed_if_it_has_any() {
    let mut place = PackageFixture::new();
    place.npm(NPM);
    place.repository();
    place.install(REPOSITORY, PackageScope::User).await.unwrap();
    assert_eq!(place.calls(), [""; 0]);
    place.write("server/a/r/package.json", r#"{"dependencies": {"x": "1"}}"#);
    place.commit("two");
    place.packages.update(Some(REPOSITORY), &Cancel::new()).await.unwrap();
    assert_eq!(place.calls(), ["r: install --ignore-scripts"]);
}

#[tokio::test]
async fn package_managers_are_told_to_run_nothing_from_a_repository() {
    let script = "echo \"$*\" >> \"$(dirname \"$0\")/../calls\"; env > \"$(dirname \"$0\")/../env\"";
    for (program, options, variables) in [
        ("npm", "", &["npm_config_git=git", "npm_config_ignore_scripts=true", "COREPACK_ENABLE_PROJECT_SPEC=0"][..]),
        ("pnpm", " --ignore-pnpmfile", &["npm_config_ignore_pnpmfile=true", "npm_config_git=git"]),
        ("yarn", "", &["YARN_IGNORE_PATH=1", "YARN_RC_FILENAME=.pinch-yarnrc.yml", "YARN_ENABLE_SCRIPTS=false"]),
    ] {
        let mut place = PackageFixture::new();
        place.repository();
        place.write("server/a/r/package.json", r#"{"dependencies": {"x": "1"}}"#);
        place.commit("two");
        place.write(&format!("bin/{program}"), script);
        let path = place.path("bin").join(program).display().to_string();
        place.packages.npm_command = Some(vec!["/bin/sh".into(), path]);
        place.install(REPOSITORY, PackageScope::User).await.unwrap();
        assert_eq!(place.calls(), [format!("install --ignore-scripts{options}")], "{program}");
        let env = std::fs::read_to_string(place.path("env")).unwrap();
        for variable in variables {
            assert!(env.lines().any(|line| line == *variable), "{program}: {variable}");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_repository_cannot_name_a_program_for_npm_to_run() {
    use std::os::unix::fs::PermissionsExt as _;
    if Command::new("npm").arg("--version").output().is_err() {
        return;
    }
    let place = PackageFixture::new();
    place.repository();
    // A dependency from git, and a program replacing git.
    place.write("server/a/dep/package.json", r#"{"name": "dep", "version": "1.0.0"}"#);
    for args in [&["init", "--quiet"][..], &["add", "-A"], &["commit", "--quiet", "-m", "one"]] {
        place.git("server/a/dep", args);
    }
    let evil = format!("#!/bin/sh\necho evil >> {}\nexec git \"$@\"\n", place.path("evil").display());
    place.write("server/a/r/evil.sh", &evil);
    let file = place.path("server/a/r/evil.sh");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.write("server/a/r/.npmrc", "git=./evil.sh\nignore-scripts=false\nallow-git=all\n");
    let scripts = format!("touch {}", place.path("evil").display());
    let dependency = format!("git+file://{}", place.path("server/a/dep").display());
    let package = json!({"name": "r", "version": "1.0.0", "dependencies": {"dep": dependency},
        "scripts": {"preinstall": scripts, "postinstall": scripts, "prepare": scripts}});
    place.write("server/a/r/package.json", &package.to_string());
    place.commit("two");
    let done = place.install(REPOSITORY, PackageScope::User).await;
    assert!(!place.path("evil").exists(), "{done:?}");
    done.unwrap();
    assert!(place.path(CLONE).join("node_modules/dep/package.json").exists());
}

#[tokio::test]
async fn unknown_packages_are_reported_before_anything_runs() {
    let mut place = PackageFixture::new();
    place.npm(NPM);
    let cancel = Cancel::new();
    let gone = place.packages.remove("npm:nope", PackageScope::User, &cancel).await.unwrap_err();
    assert_eq!(gone.to_string(), "No matching package found for npm:nope");
    place.write("home/agent/settings.json", r#"{"packages": ["npm:@s/p", "git:git.example.org/a/r@v1"]}"#);
    for (asked, meant) in [("@s/p", "npm:@s/p"), ("a/r", "git:git.example.org/a/r@v1")] {
        let error = place.packages.update(Some(asked), &cancel).await.unwrap_err();
        assert_eq!(error.to_string(), format!("No matching package found for {asked}. Did you mean {meant}?"));
    }
    assert!(matches!(place.install("git:x/../y", PackageScope::User).await, Err(PackageError::Source(_))));
    assert_eq!(place.calls(), [""; 0]);
}

#[tokio::test]
async fn nothing_is_installed_for_an_untrusted_project() {
    let mut place = PackageFixture::new();
    place.npm(NPM);
    place.packages.trusted = false;
    place.write("w/.pi/settings.json", r#"{"packages": ["npm:p"]}"#);
    let cancel = Cancel::new();
    assert!(matches!(place.install("npm:q", PackageScope::Project).await, Err(PackageError::Untrusted)));
    let removed = place.packages.remove("npm:p", PackageScope::Project, &cancel).await;
    assert!(matches!(removed, Err(PackageError::Untrusted)));
    assert_eq!((place.packages.list(), place.packages.update(None, &cancel).await.unwrap()), (vec![], vec![]));
    assert_eq!((place.calls(), place.settings(PackageScope::Project)), (vec![], json!({"packages": ["npm:p"]})));
}

#[tokio::test]
async fn missing_packages_are_installed_before_a_session_starts() {
    let mut place = PackageFixture::new();
    place.npm(&format!(
        "{NPM}\n{}",
        r#"
        [ "$1" = install ] && case "$name" in bad) exit 3 ;; esac
        mkdir -p "node_modules/$name/skills/$name"
        printf -- '---\ndescription: d\n---\n' > "node_modules/$name/skills/$name/SKILL.md""#
    ));
    place.repository();
    let npm = place.packages.npm_command.clone();
    let settings = json!({"packages": ["npm:one", "npm:bad", REPOSITORY, "../nowhere"], "npmCommand": npm});
    place.write("home/agent/settings.json", &settings.to_string());
    place.write("w/.pi/settings.json", r#"{"packages": ["npm:of-project"]}"#);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let announced = Arc::clone(&told);
    let announce = Announce::new(move |package| announced.lock().unwrap().push(package.to_owned()));
    let mut options = ServiceOptions::new(place.packages.host.clone(), place.path("home/agent"));
    let paths = CommandLinePaths { extensions: vec!["npm:two@1.0.0".into()], ..CommandLinePaths::default() };
    options.resources = ResourceSource::Discover(ResourceOptions { paths, ..ResourceOptions::default() });
    let load = async |options: &ServiceOptions| {
        let services = Services::load_installing(options, &place.path("w")).await;
        let skills: Vec<String> = services.resources().skills().iter().map(|skill| skill.name.clone()).collect();
        (skills, services.take_problems(), std::mem::take(&mut *told.lock().unwrap()))
    };
    // Installation is not enabled.
    assert_eq!(load(&options).await.0, [""; 0]);
    options.install_packages = Some(announce);
    let (skills, problems, told_now) = load(&options).await;
    // The project is not trusted.
    assert_eq!(told_now, ["npm:one", "npm:bad", REPOSITORY, "npm:two@1.0.0"]);
    assert_eq!(skills, ["two", "one", "s"]);
    assert!(problems.iter().any(|problem| problem.starts_with("cannot install npm:bad: ")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("package ../nowhere is not installed")), "{problems:?}");
    assert_eq!(place.settings(PackageScope::User), settings, "settings stay as they are");
    place.write(
        "home/agent/settings.json",
        &json!({"packages": ["npm:one", REPOSITORY], "npmCommand": npm}).to_string(),
    );
    let n_calls = place.calls().len();
    let (skills, _, told_now) = load(&options).await;
    assert_eq!(
        (skills, told_now),
        (vec!["two".to_owned(), "one".into(), "s".into()], vec!["npm:two@1.0.0".to_owned()])
    );
    assert_eq!(place.calls().len(), n_calls, "what is there is used");
}

#[tokio::test]
async fn programs_are_stopped_on_timeout_and_cancellation() {
    let mut place = PackageFixture::new();
    place.npm("sleep 60");
    place.packages.time_limit = Duration::from_millis(50);
    let slow = place.install("npm:p", PackageScope::User).await.unwrap_err();
    assert!(matches!(slow, PackageError::Run(PackageToolError::TimedOut { .. })), "{slow}");
    place.packages.time_limit = Duration::from_secs(60);
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::User);
    let stopped = place.packages.install("npm:p", PackageScope::User, &cancel).await.unwrap_err();
    assert!(matches!(stopped, PackageError::Run(PackageToolError::Cancelled { .. })), "{stopped}");
    place.npm("echo went wrong >&2; exit 7");
    let failed = place.install("npm:p", PackageScope::User).await.unwrap_err();
    assert!(failed.to_string().ends_with("failed with exit code 7: went wrong"), "{failed}");
    assert_eq!(place.settings(PackageScope::User), Value::Null);
}

/// Generates texts that often look like sources.
const SOURCES: &str = r"(git:|npm:|https://|ssh://git@|git://)(h\.org|@s|u@h:p|a|-x|\.\.)(/([a-z.@#~%-]|\.\.|\.git|é|\\|\x00| ){0,5}){0,4}";

proptest::proptest! {
    #[test]
    fn no_source_escapes_its_directory(text in SOURCES) {
        use pinch_coding_agent::packages::place;
        use pinch_coding_agent::packages::source::PackageSource;
        let root = Path::new("/agent");
        match PackageSource::parse(&text) {
            Ok(source @ (PackageSource::Git(_) | PackageSource::Npm(_))) => {
                let place = place(&source, root, None);
                let plain = place.components().all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::RootDir));
                proptest::prop_assert!(plain && place.components().count() >= 4 && place.starts_with(root), "{place:?}");
                if let PackageSource::Git(git) = &source {
                    proptest::prop_assert!(!git.repo.starts_with('-') && !git.reference.iter().any(|name| name.starts_with('-')));
                }
            }
            Ok(PackageSource::Local(_)) | Err(_) => {}
        }
    }
}

//! Stored credentials: shared with other programs, and resolved from every source in order.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use pinch_coding_agent::auth::{AuthError, AuthStorage, KeyLookup, Logins, RequestAuth};
use pinch_coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_llm::http::Outgoing;
use pinch_llm::ids::ProviderId;
use pinch_llm::oauth::transport::OAuthResponse;
use pinch_llm::oauth::{LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow, OAuthRegistry, OAuthTransport};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::{Env, Host};
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value, json};

fn host() -> Host {
    Host::builder().env([("PATH", "/usr/bin:/bin")].into_iter().collect()).build()
}

fn stored(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn key(key: &str) -> Value {
    json!({"type": "api_key", "key": key})
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn changes_by_others_are_seen_and_preserved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent/auth.json");
    let (storage, problems) = AuthStorage::load(&path);
    assert!(problems.is_empty() && !path.exists() && !storage.has(&"x".into()));
    storage.store_key(&"anthropic".into(), "sk-1", &host()).await.unwrap();
    let other =
        json!({"x": {"type": "future", "z": 1.0}, "anthropic": {"type": "api_key", "key": "k", "env": {"A": "b"}}});
    std::fs::write(&path, other.to_string()).unwrap();
    assert!(storage.has(&"x".into()), "a change on the disk is seen");
    storage.store_key(&"anthropic".into(), "sk-2", &host()).await.unwrap();
    storage.set(&"y".into(), key("k"), &host()).await.unwrap();
    let expected = json!({
        "x": {"type": "future", "z": 1}, "anthropic": {"type": "api_key", "key": "sk-2", "env": {"A": "b"}}, "y": key("k"),
    });
    assert_eq!(stored(&path), expected);
    storage.remove(&"x".into(), &host()).await.unwrap();
    storage.remove(&"nobody".into(), &host()).await.unwrap();
    assert_eq!(storage.providers(), ["anthropic".into(), ProviderId::from("y")]);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no lock and no other file stays");
}

#[tokio::test]
async fn a_legacy_provider_name_is_recognized() {
    let storage = AuthStorage::in_memory(object(json!({"azure-openai-responses": key("k")})));
    assert!(storage.has(&"azure".into()));
    storage.store_key(&"azure-openai-responses".into(), "k2", &host()).await.unwrap();
    assert_eq!(*storage.entries(), object(json!({"azure": key("k2")})));
    storage.remove(&"azure-openai-responses".into(), &host()).await.unwrap();
    assert!(storage.entries().is_empty());
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.json");
    for text in ["{bad", "[]", "{\"a\": 1, // mine\n}"] {
        std::fs::write(&path, text).unwrap();
        let storage = AuthStorage::file(&path);
        assert!(storage.set(&"x".into(), key("k"), &host()).await.is_err());
        assert!(!storage.has(&"x".into()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(storage.remove(&"a".into(), &host()).await.is_err());
    }
    let storage = AuthStorage::file(&path);
    std::fs::write(&path, json!({"a": key("k")}).to_string()).unwrap();
    assert!(storage.has(&"a".into()));
    std::fs::write(&path, "{half").unwrap();
    for _ in 0..3 {
        assert!(storage.has(&"a".into()), "what was good stays");
    }
    assert_eq!(storage.drain_problems().len(), 1, "told once");
    assert!(storage.is_broken());
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_and_links_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/auth.json");
    AuthStorage::file(&path).store_key(&"x".into(), "k", &host()).await.unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = dir.path().join("link.json");
    symlink("a/b/auth.json", &link).unwrap();
    // The lock of the real file also excludes those who use the link.
    std::fs::create_dir(dir.path().join("a/b/auth.json.lock")).unwrap();
    let by_link = AuthStorage::file(&link);
    let refused = by_link.store_key(&"y".into(), "k", &host()).await.unwrap_err();
    assert!(matches!(refused, pinch_coding_agent::auth::storage::StoreAuthError::Lock { .. }), "{refused}");
    std::fs::remove_dir(dir.path().join("a/b/auth.json.lock")).unwrap();
    by_link.store_key(&"y".into(), "k", &host()).await.unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!((mode(&path), stored(&path)["y"]["key"].as_str()), (0o640, Some("k")));
}

#[tokio::test]
async fn a_dead_lock_holder_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.json");
    let lock = dir.path().join("auth.json.lock");
    std::fs::create_dir(&lock).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the lock is as old as a dead program would leave it")]
    let old = SystemTime::now() - Duration::from_secs(11);
    std::fs::File::open(&lock).unwrap().set_modified(old).unwrap();
    AuthStorage::file(&path).store_key(&"x".into(), "k", &host()).await.unwrap();
    assert!(!lock.exists() && stored(&path)["x"]["key"] == "k");
}

/// Environment variable with the file's path for the second process.
const PLACE: &str = "PINCH_TEST_AUTH_PLACE";
const N_KEYS: usize = 12;

#[tokio::test]
async fn no_process_loses_what_another_stores() {
    if let Ok(place) = std::env::var(PLACE) {
        let (path, name) = place.split_once('|').unwrap();
        let storage = AuthStorage::file(Path::new(path));
        for n in 0..N_KEYS {
            let provider = ProviderId::new(format!("{name}-{n}"));
            while storage.set(&provider, key(&"k".repeat(n * 500 + 1)), &host()).await.is_err() {}
            assert!(storage.has(&provider));
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.json");
    let start = |name: &str| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "auth::no_process_loses_what_another_stores"]).current_dir(dir.path());
        program.env(PLACE, format!("{}|{name}", path.display()));
        program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let programs = ["a", "b", "c"].map(start);
    // A concurrent reader without a lock never sees a partial file.
    let reader = AuthStorage::file(&path);
    let mut waits: Vec<_> =
        programs.into_iter().map(|mut program| tokio::task::spawn_blocking(move || program.wait())).collect();
    while !waits.iter().all(tokio::task::JoinHandle::is_finished) {
        reader.entries();
        assert_eq!(reader.drain_problems(), []);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for wait in &mut waits {
        assert!(wait.await.unwrap().unwrap().success());
    }
    assert_eq!(reader.entries().len(), 3 * N_KEYS);
    assert_eq!(stored(&path).as_object().unwrap().len(), 3 * N_KEYS);
}

/// A registry with one custom provider, and a way to query its requests.
struct AuthScene {
    auth: RegistryAuth,
    registry: Arc<ModelRegistry>,
}

fn scene(entries: Value, env: &[(&str, &str)], given: Option<&str>) -> AuthScene {
    let document = json!({"providers": {
        "x": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "doc-$SUFFIX", "headers": {"x-h": "$SUFFIX", "x-o": "p"},
              "models": [{"id": "m", "headers": {"x-o": "m"}}]},
        "free": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "none", "models": [{"id": "m"}]},
        "bare": {"baseUrl": "http://x", "api": "openai-completions", "authHeader": true, "models": [{"id": "m"}]},
        "run": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "!false", "models": [{"id": "m"}]},
    }});
    let (registry, problems) = ModelRegistry::from_document(object(document), "m".as_ref());
    assert_eq!(problems, []);
    let registry = Arc::new(registry);
    let env: Env = env.iter().copied().chain([("PATH", "/usr/bin:/bin")]).collect();
    let given = given.map(|key| (ProviderId::from("x"), Secret::new(key)));
    let storage = AuthStorage::in_memory(object(entries));
    let auth = RegistryAuth::new(Arc::clone(&registry), storage, given, Host::builder().env(env).build());
    AuthScene { auth, registry }
}

impl AuthScene {
    /// Returns key and headers of a request, or the error.
    async fn ask(&self, provider: &str) -> String {
        let model = self.registry.find(&provider.into(), "m").unwrap();
        match self.auth.for_model(&model, &Cancel::new()).await {
            Ok(auth) => {
                let key = auth.key.map_or("-".to_owned(), |key| key.reveal().to_owned());
                let headers =
                    auth.headers.iter().map(|(name, value)| format!(" {name}={}", value.as_deref().unwrap_or("-")));
                key + &headers.collect::<String>()
            }
            Err(error) => error.to_string(),
        }
    }
}

#[tokio::test]
async fn sources_are_used_in_order() {
    let env = [("SUFFIX", "s")];
    let nothing = json!({});
    assert_eq!(scene(json!({"x": key("st")}), &env, Some("gi")).ask("x").await, "gi x-h=s x-o=p x-o=m");
    assert_eq!(scene(json!({"x": key("st")}), &env, None).ask("x").await, "st x-h=s x-o=p x-o=m");
    assert_eq!(scene(nothing.clone(), &env, None).ask("x").await, "doc-s x-h=s x-o=p x-o=m");
    assert_eq!(
        scene(nothing.clone(), &[], None).ask("x").await,
        "Failed to resolve API key for provider \"x\" from environment variable: SUFFIX"
    );
    // Variables of an entry apply only to its provider, including its headers.
    let own = json!({"x": {"type": "api_key", "key": "st-$SUFFIX", "env": {"SUFFIX": "own"}}});
    assert_eq!(scene(own.clone(), &env, None).ask("x").await, "st-own x-h=own x-o=p x-o=m");
    let of_x = scene(own, &env, None);
    let model = of_x.registry.find(&"x".into(), "m").unwrap();
    let found = of_x.auth.for_model(&model, &Cancel::new()).await.unwrap();
    assert_eq!(found.env.unwrap().get("SUFFIX"), Some("own"), "requests of the provider see them");
    let without_key = json!({"x": {"type": "api_key", "env": {"SUFFIX": "own"}}, "free": key("")});
    assert_eq!(scene(without_key, &[], None).ask("x").await, "doc-own x-h=own x-o=p x-o=m");
    assert_eq!(scene(nothing.clone(), &[], None).ask("free").await, "-");
    assert_eq!(scene(nothing.clone(), &[], None).ask("bare").await, "No API key found for \"bare\"");
    assert_eq!(scene(json!({"bare": key("b")}), &[], None).ask("bare").await, "b Authorization=Bearer b");
    assert_eq!(
        scene(nothing, &[], None).ask("run").await,
        "Failed to resolve API key for provider \"run\" from shell command: false"
    );
}

#[tokio::test]
async fn the_presence_of_a_key_is_known_without_running_commands() {
    let scene = scene(json!({"x": key("!exit 1"), "other": {"type": "oauth"}}), &[("GROQ_API_KEY", "g")], None);
    let shown = |provider: &str| {
        let status = scene.auth.status(&provider.into());
        format!("{} {}", status.source.map_or("-", |source| source.as_str()), status.label.unwrap_or_default())
    };
    assert_eq!(
        ["x", "free", "run", "groq", "openai"].map(shown),
        ["stored ", "models_json_key ", "models_json_command ", "environment GROQ_API_KEY", "- ",]
    );
    // A key given for a run takes precedence over a stored one.
    let given = self::scene(json!({"x": key("stored")}), &[], Some("x"));
    let status = given.auth.status(&"x".into());
    assert_eq!((status.source.map(|source| source.as_str()), status.label), (Some("runtime"), None));
    // The command is assumed to work until a request needs it.
    let model = scene.registry.find(&"run".into(), "m").unwrap();
    scene.auth.check(&model, &Cancel::new()).await.unwrap();
    assert!(scene.auth.for_model(&model, &Cancel::new()).await.is_err());
    let missing = scene.registry.find(&"openai".into(), "gpt-5.1").unwrap();
    assert!(matches!(scene.auth.check(&missing, &Cancel::new()).await, Err(AuthError::Missing { .. })));
}

#[tokio::test]
async fn a_stored_command_runs_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let storage = AuthStorage::in_memory(object(json!({"x": key(&format!("!echo run >> {}; echo k", log.display()))})));
    let provider = "x".into();
    assert_eq!(storage.api_key(&provider, &host(), KeyLookup::Presence).await.unwrap().as_deref(), Some(""));
    assert!(!log.exists());
    for _ in 0..3 {
        assert_eq!(storage.clone().api_key(&provider, &host(), KeyLookup::Value).await.unwrap().as_deref(), Some("k"));
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "run\n");
}

/// A login flow whose refresh never completes.
struct Flow;

impl OAuthFlow for Flow {
    fn id(&self) -> &str {
        "slow"
    }

    fn name(&self) -> &str {
        "Slow"
    }

    fn login<'a>(&'a self, _: &'a dyn LoginUi, _: OAuthCx<'a>) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(async { Err(OAuthError::Cancelled) })
    }

    fn refresh<'a>(
        &'a self,
        _: &'a OAuthCredential,
        _: OAuthCx<'a>,
    ) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(std::future::pending())
    }
}

struct NoNetwork;

impl OAuthTransport for NoNetwork {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
        Box::pin(async { Err("there is no network".to_owned()) })
    }
}

fn logins() -> Logins {
    let mut flows = OAuthRegistry::built_in();
    flows.register(Arc::new(Flow));
    Logins::new(flows, Arc::new(NoNetwork))
}

#[tokio::test]
async fn an_unusable_login_hides_other_sources() {
    let login = json!({"type": "oauth", "access": "tok", "refresh": "r", "expires": 9_999_999_999_999_u64});
    let scene = scene(json!({"x": login}), &[("SUFFIX", "s")], None);
    assert_eq!(scene.ask("x").await, "No API key found for x.");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_refresh_releases_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.json");
    let login = json!({"type": "oauth", "access": "tok", "refresh": "r", "expires": 1});
    std::fs::write(&path, json!({"slow": login}).to_string()).unwrap();
    let storage = AuthStorage::file(&path);
    let error = logins().resolve(&"slow".into(), &storage, &host()).await.unwrap_err();
    assert!(matches!(&error, AuthError::Refresh { is_final: false, .. }), "{error}");
    assert!(!dir.path().join("auth.json.lock").exists());
    storage.store_key(&"y".into(), "k", &host()).await.unwrap();
    assert_eq!(stored(&path)["slow"], login, "the login can be tried again");
}

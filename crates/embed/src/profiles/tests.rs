use pinch_stdx::fs::{Access, write_atomic};
use pinch_stdx::host::Env;
use serde_json::{Value, json};

use super::*;
use crate::config::Config;

const NOW: i64 = 1_767_225_600_000;

fn open(dir: &std::path::Path, config: &Value, step: i64) -> Profiles {
    let host = Host::builder().clock(NOW, step).env(Env::from_iter([("K2", "v2")])).build();
    let document = config.as_object().unwrap().clone();
    let (config, problems) = Config::from_document(document, std::path::Path::new("pinch.json"));
    assert_eq!(problems, []);
    let (profiles, problems) = Profiles::load(
        host,
        ProfileSources { config: config.auth, file: Some(dir.join("auth-profiles.json")), ..ProfileSources::default() },
    );
    assert_eq!(problems, []);
    profiles
}

fn names(ids: &[ProfileId]) -> Vec<&str> {
    ids.iter().map(ProfileId::as_str).collect()
}

#[tokio::test]
async fn marks_are_shared_and_unknown_members_survive() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth-profiles.json");
    let text = json!({"version": 1, "future": 7, "profiles": {
        "a": {"type": "api_key", "provider": "openai", "key": "k1", "note": "mine"},
        "b": {"type": "api_key", "provider": "openai", "key": "k2"}},
        "usageStats": {"a": {"errorCount": 0, "new": 1}}});
    write_atomic(&path, text.to_string().as_bytes(), Access::Private).unwrap();
    let one = open(dir.path(), &json!({}), 0);
    let two = open(dir.path(), &json!({}), 0);
    let openai = ProviderId::new("openai");
    one.mark_failure(&"a".into(), FailoverReason::RateLimit, None, Some("m"));
    one.flush().await;
    two.mark_failure(&"b".into(), FailoverReason::Billing, None, Some("m"));
    two.flush().await;
    assert!(!two.usable(&"a".into(), Some("m")) && two.usable(&"a".into(), Some("other")));
    assert_eq!(two.soonest_expiry(&openai, None), Some(NOW + 60_000));
    assert_eq!(two.soonest_expiry(&openai, Some("other")), None, "the first rests for one model only");
    assert_eq!(names(&two.candidates(&openai, Some("m"), None)), ["a", "b"]);
    assert_eq!(names(&two.candidates(&openai, Some("other"), None)), ["a", "b"]);
    assert_eq!(two.unavailable_reason(&openai, None), Some(FailoverReason::Billing));
    two.mark_good(&"a".into(), &openai);
    assert_eq!(two.soonest_expiry(&openai, None), None);
    two.flush().await;
    assert!(!one.usable(&"a".into(), Some("m")));
    one.refresh().await;
    assert!(one.usable(&"a".into(), Some("m")), "a mark of another process is seen");
    let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(file["future"], 7);
    assert_eq!(file["profiles"], text["profiles"]);
    assert_eq!(file["usageStats"]["a"], json!({"lastUsed": NOW, "errorCount": 0, "lastFailureAt": NOW, "new": 1}));
    assert_eq!(file["lastGood"], json!({"openai": "a"}));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn only_the_health_of_configured_profiles_is_written_to_disk() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"auth": {"profiles": [
        {"id": "primary", "provider": "anthropic", "apiKey": "secret-1"},
        {"id": "backup", "provider": "anthropic", "apiKey": "${K2}"},
        {"id": "unset", "provider": "anthropic", "apiKey": "${NOPE}"}]}});
    let profiles = open(dir.path(), &config, 0);
    let anthropic = ProviderId::new("anthropic");
    assert_eq!(names(&profiles.candidates(&anthropic, None, None)), ["primary", "backup"]);
    profiles.mark_failure(&"primary".into(), FailoverReason::Auth, None, None);
    profiles.flush().await;
    assert_eq!(names(&profiles.candidates(&anthropic, None, None)), ["backup", "primary"]);
    assert!(profiles.auth(&anthropic, Some(&"backup".into())).is_ok());
    assert!(profiles.auth(&anthropic, Some(&"unset".into())).is_err());
    let text = std::fs::read_to_string(dir.path().join("auth-profiles.json")).unwrap();
    assert!(text.contains("primary") && !text.contains("secret-1") && !text.contains("v2"));
}

#[test]
fn the_next_cooldown_is_longer_only_while_half_open() {
    let terms = crate::config::Cooldowns::default();
    let provider = ProviderId::new("openai");
    let fail = |health: &Health, now: i64| {
        let failure = health::ProfileFailure {
            reason: FailoverReason::RateLimit,
            retry_after: None,
            model: None,
            provider: &provider,
            now,
            of_model: false,
        };
        health.after_failure(&failure, &terms)
    };
    let first = fail(&Health::default(), 0);
    assert_eq!((first.error_count, first.cooldown_until), (1, Some(60_000)));
    let during = fail(&first, 30_000);
    assert_eq!((during.error_count, during.cooldown_until), (2, Some(60_000)));
    let early = fail(&first, 60_001);
    assert_eq!((early.error_count, early.cooldown_until), (2, Some(360_001)));
    let after_both = fail(&during, 60_001);
    assert_eq!((after_both.error_count, after_both.cooldown_until), (3, Some(360_001)));
    let late = fail(&first, 120_000);
    assert_eq!((late.error_count, late.cooldown_until), (1, Some(180_000)));
    assert_eq!(fail(&early.after_success(70_000), 80_000).error_count, 1);
}

/// Counts writes and delays them.
#[derive(Debug, Default)]
struct SlowStore(crate::ports::MemoryHealth, std::sync::atomic::AtomicUsize);

impl HealthStore for SlowStore {
    fn load(&self) -> futures::future::BoxFuture<'_, Result<pinch_ports::HealthRecords, pinch_ports::PortError>> {
        self.0.load()
    }

    fn update(
        &self,
        change: pinch_ports::HealthChange,
    ) -> futures::future::BoxFuture<'_, Result<pinch_ports::HealthRecords, pinch_ports::PortError>> {
        Box::pin(async move {
            self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.update(change).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn marks_that_arrive_during_a_write_are_batched() {
    let document = json!({"auth": {"profiles": [{"id": "p", "provider": "openai", "apiKey": "k"}]}});
    let (config, _) = Config::from_document(document.as_object().unwrap().clone(), std::path::Path::new("pinch.json"));
    let store = Arc::new(SlowStore::default());
    let host = Host::builder().clock(NOW, 0).build();
    let (profiles, _) = Profiles::load(
        host,
        ProfileSources { config: config.auth, health: Some(store.clone()), ..ProfileSources::default() },
    );
    for _ in 0..100 {
        profiles.mark_good(&"p".into(), &ProviderId::new("openai"));
        tokio::task::yield_now().await;
    }
    profiles.mark_failure(&"p".into(), FailoverReason::Auth, None, None);
    assert_eq!(profiles.health(&"p".into()).error_count, 1, "in memory at once");
    profiles.flush().await;
    assert_eq!(store.1.load(std::sync::atomic::Ordering::SeqCst), 2);
    let written = store.load().await.unwrap();
    assert_eq!(written.profiles["p"]["errorCount"], 1);
    assert_eq!(written.last_good["openai"], "p");
}

/// Threads stand in for processes: each has its own profiles and file handle.
#[test]
fn concurrent_writers_of_one_file_lose_no_marks() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<String> = (0..8).map(|n| format!("p{n}")).collect();
    let entries: Vec<Value> = ids.iter().map(|id| json!({"id": id, "provider": "openai", "apiKey": "k"})).collect();
    let config = json!({"auth": {"profiles": entries, "cooldowns": {}}});
    std::thread::scope(|scope| {
        for id in &ids {
            let (dir, config) = (dir.path(), &config);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let profiles = open(dir, config, 1);
                    for _ in 0..10 {
                        profiles.mark_failure(&id.as_str().into(), FailoverReason::Overloaded, None, None);
                        tokio::task::yield_now().await;
                    }
                    profiles.flush().await;
                });
            });
        }
    });
    let file: Value = serde_json::from_slice(&std::fs::read(dir.path().join("auth-profiles.json")).unwrap()).unwrap();
    for id in &ids {
        assert_eq!(file["usageStats"][id]["errorCount"], 10, "{id}");
    }
}

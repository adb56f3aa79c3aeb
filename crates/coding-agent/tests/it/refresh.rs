//! Expired logins are refreshed once, and stored before they are used.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_coding_agent::auth::storage::KeyLookup;
use pinch_coding_agent::auth::{AuthError, AuthStorage, Logins, RequestAuth};
use pinch_coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_llm::http::{HttpClient, Outgoing};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::oauth::google::GoogleLogin;
use pinch_llm::oauth::transport::{HttpTransport, OAuthResponse};
use pinch_llm::oauth::{OAuthRegistry, OAuthTransport};
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::dir_lock::{DirLock, DirLockOptions};
use pinch_stdx::host::{Env, Host};
use pinch_testing::server::{Gate, Server, ServerReply};
use serde_json::{Value, json};

/// Sends everything to one server.
pub(crate) struct RewiredTransport {
    server: String,
    network: HttpTransport,
}

impl RewiredTransport {
    pub(crate) fn to(server: &str) -> Self {
        let network = HttpTransport::new(Arc::new(HttpClient::new()), Env::default());
        Self { server: server.to_owned(), network }
    }
}

impl OAuthTransport for RewiredTransport {
    fn send(&self, mut request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
        request.url = request.url.replacen("https:/", &self.server, 1);
        self.network.send(request)
    }
}

fn logins(server: &str) -> Logins {
    Logins::new(OAuthRegistry::built_in(), Arc::new(RewiredTransport::to(server)))
}

fn google_logins(server: &str) -> Logins {
    let mut flows = OAuthRegistry::default();
    flows.register(Arc::new(GoogleLogin::GEMINI_CLI));
    Logins::new(flows, Arc::new(RewiredTransport::to(server)))
}

fn host() -> Host {
    Host::builder().build()
}

fn in_minutes(minutes: i64) -> i64 {
    host().now_ms() + minutes * 60_000
}

/// Creates a file with an Anthropic login that expires in `minutes`, and another entry.
fn auth_json(dir: &Path, minutes: i64) -> PathBuf {
    let path = dir.join("auth.json");
    let login = json!({"type": "oauth", "refresh": "R0", "access": "A0", "expires": in_minutes(minutes), "mine": 1});
    let other = json!({"type": "api_key", "key": "k"});
    std::fs::write(&path, json!({"anthropic": login, "openai": other}).to_string()).unwrap();
    path
}

fn stored(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn opened(path: &Path) -> AuthStorage {
    AuthStorage::file(path)
}

async fn resolve(logins: &Logins, storage: &AuthStorage) -> Result<Option<Auth>, AuthError> {
    logins.resolve(&ProviderId::from("anthropic"), storage, &host()).await
}

fn key(found: Result<Option<Auth>, AuthError>) -> String {
    match found {
        Ok(auth) => auth.unwrap().key.unwrap().reveal().to_owned(),
        Err(error) => error.to_string(),
    }
}

fn tokens() -> ServerReply {
    ServerReply::json(200, &json!({"access_token": "A1", "refresh_token": "R1", "expires_in": 3_600}))
}

#[tokio::test]
async fn a_login_about_to_expire_is_refreshed_and_stored() {
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 4);
    let server = Server::start().await.unwrap();
    server.reply(tokens());
    let (logins, storage) = (logins(&server.url()), opened(&path));
    assert_eq!(key(resolve(&logins, &storage).await), "A1");
    assert_eq!(key(resolve(&logins, &storage).await), "A1");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].json()["refresh_token"], "R0");
    let now = stored(&path);
    let login = &now["anthropic"];
    assert_eq!((&login["access"], &login["refresh"], &login["mine"]), (&json!("A1"), &json!("R1"), &json!(1)));
    assert_eq!(now["openai"]["key"], "k");
    assert!(!dir.path().join("auth.json.lock").exists());
}

#[tokio::test]
async fn many_tasks_share_one_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 0);
    let server = Server::start().await.unwrap();
    server.reply(tokens());
    // Two independent owners with four tasks each.
    let owners = [(logins(&server.url()), opened(&path)), (logins(&server.url()), opened(&path))];
    let calls = owners.iter().flat_map(|(logins, storage)| (0..4).map(move |_| resolve(logins, storage)));
    let found: Vec<String> = futures::future::join_all(calls).await.into_iter().map(key).collect();
    assert_eq!(found, ["A1"; 8]);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_unresponsive_server_blocks_only_its_own_logins() {
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 0);
    let mut entries = stored(&path);
    entries["openai-codex"] = json!({"type": "oauth", "refresh": "C0", "access": "X", "expires": in_minutes(0)});
    std::fs::write(&path, entries.to_string()).unwrap();
    let (silent, quick) = (Server::start().await.unwrap(), Server::start().await.unwrap());
    let gate = Gate::default();
    let tokens = json!({"access_token": "A1", "refresh_token": "R1", "expires_in": 3_600}).to_string();
    silent.reply(ServerReply::status(200).header("content-type", "application/json").head().gate(&gate).send(tokens));
    // Such a token contains the account.
    let access = "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhY2MifX0.x";
    quick.reply(ServerReply::json(200, &json!({"access_token": access, "refresh_token": "C2", "expires_in": 3_600})));
    // One program: the same logins and the same storage.
    struct Both(RewiredTransport, RewiredTransport);
    impl OAuthTransport for Both {
        fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
            if request.url.contains("claude") { self.0.send(request) } else { self.1.send(request) }
        }
    }
    let rewired = |server: &Server| {
        let network = HttpTransport::new(Arc::new(HttpClient::new()), Env::default());
        RewiredTransport { server: server.url(), network }
    };
    let logins = Logins::new(OAuthRegistry::built_in(), Arc::new(Both(rewired(&silent), rewired(&quick))));
    let storage = opened(&path);
    let (codex, host) = (ProviderId::from("openai-codex"), host());
    let limit = std::time::Duration::from_secs(20);
    let (slow, other) = tokio::join!(resolve(&logins, &storage), async {
        tokio::time::timeout(limit, silent.wait_for_requests(1)).await.unwrap();
        let other = tokio::time::timeout(limit, logins.lasting(&codex, &storage, &host, limit)).await;
        // A key stored meanwhile is kept.
        let key = json!({"type": "api_key", "key": "new"});
        let set = tokio::time::timeout(limit, storage.set(&"groq".into(), key, &host)).await;
        gate.open();
        (other, set)
    });
    let (other, set) = other;
    assert_eq!(other.unwrap().unwrap().unwrap().refresh.reveal(), "C2");
    set.unwrap().unwrap();
    assert_eq!(key(slow), "A1");
    let now = stored(&path);
    assert_eq!((&now["anthropic"]["refresh"], &now["openai-codex"]["refresh"]), (&json!("R1"), &json!("C2")));
    assert_eq!((&now["groq"]["key"], &now["openai"]["key"]), (&json!("new"), &json!("k")));
    assert!(!dir.path().join("auth.json.lock").exists());
}

/// Environment variable with file and server for the second process.
const PLACE: &str = "PINCH_TEST_REFRESH_PLACE";

#[tokio::test]
async fn two_processes_share_one_request() {
    if let Ok(place) = std::env::var(PLACE) {
        let (path, server) = place.split_once('|').unwrap();
        let found = key(resolve(&logins(server), &opened(Path::new(path))).await);
        std::fs::write(format!("{path}.{}", std::process::id()), found).unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 0);
    let server = Server::start().await.unwrap();
    let gate = Gate::new();
    let body = json!({"access_token": "A1", "refresh_token": "R1", "expires_in": 3_600}).to_string();
    server.reply(ServerReply::status(200).gate(&gate).send(body));
    let start = || {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "refresh::two_processes_share_one_request"]).current_dir(dir.path());
        program.env(PLACE, format!("{}|{}", path.display(), server.url()));
        program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let programs = [start(), start()];
    server.wait_for_requests(1).await;
    gate.open();
    let names: Vec<u32> = programs.iter().map(std::process::Child::id).collect();
    for mut program in programs {
        let ended = tokio::task::spawn_blocking(move || program.wait()).await.unwrap().unwrap();
        assert!(ended.success());
    }
    for name in names {
        assert_eq!(std::fs::read_to_string(format!("{}.{name}", path.display())).unwrap(), "A1");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_login_refreshed_by_another_program_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 0);
    let server = Server::start().await.unwrap();
    let (logins, storage) = (logins(&server.url()), opened(&path));
    let theirs = json!({"type": "oauth", "refresh": "R9", "access": "A9-theirs", "expires": in_minutes(60)});
    std::fs::write(&path, json!({"anthropic": theirs}).to_string()).unwrap();
    assert_eq!(key(resolve(&logins, &storage).await), "A9-theirs");
    std::fs::write(&path, "{}").unwrap();
    assert!(resolve(&logins, &storage).await.unwrap().is_none());
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn giving_up_the_wait_does_not_interrupt_the_refresh() {
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 0);
    let server = Server::start().await.unwrap();
    let gate = Gate::new();
    let body = json!({"access_token": "A1", "refresh_token": "R1", "expires_in": 3_600}).to_string();
    server.reply(ServerReply::status(200).gate(&gate).send(body));
    let (logins, storage) = (logins(&server.url()), opened(&path));
    tokio::select! {
        _ = resolve(&logins, &storage) => panic!("the server has not answered"),
        () = server.wait_for_requests(1) => {}
    }
    gate.open();
    logins.settle().await;
    assert_eq!(stored(&path)["anthropic"]["refresh"], "R1");
    assert_eq!(key(resolve(&logins, &storage).await), "A1");
}

#[tokio::test]
async fn github_tokens_are_exchanged_once() {
    let server = Server::start().await.unwrap();
    let ends = host().now_ms() / 1_000 + 1_800;
    let token = "tid=1;proxy-ep=proxy.business.githubcopilot.com";
    server.reply(ServerReply::json(200, &json!({"token": token, "expires_at": ends})));
    server.reply(ServerReply::json(401, &json!({"message": "Bad credentials"})));
    let record = json!({"id": "m", "api": "openai-completions", "provider": "github-copilot", "baseUrl": "https://b"});
    let model = Model::from_record(&record).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let with = |key: &str| {
        let host = Host::builder().env([("COPILOT_GITHUB_TOKEN", key)].into_iter().collect()).build();
        let storage = AuthStorage::load(&dir.path().join("auth.json")).0;
        let auth = RegistryAuth::new(Arc::new(ModelRegistry::builtin()), storage, None, host);
        auth.with_logins(logins(&server.url()))
    };
    let cancel = Cancel::new();
    let github = with("gho_1");
    for _ in 0..2 {
        let auth = github.for_model(&model, &cancel).await.unwrap();
        assert_eq!(auth.key.unwrap().reveal(), token);
        assert_eq!(auth.base_url.as_deref(), Some("https://api.business.githubcopilot.com"));
    }
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer gho_1"));
    let refused = with("ghu_2").for_model(&model, &cancel).await.unwrap_err().to_string();
    assert!(refused.ends_with("(401): Bad credentials. Sign in again."), "{refused}");
    assert_eq!(key(with("tid=own").for_model(&model, &cancel).await.map(Some)), "tid=own");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn refresh_failures_are_classified() {
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 0);
    let server = Server::start().await.unwrap();
    let (logins, storage) = (logins(&server.url()), opened(&path));
    server.reply(ServerReply::json(400, &json!({"error": "invalid_grant", "error_description": "revoked"})));
    server.reply(ServerReply::status(503).send("later"));
    assert_eq!(
        key(resolve(&logins, &storage).await),
        "Authentication failed for \"anthropic\": Anthropic token refresh failed (400): invalid_grant: revoked. Sign in again."
    );
    assert_eq!(
        key(resolve(&logins, &storage).await),
        "Authentication failed for \"anthropic\": Anthropic token refresh failed (503): later"
    );
    assert_eq!(stored(&path)["anthropic"]["refresh"], "R0", "the login stays");
    // About to expire is not expired.
    let path = auth_json(dir.path(), 3);
    server.reply(ServerReply::status(503));
    assert_eq!(key(resolve(&logins, &opened(&path)).await), "A0");
}

#[tokio::test(start_paused = true)]
async fn a_lock_held_too_long_is_a_distinct_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = auth_json(dir.path(), 0);
    let _held = DirLock::acquire(&path, &DirLockOptions::PATIENT, &host()).unwrap();
    let error = resolve(&logins("http://127.0.0.1:1"), &opened(&path)).await.unwrap_err();
    assert!(matches!(&error, AuthError::Locked { reason, .. } if reason.contains("auth.json")), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn links_share_one_lock_and_stay_links() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let real = auth_json(elsewhere.path(), 0);
    let link = dir.path().join("auth.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let server = Server::start().await.unwrap();
    server.reply(tokens());
    let (by_link, by_name) = (logins(&server.url()), logins(&server.url()));
    let (of_link, of_name) = (opened(&link), opened(&real));
    let (a, b) = tokio::join!(resolve(&by_link, &of_link), resolve(&by_name, &of_name));
    assert_eq!((key(a), key(b)), ("A1".to_owned(), "A1".to_owned()));
    assert_eq!(server.requests().len(), 1);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(stored(&real)["anthropic"]["refresh"], "R1");
}

#[tokio::test]
async fn a_gemini_cli_login_is_the_key_of_cloud_code_assist() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start().await.unwrap();
    let google = ProviderId::from("google-gemini-cli");
    let path = dir.path().join("auth.json");
    let store = |minutes: i64, more: Value| {
        let mut login = json!({"type": "oauth", "refresh": "R0", "access": "A0", "expires": in_minutes(minutes),
            "projectId": "p", "email": "e"});
        login.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        std::fs::write(&path, json!({"google-gemini-cli": login}).to_string()).unwrap();
    };
    let found = async || {
        let auth =
            RegistryAuth::new(Arc::new(ModelRegistry::load(&dir.path().join("none")).0), opened(&path), None, host());
        auth.with_logins(google_logins(&server.url())).key(&google, KeyLookup::Value).await
    };
    store(60, json!({}));
    assert_eq!(key(found().await), r#"{"token":"A0","projectId":"p"}"#);

    // Without a client id an expired login cannot be refreshed, and no server is contacted.
    store(-1, json!({}));
    let why = key(found().await);
    assert!(why.contains("clientId and clientSecret"), "{why}");
    assert!(server.requests().is_empty());

    store(-1, json!({"clientId": "c", "clientSecret": "s"}));
    server.reply(ServerReply::json(200, &json!({"access_token": "A1", "expires_in": 3600})));
    assert_eq!(key(found().await), r#"{"token":"A1","projectId":"p"}"#);
    let asked = &server.requests()[0];
    let body = "client_id=c&client_secret=s&refresh_token=R0&grant_type=refresh_token";
    assert_eq!(
        (asked.path.as_str(), String::from_utf8_lossy(&asked.body).as_ref()),
        ("/oauth2.googleapis.com/token", body)
    );
    let kept = &stored(&path)["google-gemini-cli"];
    assert_eq!((&kept["refresh"], &kept["access"], &kept["projectId"]), (&json!("R0"), &json!("A1"), &json!("p")));
}

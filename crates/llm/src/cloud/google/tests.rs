use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pinch_stdx::host::{Env, Host};
use pinch_testing::server::{Gate, Server, ServerReply};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::*;
use crate::message::Message;
use crate::model::Model;
use crate::request::{CallOptions, SystemPrompt};

/// Creates a request on a machine with these variables, a credentials file, and a stopped clock.
fn request(dir: &std::path::Path, file: Option<&Value>, more: &[(&str, &str)], now_ms: i64) -> Request {
    let record = json!({"id": "m", "api": "google-vertex", "provider": "google-vertex"});
    let mut env: Env = [("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "l")].into_iter().collect();
    if let Some(content) = file {
        let path = dir.join("credentials.json");
        std::fs::write(&path, content.to_string()).unwrap();
        env = env.with([("GOOGLE_APPLICATION_CREDENTIALS", path.display().to_string())]);
    }
    Request {
        model: Arc::new(Model::from_record(&record).unwrap()),
        system: SystemPrompt::default(),
        messages: vec![Arc::new(Message::user("hi", 1))],
        tools: Arc::default(),
        options: CallOptions::default(),
        auth: Auth::default(),
        host: Host::builder().clock(now_ms, 0).env(env.with(more.iter().copied())).home(dir).build(),
    }
}

fn login(server: &Server) -> Value {
    json!({"type": "authorized_user", "client_id": "ci", "client_secret": "cs", "refresh_token": "rt", "token_uri": server.url()})
}

fn token(word: &str, seconds: i64) -> ServerReply {
    ServerReply::json(200, &json!({"access_token": word, "expires_in": seconds}))
}

async fn bearer(credentials: &GoogleCredentials, request: &Request) -> Result<Option<String>, LlmError> {
    let found = credentials.resolve(request, &HttpClient::new()).await?;
    Ok(found.and_then(|auth| auth.headers.into_iter().find(|(name, _)| name == "authorization")?.1))
}

#[tokio::test]
async fn tokens_are_kept_until_shortly_before_they_expire() {
    let (server, dir) = (Server::start().await.unwrap(), tempfile::tempdir().unwrap());
    server.reply(token("one", 3_600)).reply(token("two", 3_600)).reply(token("three", 3_600));
    let credentials = GoogleCredentials::default();
    let file = login(&server);
    let at = |now_ms| request(dir.path(), Some(&file), &[], now_ms);
    assert_eq!(bearer(&credentials, &at(0)).await.unwrap().as_deref(), Some("Bearer one"));
    assert_eq!(bearer(&credentials, &at(3_374_000)).await.unwrap().as_deref(), Some("Bearer one"));
    assert_eq!(bearer(&credentials, &at(3_375_000)).await.unwrap().as_deref(), Some("Bearer two"));
    let mut other = file.clone();
    other["refresh_token"] = "new".into();
    let after_login = request(dir.path(), Some(&other), &[], 3_375_000);
    assert_eq!(bearer(&credentials, &after_login).await.unwrap().as_deref(), Some("Bearer three"));
}

#[tokio::test]
async fn concurrent_calls_refresh_once() {
    let (server, dir) = (Server::start().await.unwrap(), tempfile::tempdir().unwrap());
    let gate = Gate::new();
    server.reply(ServerReply::status(200).gate(&gate).send(r#"{"access_token":"one","expires_in":3600}"#));
    let credentials = GoogleCredentials::default();
    let request = request(dir.path(), Some(&login(&server)), &[], 0);
    let open = async {
        server.wait_for_requests(1).await;
        gate.open();
    };
    let (a, b, ()) = tokio::join!(bearer(&credentials, &request), bearer(&credentials, &request), open);
    assert_eq!((a.unwrap().as_deref(), b.unwrap().as_deref()), (Some("Bearer one"), Some("Bearer one")));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn service_accounts_sign_their_own_tokens() {
    let (server, dir) = (Server::start().await.unwrap(), tempfile::tempdir().unwrap());
    server.reply(token("one", 3_600));
    // Generated for this test: not used anywhere.
    let pem = include_str!("test_key.pem");
    let lines: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let key = RsaKeyPair::from_pkcs8(&STANDARD.decode(lines).unwrap()).unwrap();
    let file = json!({"type": "service_account", "client_email": "a@p", "private_key_id": "k1", "private_key": pem, "token_uri": server.url()});
    let request = request(dir.path(), Some(&file), &[], 5_000);
    assert_eq!(bearer(&GoogleCredentials::default(), &request).await.unwrap().as_deref(), Some("Bearer one"));

    let body = String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
    let assertion =
        body.strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=").unwrap();
    let (said, signature) = assertion.rsplit_once('.').unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref())
        .verify(said.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
    let parts: Vec<Value> =
        said.split('.').map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()).collect();
    assert_eq!(parts[0], json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    assert_eq!(
        parts[1],
        json!({"iss": "a@p", "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": server.url(), "iat": 5, "exp": 3605})
    );
}

#[tokio::test]
async fn the_metadata_server_is_called_only_if_the_environment_names_one() {
    let (server, dir) = (Server::start().await.unwrap(), tempfile::tempdir().unwrap());
    server.reply(token("one", 3_600));
    let credentials = GoogleCredentials::default();
    assert_eq!(bearer(&credentials, &request(dir.path(), None, &[], 0)).await.unwrap(), None);
    let url = server.url();
    let host = url.trim_start_matches("http://");
    let request = request(dir.path(), None, &[("GCE_METADATA_HOST", host), ("HTTP_PROXY", "http://127.0.0.1:1")], 0);
    assert_eq!(bearer(&credentials, &request).await.unwrap().as_deref(), Some("Bearer one"));
    let asked = &server.requests()[0];
    assert_eq!((asked.method.as_str(), asked.header("metadata-flavor")), ("GET", Some("Google")));
    assert!(asked.path.starts_with("/computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A"));
}

#[tokio::test]
async fn no_token_is_fetched_for_an_invalid_request_or_one_with_a_key() {
    let (server, dir) = (Server::start().await.unwrap(), tempfile::tempdir().unwrap());
    let with = |more: &[(&str, &str)]| request(dir.path(), Some(&login(&server)), more, 0);
    let credentials = GoogleCredentials::default();
    assert_eq!(bearer(&credentials, &with(&[("GOOGLE_CLOUD_LOCATION", "")])).await.unwrap(), None);
    assert_eq!(bearer(&credentials, &with(&[("GOOGLE_CLOUD_API_KEY", "k")])).await.unwrap(), None);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn errors_name_unusable_credentials() {
    let dir = tempfile::tempdir().unwrap();
    let fails = |content: Value| {
        let request = request(dir.path(), Some(&content), &[], 0);
        async move {
            let error = bearer(&GoogleCredentials::default(), &request).await.unwrap_err();
            assert_eq!(error.kind, LlmErrorKind::Auth);
            assert!(error.text.contains("credentials.json"), "{}", error.text);
            error.text
        }
    };
    for kind in ["impersonated_service_account", "external_account"] {
        let text = fails(json!({"type": kind})).await;
        assert!(text.contains(kind) && text.contains("gcloud auth application-default login"), "{text}");
    }
    assert!(fails(json!([1])).await.ends_with("is not JSON of the expected form."));
    assert!(fails(json!({"type": "authorized_user", "client_id": "c"})).await.ends_with("has no client_secret."));
    for far in ["http://h.test", "http://127.0.0.1.h.test", "http://localhost.h.test"] {
        let open = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": far});
        assert!(fails(open).await.ends_with("is not https."), "{far}");
    }
    let odd = json!({"type": "service_account", "client_email": "e", "private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"});
    assert!(fails(odd).await.ends_with("its private_key is not an RSA key."));
    let named = dir.path().join("credentials.json.d");
    std::fs::create_dir(&named).unwrap();
    let folder = request(dir.path(), None, &[("GOOGLE_APPLICATION_CREDENTIALS", named.to_str().unwrap())], 0);
    let text = bearer(&GoogleCredentials::default(), &folder).await.unwrap_err().text;
    assert!(text.ends_with("cannot be read: it is not a regular file"), "{text}");
    let missing = request(dir.path(), None, &[("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/credentials.json")], 0);
    let text = bearer(&GoogleCredentials::default(), &missing).await.unwrap_err().text;
    assert!(
        text.contains("/nowhere/credentials.json (named by GOOGLE_APPLICATION_CREDENTIALS) cannot be read"),
        "{text}"
    );
}

#[tokio::test]
async fn rejected_logins_name_the_remedy_and_busy_servers_are_retryable() {
    let (server, dir) = (Server::start().await.unwrap(), tempfile::tempdir().unwrap());
    server.reply(ServerReply::json(
        400,
        &json!({"error": "invalid_grant", "error_description": "Token has been revoked."}),
    ));
    server.reply(ServerReply::status(503)).reply(ServerReply::json(200, &json!({})));
    let credentials = GoogleCredentials::default();
    let request = request(dir.path(), Some(&login(&server)), &[], 0);
    let error = bearer(&credentials, &request).await.unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Auth);
    assert!(error.text.contains("again (400 invalid_grant: Token has been revoked.)"), "{}", error.text);
    assert!(bearer(&credentials, &request).await.unwrap_err().retryable());
    let error = bearer(&credentials, &request).await.unwrap_err();
    assert_eq!(
        (error.kind, error.text.as_str()),
        (LlmErrorKind::Protocol, "127.0.0.1 answered without an access token.")
    );
    let secret = "Bearer hush";
    let auth = Auth { headers: vec![("authorization".into(), Some(secret.into()))], ..Auth::default() };
    assert!(!format!("{auth:?}").contains(secret));
}

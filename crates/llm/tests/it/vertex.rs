//! Google Cloud: addresses of requests, and credentials of a machine.

use std::path::Path;

use pinch_llm::error::LlmErrorKind;
use pinch_llm::request::{Auth, Request};
use pinch_llm::stdx::host::{Env, Host};
use pinch_llm::wire::WireCall;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::google::GoogleResponse;
use serde_json::{Value, json};

use crate::support::{encode, end_of, format_of, model_with, request};

const API: &str = "google-vertex";
const BASE: &str = "https://{location}-aiplatform.googleapis.com";

fn at(base_url: &str, auth: Auth, env: &[(&str, &str)]) -> Request {
    let record = json!({"id": "gemini-3-flash", "provider": "google-vertex"});
    let mut request = request(model_with(API, base_url, record));
    request.auth = auth;
    request.host = Host::builder().clock(1_000, 0).env(env.iter().copied().collect::<Env>()).build();
    request
}

fn bearer() -> Auth {
    Auth::default().with_headers(vec![("authorization".into(), Some("Bearer t".into()))])
}

#[test]
fn urls_follow_credentials_and_location() {
    let env = |location| [("GCLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", location)];
    let rest = "publishers/google/models/gemini-3-flash:streamGenerateContent?alt=sse";
    let url = |auth: Auth, location: &'static str| encode(&at(BASE, auth, &env(location))).url;
    assert_eq!(url(Auth::key("k"), "l"), format!("https://aiplatform.googleapis.com/v1/{rest}"));
    let project = |host: &str, location: &str| format!("https://{host}/v1/projects/p/locations/{location}/{rest}");
    assert_eq!(url(bearer(), "us-east1"), project("us-east1-aiplatform.googleapis.com", "us-east1"));
    assert_eq!(url(bearer(), "global"), project("aiplatform.googleapis.com", "global"));
    assert_eq!(url(bearer(), "eu"), project("aiplatform.eu.rep.googleapis.com", "eu"));
    assert_eq!(encode(&at("http://proxy", bearer(), &env("l"))).url, format!("http://proxy/v1/{rest}"));
}

#[test]
fn keys_and_placeholders_choose_the_credentials() {
    let headers = |auth: Auth, env: &[(&str, &str)]| encode(&at(BASE, auth, env)).headers;
    assert_eq!(headers(Auth::key(" k "), &[])["x-goog-api-key"], "k");
    assert_eq!(headers(Auth::key("gcp-vertex-credentials"), &[("GOOGLE_CLOUD_API_KEY", "e ")])["x-goog-api-key"], "e");
    let error = |env: &[(&str, &str)]| {
        let request = at(BASE, Auth::key("<authenticated>"), env);
        let call = WireCall::new(&request, 0);
        format_of(API).encode(&call).unwrap_err()
    };
    assert!(error(&[]).text.starts_with("Vertex AI requires a project ID."));
    assert!(error(&[("GOOGLE_CLOUD_PROJECT", "p")]).text.starts_with("Vertex AI requires a location."));
    let odd = error(&[("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "evil.test/")]);
    assert_eq!(odd.kind, LlmErrorKind::InvalidRequest);
    let none = error(&[("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "l")]);
    assert!(none.text.starts_with("No Google credentials found."), "{}", none.text);
    assert_eq!(none.kind, LlmErrorKind::Auth);
}

fn credentials(dir: &Path, content: &Value) -> String {
    let path = dir.join("adc.json");
    std::fs::write(&path, content.to_string()).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_login_becomes_a_token_that_is_sent() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::json(200, &json!({"access_token": "at", "expires_in": 3600})));
    server.reply(ServerReply::sse(GoogleResponse::new("r", "m").text("hi").stop("STOP").concat()));
    let dir = tempfile::tempdir().unwrap();
    let file = credentials(
        dir.path(),
        &json!({"type": "authorized_user", "client_id": "ci", "client_secret": "c s", "refresh_token": "r/t",
                "quota_project_id": "payer", "token_uri": format!("{}/token", server.url())}),
    );
    let env = [
        ("GOOGLE_APPLICATION_CREDENTIALS", file.as_str()),
        ("GOOGLE_CLOUD_PROJECT", "p"),
        ("GOOGLE_CLOUD_LOCATION", "l"),
    ];
    let end = end_of(at(&server.url(), Auth::default(), &env)).await;
    assert!(end.is_ok(), "{:?}", end.error);
    let asked = server.requests();
    let form = String::from_utf8(asked[0].body.to_vec()).unwrap();
    assert_eq!(form, "grant_type=refresh_token&client_id=ci&client_secret=c%20s&refresh_token=r%2Ft");
    assert_eq!(asked[1].header("authorization"), Some("Bearer at"));
    assert_eq!((asked[1].header("x-goog-user-project"), asked[1].header("x-goog-api-key")), (Some("payer"), None));
}

#[tokio::test]
async fn rejections_contain_googles_message() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::json(
        403,
        &json!({"error": {"code": 403, "message": "no access", "status": "PERMISSION_DENIED"}}),
    ));
    server.reply(ServerReply::status(500));
    let error = end_of(at(&server.url(), Auth::key("k"), &[])).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "403 no access"));
    let error = end_of(at(&server.url(), Auth::key("k"), &[])).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Server, "500 status code (no body)"));
}

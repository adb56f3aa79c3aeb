//! Cloud Code Assist logins: the sign-in with the user's own OAuth client, and the search for a project.

use pinch_llm::oauth::google::GoogleLogin;
use pinch_llm::oauth::{OAuthCredential, OAuthCx, OAuthError, OAuthFlow as _};
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::stdx::host::{Env, Host};
use pinch_testing::server::{Server, ServerReply};
use serde_json::{Value, json};

use crate::oauth::{LoginPerson, RedirectedTransport, form_of, login, query, refresh};

const NOW: i64 = 1_700_000_000_000;

async fn server(answers: &[(u16, Value)]) -> Server {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::json(200, &json!({"access_token": "A", "refresh_token": "R", "expires_in": 3_600})));
    for (status, answer) in answers {
        server.reply(ServerReply::json(*status, answer));
    }
    server
}

/// Pastes the final URL; the OAuth client comes from the environment with these additional variables.
async fn sign_in(
    flow: GoogleLogin,
    server: &Server,
    variables: &[(&str, &str)],
) -> Result<OAuthCredential, OAuthError> {
    let person = LoginPerson::new(Some("http://localhost/?code=CC&state=<state>"), None);
    let client = [("PINCH_GOOGLE_CLIENT_ID", "client"), ("PINCH_GOOGLE_CLIENT_SECRET", "hush")];
    let env: Env = client.iter().chain(variables).map(|(name, value)| (*name, *value)).collect();
    let (transport, cancel) = (RedirectedTransport::to(server), Cancel::new());
    let host = Host::builder().clock(NOW, 0).env(env).build();
    flow.login(&person, OAuthCx { transport: &transport, host: &host, cancel: &cancel }).await
}

fn paths(server: &Server) -> Vec<String> {
    server.requests().iter().map(|asked| asked.path.clone()).collect()
}

#[tokio::test]
async fn an_account_with_a_project_signs_in_and_refreshes_with_the_same_client() {
    let account = json!({"currentTier": {"id": "free-tier"}, "cloudaicompanionProject": "proj-1"});
    let server = server(&[(200, account), (200, json!({"email": "a@b.c"}))]).await;
    let person = LoginPerson::new(Some("http://localhost/?code=CC&state=<state>"), Some(" mine "));
    let credential = login(&GoogleLogin::GEMINI_CLI, &server, &person).await.unwrap();
    let expected = json!({
        "type": "oauth", "refresh": "R", "access": "A", "expires": NOW + 3_600_000 - 300_000, "projectId": "proj-1",
        "email": "a@b.c", "clientId": "mine", "clientSecret": "mine",
    });
    assert_eq!(credential.to_value(), expected);
    let url = person.page().url;
    let asked =
        ["client_id", "access_type", "prompt", "code_challenge_method"].map(|name| query(&url, name).to_owned());
    assert_eq!(asked, ["mine", "offline", "consent", "S256"]);
    assert_eq!(query(&url, "redirect_uri"), "http%3A%2F%2Flocalhost%3A8085%2Foauth2callback");
    let requests = server.requests();
    assert!(form_of(&requests[0]).contains("client_secret=mine&code=CC&grant_type=authorization_code"));
    assert_eq!(requests[1].path, "/cloudcode-pa.googleapis.com/v1internal:loadCodeAssist");
    assert_eq!(requests[1].header("authorization"), Some("Bearer A"));
    server.reply(ServerReply::json(200, &json!({"access_token": "A2", "expires_in": 60})));
    let fresh = refresh(&GoogleLogin::GEMINI_CLI, &server, &expected).await.unwrap();
    assert_eq!(
        (fresh.access.reveal(), fresh.refresh.reveal(), &fresh.extra["projectId"]),
        ("A2", "R", &json!("proj-1"))
    );
    assert!(form_of(&server.requests()[3]).contains("client_id=mine&client_secret=mine&refresh_token=R"));
}

#[tokio::test(start_paused = true)]
async fn a_new_account_gets_a_project_of_the_default_tier() {
    let tiers = json!({"allowedTiers": [{"id": "standard-tier"}, {"id": "free-tier", "isDefault": true}]});
    let started = json!({"name": "operations/1", "done": false});
    let done = json!({"name": "operations/1", "done": true, "response": {"cloudaicompanionProject": {"id": "made"}}});
    let server = server(&[(200, tiers), (200, started.clone()), (200, started), (200, done), (404, json!({}))]).await;
    let credential = sign_in(GoogleLogin::GEMINI_CLI, &server, &[("GOOGLE_CLOUD_PROJECT", "mine")]).await.unwrap();
    assert_eq!((&credential.extra["projectId"], credential.extra.get("email")), (&json!("made"), None));
    let host = "/cloudcode-pa.googleapis.com";
    let expected = ["v1internal:loadCodeAssist", "v1internal:onboardUser", "v1internal/operations/1"];
    assert_eq!(paths(&server)[1..4], expected.map(|path| format!("{host}/{path}")));
    let onboarding = server.requests()[2].json();
    assert_eq!((&onboarding["tierId"], onboarding.get("cloudaicompanionProject")), (&json!("free-tier"), None));
}

#[tokio::test]
async fn accounts_that_need_their_own_project_take_it_from_the_environment_or_fail() {
    let perimeter = json!({"error": {"code": 403, "details": [{"reason": "SECURITY_POLICY_VIOLATED"}]}});
    let of_paid = json!({"allowedTiers": [{"id": "standard-tier", "isDefault": true}]});
    let made = json!({"done": true, "response": {}});
    let named = [("GOOGLE_CLOUD_PROJECT_ID", "named")];
    let server_1 = server(&[(403, perimeter.clone()), (200, json!({}))]).await;
    let credential = sign_in(GoogleLogin::GEMINI_CLI, &server_1, &named).await.unwrap();
    assert_eq!(credential.extra["projectId"], "named");
    let server_2 = server(&[(200, of_paid.clone()), (200, made), (200, json!({}))]).await;
    let credential = sign_in(GoogleLogin::GEMINI_CLI, &server_2, &named).await.unwrap();
    assert_eq!(credential.extra["projectId"], "named");
    assert_eq!(server_2.requests()[2].json()["cloudaicompanionProject"], "named");
    for account in [(403, perimeter), (200, of_paid)] {
        let error = sign_in(GoogleLogin::GEMINI_CLI, &server(&[account]).await, &[]).await.unwrap_err();
        assert!(error.to_string().contains("Set GOOGLE_CLOUD_PROJECT"), "{error}");
    }
    let refused = server(&[(403, json!({"error": {"message": "no access"}}))]).await;
    let error = sign_in(GoogleLogin::GEMINI_CLI, &refused, &named).await.unwrap_err();
    assert_eq!(error.to_string(), "Google account lookup failed (403): no access");
}

#[tokio::test]
async fn antigravity_tries_both_of_its_services() {
    let found = json!({"cloudaicompanionProject": {"id": "sand"}});
    let server_1 = server(&[(404, json!({})), (200, found), (200, json!({}))]).await;
    let credential = sign_in(GoogleLogin::ANTIGRAVITY, &server_1, &[]).await.unwrap();
    assert_eq!(credential.extra["projectId"], "sand");
    let hosts = ["cloudcode-pa.googleapis.com", "daily-cloudcode-pa.sandbox.googleapis.com"];
    assert_eq!(paths(&server_1)[1..3], hosts.map(|host| format!("/{host}/v1internal:loadCodeAssist")));
    let nothing = server(&[(200, json!({})), (200, json!({}))]).await;
    assert!(sign_in(GoogleLogin::ANTIGRAVITY, &nothing, &[]).await.is_err());
}

#[tokio::test]
async fn signing_in_requires_an_oauth_client() {
    let server = Server::start().await.unwrap();
    let error = login(&GoogleLogin::GEMINI_CLI, &server, &LoginPerson::new(None, Some(" "))).await.unwrap_err();
    assert!(error.to_string().contains("set PINCH_GOOGLE_CLIENT_ID"), "{error}");
    let error = login(&GoogleLogin::GEMINI_CLI, &server, &LoginPerson::new(None, None)).await.unwrap_err();
    assert_eq!(error, OAuthError::Cancelled);
    assert!(server.requests().is_empty());
}

//! Logins with a browser: it redirects to this machine, or the user pastes its result.

use std::sync::Arc;

use http::{HeaderMap, Method};
use pinch_llm::http::{HttpClient, Outgoing};
use pinch_llm::oauth::transport::{HttpTransport, OAuthResponse};
use pinch_llm::oauth::{OAuthCx, OAuthError, OAuthFlow as _, OAuthTransport as _, anthropic, codex};
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_llm::stdx::host::{Env, Host};
use pinch_testing::server::{Gate, Server, ServerReply};
use serde_json::json;
use tokio::net::TcpListener;

use crate::oauth::{LoginPerson, RedirectedTransport, form_of, host, login, query};

const JWT: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEifX0=.s";
const CLAUDE: anthropic::AnthropicLogin = anthropic::AnthropicLogin::with_callback_port(0);
const CODEX: codex::CodexLogin = codex::CodexLogin::with_callback_port(0);

/// Starts a server that exchanges one code.
async fn server() -> Server {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::json(200, &json!({"access_token": JWT, "refresh_token": "R", "expires_in": 3_600})));
    server
}

/// Returns the redirect URI of a page.
fn redirect(url: &str) -> String {
    let encoded = format!("x={}", query(url, "redirect_uri"));
    url::form_urlencoded::parse(encoded.as_bytes()).next().unwrap().1.into_owned()
}

/// Acts like a browser after the sign-in; returns the page that is shown then.
async fn browse(url: &str, answer: &str) -> OAuthResponse {
    let back = redirect(url).replace("localhost", "127.0.0.1");
    let network = HttpTransport::new(Arc::new(HttpClient::new()), Env::default());
    let url = format!("{back}?{answer}&state={}", query(url, "state"));
    let visit = Outgoing { method: Method::GET, url, headers: HeaderMap::new(), body: bytes::Bytes::new() };
    network.send(visit).await.unwrap()
}

#[tokio::test]
async fn a_browser_on_this_machine_ends_the_login() {
    let server = server().await;
    let person = LoginPerson::new(None, None);
    let browser = async {
        let page = person.wait_for_page().await;
        browse(&page.url, "code=CC").await
    };
    let (credential, shown) = tokio::join!(login(&CLAUDE, &server, &person), browser);
    let expected =
        json!({"type": "oauth", "refresh": "R", "access": JWT, "expires": 1_700_000_000_000_i64 + 3_600_000 - 300_000});
    assert_eq!(credential.unwrap().to_value(), expected);
    assert!(shown.status == 200 && String::from_utf8(shown.body).unwrap().contains("You are signed in"));
    let body = server.requests()[0].json();
    let names: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["grant_type", "client_id", "code", "state", "redirect_uri", "code_verifier"]);
    assert_eq!((&body["code"], &body["redirect_uri"]), (&json!("CC"), &json!(redirect(&person.page().url))));
    assert!(redirect(&person.page().url).starts_with("http://localhost:"), "{}", person.page().url);
    assert_ne!(body["state"], body["code_verifier"], "the verifier stays secret");
}

#[tokio::test]
async fn a_sign_in_rejected_in_the_browser_ends_the_login() {
    let server = Server::start().await.unwrap();
    let person = LoginPerson::new(None, None);
    let browser = async {
        let page = person.wait_for_page().await;
        browse(&page.url, "error=access_denied").await.status
    };
    let (done, status) = tokio::join!(login(&CODEX, &server, &person), browser);
    assert_eq!((done.unwrap_err().to_string().as_str(), status), ("The sign-in was refused: access_denied", 400));
}

#[tokio::test]
async fn pasting_completes_the_login_like_the_browser() {
    let server = server().await;
    let person = LoginPerson::new(Some("http://localhost:1455/auth/callback?code=CC&state=<state>"), None);
    let credential = login(&CODEX, &server, &person).await.unwrap();
    assert_eq!(
        credential.to_value(),
        json!({"type": "oauth", "refresh": "R", "access": JWT, "expires": 1_700_003_600_000_i64, "accountId": "acc-1"})
    );
    let url = person.page().url;
    let (state, challenge, back) = (query(&url, "state"), query(&url, "code_challenge"), query(&url, "redirect_uri"));
    assert_eq!(
        url,
        format!(
            "https://auth.openai.com/oauth/authorize?response_type=code&client_id=app_EMoamEEZ73f0CkXaXp7hrann\
             &redirect_uri={back}&scope=openid+profile+email+offline_access\
             &code_challenge={challenge}&code_challenge_method=S256&state={state}&id_token_add_organizations=true\
             &codex_cli_simplified_flow=true&originator=pi"
        )
    );
    assert_eq!((state.len(), challenge.len()), (32, 43));
    let asked = &server.requests()[0];
    assert_eq!(
        (asked.path.as_str(), asked.header("content-type")),
        ("/auth.openai.com/oauth/token", Some("application/x-www-form-urlencoded"))
    );
    let form = form_of(asked);
    let names: Vec<&str> = form.split('&').map(|pair| pair.split('=').next().unwrap()).collect();
    assert_eq!(names, ["grant_type", "client_id", "code", "code_verifier", "redirect_uri"]);
    assert!(!url.contains(query(&format!("?{form}"), "code_verifier")), "the verifier stays secret");
}

#[tokio::test]
async fn codes_of_other_logins_are_rejected() {
    let server = Server::start().await.unwrap();
    for (pasted, words) in [
        ("http://localhost/cb?code=a&state=forged", "state mismatch"),
        ("a#forged", "state mismatch"),
        ("http://localhost/cb?error=access_denied&state=<state>", "refused: access_denied"),
        ("http://localhost/cb", "Missing authorization code"),
    ] {
        let error = login(&CLAUDE, &server, &LoginPerson::new(Some(pasted), None)).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let nobody = LoginPerson::new(Some(" "), None);
    assert_eq!(login(&CODEX, &server, &nobody).await, Err(OAuthError::Cancelled));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn after_an_empty_paste_the_browser_can_still_complete_the_login() {
    let server = server().await;
    let asked = LoginPerson::new(Some(" "), Some("CC"));
    assert!(login(&CLAUDE, &server, &asked).await.is_ok());
    assert_eq!(server.requests()[0].json()["code"], "CC");
}

/// If the port is in use, pasting remains: from the provider's own page if it has one, else the final URL.
#[tokio::test]
async fn pasting_works_if_the_port_is_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let server = server().await;
    let person = LoginPerson::new(Some("CC#<state>"), None);
    login(&anthropic::AnthropicLogin::with_callback_port(port), &server, &person).await.unwrap();
    assert_eq!(redirect(&person.page().url), "https://platform.claude.com/oauth/code/callback");
    assert!(person.page().instructions.unwrap().contains("paste the code"));
    assert_eq!(server.requests()[0].json()["redirect_uri"], "https://platform.claude.com/oauth/code/callback");
    let said = person.progress.lock().unwrap()[0].clone();
    assert!(said.contains(&format!("cannot listen on 127.0.0.1:{port} (")), "{said}");

    server.reply(ServerReply::json(200, &json!({"access_token": JWT, "refresh_token": "R", "expires_in": 3_600})));
    let codex = codex::CodexLogin::with_callback_port(port);
    let person = LoginPerson::new(Some("http://localhost/auth/callback?code=CC&state=<state>"), None);
    login(&codex, &server, &person).await.unwrap();
    assert_eq!(redirect(&person.page().url), format!("http://localhost:{port}/auth/callback"));
    let person = LoginPerson::new(None, Some("CC"));
    server.reply(ServerReply::json(200, &json!({"access_token": JWT, "refresh_token": "R", "expires_in": 3_600})));
    login(&codex, &server, &person).await.unwrap();
    assert!(form_of(&server.requests()[2]).contains("code=CC&"), "without pasting, the person is asked");
}

#[tokio::test]
async fn a_browser_on_another_machine_shows_the_code() {
    let server = server().await;
    let mut person = LoginPerson::new(Some("CC#<state>"), None);
    person.is_remote = true;
    login(&CLAUDE, &server, &person).await.unwrap();
    assert_eq!(redirect(&person.page().url), "https://platform.claude.com/oauth/code/callback");
    assert!(person.progress.lock().unwrap().iter().all(|said| !said.contains("listen")));
}

#[tokio::test]
async fn the_environment_names_the_interface_of_the_callback_server() {
    let server = server().await;
    for name in ["PINCH_OAUTH_CALLBACK_HOST", "PI_OAUTH_CALLBACK_HOST"] {
        let person = LoginPerson::new(Some("http://localhost:1/?error=enough&state=<state>"), None);
        let host = Host::builder().env(Env::from_iter([(name, "192.0.2.1")])).build();
        let (transport, cancel) = (RedirectedTransport::to(&server), Cancel::new());
        let done = CODEX.login(&person, OAuthCx { transport: &transport, host: &host, cancel: &cancel }).await;
        assert_eq!(done.unwrap_err().to_string(), "The sign-in was refused: enough");
        assert!(person.progress.lock().unwrap()[0].contains("cannot listen on 192.0.2.1:0"), "{name}");
    }
    assert!(server.requests().is_empty());
}

/// Cancelling ends a login at every step, and frees the port.
#[tokio::test]
async fn a_login_can_be_cancelled_at_every_step() {
    let server = Server::start().await.unwrap();
    let (transport, host) = (RedirectedTransport::to(&server), host());
    // While waiting for the browser.
    let (cancel, person) = (Cancel::new(), LoginPerson::new(None, None));
    let cx = OAuthCx { transport: &transport, host: &host, cancel: &cancel };
    let giving_up = async {
        let page = person.wait_for_page().await;
        cancel.cancel(CancelReason::User);
        redirect(&page.url)
    };
    let (done, back) = tokio::join!(CLAUDE.login(&person, cx), giving_up);
    assert_eq!(done, Err(OAuthError::Cancelled));
    let address = back.replace("http://localhost", "127.0.0.1").replace("/callback", "");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
    // While exchanging the code.
    let gate = Gate::new();
    server.reply(ServerReply::status(200).gate(&gate).send("{}"));
    let (cancel, person) = (Cancel::new(), LoginPerson::new(Some("CC"), None));
    let cx = OAuthCx { transport: &transport, host: &host, cancel: &cancel };
    let giving_up = async {
        server.wait_for_requests(1).await;
        cancel.cancel(CancelReason::User);
    };
    let (done, ()) = tokio::join!(CODEX.login(&person, cx), giving_up);
    assert_eq!(done, Err(OAuthError::Cancelled));
    // Before the start.
    let cx = OAuthCx { transport: &transport, host: &host, cancel: &cancel };
    assert_eq!(CLAUDE.login(&LoginPerson::new(None, None), cx).await, Err(OAuthError::Cancelled));
}

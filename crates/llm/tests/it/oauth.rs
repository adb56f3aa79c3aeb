//! Logins and refreshes against servers on the loopback interface.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_llm::http::{HttpClient, Outgoing};
use pinch_llm::oauth::transport::{HttpTransport, OAuthResponse};
use pinch_llm::oauth::{
    LoginChoice, LoginPrompt, LoginUi, OAuthCredential, OAuthCx, OAuthError, OAuthFlow, OAuthRegistry, OAuthTransport,
    SignInPage, anthropic, codex, copilot,
};
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_llm::stdx::host::{Env, Host};
use pinch_testing::server::{Recorded, Server, ServerReply};
use serde_json::{Value, json};
use tokio::sync::watch;

const NOW: i64 = 1_700_000_000_000;
const JWT: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEifX0=.s";

/// Sends everything to one server, along with the original URL.
pub(crate) struct RedirectedTransport {
    server: String,
    network: HttpTransport,
}

impl RedirectedTransport {
    pub(crate) fn to(server: &Server) -> Self {
        let network = HttpTransport::new(Arc::new(HttpClient::new()), Env::default());
        Self { server: server.url(), network }
    }
}

impl OAuthTransport for RedirectedTransport {
    fn send(&self, mut request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
        let url = request.url.strip_prefix("https://").unwrap();
        request.url = format!("{}/{url}", self.server);
        self.network.send(request)
    }
}

/// A user who pastes, answers and looks.
pub(crate) struct LoginPerson {
    page: watch::Sender<Option<SignInPage>>,
    /// The pasted text once the page is shown; `<state>` stands for the page's state.
    pastes: Option<String>,
    answers: Option<String>,
    /// Whether the browser is on another machine.
    pub(crate) is_remote: bool,
    pub(crate) progress: Mutex<Vec<String>>,
}

impl LoginPerson {
    pub(crate) fn new(pastes: Option<&str>, answers: Option<&str>) -> Self {
        Self {
            page: watch::Sender::new(None),
            pastes: pastes.map(str::to_owned),
            answers: answers.map(str::to_owned),
            is_remote: false,
            progress: Mutex::default(),
        }
    }

    pub(crate) fn page(&self) -> SignInPage {
        self.page.borrow().clone().unwrap()
    }

    pub(crate) async fn wait_for_page(&self) -> SignInPage {
        self.page.subscribe().wait_for(Option::is_some).await.unwrap().clone().unwrap()
    }
}

/// Returns the value of a query member, still encoded.
pub(crate) fn query<'a>(url: &'a str, name: &str) -> &'a str {
    let pairs = url.split_once('?').unwrap().1.split('&');
    pairs.filter_map(|pair| pair.split_once('=')).find(|(known, _)| *known == name).unwrap().1
}

impl LoginUi for LoginPerson {
    fn show(&self, page: &SignInPage) {
        self.page.send_replace(Some(page.clone()));
    }

    fn prompt<'a>(&'a self, _: &'a LoginPrompt) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { self.answers.clone() })
    }

    fn select<'a>(&'a self, _: &'a LoginChoice) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { None })
    }

    fn is_headless(&self) -> bool {
        self.is_remote
    }

    fn progress(&self, text: &str) {
        self.progress.lock().unwrap().push(text.to_owned());
    }

    fn pasted(&self) -> Option<BoxFuture<'_, Option<String>>> {
        let text = self.pastes.clone()?;
        Some(Box::pin(async move {
            let page = self.wait_for_page().await;
            Some(if page.url.contains("state=") { text.replace("<state>", query(&page.url, "state")) } else { text })
        }))
    }
}

pub(crate) fn host() -> Host {
    Host::builder().clock(NOW, 0).build()
}

/// Signs in; one server stands in for all of the provider's.
pub(crate) async fn login(
    flow: &dyn OAuthFlow,
    server: &Server,
    person: &LoginPerson,
) -> Result<OAuthCredential, OAuthError> {
    let (transport, host, cancel) = (RedirectedTransport::to(server), host(), Cancel::new());
    flow.login(person, OAuthCx { transport: &transport, host: &host, cancel: &cancel }).await
}

pub(crate) async fn refresh(flow: &dyn OAuthFlow, server: &Server, old: &Value) -> Result<OAuthCredential, OAuthError> {
    let (transport, host, cancel) = (RedirectedTransport::to(server), host(), Cancel::new());
    let old = OAuthCredential::from_value(old).unwrap();
    flow.refresh(&old, OAuthCx { transport: &transport, host: &host, cancel: &cancel }).await
}

pub(crate) fn form_of(asked: &Recorded) -> String {
    String::from_utf8(asked.body.clone()).unwrap()
}

#[tokio::test]
async fn tokens_are_refreshed() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::json(200, &json!({"access_token": JWT, "expires_in": 10})));
    let old = json!({"type": "oauth", "refresh": "R0", "access": "old", "expires": 5, "accountId": "x", "kept": [1]});
    let fresh = refresh(&codex::CodexLogin::default(), &server, &old).await.unwrap();
    assert_eq!(
        form_of(&server.requests()[0]),
        "grant_type=refresh_token&refresh_token=R0&client_id=app_EMoamEEZ73f0CkXaXp7hrann"
    );
    assert_eq!(
        fresh.to_value(),
        json!({"type": "oauth", "refresh": "R0", "access": JWT, "expires": NOW + 10_000, "accountId": "acc-1", "kept": [1]})
    );
    server.reply(ServerReply::json(200, &json!({"access_token": "A2", "refresh_token": "R2", "expires_in": 3_600})));
    let fresh = refresh(&anthropic::AnthropicLogin::default(), &server, &old).await.unwrap();
    assert_eq!((fresh.refresh.reveal(), fresh.access.reveal(), &fresh.extra["kept"]), ("R2", "A2", &json!([1])));
    assert_eq!(server.requests()[1].json()["grant_type"], "refresh_token");
    server.reply(ServerReply::json(200, &json!({"token": "tid=1", "expires_at": 2_000_000_000})));
    let corp = json!({"refresh": "gho", "access": "", "expires": 0, "enterpriseUrl": "ghe.corp.com"});
    let fresh = refresh(&copilot::Copilot::default(), &server, &corp).await.unwrap();
    assert_eq!((fresh.expires, fresh.refresh.reveal()), (1_999_999_700_000, "gho"));
    let asked = &server.requests()[2];
    assert_eq!(
        (asked.path.as_str(), asked.header("authorization")),
        ("/api.ghe.corp.com/copilot_internal/v2/token", Some("Bearer gho"))
    );
}

#[tokio::test]
async fn rejections_contain_the_servers_message_but_no_token() {
    let server = Server::start().await.unwrap();
    let secret = "refresh-token-that-nobody-may-see";
    let old = json!({"refresh": secret, "access": "a", "expires": 0});
    let said = format!("token {secret} was\nrevoked");
    server.reply(ServerReply::json(400, &json!({"error": "invalid_grant", "error_description": said})));
    let error = refresh(&codex::CodexLogin::default(), &server, &old).await.unwrap_err();
    assert_eq!(error.to_string(), "OpenAI Codex token refresh failed (400): invalid_grant: token … was revoked");
    assert!(error.is_final());
    server.reply(ServerReply::json(200, &json!({"refresh_token": secret, "odd": secret})));
    let error = refresh(&anthropic::AnthropicLogin::default(), &server, &old).await.unwrap_err();
    assert_eq!(error.to_string(), "Anthropic token refresh failed: the answer has no access_token");
    server.reply(ServerReply::status(503).send(format!("down {secret}")));
    let error = refresh(&copilot::Copilot::default(), &server, &old).await.unwrap_err();
    assert_eq!(error.to_string(), "GitHub Copilot token request failed (503): down …");
    assert!(!error.is_final());
    let shown = format!("{:?}", OAuthCredential::from_value(&old));
    assert!(!shown.contains(secret), "{shown}");
}

fn device(interval: u64) -> ServerReply {
    ServerReply::json(
        200,
        &json!({"device_code": "DC", "user_code": "AB-CD", "verification_uri": "https://github.com/login/device",
                "interval": interval, "expires_in": 900}),
    )
}

#[tokio::test]
async fn a_copilot_login_polls_until_the_code_is_entered() {
    let server = Server::start().await.unwrap();
    let token = "tid=1;proxy-ep=proxy.individual.githubcopilot.com";
    server.reply(device(0)).reply(ServerReply::json(200, &json!({"access_token": "gho_x"})));
    server.reply(ServerReply::json(200, &json!({"token": token, "expires_at": 2_000_000_000})));
    server.reply(ServerReply::status(200)).reply(ServerReply::status(404));
    let person = LoginPerson::new(None, Some(""));
    let flow = copilot::Copilot::with_models(vec!["m1".into(), "m2".into()]);
    let credential = login(&flow, &server, &person).await.unwrap();
    assert_eq!(
        credential.to_value(),
        json!({"type": "oauth", "refresh": "gho_x", "access": token, "expires": 1_999_999_700_000_i64})
    );
    let page = person.page();
    assert_eq!(
        (page.url.as_str(), page.instructions.as_deref(), page.user_code.as_deref()),
        ("https://github.com/login/device", Some("Enter code: AB-CD"), Some("AB-CD"))
    );
    let asked = server.requests();
    let paths: Vec<&str> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(
        paths[..3],
        [
            "/github.com/login/device/code",
            "/github.com/login/oauth/access_token",
            "/api.github.com/copilot_internal/v2/token"
        ]
    );
    assert_eq!(form_of(&asked[0]), "client_id=Iv1.b507a08c87ecfe98&scope=read%3Auser");
    assert_eq!(
        form_of(&asked[1]),
        "client_id=Iv1.b507a08c87ecfe98&device_code=DC&grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
    );
    let mut policies = paths[3..].to_vec();
    policies.sort_unstable();
    assert_eq!(
        policies,
        ["/api.individual.githubcopilot.com/models/m1/policy", "/api.individual.githubcopilot.com/models/m2/policy"]
    );
    assert_eq!((asked[3].header("openai-intent"), asked[3].json()), (Some("chat-policy"), json!({"state": "enabled"})));
    let error = login(&flow, &server, &LoginPerson::new(None, Some("::bad::"))).await.unwrap_err();
    assert_eq!(error.to_string(), "Invalid GitHub Enterprise URL/domain");
}

/// Answers from a list, without a network, so that time can be paused. A text is the reason why there is no response; a number is a status.
struct Listed {
    answers: Mutex<Vec<Value>>,
    times: Mutex<Vec<tokio::time::Instant>>,
}

impl OAuthTransport for Listed {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
        self.times.lock().unwrap().push(tokio::time::Instant::now());
        let mut answers = self.answers.lock().unwrap();
        let body = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Box::pin(async move {
            match (body.as_str(), body.as_u64()) {
                (Some(why), _) => Err(why.to_owned()),
                (None, Some(status)) => Ok(OAuthResponse { status: status as u16, body: b"down".to_vec() }),
                (None, None) => Ok(OAuthResponse { status: 200, body: body.to_string().into_bytes() }),
            }
        })
    }
}

async fn device_flow(answers: Vec<Value>, cancel: &Cancel) -> (Result<OAuthCredential, OAuthError>, Vec<u64>) {
    let begin = json!({"device_code": "DC", "user_code": "AB", "verification_uri": "https://x/y", "interval": 5, "expires_in": 60});
    let answers = [vec![begin], answers].concat();
    let transport = Listed { answers: Mutex::new(answers), times: Mutex::default() };
    let host = host();
    let flow = copilot::Copilot::with_models(Vec::new());
    let person = LoginPerson::new(None, Some(""));
    let done = flow.login(&person, OAuthCx { transport: &transport, host: &host, cancel }).await;
    let times = transport.times.into_inner().unwrap();
    (done, times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect())
}

#[tokio::test(start_paused = true)]
async fn device_polling_respects_the_interval_of_the_server() {
    let pending = json!({"error": "authorization_pending"});
    let slow = json!({"error": "slow_down"});
    let good = vec![
        pending.clone(),
        slow.clone(),
        json!({"error": "slow_down", "interval": 6}),
        json!({"access_token": "g"}),
        json!({"token": "t", "expires_at": 1}),
    ];
    let (done, pauses) = device_flow(good.clone(), &Cancel::new()).await;
    assert!(done.is_ok());
    assert_eq!(pauses, [6, 6, 14, 9, 0], "5 s times 1.2; then 10 s times 1.4; then 6 s times 1.4");
    let (done, pauses) = device_flow(vec![pending.clone()], &Cancel::new()).await;
    assert_eq!(done.unwrap_err().to_string(), "Device flow timed out");
    assert_eq!(pauses.iter().sum::<u64>(), 60);
    let (done, pauses) =
        device_flow(vec![json!("reset"), json!(502), good[3].clone(), good[4].clone()], &Cancel::new()).await;
    assert!(done.is_ok(), "what fails for the moment is tried again");
    assert_eq!(pauses, [6, 12, 24, 0]);
    let (done, _) = device_flow(vec![json!(404)], &Cancel::new()).await;
    assert_eq!(done.unwrap_err().to_string(), "GitHub device flow failed (404): down");
    let (done, _) = device_flow(vec![slow], &Cancel::new()).await;
    assert!(done.unwrap_err().to_string().contains("clock"));
    let (done, _) =
        device_flow(vec![json!({"error": "access_denied", "error_description": "no"})], &Cancel::new()).await;
    assert_eq!(done.unwrap_err().to_string(), "Device flow failed: access_denied: no");
    let cancel = Cancel::new();
    let giving_up = async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        cancel.cancel(CancelReason::User);
    };
    let ((done, _), ()) = tokio::join!(device_flow(vec![pending], &cancel), giving_up);
    assert_eq!(done.unwrap_err().to_string(), "Login cancelled");
}

#[tokio::test(start_paused = true)]
async fn enabling_models_does_not_delay_a_login() {
    /// Never answers policy requests, and counts them.
    struct Silent(Listed, Mutex<usize>);

    impl OAuthTransport for Silent {
        fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
            if request.url.ends_with("/policy") {
                *self.1.lock().unwrap() += 1;
                return Box::pin(std::future::pending());
            }
            self.0.send(request)
        }
    }

    let begin = json!({"device_code": "DC", "user_code": "AB", "verification_uri": "https://x/y", "interval": 5, "expires_in": 60});
    let answers = vec![begin, json!({"access_token": "g"}), json!({"token": "t", "expires_at": 1})];
    let transport = Silent(Listed { answers: Mutex::new(answers), times: Mutex::default() }, Mutex::new(0));
    let flow = copilot::Copilot::with_models((0..9).map(|n| format!("m{n}")).collect());
    let (host, cancel, person) = (host(), Cancel::new(), LoginPerson::new(None, Some("")));
    let begun = tokio::time::Instant::now();
    let login = flow.login(&person, OAuthCx { transport: &transport, host: &host, cancel: &cancel }).await;
    assert_eq!((login.unwrap().access.reveal(), begun.elapsed().as_secs()), ("t", 6 + 30));
    assert_eq!(transport.1.into_inner().unwrap(), 4, "no more than four at once");
}

struct Mine;

impl OAuthFlow for Mine {
    fn id(&self) -> &str {
        "anthropic"
    }

    fn name(&self) -> &str {
        "mine"
    }

    fn login<'a>(&'a self, _: &'a dyn LoginUi, _: OAuthCx<'a>) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(async { Err(OAuthError::Cancelled) })
    }

    fn refresh<'a>(
        &'a self,
        _: &'a OAuthCredential,
        _: OAuthCx<'a>,
    ) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>> {
        Box::pin(async { Err(OAuthError::Invalid("no".into())) })
    }
}

#[tokio::test]
async fn the_registry_restores_built_in_flows() {
    let mut registry = OAuthRegistry::built_in();
    let names =
        |registry: &OAuthRegistry| registry.list().iter().map(|flow| flow.name().to_owned()).collect::<Vec<_>>();
    let built_in = ["Anthropic (Claude Pro/Max)", "GitHub Copilot", "ChatGPT Plus/Pro (Codex Subscription)"];
    assert_eq!(names(&registry), built_in);
    registry.register(Arc::new(Mine));
    assert_eq!(names(&registry)[0], "mine");
    let server = Server::start().await.unwrap();
    let (transport, host, cancel) = (RedirectedTransport::to(&server), host(), Cancel::new());
    let cx = OAuthCx { transport: &transport, host: &host, cancel: &cancel };
    let credential = |expires: i64| {
        OAuthCredential::from_value(&json!({"refresh": "r", "access": "a", "expires": expires})).unwrap()
    };
    let (key, fresh) = registry.usable_key("anthropic", &credential(NOW + 1), cx).await.unwrap();
    assert_eq!((key.reveal(), fresh), ("a", None));
    let error = registry.usable_key("anthropic", &credential(NOW), cx).await.unwrap_err();
    assert_eq!(error.to_string(), "Failed to refresh OAuth token for anthropic: no");
    let error = registry.usable_key("nobody", &credential(NOW), cx).await.unwrap_err();
    assert_eq!(error.to_string(), "Unknown OAuth provider: nobody");
    registry.unregister("anthropic");
    assert_eq!(names(&registry), built_in);
    let business = OAuthCredential::from_value(
        &json!({"access": "proxy-ep=proxy.business.githubcopilot.com", "refresh": "", "expires": 0}),
    );
    let mut models = ["github-copilot", "openai"]
        .map(|provider| crate::support::model_with("openai-completions", "https://b", json!({"provider": provider})));
    registry.modify_models("github-copilot", &business.unwrap(), &mut models);
    assert_eq!(models.map(|model| model.base_url), ["https://api.business.githubcopilot.com", "https://b"]);
}
